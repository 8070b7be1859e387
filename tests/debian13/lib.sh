# SPDX-License-Identifier: GPL-2.0
# For test scripts that run something in a Debian 13, after tests/lib.sh: `debian13
# COMMAND...`, alone or after `start`, with its Open MPI 5.0 ready for jobs of root.
[ -e "$KCR_TOP/build/apt/trixie/root/.complete" ] || skip "there is no Debian 13 (tests/debian13/prepare)"
PATH=$KCR_TOP/tests/debian13:$PATH
export HWLOC_PLUGINS_PATH=/nonexistent	# OpenCL's, which take time to load
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
export PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
# mpirun gives ranks the path of PMIx's components for that of Open MPI's, so those that are
# installed are not found, and passes ours on to PMIx, which complains: before a program,
# "${found[@]}" is right.
found=(env OMPI_MCA_mca_base_component_path=/usr/lib/x86_64-linux-gnu/openmpi/lib/openmpi40)

# in_debian13 SCRIPT: goes on as that test script of MPI jobs, there.
in_debian13() {
	modprobe -a veth bridge 2> /dev/null	# there are no modules inside
	# The one of the host is not there.
	export KCR_OPEN_MPI=/usr/lib/x86_64-linux-gnu/openmpi/lib/openmpi40
	exec debian13 bash "$1"
}
