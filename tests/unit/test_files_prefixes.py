"""Text before each line is found by the lines that are left without it."""

import json
import re

import pytest

from rtscope.host.files.prefixes import prefix_of, without_prefix

LINES = (
    "# Histogram",
    "000001 000008\t000001",
    "000002 000014\t000004",
    "T: 0 ( 4090) P:99 I:1000 C: 100 Min:  1",
    "# Min Latencies: 00001 00002",
)

BEFORE = (
    "May 03 10:11:12 board cyclictest[123]: ",
    "May 03 10:11:12 ",
    "May  3 10:11:12.123456 board cyclictest: ",
    "2024-05-03T10:11:12+0200 board cyclictest[99]: ",
    "Fri 2024-05-03 10:11:12 UTC board cyclictest[1]: ",
    "1714731072.123456 board cyclictest[1]: ",
    "[ 12.345678] board cyclictest[12]: ",
    "<30>1 2024-05-03T10:11:12Z board cyclictest 123 - - ",
    "2024-01-01T00:00:00.1234567Z ",
    "2024-05-03T10:11:12.123456Z 01O ",
    "2024-05-03T10:11:12.123456Z 01O+",
    "[2024-05-03T10:11:12.123Z] ",
    "[10:11:12] ",
    "00:00:12 ",
    "10:11:12.123456 ",
    "2024/05/03 10:11:12 ",
    "2024-05-03 10:11:12,123 - INFO - ",
    "INFO:root:",
    "I0503 10:11:12.123456   1234 main.go:12] ",
    "2024-05-03T10:11:12.1Z stdout F ",
    "cyclictest-1  | ",
    "[pod/rt-0/main] ",
    "[VM 1] ",
    "[   12.345678] ",
    "[   12.345678][  T123] ",
    "<6>[   12.345678] ",
    "[Fri May  3 10:11:12 2024] ",
    "> ",
    ">> ",
    "> > > ",
    "| ",
    "+",
    "    ",
    "\t",
    "  > ",
    "> \t",
    "cyclictest[123]: ",
    "logs/out.txt:",
    "out.txt:12:",
    # Of tools that nobody has listed: found by their shape.
    "rt-test\tRun latency\t2024-05-03T10:11:12.1234567Z ",
    "build (rt, 6.12)\tUNKNOWN STEP\t2024-05-03T10:11:12.1234567Z ",
    "rt-0 main ",
    "05-03 10:11:12.123  1234  1234 I cyclictest: ",
    "2024-05-03 10:11:12,123 rt.runner INFO     ",
    "[10:11:12] : \t [Step 1/2] ",
    "ConsoleLoggingReporter: ",
    "    rt_test.go:12: ",
    "E       ",
    "10:11:12 O: ",
    "MESSAGE=",
    "0.020123 ",
    "12.34\t",
)


def of_the_tool(line: str) -> object:
    return re.match(r"\d{4,9}[ \t]\d|T:\s*\d|# [A-Z]", line)


@pytest.mark.parametrize("before", BEFORE)
def test_text_before_each_line_is_removed(before: str) -> None:
    text, told = without_prefix("\n".join(before + one for one in LINES), of_the_tool)
    assert text.split("\n") == list(LINES)
    assert told.startswith("each line began with a")


@pytest.mark.parametrize(
    "record",
    [
        '{"log": %s, "stream": "stdout", "time": "2024-05-03T10:11:12Z"}',
        '{"__REALTIME_TIMESTAMP": "1", "MESSAGE": %s, "_PID": "123"}',
        '- {"dt": "2024-05-03T10:11:12", "lvl": "target", "msg": %s}',
        '{"level": "info", "msg": %s}',
        '{"message": %s}',
        'time="2024-05-03T10:11:12Z" level=info msg=%s',
        "        %s,",
    ],
)
def test_lines_in_records_of_json_are_taken_out(record: str) -> None:
    text = "\n".join(record % json.dumps(one) for one in LINES)
    assert without_prefix(text, of_the_tool)[0].split("\n") == list(LINES)


def test_what_a_terminal_was_sent_is_joined_to_lines_and_freed_of_its_escapes() -> None:
    """A recording of asciinema: a piece may be a part of a line, or several lines."""
    sent = "\r\n".join(f"\x1b[1;32m{one}\x1b[0m" for one in LINES) + "\r\n"
    pieces = [sent[at : at + 17] for at in range(0, len(sent), 17)]
    recording: list[object] = [{"version": 2, "width": 80, "height": 24}]
    recording += [[at / 8, "o", piece] for at, piece in enumerate(pieces)]
    text, _ = without_prefix("\n".join(map(json.dumps, recording)), of_the_tool)
    assert text.split("\n")[1:] == list(LINES)


def test_colours_in_records_of_json_are_removed() -> None:
    coloured = (json.dumps({"log": f"\x1b[32m{one}\x1b[0m\n"}) for one in LINES)
    assert without_prefix("\n".join(coloured), of_the_tool)[0].split("\n") == list(
        LINES
    )


def test_numbers_of_lines_are_removed_only_where_they_rise() -> None:
    numbered = "\n".join(f"{n:6}\t{one}" for n, one in enumerate(LINES, 1))
    assert without_prefix(numbered, of_the_tool)[0].split("\n") == list(LINES)
    rows = "\n".join(f"{n} 000{n}11 000001" for n in (7, 3, 9, 1, 2))
    assert without_prefix(rows, of_the_tool) == (rows, "")


@pytest.mark.parametrize(
    "lines",
    [
        ["a: 1 2 3", "b: 4 5 6", "c: 7 8 9"],
        ["2024 000123 5", "2025 000124 6", "2026 000125 7"],
        ["x,000123 5", "y,000124 6", "z,000125 7"],
    ],
)
def test_what_differs_from_line_to_line_is_no_prefix(lines: list[str]) -> None:
    text = "\n".join(lines)
    assert without_prefix(text, of_the_tool) == (text, "")


@pytest.mark.parametrize(
    "divided",
    [
        ["T z stdout P # Histo", "T z stdout F gram"],
        ['{"log":"# Histo","stream":"stdout"}', '{"log":"gram\\n","stream":"stdout"}'],
    ],
)
def test_a_line_that_a_container_divided_is_one(divided: list[str]) -> None:
    begin = "2024-05-03T10:11:12.1Z stdout F "
    if divided[0].startswith("{"):
        begin = '{"log":"%s\\n","stream":"stdout"}'
        whole = [begin % one.replace("\t", "\\t") for one in LINES[1:]]
    else:
        divided = [one.replace("T z", begin[:22]) for one in divided]
        whole = [begin + one for one in LINES[1:]]
    text, _ = without_prefix("\n".join([*divided, *whole]), of_the_tool)
    assert text.split("\n") == list(LINES)


def test_time_stamps_may_change_their_length_and_lines_may_lack_them() -> None:
    stamps = ("[    9.1] ", "[   99.123456] ", "[1234567.1] ", "", "[ 3.5] ")
    stamped = [a.replace("1]", "100]") + b for a, b in zip(stamps, LINES, strict=True)]
    prefix = prefix_of([*stamped, "[ 7.123] other", "a shell: $ x"], of_the_tool)
    assert prefix is not None
    assert prefix.removed_from(LINES[1]) == LINES[1]
    assert prefix.removed_from("a shell: $ x") == "a shell: $ x"


def test_lines_without_a_prefix_stay_as_they_are() -> None:
    for lines in (LINES, [f"  {line}" for line in ("hello", "world")], []):
        assert prefix_of(lines, of_the_tool) is None


@pytest.mark.parametrize(
    "record",
    [
        '{"log":' + "[" * 100_000 + "]" * 100_000 + "}",
        '{"log":' * 100_000 + "1" + "}" * 100_000,
        '{"log": 1' + "0" * 100_000 + "}",
        '{"log": "\\ud800"}',
        '{"log": NaN}',
        '{"log" "T: 0"}',
    ],
)
def test_a_line_that_is_no_readable_json_stays_as_it_is(record: str) -> None:
    assert without_prefix(f"{record}\nT: 1", lambda line: line.startswith("T:")) == (
        f"{record}\nT: 1",
        "",
    )
