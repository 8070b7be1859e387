# SPDX-License-Identifier: GPL-2.0
# For the cases that migrate by TCP; to be sourced after tests/migrate/hosts.sh.

# listens: at the other host; $listener, and $address where it is reached.
listens() {
	rm -f key listen.out
	at there cr_migrate --listen=0 --key="$PWD/key" > listen.out 2> listen.err < /dev/null &
	listener=$!
	wait_until says port listen.out
	address=localhost:$(sed 's/.*port \([0-9]*\) .*/\1/' listen.out)
}
