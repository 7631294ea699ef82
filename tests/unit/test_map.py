"""The map of a newcomer: the `__init__` of each package, and CONTRIBUTING.md."""

import re
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
    for name in ("data", "folder", "__pycache__", "removed/__pycache__"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("a.py", "a.toml", "cpuchecks.py", "other.py", "data/x", "folder/x"):
        (tmp_path / name).touch()

    assert packages(tmp_path) == [tmp_path]
    assert not_in_map(tmp_path) == ["folder/", "other.py"]
    assert not_in_folder(tmp_path) == ["gone.py"]
    assert len(entries(tmp_path)) == 4


# --- CONTRIBUTING.md --------------------------------------------------------------

CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
EXTEND = (ROOT / "docs/how-to/extend-rtscope.md").read_text("utf-8")
TOUR = CONTRIBUTING.partition("## From `rtscope run` to a page\n")[2].split("\n## ")[0]
MOST_WORDS = 600

SUFFIXES = "py|c|h|md|toml|html|json"
MADE_LATER = {"campaign.json", "report.html", "runs/ID/record.json"}


def places_in(text: str) -> list[str]:
    """The files and folders that a page names, but for those with NAME in them."""
    words = re.findall(r"`([\w./-]+)`", text)
    named = [word for word in words if re.search(rf"/|\.({SUFFIXES})$", word)]
    return [word for word in named if "NAME" not in word and word not in MADE_LATER]


def place_of(name: str) -> Path | None:
    return next((top / name for top in (ROOT, SRC) if (top / name).exists()), None)


@pytest.mark.parametrize("page", ["CONTRIBUTING", "EXTEND"])
def test_each_place_on_a_page_for_contributors_is_there(page: str) -> None:
    names = places_in(globals()[page])

    assert len(names) > 20
    assert [name for name in names if place_of(name) is None] == []


def test_the_tour_has_at_most_600_words_and_its_functions_are_where_it_says() -> None:
    steps = re.findall(r"^\| .+ \| `([\w./]+)` \| `(\w+)` \|$", TOUR, re.M)

    assert len(TOUR.split()) <= MOST_WORDS
    assert len(steps) > 20
    for name, function in steps:
        place = place_of(name)
        assert place is not None, name
        text = place.read_text("utf-8")
        defined = rf"^ *(def|class) {function}\b|^\w.*\b{function}\("
        assert re.search(defined, text, re.M), (name, function)


def test_there_is_one_recipe_for_each_addition() -> None:
    heads = re.findall(r"^## (.+)$", EXTEND, re.M)

    assert len(set(heads)) == len(heads)
    assert {
        *("A board", "A kernel", "A load", "A check", "A figure", "A format", "A verb")
    } <= set(heads)
