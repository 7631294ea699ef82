"""What people type by habit is answered: short options, twice, another program's."""

import re
import shlex

import pytest

from fakes.commandline import Rtscope
from rtscope.cli.app import tables
from rtscope.cli.otherlines import answer


def told(typed: str) -> list[str]:
    return list(answer(shlex.split(typed)))


@pytest.mark.parametrize(
    ("typed", "line"),
    [
        (
            "-m -S -p 99 -i 200 -q -D 10m -H 200",
            "rtscope run --load idle --duration 10m --interval 200us --priority 99 "
            "--hold-cpu-awake",
        ),
        (
            "-mSqp99 -i200 -D10m -h200",
            "rtscope run --load idle --duration 10m --interval 200us --priority 99 "
            "--hold-cpu-awake",
        ),
        (
            "--smp --priority=80 --interval=1000 --duration 60 --laptop",
            "rtscope run --load idle --duration 1m --interval 1ms --priority 80",
        ),
        (
            "-l50000 -a 2-3 -t2 -p90 -d0 --policy=rr --default-system",
            "rtscope run --load idle --duration 50s --interval 1ms --policy rr "
            "--priority 90 --cpus 2-3",
        ),
        (
            "-p 100 -P f:95 -c 0-3 -d 60s -q",
            "rtscope run --load idle --duration 1m --interval 100us --priority 95 "
            "--cpus 0-3 --quiet",
        ),
        (
            "--cpu-list 2,3 --rtprio 80 -D 2h",
            "rtscope run --load idle --event poll --duration 2h --priority 80 "
            "--cpus 2,3",
        ),
    ],
)
def test_a_line_of_another_program_is_answered_with_one_of_ours(
    typed: str, line: str
) -> None:
    assert told(typed)[1] == f"  {line}"


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (
            "-S -p 99 -D 1m",
            "differs: all threads have one interval; in cyclictest each",
        ),
        ("-t 2 -a 0-1 -p 99 -D 1m -d 0", "differs: all threads have one priority"),
        ("-t 2 -p 99 -D 1m", "differs: each thread stays on its CPU"),
        ("-S -p 99 -l 100", "differs: the length is a time"),
        ("-S -p 99", "not to be had: no length"),
        ("-S -p 200 -D 1m", "not to be had: -p 200: 200: write 1 to 99"),
        ("-S -p 9 -i 10000 -l 50", "not to be had: -l 50: '500ms': write 1s to 366d"),
        ("-S -p 9 -i 1 -D 1m", "not to be had: -i 1: '1us': write 10us to 10s"),
        ("-p 100 -P f:0 -d 1m", "not to be had: -P f:0: 0: write 1 to 99"),
        ("-S -p 99 -l 9 -D 400d", "not to be had: -D 400d: '400d': "),
        ("-S -p 200 -p 150 -D 1m", "not to be had: -p 150: 150: write 1 to 99"),
        (
            "-S -p 99 -D 1m -b 200",
            "not to be had: -b: a run does not stop at a latency",
        ),
        ("-S -p 99 -D 1m -v", "not to be had: -v: no sample is printed"),
        ("-S -p 99 -D 1m -c 1", "not to be had: -c 1: rtscope measures by CLOCK_MONO"),
        ("-S -p 99 -D 1m -N -h 50", "not to be had: -N with a histogram"),
        (
            "-S -p 99 -D 1m --latency=5",
            "not to be had: a limit of 5 us for idle states",
        ),
        ("-D 1m -b 10 --cpu-list 1", "differs: a sample is the longest gap of"),
        ("-p 100 -P d:1:2 -d 1m", "not to be had: -P d:1:2"),
    ],
)
def test_what_differs_and_what_is_not_to_be_had_is_said(typed: str, said: str) -> None:
    assert any(said in line for line in told(typed))


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("-l idle -D 10m", "cyclictest -D 10m: write --duration 10m"),
        ("-l idle -m", "cyclictest -m: write nothing: memory is always locked"),
        ("-l idle --breaktrace=100", "cyclictest -b 100: a run does not stop"),
        ("-l idle -S", "cyclictest -S: write nothing: every CPU has a measuring"),
    ],
)
def test_among_options_of_ours_each_foreign_one_is_answered(
    typed: str, said: str
) -> None:
    assert [one for one in told(typed) if one.startswith(said)]


@pytest.mark.parametrize(
    "typed", ["--interval 1ms", "-l idle", "-t local", "-p 200", "--nonsense", ""]
)
def test_an_option_of_ours_is_not_taken_for_another(typed: str) -> None:
    assert told(typed) == []


def test_a_wrong_option_is_refused_with_the_answer(rtscope: Rtscope) -> None:
    said = rtscope("run", "-i", "1000", "-m", "-S", "-D", "5")

    assert said.status == 2
    assert "rtscope run --load idle --duration 5s --interval 1ms" in said.err
    assert "rtscope cyclictest -i 1000 -m -S -D 5\n" in said.err


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("-S -p 99", "no length: cyclictest would run until it is stopped"),
        ("-S -D 1m -b 100", "-b: a run does not stop at a latency"),
        ("-S -D 1m --nonsense", "cyclictest has no option --nonsense"),
        ("-S -D 1m -h 0", "a histogram of 0 us"),
        ("-S -D 1m -h", "cyclictest -h needs a value"),
        ("-S -D x", "-D x: no time such as 60, 10m or 2h"),
        ("-S -D 1m extra", "extra: cyclictest takes options alone"),
        ("-S -D 1m --load idle,cpu", "name one load"),
        ("-S -D 1m --load", "--load needs a value"),
        ("-S -D 1m --histfile=x", "--histfile needs -h or -H"),
        ("-D 1m -t 5000", "one thread for each CPU"),
    ],
)
def test_a_line_of_cyclictest_that_cannot_be_measured_is_refused(
    rtscope: Rtscope, words: str, why: str
) -> None:
    said = rtscope("cyclictest", *words.split())

    assert (said.status, said.out) == (2, "")
    assert why in said.err


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        ("--load idle --load cpu", "write --load idle,cpu"),
        ("-l idle --load=cpu", "write --load idle,cpu"),
        ("--target local --target ssh:b", "--target is given twice"),
        ("--out a -o b", "--out is given twice"),
        ("--duration", "--duration needs a value: Duration of each run"),
        ("-t local -d", "-d needs a value: Duration of each run (default: 20s), e.g."),
    ],
)
def test_an_option_given_twice_or_without_a_value_is_refused(
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
