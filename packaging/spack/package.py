"""Package for Spack 1.0 or later: put this folder as packages/py_gapwatch into a repository of packages.

``spack repo create`` makes one. An older Spack wants the folder packages/py-gapwatch, without the line on spack_repo.
"""

from spack.package import *
from spack_repo.builtin.build_systems.python import PythonPackage


class PyGapwatch(PythonPackage):
    """Optimization advisor for parallel programs: bounds and gaps in seconds, and what to do about them."""

    license("BSD-3-Clause")

    # Name the source of your site: git = "file:///path/to/gapwatch.git", or a URL with versions and checksums.
    version("develop", branch="main")

    variant("fast", default=True, description="Compile the loops over large traces (numba)")
    variant("html", default=True, description="Pages with figures (Jinja2, matplotlib)")
    variant("screen", default=True, description="The screen to work with (Textual)")

    depends_on("python@3.11:", type=("build", "run"))
    depends_on("py-hatchling@1.27:", type="build")

    depends_on("py-defusedxml@0.7.1:", type=("build", "run"))
    depends_on("py-msgspec@0.19:", type=("build", "run"))
    depends_on("py-numpy@2.2:", type=("build", "run"))
    depends_on("py-platformdirs@4.0:", type=("build", "run"))
    depends_on("py-pluggy@1.6:", type=("build", "run"))
    depends_on("py-psutil@5.9:", type=("build", "run"))
    depends_on("py-pyelftools@0.31:", type=("build", "run"))
    depends_on("py-pyyaml@6.0:", type=("build", "run"))
    depends_on("py-rich@15.0:", type=("build", "run"))
    depends_on("py-watchdog@6.0:", type=("build", "run"))

    depends_on("py-numba@0.61.2:", when="+fast", type=("build", "run"))
    depends_on("py-jinja2@3.1:", when="+html", type=("build", "run"))
    depends_on("py-matplotlib@3.10.7:", when="+html", type=("build", "run"))
    depends_on("py-textual@8.2:", when="+screen", type=("build", "run"))

    import_modules = ["gapwatch", "advisor"]
