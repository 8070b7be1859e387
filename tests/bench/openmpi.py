# SPDX-License-Identifier: GPL-2.0
"""The environment in which Open MPI's programs find the components and tools of this tree."""
import os
import subprocess

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def environment(**more):
    """For a machine on which mpirun works as root, with more ranks than processors, and more."""
    libdir = subprocess.run(["ompi_info", "--path", "pkglibdir", "--parsable"], check=True,
                            capture_output=True, text=True).stdout.strip().split(":")[-1]
    return dict(os.environ, PATH=f"{TOP}/build/bin:{os.environ['PATH']}",
                OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                OMPI_MCA_rmaps_base_oversubscribe="1",
                OMPI_MCA_mca_base_component_path=f"{TOP}/build/mpi:{libdir}", **more)
