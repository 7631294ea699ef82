"""The Debian package that is made of a wheel; a fresh machine installs it."""

import gzip
import importlib.util
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from types import ModuleType
from zipfile import ZipFile, ZipInfo

import pytest

ROOT = Path(__file__).parents[2]
EPOCH_S = 1_700_000_000
METADATA = """\
Metadata-Version: 2.4
Name: rtscope
Requires-Dist: numpy>=1.26
Requires-Dist: pyyaml>=6
Requires-Dist: tuxmake>=1.45; extra == "kernels"
"""


@pytest.fixture
def deb(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("deb", ROOT / "setup" / "deb.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", str(EPOCH_S))
    return module


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    path = tmp_path / "rtscope-0.1.0-py3-none-manylinux_2_17_x86_64.whl"
    files = {
        "rtscope/__init__.py": "",
        "rtscope/agents/riscv64/rtscope-agent": "agent",
        "rtscope-0.1.0.data/data/share/doc/rtscope/examples/quick.toml": "",
        "rtscope-0.1.0.data/data/share/man/man1/rtscope.1": ".TH",
        "rtscope-0.1.0.data/data/share/zsh/site-functions/_rtscope": "#compdef",
        "rtscope-0.1.0.dist-info/METADATA": METADATA,
        "rtscope-0.1.0.dist-info/RECORD": "",
        "rtscope-0.1.0.dist-info/entry_points.txt": "",
    }
    with ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(ZipInfo(name), text)
    return path


def listed(package: Path) -> dict[str, str]:
    argv = ["dpkg-deb", "--contents", str(package)]
    done = subprocess.run(argv, check=True, capture_output=True, text=True)
    rows = (line.split() for line in done.stdout.splitlines())
    return {row[5].removeprefix("./"): row[0] for row in rows}


def test_it_depends_on_debians_packages_of_all_that_the_wheel_requires(
    deb: ModuleType,
) -> None:
    assert deb.depends(METADATA) == (
        "libc6 (>= 2.17), python3 (>= 3.11), python3-numpy (>= 1:1.26), "
        "python3-yaml (>= 6)"
    )


def test_all_that_the_package_requires_is_known_to_debian(deb: ModuleType) -> None:
    """Named by hand: Debian cannot be asked here."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = [f"Requires-Dist: {one}" for one in project["dependencies"]]

    found = re.findall(r"python3-(\w+) \(", deb.depends("\n".join(lines)))
    assert set(found) == {
        *("jinja2", "matplotlib", "numpy", "pydantic", "pyelftools", "rich", "scipy"),
        *("typer", "yaml", "zstandard"),
    }


def test_a_requirement_of_another_form_is_refused(deb: ModuleType) -> None:
    with pytest.raises(SystemExit, match="no Debian package is known"):
        deb.depends("Requires-Dist: numpy!=2.0\n")


def test_a_wheel_for_another_machine_is_refused(deb: ModuleType) -> None:
    with pytest.raises(SystemExit, match="the package is for amd64"):
        deb.make(Path("rtscope-0.1.0-py3-none-linux_aarch64.whl"))


@pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="needs dpkg-deb")
def test_the_same_wheel_gives_the_same_package(deb: ModuleType, wheel: Path) -> None:
    package = deb.make(wheel)
    first = package.read_bytes()

    assert package.name == "rtscope_0.1.0+20231114.221320-1_amd64.deb"
    assert deb.make(wheel).read_bytes() == first


@pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="needs dpkg-deb")
def test_programs_are_executable_and_lie_where_debian_has_them(
    deb: ModuleType, wheel: Path
) -> None:
    files = listed(deb.make(wheel))

    packages = "usr/lib/python3/dist-packages"
    agent = f"{packages}/rtscope/agents/riscv64/rtscope-agent"
    assert files["usr/bin/rtscope"] == files[agent] == "-rwxr-xr-x"
    assert files[f"{packages}/rtscope/__init__.py"] == "-rw-r--r--"
    assert "usr/share/doc/rtscope/examples/quick.toml" in files
    assert "usr/share/man/man1/rtscope.1.gz" in files
    assert "usr/share/zsh/vendor-completions/_rtscope" in files
    assert f"{packages}/rtscope-0.1.0.dist-info/METADATA" in files
    assert f"{packages}/rtscope-0.1.0.dist-info/RECORD" not in files


def test_its_changelog_is_of_its_version(deb: ModuleType, wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        files = dict(deb.contents(archive, "0.1.0+1-1", EPOCH_S))

    text = gzip.decompress(files["usr/share/doc/rtscope/changelog.Debian.gz"])
    assert text.startswith(b"rtscope (0.1.0+1-1) unstable; urgency=medium\n")
    assert text.endswith(b"  Tue, 14 Nov 2023 22:13:20 -0000\n")
