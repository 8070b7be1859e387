# SPDX-License-Identifier: GPL-2.0
"""CRIU, with which benchmarks compare, where it is installed."""
import shutil

HAS_CRIU = shutil.which("criu") is not None


def criu_command(action, folder, *options):
    """Its command line, with the images and ACTION.log in the folder."""
    return ["criu", action, "-D", folder, "-o", f"{action}.log", *options]
