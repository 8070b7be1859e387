# SPDX-License-Identifier: GPL-2.0
# For test scripts that run something in a Debian 13, after tests/lib.sh: `debian13
# COMMAND...`, alone or after `start`, with its Open MPI 5.0 ready for jobs of root.
[ -e "$KCR_TOP/build/apt/trixie/root/.complete" ] || skip "there is no Debian 13 (tests/debian13/prepare)"
PATH=$KCR_TOP/tests/debian13:$PATH
export KCR_OPEN_MPI=/usr/lib/x86_64-linux-gnu/openmpi/lib/openmpi40	# the host's is another
. "$KCR_TOP/tests/mpi/open_mpi.sh"

# in_debian13 SCRIPT: goes on as that test script of MPI jobs, there.
in_debian13() {
	modprobe -a veth bridge 2> /dev/null	# there are no modules inside
	exec debian13 bash "$1"
}
