# Copyright (c) the numaopt authors. MIT licence, see LICENSE.
#
# A recipe for Spack. To use it from a checkout:
#
#     spack repo create numaopt-repo && mkdir -p numaopt-repo/packages
#     cp -r scripts/packaging/spack/numaopt numaopt-repo/packages/
#     spack repo add numaopt-repo && spack install numaopt

from spack.package import *


class Numaopt(MakefilePackage):
    """Profile-guided NUMA optimizer: finds out which NUMA node every page of a program
    is used from, plans where the pages should be, and runs the unmodified program with
    that plan, also on machines with one node, by emulation."""

    # Where the sources are: `spack dev-build` and `spack develop` take a checkout.
    git = "file:///path/to/numaopt"

    license("MIT")

    version("main", branch="main")

    depends_on("c", type="build")
    depends_on("go@1.26:", type="build")
    depends_on("gmake", type="build")
    # qemu-x86_64 with plugins for emulation, qemu-system-x86_64 for the lab
    depends_on("qemu@7.2:", type="run")
    depends_on("linux-perf", type="run", when="+pmu")

    variant("pmu", default=False, description="sampling by the processor, by perf")

    requires("platform=linux target=x86_64:", msg="numaopt is for Linux on x86_64")

    def install(self, spec, prefix):
        make("install", f"PREFIX={prefix}")

    def test_version(self):
        """what it was built from, and that it finds its runtime"""
        Executable(self.prefix.bin.numaopt)("version", "--json")
