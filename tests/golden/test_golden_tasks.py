"""A list of threads for people and programs; lists of agents that load for ever."""

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from fakes.threads import AROUND, machine
from rtscope.contract import dump_line, parse_line
from rtscope.machine.tasks.listing import make_listing
from rtscope.machine.tasks.model import Choice, Listing, Order, choose
from rtscope.present.render.terminal import print_blocks
from rtscope.verbs.tasks.text import render_tasks_json, tasks_blocks

HERE = Path(__file__).parent / "tasks"
FORMAT = Path(__file__).parent.parent.parent / "format"
STREAMS = sorted(FORMAT.glob("v*/tasks/*.jsonl"))


def listing_of(path: Path) -> Listing:
    return make_listing(map(parse_line, path.read_bytes().splitlines()), AROUND)


def shown(
    *, width: int, choice: Choice, colour: bool = False, whole: bool = False
) -> str:
    file = io.StringIO()
    console = Console(
        file=file,
        width=width,
        highlight=False,
        force_terminal=colour,
        color_system="standard" if colour else None,
    )
    found = machine()
    chosen = choose(found.threads, choice)
    print_blocks(
        tasks_blocks(found, chosen, order=choice.order, width=width, whole=whole),
        console,
    )
    return file.getvalue()


def said(name: str) -> str:
    match name:
        case "all-80.txt":
            return shown(width=80, choice=Choice())
        case "whole-80.txt":
            return shown(width=80, choice=Choice(), whole=True)
        case "all-120.txt":
            return shown(width=120, choice=Choice())
        case "rt-by-priority-80.txt":
            return shown(width=80, choice=Choice(real_time=True, order=Order.PRIORITY))
        case "rt-80.txt":
            return shown(width=80, choice=Choice(real_time=True))
        case _:
            found = machine()
            return render_tasks_json(found, found.threads, target="local")


@pytest.mark.parametrize(
    "name",
    [
        "all-80.txt",
        "whole-80.txt",
        "all-120.txt",
        "rt-80.txt",
        "rt-by-priority-80.txt",
        "all.json",
    ],
)
def test_threads_are_shown_as_they_were(name: str, rewrite: bool) -> None:
    path, found = HERE / name, said(name)

    if rewrite:
        path.parent.mkdir(exist_ok=True)
        path.write_text(found, encoding="utf-8")
    assert found == path.read_text("utf-8")


@pytest.mark.parametrize("width", [72, 80, 120])
def test_no_line_of_the_table_is_wider_than_the_terminal(width: int) -> None:
    table = shown(width=width, choice=Choice()).split("\n\n")[0]

    assert max(map(len, table.splitlines())) <= width


def test_a_hostile_name_sends_nothing_to_the_terminal() -> None:
    for choice in (Choice(), Choice(order=Order.NAME)):
        assert "\x1b" not in shown(width=80, choice=choice)
        assert "\\x0a\\x1b[31m" in shown(width=120, choice=choice)


def test_colours_tell_policies_and_marks_apart() -> None:
    coloured = shown(width=80, choice=Choice(), colour=True)

    assert "\x1b[1;33mfifo " in coloured
    assert "\x1b[35mdeadline " in coloured
    assert "\x1b[1;31m99 house hog" in coloured


def test_the_json_of_a_list_is_one_document_with_all_its_threads() -> None:
    document = json.loads(said("all.json"))

    assert document["schema"] == 1
    assert [t["tid"] for t in document["threads"]] == [
        t.line.tid for t in machine().threads
    ]


def test_the_json_of_no_threads_is_a_document_too() -> None:
    text = render_tasks_json(machine(), [], target="local")

    assert json.loads(text)["threads"] == []


def test_every_architecture_has_a_list_of_version_2() -> None:
    names = {path.stem for path in STREAMS if path.parent.parent.name == "v2"}

    assert names == {"x86_64", "aarch64", "armv7l", "riscv64"}


@pytest.mark.parametrize("path", STREAMS, ids=lambda path: str(path.stem))
def test_a_list_of_an_agent_gives_the_same_threads_for_ever(path: Path) -> None:
    found = {t.name: t.line for t in listing_of(path).threads}
    policies = {
        name: (line.policy, line.priority, line.nice, line.kernel_priority)
        for name, line in found.items()
    }

    assert policies["fifo"] == ("fifo", 80, 0, -81)
    assert policies["fifo_99"] == ("fifo", 99, 0, -100)
    assert policies["rr"] == ("rr", 7, 0, -8)
    assert policies["batch"] == ("batch", 0, 5, 25)
    assert policies["idle"] == ("idle", 0, 0, 20)
    assert policies["deadline"] == ("deadline", 0, 0, -101)
    assert found["fifo_reset"].reset_on_fork
    parameters = found["deadline"].deadline
    assert parameters is not None
    assert parameters.runtime_ns == 2_000_000
    assert parameters.deadline_ns == 50_000_000
    assert parameters.period_ns == 100_000_000
    assert {"two\nlines", ") R 1 (", "\x1b[31mred", "\\xff\\xfe broken"} <= set(found)


@pytest.mark.parametrize("path", STREAMS, ids=lambda path: str(path.stem))
def test_a_line_of_a_list_survives_writing_and_reading(path: Path) -> None:
    for line in map(parse_line, path.read_bytes().splitlines()):
        assert parse_line(dump_line(line)) == line
