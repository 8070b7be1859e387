// SPDX-License-Identifier: GPL-2.0
/*
 * C++ with exceptions, threads, futures and containers; see check.h for the
 * protocol of READY and GO.
 */
#include <chrono>
#include <condition_variable>
#include <fstream>
#include <future>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

static bool exists(const std::string &path)
{
	return std::ifstream(path).good();
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	std::map<int, std::string> table;
	std::promise<int> promise;
	std::mutex mutex;
	std::condition_variable condition;
	bool go = false;
	int woken = 0;

	for (int i = 0; i < 5000; i++)
		table[i] = std::to_string(i);
	auto answer = std::async(std::launch::async, [&] { return promise.get_future().get() + 1; });
	std::vector<std::thread> threads;
	for (int i = 0; i < 4; i++)
		threads.emplace_back([&] {
			std::unique_lock<std::mutex> lock(mutex);
			condition.wait(lock, [&] { return go; });
			woken++;
		});
	std::ofstream(argv[1]) << "ready\n";
	while (!exists(argv[2]))
		std::this_thread::sleep_for(20ms);
	try {
		throw std::runtime_error("thrown");
	} catch (const std::exception &e) {
		if (e.what() != std::string("thrown"))
			return 1;
	}
	promise.set_value(41);
	if (answer.get() != 42)
		return 1;
	{
		std::lock_guard<std::mutex> lock(mutex);
		go = true;
	}
	condition.notify_all();
	for (auto &thread : threads)
		thread.join();
	for (int i = 0; i < 5000; i++)
		if (table.at(i) != std::to_string(i))
			return 1;
	return woken == 4 ? 0 : 1;
}
