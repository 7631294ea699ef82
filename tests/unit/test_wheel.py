"""The wheel's tag and contents, from what it is made of; `tests/system` installs it."""

import ast
import importlib.util
import re
import tomllib
from fnmatch import fnmatch
from pathlib import Path
from types import ModuleType

import pytest
from elftools.elf.elffile import ELFFile

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "rtscope"
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


@pytest.fixture
def setup_py() -> ModuleType:
    spec = importlib.util.spec_from_file_location("setup_py", ROOT / "setup.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def needed_of(file: Path) -> tuple[set[str], set[str]]:
    """Return the libraries that a program needs, and the versions of their symbols."""
    with file.open("rb") as stream:
        elf = ELFFile(stream)
        dynamic = elf.get_section_by_name(".dynamic")
        tags = () if dynamic is None else dynamic.iter_tags()
        libraries = {tag.needed for tag in tags if tag.entry.d_tag == "DT_NEEDED"}
        section = elf.get_section_by_name(".gnu.version_r")
        pairs = () if section is None else section.iter_versions()
        return libraries, {one.name for _, all_ in pairs for one in all_}


def plugin_of(setup_py: ModuleType) -> Path:
    plugin: Path = setup_py.PLUGIN
    if not plugin.is_file():
        pytest.skip("the plugin is not built")
    return plugin


def test_the_tag_is_the_newest_c_library_that_the_plugin_needs(
    setup_py: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    libraries, versions = needed_of(plugin_of(setup_py))
    newest = max(int(name.split(".")[1]) for name in versions)
    monkeypatch.setattr(setup_py.platform, "machine", lambda: "x86_64")

    assert setup_py.platform_tag() == f"manylinux_2_{newest}_x86_64"
    # All that PEP 600 lets it expect: the C library, of which threads are a part.
    assert libraries <= {"libc.so.6", "libpthread.so.0"}
    assert all(name.startswith("GLIBC_2.") for name in versions)


def test_a_wheel_that_needs_a_newer_c_library_says_so(
    setup_py: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugin = tmp_path / "plugin.so"
    plugin.write_bytes(b"\0GLIBC_2.2.5\0GLIBC_2.34\0GLIBC_2.17\0")
    monkeypatch.setattr(setup_py, "PLUGIN", plugin)
    monkeypatch.setattr(setup_py.platform, "machine", lambda: "x86_64")

    assert setup_py.platform_tag() == "manylinux_2_34_x86_64"


def test_on_another_machine_the_wheel_is_for_that_one(
    setup_py: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(setup_py.platform, "machine", lambda: "aarch64")

    assert setup_py.platform_tag() == "linux_aarch64"


def test_without_compiler_and_programs_no_wheel_is_made(
    setup_py: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(setup_py.importlib.util, "find_spec", lambda _name: None)
    monkeypatch.setattr(setup_py, "AGENTS", (tmp_path / "rtscope-agent",))

    with pytest.raises(SystemExit, match=r"not built: .*rtscope-agent.*make agent"):
        setup_py.compile_programs()


def test_every_file_that_is_read_at_run_time_is_packed() -> None:
    """Data are named by patterns; one that no pattern names is missing elsewhere."""
    patterns = PYPROJECT["tool"]["setuptools"]["package-data"]["rtscope"]
    data = [
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*")
        if path.is_file()
        and path.suffix not in (".py", ".pyc", ".new")
        and path.name != "py.typed"
    ]
    unpacked = [
        name
        for name in data
        if not any(fnmatch(f"/{name}", f"*/{p.removeprefix('**/')}") for p in patterns)
    ]

    assert data
    assert unpacked == []


def test_what_is_shared_is_in_the_tree_and_has_the_names_that_shells_look_for() -> None:
    found = {
        place: {path.name for pattern in patterns for path in ROOT.glob(pattern)}
        for place, patterns in PYPROJECT["tool"]["setuptools"]["data-files"].items()
    }

    assert all(found.values())
    assert {"rtscope.1", "rtscope-run.1"} <= found["share/man/man1"]
    assert found["share/bash-completion/completions"] == {"rtscope.bash"}
    assert found["share/zsh/site-functions"] == {"_rtscope"}
    assert found["share/fish/vendor_completions.d"] == {"rtscope.fish"}


def test_what_the_program_imports_is_what_the_package_requires() -> None:
    project = PYPROJECT["project"]
    names = {re.split(r"[^\w-]", one)[0] for one in project["dependencies"]}
    modules = {"pyelftools": "elftools", "pyyaml": "yaml"}
    imported = {
        name.split(".")[0]
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }

    required = {modules.get(name, name) for name in names}
    assert required <= imported
    assert "tuxmake" not in imported, "only building kernels needs it: an extra"
