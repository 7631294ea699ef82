"""Sizes of files and functions, includes of C files, and how walks are measured."""

import sys
import tomllib
from pathlib import Path

import pytest

from rtscope.record.directory.records import read_record
from structure import sizes
from structure.includes import COMMANDS, circle, foreign_commands, includes
from structure.sizes import c_of
from structure.unused import unused_names
from structure.walks import (
    LIMITS,
    WALKS,
    Call,
    Walk,
    calls_of,
    unpack_records,
    walk_of,
)

ROOT = Path(__file__).parents[2]
EXCEPTIONS = tomllib.loads((ROOT / "tests/structure/exceptions.toml").read_text())


def allowed_now(found: dict[str, int], exceptions: dict[str, int]) -> None:
    """Check that just the exceptions are too long, and none longer than it was."""
    grown = {name: n for name, n in found.items() if n > exceptions.get(name, 0)}
    gone = exceptions.keys() - found.keys()

    assert not grown, "too long: find the two things that it does"
    assert not gone, "no longer too long: delete it from exceptions.toml"


def test_no_file_is_longer_than_500_lines() -> None:
    assert sizes.checked_files(ROOT)
    allowed_now(sizes.long_files(ROOT), EXCEPTIONS["files"])


def test_no_function_is_longer_than_60_lines() -> None:
    found = {one.name: one.lines for one in sizes.long_functions(ROOT)}

    allowed_now(found, EXCEPTIONS["functions"])


def test_the_product_uses_each_of_its_public_names() -> None:
    names = unused_names(ROOT / "src/rtscope")

    assert not names, "delete them; where tests need one, move it to tests/fakes"


def test_a_name_that_nothing_but_its_definition_has_is_unused(tmp_path: Path) -> None:
    package = tmp_path / "rtscope"
    (package / "cli").mkdir(parents=True)
    (package / "a.py").write_text(
        "LIMIT = 3\nSPARE = 4\n\ndef read() -> int:\n    return LIMIT\n\n"
        "def again() -> int:\n    return again()\n\nclass Kept:\n"
        "    def size(self) -> int:\n        return 1\n\n"
        "    def depth(self) -> int:\n        return 2\n"
    )
    (package / "b.py").write_text(
        "from rtscope import a, formats\nfrom rtscope.c import taken\n"
        'def run(one: "a.Kept") -> int:\n'
        "    return one.size() + a.read() + taken() + len([formats])\n"
    )
    (package / "c.py").write_text("def taken() -> int:\n    return 5\n")
    (package / "formats.py").write_text("def row(): ...\ndef column(): ...\n")
    (package / "cli" / "verbs.py").write_text("def row(): ...\ndef other(): ...\n")
    (package / "verbs.toml").write_text('place = "cli.verbs:row"\n')

    assert unused_names(package) == [
        "rtscope.a.SPARE",
        "rtscope.a.again",
        "rtscope.a.Kept.depth",
        "rtscope.b.run",
        "rtscope.cli.verbs.other",
        "rtscope.formats.column",
    ]


def test_comments_docstrings_and_blank_lines_are_no_code() -> None:
    assert (
        sizes.code_lines('"""What.\n\nIt is."""\n\n# why\nA = 1\n"""Of it."""\n') == 1
    )
    assert sizes.code_lines('A = """a\n\nb"""  # three lines, one of them blank\n') == 2
    assert sizes.c_code_lines("/* a\n b */\n\nint a; // b\n/* c */ int d;\n") == 2
    assert sizes.c_code_lines('char *a = "/*";\nint b; /* "\n*/ int c;\n') == 3


def test_a_function_is_counted_from_behind_its_docstring(tmp_path: Path) -> None:
    python, c = tmp_path / "a.py", tmp_path / "a.c"
    python.write_text(
        "class A:\n    def f(\n        self,\n    ) -> int:\n"
        '        """Say\n\n        it."""\n        a = 1\n\n        return a\n'
    )
    c.write_text("static int f(int a,\n\t     int b)\n{\n\n\treturn a;\n}\n")

    assert sizes.functions(tmp_path, [python, c]) == [
        sizes.Function("a.py", "A.f", 3),
        sizes.Function("a.c", "f", 2),
    ]


def test_a_reader_walks_each_pair_once_and_into_what_is_called_later() -> None:
    f, g, h, again = ("a", "f"), ("b", "g"), ("b", "h"), ("a", "k")
    calls = [
        Call(0, None, f),
        Call(1, f, g),
        Call(1, f, again),
        Call(1, f, g),
        Call(2, g, h),
        Call(1, f, h),
    ]

    # f in a; g and h, which g calls the second time, in b; k in a; h in b again
    assert walk_of(calls) == Walk(calls=5, files=2, stays=4, back=4)
    assert walk_of(calls).returns == 2


@pytest.mark.parametrize(
    "title",
    [
        pytest.param(title, marks=() if title.endswith("RECORD") else pytest.mark.slow)
        for title in LIMITS
    ],
)
def test_nobody_walks_further_than_the_limit(title: str) -> None:
    words, _ = WALKS[title]
    walk = walk_of(calls_of(ROOT, words, python=Path(sys.executable)))

    assert walk.files > 30  # all that the command is made of was seen
    assert walk.stays <= LIMITS[title], "join the files that call each other in turn"


def test_the_records_of_walks_have_facts_that_a_kernel_can_have(
    tmp_path: Path,
) -> None:
    unpack_records(tmp_path)
    files = sorted(tmp_path.rglob("record.json"))
    assert files
    for record in map(read_record, files):
        for facts in (record.facts_before, record.facts_after):
            is_realtime = facts["preempt_rt"].value
            model = facts["preemption_model"].value
            assert (model == "PREEMPT_RT") is is_realtime, record.run.id
            release = str(facts["kernel_release"].value)
            assert ("-rt-" in release) is is_realtime, record.run.id


# --- C files ----------------------------------------------------------------------


def test_no_c_files_include_each_other_in_a_circle() -> None:
    graph = includes(ROOT, "agent", "plugin", "lib")

    assert graph["plugin/clock"] >= {"plugin/cpus"}
    assert circle(graph) == []


def test_no_folder_of_the_agent_includes_one_of_another_command() -> None:
    graph = includes(ROOT, "agent")

    assert all((ROOT / "agent" / name).is_dir() for name in COMMANDS)
    assert graph["agent/main"] >= {
        f"agent/{name}/{name}" for name in ("measure", "watch")
    }
    assert foreign_commands(graph) == set()


def test_circles_and_foreign_commands_are_noticed(tmp_path: Path) -> None:
    for name, text in {
        "agent/main.c": '#include "watch/watch.h"\n',
        "agent/watch/watch.h": '#include <stdio.h>\n#include "host/emit.h"\n',
        "agent/watch/watch.c": '#include "watch/watch.h"\n#include "demo/demo.h"\n',
        "agent/demo/demo.h": "",
        "agent/host/emit.h": "",
        "agent/host/emit.c": '#include "watch/watch.h"\n',
        "agent/tests/host/test_emit.c": '#include "watch/watch.h"\n',
        "plugin/arch.c": '#include "../agent/demo/demo.h"\n',
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    graph = includes(tmp_path, "agent", "plugin")

    assert graph["plugin/arch"] == {"agent/demo/demo"}
    assert set(circle(graph)) == {"agent/host/emit", "agent/watch/watch"}
    assert foreign_commands(graph) == {
        ("agent/watch/watch", "agent/demo/demo"),
        ("agent/host/emit", "agent/watch/watch"),
    }


@pytest.mark.parametrize("tree", ["agent", "plugin"])
def test_a_readme_names_each_folder_of_c_files(tree: str) -> None:
    readme = (ROOT / tree / "README.md").read_text("utf-8")
    parts = [path.relative_to(ROOT / tree).parts for path in c_of(ROOT, tree)]
    folders = {f"`{first}/`" for first, *rest in parts if rest}

    assert folders
    assert {name for name in folders if name not in readme} == set()


def test_the_readme_of_the_agent_names_each_file_at_its_top() -> None:
    readme = (ROOT / "agent/README.md").read_text("utf-8")
    files = {path.name for path in (ROOT / "agent").glob("*.[ch]")}

    assert files
    assert {name for name in files if f"`{name}`" not in readme} == set()
    assert len(readme.splitlines()) <= 40
