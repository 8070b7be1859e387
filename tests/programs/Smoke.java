// SPDX-License-Identifier: GPL-2.0
/*
 * Java with threads, compiled code and the garbage collector at work; see
 * check.h for the protocol of READY and GO.
 */
import java.io.File;
import java.util.HashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

public class Smoke {
	static long work(long n) {
		long x = n;
		for (int i = 0; i < 20000; i++)
			x = x * 6364136223846793005L + 1442695040888963407L;
		return x;
	}

	public static void main(String[] arguments) throws Exception {
		HashMap<Integer, String> table = new HashMap<>();
		ExecutorService pool = Executors.newFixedThreadPool(4);
		long before = work(1);

		for (int i = 0; i < 10000; i++)
			table.put(i, "value " + i);
		new File(arguments[0]).createNewFile();
		while (!new File(arguments[1]).exists())
			Thread.sleep(20);
		for (int i = 0; i < 100; i++) {
			Future<Long> result = pool.submit(() -> work(1));
			if (result.get() != before)
				System.exit(1);
		}
		System.gc();
		for (int i = 0; i < 10000; i++)
			if (!table.get(i).equals("value " + i))
				System.exit(1);
		pool.shutdown();
	}
}
