# SPDX-License-Identifier: GPL-2.0
# For test scripts, to be sourced in the top folder or with KCR_TOP: the Open MPI of the machine,
# 4.1 or 5.0, or that of which KCR_OPEN_MPI has the components, for jobs of root that have more
# ranks than the machine has processors.
export HWLOC_PLUGINS_PATH=/nonexistent	# OpenCL's, with all of LLVM, takes seconds to load
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1
# Where there are several nodes each is given its slots, which Open MPI 5 would ignore.
[ -n "${KCR_NODES:-}" ] || export PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe

# Before a program of mpirun, "${components[@]}" gives it those of this tree, too.  Open MPI 5's
# mpirun does not pass that path on, but that of PMIx's components in its place, and gives PMIx
# ours, which complains.  For cr_mpirun it can be exported.
components=(env "OMPI_MCA_mca_base_component_path=${KCR_TOP:-$PWD}/build/mpi:${KCR_OPEN_MPI:-$(
	ompi_info --path pkglibdir --parsable | sed 's/.*:pkglibdir://')}")
