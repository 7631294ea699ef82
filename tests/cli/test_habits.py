"""What people type by habit is answered: short options, twice, another program's."""

import re
import shlex

import pytest

from fakes.commandline import Rtscope
from rtscope.cli.app import tables
from rtscope.cli.foreign import answers


def told(typed: str) -> list[str]:
    return list(answers(typed.split(), tables()["foreign"]))


@pytest.mark.parametrize(
    ("typed", "answer"),
    [
        ("run -i 1000", "-i 1000: write --interval 1ms"),
        ("run -i200", "-i 200: write --interval 200us"),
        ("run --interval=1000", "--interval 1000: write --interval 1ms"),
        ("run -a 0-3", "-a 0-3: write --cpus 0-3"),
        ("run --breaktrace=100", "100: write --explain --deadline 100us"),
        ("run -D 10m", "-D 10m: write --duration 10m"),
        ("run -l 100000", "-l: write --duration 10m: the length is a time"),
        ("run -m", "-m: write nothing: memory is always locked"),
        ("run -t 4", "-t: write nothing: every CPU has a measuring thread"),
    ],
)
def test_an_option_of_cyclictest_or_rtla_is_answered_with_ours(
    typed: str, answer: str
) -> None:
    (line,) = told(typed)
    assert answer in line


@pytest.mark.parametrize("typed", ["run --interval 1ms", "run -l idle", "run -t local"])
def test_an_option_of_ours_is_not_taken_for_another(typed: str) -> None:
    assert told(typed) == []


def test_a_wrong_option_is_refused_with_the_answer(rtscope: Rtscope) -> None:
    said = rtscope("run", "-i", "1000", "-m")

    assert said.status == 2
    assert "write --interval 1ms\n" in said.err
    assert "memory is always locked\n" in said.err


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        ("--load idle --load cpu", "write --load idle,cpu"),
        ("-l idle --load=cpu", "write --load idle,cpu"),
        ("--target local --target ssh:b", "--target is given twice"),
        ("--out a -o b", "--out is given twice"),
    ],
)
def test_an_option_given_twice_is_refused(
    rtscope: Rtscope, words: str, advice: str
) -> None:
    said = rtscope("run", *words.split())

    assert (said.status, said.out) == (2, "")
    assert advice in " ".join(said.err.split())


@pytest.mark.parametrize("words", ['run --out ""', 'report ""', "report --html= x"])
def test_an_empty_path_is_refused_and_is_not_the_current_directory(
    rtscope: Rtscope, words: str
) -> None:
    said = rtscope(*shlex.split(words))

    assert (said.status, said.out) == (2, "")
    assert "is empty: name a file or a directory" in said.err


def test_the_command_alone_says_what_to_type_first(rtscope: Rtscope) -> None:
    said = rtscope()

    assert (said.status, said.err) == (0, "")
    verbs = re.findall(r"^  rtscope (\w+)", said.out, re.MULTILINE)
    assert verbs[:2] == ["doctor", "run"]
    assert {*verbs} <= {*tables()["verbs"]}
    assert len(said.out.splitlines()) <= 22


def test_help_ends_with_examples_to_type(rtscope: Rtscope) -> None:
    said = rtscope("run", "-h")

    assert said.out == rtscope("run", "--help").out
    assert "rtscope run -l idle -d 10s\n" in said.out.partition("Examples:")[2]
    for name in ("-l, --load", "-d, --duration", "-t, --target", "-o, --out"):
        assert name in said.out
