"""The map of a newcomer: the `__init__` of each package, and CONTRIBUTING.md."""

from pathlib import Path

import pytest

from structure.foldermap import entries, not_in_folder, not_in_map, packages

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src/rtscope"
MOST_ENTRIES = 30

PACKAGES = [str(path.relative_to(SRC)) for path in packages(SRC)]


@pytest.mark.parametrize("package", PACKAGES)
def test_the_init_of_a_package_names_the_contents_of_its_folder(package: str) -> None:
    assert not_in_map(SRC / package) == [], "add them to its __init__.py"
    assert not_in_folder(SRC / package) == [], "delete them from its __init__.py"
    assert len(entries(SRC / package)) <= MOST_ENTRIES, "name related files in one line"


def test_a_file_that_no_map_names_and_a_name_without_a_file_are_noticed(
    tmp_path: Path,
) -> None:
    (tmp_path / "__init__.py").write_text(
        '"""\nA package.\n\nIts text names other.py  too.\n\n    a.py, a.toml  both\n'
        '    *checks.py    checks\n    data/    files\n    gone.py    none\n"""\n'
    )
    for name in ("a.py", "a.toml", "cpuchecks.py", "other.py"):
        (tmp_path / name).touch()
    for name in ("data", "folder", "__pycache__"):
        (tmp_path / name).mkdir()

    assert packages(tmp_path) == [tmp_path]
    assert not_in_map(tmp_path) == ["folder/", "other.py"]
    assert not_in_folder(tmp_path) == ["gone.py"]
    assert len(entries(tmp_path)) == 4
