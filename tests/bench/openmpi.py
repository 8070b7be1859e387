# SPDX-License-Identifier: GPL-2.0
"""Open MPI's series, and the environment in which its programs find the components and tools of
this tree."""
import os
import subprocess

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def series():
    """4 or 5."""
    said = subprocess.run(["mpirun", "--version"], check=True, capture_output=True, text=True).stdout
    return int(said.split()[3].split(".")[0])


def environment(**more):
    """For a machine on which mpirun works as root, with more ranks than processors, and more."""
    libdir = subprocess.run(["ompi_info", "--path", "pkglibdir", "--parsable"], check=True,
                            capture_output=True, text=True).stdout.strip().split(":")[-1]
    return dict(os.environ, PATH=f"{TOP}/build/bin:{os.environ['PATH']}",
                OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                PRTE_ALLOW_RUN_AS_ROOT="1", PRTE_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                OMPI_MCA_rmaps_base_oversubscribe="1",
                PRTE_MCA_rmaps_default_mapping_policy=":oversubscribe",
                HWLOC_PLUGINS_PATH="/nonexistent",
                OMPI_MCA_mca_base_component_path=f"{TOP}/build/mpi:{libdir}", **more)
