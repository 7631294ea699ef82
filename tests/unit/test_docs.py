"""The documentation against the program: what it says exists, and all is in it."""

import ast
import dataclasses
import importlib.util
import itertools
import re
import shlex
import subprocess
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer

from pages.blocks import all_pages
from rtscope import contract
from rtscope.boards.kernels.recipe import fragment_names, recipe_names
from rtscope.cli.app import make_app, tables
from rtscope.machine.facts import catalogue as fact_catalogue
from rtscope.machine.tasks.marks import mark_kinds
from rtscope.measure.campaign.file import key_schemas, load_campaign
from rtscope.measure.events import event_names
from rtscope.measure.loads import load_names
from rtscope.record.caveats import catalogue
from rtscope.record.published import published_names
from rtscope.stats.figures import definitions
from sourcespage import documents

ROOT = Path(__file__).parent.parent.parent
SRC = ROOT / "src" / "rtscope"
DOCS = ROOT / "docs"
REFERENCE = DOCS / "reference"
TUTORIAL = DOCS / "tutorial" / "first-measurement.md"

BY_HAND = {"glossary.md"}

LAB = ROOT / "lab"
KINDS = ("tutorial", "how-to", "explanation", "measured")

PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *DOCS.rglob("*.md"),
        *LAB.rglob("*.md"),
        *(ROOT / "format").rglob("*.md"),
    ]
)

BY_HAND_PAGES = [p for p in PAGES if p.parent != REFERENCE or p.name in BY_HAND]


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def generate() -> Any:
    spec = importlib.util.spec_from_file_location(
        "generate", ROOT / "tools" / "docs" / "generate.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def generated() -> Mapping[str, str]:
    pages: Mapping[str, str] = generate().pages()
    return pages


@cache
def prose(path: Path) -> tuple[str, ...]:
    """The lines of a page that are no code."""
    text = path.read_text("utf-8")
    text = re.sub(r"^( *)```.*?^\1```", "", text, flags=re.M | re.S)
    lines = text.splitlines()
    return tuple(line for line in lines if not re.match(r" {4}| *<!--", line))


@cache
def anchors(path: Path) -> frozenset[str]:
    """Where links into a page may point, as GitHub and others name it."""
    heads = [re.sub(r"^#+ ", "", line) for line in prose(path) if line.startswith("#")]
    return frozenset(
        re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads
    )


# --- the generated reference -----------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "commands.md",
        "campaign.md",
        "loads.md",
        "events.md",
        "facts.md",
        "caveats.md",
        "kernel-log.md",
        "report.md",
        "published.md",
        "kernels.md",
        "record.md",
        "sources.md",
        "sweeps.md",
        "exit-status.md",
    ],
)
def test_a_generated_page_is_up_to_date(name: str) -> None:
    assert (REFERENCE / name).read_text("utf-8") == generated()[name], "run: make docs"


def test_the_manual_and_the_completions_are_up_to_date() -> None:
    for path, text in generate().installed().items():
        assert path.read_text("utf-8") == text, "run: make docs"


def test_a_sentence_ends_once() -> None:
    pages = generated()

    assert [name for name, text in pages.items() if re.search(r"[?!]\.", text)] == []


def test_the_reference_has_no_page_that_nobody_writes() -> None:
    found = {path.name for path in REFERENCE.iterdir()}

    assert found == set(generated()) | BY_HAND


@cache
def verbs() -> Mapping[str, Any]:
    group: Any = typer.main.get_command(make_app())
    found: dict[str, Any] = {}
    for name, command in group.commands.items():
        below = getattr(command, "commands", None)
        found |= (
            {f"{name} {verb}": one for verb, one in below.items()}
            if below
            else {name: command}
        )
    return found


@pytest.mark.parametrize(
    ("page", "names"),
    [
        ("commands.md", [f"rtscope-{verb.replace(' ', '-')}" for verb in verbs()]),
        ("campaign.md", [key.partition(".")[2] for key in key_schemas()]),
        ("loads.md", list(load_names())),
        ("events.md", list(event_names())),
        ("facts.md", list(fact_catalogue())),
        ("caveats.md", list(catalogue.catalogue())),
        ("published.md", list(published_names())),
        (
            "kernels.md",
            [n.replace(".", "") for n in recipe_names(size="virtual")]
            + list(fragment_names()),
        ),
        ("kernel-log.md", [kind.title.replace(" ", "-") for kind in catalogue.table()]),
        (
            "report.md",
            [re.sub(r"[^\w\- ]", "", d.name).replace(" ", "-") for d in definitions()],
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_each_thing_has_a_section_of_its_own(page: str, names: list[str]) -> None:
    missing = {name.lower() for name in names} - anchors(REFERENCE / page)

    assert names
    assert not missing


def test_each_option_of_a_verb_is_in_the_reference() -> None:
    text = (REFERENCE / "commands.md").read_text("utf-8")

    for verb, command in verbs().items():
        section = text.split(f"## rtscope {verb}\n")[1].split("\n## ")[0]
        for parameter in command.params:
            for word in (*parameter.opts, *parameter.secondary_opts):
                shown = word if word.startswith("-") else word.upper()
                assert re.search(rf"`{re.escape(shown)}[ `]", section), (verb, word)


# --- caveats ---------------------------------------------------------------------


def calls_of_make() -> Iterator[tuple[str, str]]:
    for path in sorted(SRC.rglob("*.py")):
        text = path.read_text("utf-8")
        if "rtscope.record.caveats.catalogue import" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id == "make"
                and node.args
                and isinstance(node.args[0], ast.Constant)
            ):
                yield name_of(path), str(node.args[0].value)


def test_each_caveat_that_the_code_raises_is_in_the_catalogue() -> None:
    raised = list(calls_of_make())

    assert len(raised) > 20
    assert [one for one in raised if one[1] not in catalogue.catalogue()] == []
    assert {kind.caveat for kind in catalogue.table()} <= set(catalogue.catalogue())


@cache
def the_code() -> str:
    return "".join(path.read_text("utf-8") for path in SRC.rglob("*.py"))


@pytest.mark.parametrize("caveat", catalogue.catalogue())
def test_a_caveat_of_the_catalogue_is_raised_somewhere(caveat: str) -> None:
    by_kernel = any(kind.caveat == caveat for kind in catalogue.table())

    assert by_kernel or f'"{caveat}"' in the_code()


# --- the contract ----------------------------------------------------------------


def line_types() -> Iterator[tuple[str, type]]:
    for kind in vars(contract).values():
        ours = getattr(kind, "__module__", "").startswith(contract.__name__)
        if ours and dataclasses.is_dataclass(kind) and isinstance(kind, type):
            names = {field.name: field for field in dataclasses.fields(kind)}
            word = names["type"].default if "type" in names else ""
            yield str(word), kind


@pytest.mark.parametrize(
    ("word", "kind"),
    sorted(line_types(), key=str),
    ids=lambda value: getattr(value, "__name__", value),
)
def test_the_contract_names_each_line_and_each_of_its_keys(
    word: str, kind: type
) -> None:
    text = (ROOT / "format" / "README.md").read_text("utf-8")

    if word:
        assert f"### `{word}`" in text
    for field in dataclasses.fields(kind):
        assert field.name == "type" or f"`{field.name}`" in text, field.name


def test_the_contract_names_each_cause_that_the_agent_gives() -> None:
    row = re.search(r"^\| `cause` .*$", (ROOT / "format/README.md").read_text(), re.M)
    given = {
        word
        for path in (ROOT / "agent").glob("*/*.c")
        for word in re.findall(
            r'(?:cause = |measure_fail\(\s*out,\s*)"(\w+)"', path.read_text("utf-8")
        )
    }

    assert row is not None
    assert len(given) > 5
    assert {word for word in given if f"`{word}`" not in row[0]} == set()


def test_each_mark_of_a_thread_is_explained_on_the_page_about_threads() -> None:
    text = (DOCS / "how-to" / "list-every-thread.md").read_text("utf-8")

    for kind in mark_kinds().values():
        assert f"| `{kind.word}` |" in text


# --- links and commands ----------------------------------------------------------


def links(path: Path) -> Iterator[str]:
    for line in prose(path):
        yield from re.findall(r"\]\(([^()\s]+)\)", line)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_inside_the_tree_lead_somewhere(page: Path) -> None:
    for link in links(page):
        place, _, anchor = link.partition("#")
        if re.match(r"[a-z]+:", place):
            continue
        target = (page.parent / place).resolve() if place else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


@pytest.mark.parametrize("folder", [DOCS, LAB], ids=name_of)
def test_the_index_of_a_folder_leads_to_every_page(folder: Path) -> None:
    index = folder / "README.md"
    listed = {(folder / link.partition("#")[0]).resolve() for link in links(index)}

    assert set(folder.rglob("*.md")) - listed - {index} == set()


TITLED = [
    page
    for page in PAGES
    if page.parent in (*(DOCS / kind for kind in KINDS), LAB)
    and page.name != "README.md"
]


def words_of(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", text.lower())


@pytest.mark.parametrize("page", TITLED, ids=name_of)
def test_the_name_of_a_page_is_made_of_words_of_its_title(page: Path) -> None:
    title = next(line for line in prose(page) if line.startswith("# "))

    assert set(words_of(page.stem)) <= set(words_of(title))


def commands_in(path: Path) -> list[list[str]]:
    """The calls of rtscope that a page tells its reader to type, as words."""
    text = path.read_text("utf-8")
    fenced = re.findall(r"^ *```sh\n(.*?)^ *```$", text, re.M | re.S)
    typed = r"^ *(?:\.venv/bin/)?(rtscope [^`\n]+)"
    found = [line for block in fenced for line in re.findall(typed, block, re.M)]
    found += re.findall(typed.replace("^ *", "(?:^ {4,}|`)"), text, re.M)
    return [shlex.split(re.split(" > | #", line)[0]) for line in found]


@pytest.mark.parametrize("page", BY_HAND_PAGES, ids=name_of)
def test_commands_on_a_page_have_verbs_and_options_that_exist(page: Path) -> None:
    for words in commands_in(page):
        if words[1:] not in (["board"], ["--help"]):
            assert_exists(words)


def assert_exists(words: list[str]) -> None:
    """A call of rtscope has a verb of it, and options of that verb."""
    two = " ".join(words[1:3])
    verb = two if two in verbs() else words[1]
    assert verb in verbs(), words
    if tables()["verbs"].get(verb, {}).get("passes_on"):
        return  # they are another program's
    known = {
        name
        for parameter in getattr(verbs().get(verb), "params", ())
        for name in (*parameter.opts, *parameter.secondary_opts)
    }
    own = itertools.takewhile(lambda word: word not in ("--", "&&"), words)
    options = {word.partition("=")[0] for word in own if word.startswith("--")}
    assert options <= known, words


def test_commands_of_the_sources_have_verbs_and_options_that_exist() -> None:
    commands = commands_in(REFERENCE / "sources.md")

    assert len(commands) > 50
    for words in commands:
        assert_exists(words)


def test_the_sources_have_67_things_each_with_a_command_or_a_reason() -> None:
    items = [one for document in documents() for one in document.item]
    refusals = anchors(DOCS / "scope.md")

    assert [one.number for one in items] == [*range(1, 68)]
    for one in items:
        assert (one.takes is None) == (one.command is None), one
        assert one.command or one.answer in ("missing", "refused"), one
        assert (one.scope in refusals) == (one.answer == "refused"), one
        assert bool(one.lacks) == (one.answer in ("partly", "missing")), one
        assert not one.unseen or one.answer == "works", one


def test_the_tutorial_has_commands_and_they_name_files_that_exist() -> None:
    commands = commands_in(TUTORIAL)

    assert {words[1] for words in commands} == {"run", "report", "compare"}
    for words in commands:
        for word in words:
            if word.startswith("examples/"):
                load_campaign(ROOT / word)


def test_campaigns_on_the_how_to_pages_are_valid(tmp_path: Path) -> None:
    campaigns = {
        f"{page.name}:{block.line}": block.text
        for page in all_pages()
        for block in page.blocks
        if block.language == "toml" and "[[run]]" in block.text
    }

    assert len(campaigns) == 4
    for place, text in campaigns.items():
        file = tmp_path / "campaign.toml"
        file.write_text(text)
        assert load_campaign(file).runs, place


def test_tables_on_the_page_about_additions_have_the_keys_of_real_ones() -> None:
    (page,) = (one for one in all_pages() if one.path.stem == "extend-rtscope")
    tables = [
        next(iter(tomllib.loads(block.text).values()))
        for block in page.blocks
        if block.language == "toml"
    ]
    (load,) = (table for table in tables if "argv" in table)
    (fact,) = (table for table in tables if "parser" in table)
    real_load = tomllib.loads((SRC / "measure/loads/loads.toml").read_text("utf-8"))[
        "cpu"
    ]
    real_fact = tomllib.loads((SRC / "machine/facts.toml").read_text("utf-8"))["boost"]

    assert set(load) == set(real_load)
    assert set(fact) == set(real_fact)


# --- style, and what must not be in the tree -------------------------------------


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_line_of_prose_has_one_sentence(page: Path) -> None:
    for line in prose(page):
        text = re.sub(r"`[^`]*`", "x", line)
        if not text.startswith("|"):
            assert not re.search(r"[a-z)][.!?] [A-Z]", text), line


@pytest.mark.parametrize(("folder", "most"), [(DOCS, 100_100), (LAB, 22_800)])
def test_the_pages_of_a_folder_have_no_more_words_than_it_may(
    folder: Path, most: int
) -> None:
    words = sum(len(page.read_text("utf-8").split()) for page in folder.rglob("*.md"))

    assert most / 2 < words <= most


def test_the_readme_is_one_screen_and_names_both_commands() -> None:
    text = (ROOT / "README.md").read_text("utf-8")

    assert len(text.splitlines()) <= 60
    assert re.search(r"^ {4}make run$", text, re.M)
    assert re.search(r"^ {4}make test$", text, re.M)


def test_the_changelog_has_a_place_for_what_is_not_released() -> None:
    assert "unreleased" in anchors(ROOT / "CHANGELOG.md")


def test_the_glossary_is_in_alphabetical_order() -> None:
    heads = [
        line.removeprefix("## ").lower()
        for line in prose(REFERENCE / "glossary.md")
        if line.startswith("## ")
    ]

    assert heads == sorted(heads)


# In pieces, so that this file does not have what it forbids.
FORBIDDEN = (
    r"(?<![\w.~-])/wo" + r"rk(?![\w-])",
    r"(?<![\w.])/ho" + r"me/\w",
    r"(?i)https?://[^/\s]*(py"
    + r"pi|npm|regis"
    + r"try|artifac"
    + r"tory|nex"
    + r"us)",
    r"(?i)(extra-)?index-" + r"url",
)


def test_no_file_has_a_path_of_one_machine_or_the_host_of_a_registry() -> None:
    asked = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    try:
        done = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("no git")
    if done.returncode != 0:
        pytest.skip("not a git repository")
    found = []
    for name in done.stdout.splitlines():
        path = ROOT / name
        if path.is_file():
            text = path.read_bytes().decode("utf-8", "replace")
            found += [
                (name, hit[0])
                for pattern in FORBIDDEN
                for hit in [re.search(pattern, text)]
                if hit
            ]

    assert found == []
