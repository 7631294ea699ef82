# SPDX-License-Identifier: MIT
"""
Make the wheel: build agents and plugin, pack them, and tag it for its machines.

All else about the package stands in pyproject.toml. `make wheel` calls this, and so do
`pip wheel .` and `pipx install .`, which fetch the compiler (zig) for it.
"""

import importlib.util
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parent
PACKAGE = ROOT / "src" / "rtscope"
ARCHES = ("x86_64", "aarch64", "armv7l", "riscv64")
AGENTS = tuple(PACKAGE / "agents" / arch / "rtscope-agent" for arch in ARCHES)
PLUGIN = PACKAGE / "plugins" / "rtscope-plugin.so"

_GLIBC = re.compile(rb"\0GLIBC_2\.(\d+)(?:\.\d+)?(?=\0)")


def compile_programs() -> None:
    """Build agents and plugin; without zig, take those that are built already."""
    if importlib.util.find_spec("ziglang") is None:
        missing = [str(file) for file in (*AGENTS, PLUGIN) if not file.is_file()]
        if missing:
            sys.exit(
                f"not built: {', '.join(missing)}; type make agent plugin first, or "
                "leave --no-build-isolation out"
            )
        return
    zig = f"ZIG={Path(sys.executable).absolute()} -m ziglang"
    for folder, goal in (("agent", "all"), ("plugin", "plugin")):
        argv = ["make", "--no-print-directory", "-C", str(ROOT / folder), goal, zig]
        try:
            subprocess.run(argv, check=True)
        except FileNotFoundError:
            sys.exit("make is missing (Debian: apt-get install make)")
        except subprocess.CalledProcessError as error:
            sys.exit(f"{folder} could not be built (make: status {error.returncode})")


def platform_tag() -> str:
    """
    Return the platform that the wheel is for.

    The agents are static and run on any Linux. The plugin is loaded into a QEMU of
    x86-64, whose C library must have the versions of symbols that it names. An editable
    installation needs neither of them yet.
    """
    if platform.machine() != "x86_64" or not PLUGIN.is_file():
        return f"linux_{platform.machine()}"
    newest = max(int(minor) for minor in _GLIBC.findall(PLUGIN.read_bytes()))
    return f"manylinux_2_{newest}_x86_64"


class Programs(Distribution):
    """A package with programs: its files belong where those of one machine lie."""

    def has_ext_modules(self) -> bool:
        """See setuptools."""
        return True


class BuildPy(build_py):
    """Compile first; and never pack what an earlier build has left."""

    def run(self) -> None:
        """See setuptools."""
        if not self.editable_mode:
            compile_programs()
            shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()


class Wheel(bdist_wheel):
    """Of any Python 3 that pyproject.toml allows: nothing is compiled against it."""

    def get_tag(self) -> tuple[str, str, str]:
        """See setuptools."""
        return "py3", "none", platform_tag()


if __name__ == "__main__":
    setup(distclass=Programs, cmdclass={"build_py": BuildPy, "bdist_wheel": Wheel})
