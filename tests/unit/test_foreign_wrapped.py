"""Files as people have them: packed, prefixed, quoted, wrapped, in a log."""

import base64
import gzip
import json
import quopri
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from fakes.foreign import DESCRIBED
from rtscope.host.errors import RecordError
from rtscope.record.foreign import format_of, read
from rtscope.record.foreign.model import ForeignRun
from rtscope.record.foreign.source import Source, unwrapped

OUTPUTS = Path(__file__).parent.parent / "foreign"
REAL = [path for path in sorted(OUTPUTS.glob("*.*")) if path.suffix != ".md"]
SHORT = [p for p in REAL if p.stat().st_size < 40_000 and "left-out" not in p.name]

BEFORE: dict[str, Callable[[int], str]] = {
    "journal": lambda n: f"May 03 10:11:{n % 60:02} board cyclictest[123]: ",
    "docker logs -t": lambda n: f"2024-05-03T10:11:12.{n:09}Z ",
    "compose": lambda _: "rt-1  | ",
    "kubectl": lambda _: "[pod/rt-0/main] ",
    "dmesg": lambda n: f"[{n / 7:12.6f}] ",
    "syslog": lambda _: "<6>",
    "jenkins": lambda n: f"[2024-05-03T10:11:12.{n % 1000:03}Z] ",
    "gitlab": lambda n: f"2024-05-03T10:11:12.{n:06}Z 01O ",
    "mail": lambda _: "> > ",
    "readme": lambda _: "    ",
}


def named(one: Path | str) -> str:
    return one.name if isinstance(one, Path) else one


def runs_of(path: Path, content: bytes) -> list[ForeignRun]:
    path.write_bytes(content)
    return read(Source(path))


@cache
def plain_runs(path: Path) -> list[ForeignRun]:
    return read(Source(path))


def in_turn(rows: Sequence[Any], columns: Sequence[Any], *, each: int = 1) -> list[Any]:
    """Pair all; `make check` takes some of each row, and all columns in turn."""
    return [
        pytest.param(
            *(row, column),
            marks=() if (i - j) % len(columns) < each else pytest.mark.slow,
        )
        for i, row in enumerate(rows)
        for j, column in enumerate(columns)
    ]


def numbers(runs: list[ForeignRun]) -> list[object]:
    return [(r.format, r.variant, r.threads, r.metadata) for r in runs]


@pytest.mark.slow
@pytest.mark.parametrize(("path", "before"), in_turn(SHORT, [*BEFORE]), ids=named)
def test_a_prefix_changes_no_number(tmp_path: Path, path: Path, before: str) -> None:
    plain = plain_runs(path)
    assert not any(c.id == "import_text_removed" for r in plain for c in r.caveats)
    lines = path.read_text().split("\n")
    text = "\n".join(BEFORE[before](n) + line for n, line in enumerate(lines))
    found = runs_of(tmp_path / "x", text.encode())
    assert numbers(found) == numbers(plain)


@pytest.mark.parametrize("name", DESCRIBED)
def test_a_prefix_changes_no_number_of_a_described_format(
    tmp_path: Path, name: str
) -> None:
    plain = runs_of(tmp_path / "x", DESCRIBED[name].encode())
    text = "\n".join(
        f"Nov  3 01:02:03 a b[7]: {x}" for x in DESCRIBED[name].split("\n")
    )
    found = runs_of(tmp_path / "x", text.encode())
    assert numbers(found) == numbers(plain)
    assert all(
        any("a time stamp and a host and process" in c.detail for c in run.caveats)
        for run in found
    )


@pytest.mark.slow
@pytest.mark.parametrize("path", REAL, ids=lambda path: path.name)
def test_packing_and_encoding_change_no_number(tmp_path: Path, path: Path) -> None:
    if "left-out" in path.name:
        pytest.skip("it has no run")
    content = path.read_bytes()
    plain = plain_runs(path)
    for other in (
        gzip.compress(content),
        b"\xef\xbb\xbf" + content,
        content.decode().encode("utf-16"),
        content.replace(b"\r", b"").replace(b"\n", b"\r\n"),
    ):
        assert numbers(runs_of(tmp_path / "x", other)) == numbers(plain)


SOME: tuple[str, ...] = (
    "cyclictest-2.10-histogram.txt",
    "cyclictest-2.10.json",
    "rteval-3.8.xml",
)
SOME += ("rtla-6.12-timerlat-hist-loaded.txt", "hwlatdetect-2.10-loaded.txt")
UNLISTED: dict[str, Callable[[int], str]] = {
    "gh run view": lambda n: f"rt\tRun it\t2024-05-03T10:11:12.{n:07}Z ",
    "stern": lambda _: "rt-0 main ",
    "logcat": lambda n: f"05-03 10:11:12.{n % 1000:03}  12  12 I cyclictest: ",
    "robot": lambda n: f"20240503 10:11:12.{n % 1000:03} - INFO - ",
    "python": lambda n: f"2024-05-03 10:11:12,{n % 1000:03} rt.runner INFO     ",
    "teamcity": lambda n: f"[10:11:{n % 60:02}] : \t [Step 1/2] ",
    "go test": lambda _: "    rt_test.go:12: ",
    "annotate-output": lambda n: f"10:11:{n % 60:02} O: ",
    "diff": lambda _: "+",
    "cat -n": lambda n: f"{n + 1:6}\t",
    "ts -s": lambda n: f"{n / 7:.6f} ",
}


@pytest.mark.slow
@pytest.mark.parametrize(("before", "name"), in_turn([*UNLISTED], SOME, each=2))
def test_a_prefix_that_nobody_has_listed_changes_no_number(
    tmp_path: Path, name: str, before: str
) -> None:
    content = (OUTPUTS / name).read_text()
    plain = plain_runs(OUTPUTS / name)
    lines = enumerate(content.rstrip("\n").split("\n"))
    text = "\n".join(UNLISTED[before](n) + line for n, line in lines)
    assert numbers(runs_of(tmp_path / "x", text.encode())) == numbers(plain)


HEADER = "From: a@example.org\nSubject: results\nMIME-Version: 1.0\n"
MAILS: dict[str, Callable[[str], str]] = {
    "quoted-printable": lambda text: (
        f"{HEADER}Content-Transfer-Encoding: quoted-printable\n\nHi,\n\n"
        f"{quopri.encodestring(text.encode()).decode()}\nRegards\n"
    ),
    "quoted-printable, quoted": lambda text: (
        f"{HEADER}content-transfer-encoding: Quoted-Printable\n\nX wrote:\n"
        + quopri.encodestring(
            "".join(f"> {line}\n" for line in text.splitlines()).encode()
        ).decode()
    ),
    "base64": lambda text: (
        f"{HEADER}Content-Transfer-Encoding: base64\n\n"
        f"{base64.encodebytes(text.encode()).decode()}"
    ),
    "an attachment": lambda text: (
        f'{HEADER}Content-Type: multipart/mixed; boundary="B"\n\n--B\n'
        "Content-Type: text/plain\n\nsee below\n--B\n"
        'Content-Type: text/plain; name="out.txt"\n'
        "Content-Transfer-Encoding: base64\n\n"
        f"{base64.encodebytes(text.encode()).decode()}\n--B--\n"
    ),
    "of Windows": lambda text: MAILS["base64"](text.replace("\n", "\r\n")).replace(
        "\n", "\r\n"
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SOME)
@pytest.mark.parametrize("mail", MAILS)
def test_a_mail_as_it_was_sent_changes_no_number(
    tmp_path: Path, name: str, mail: str
) -> None:
    content = (OUTPUTS / name).read_text()
    plain = plain_runs(OUTPUTS / name)
    found = runs_of(tmp_path / "x", MAILS[mail](content).encode())
    assert [(r.format, r.threads) for r in found] == [
        (r.format, r.threads) for r in plain
    ]
    assert all(any("a mail in" in c.detail for c in run.caveats) for run in found)


LOG = "".join(f"building object {n} of 99999, please be patient\n" for n in range(4000))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "name"),
    in_turn(["", "2024-05-03T10:11:12.1234567Z "], SOME[:3]),
)
def test_a_result_is_found_in_a_long_log(
    tmp_path: Path, name: str, before: str
) -> None:
    text = (OUTPUTS / name).read_text()
    plain = plain_runs(OUTPUTS / name)
    log = f"{LOG}$ cat {name}\n{text}\n$ echo done\ndone\n"
    log = "".join(f"{before}{line}\n" for line in log.split("\n"))
    (found,) = runs_of(tmp_path / "x", log.encode())
    assert found.threads == plain[0].threads


def test_minified_json_in_a_log_is_read(tmp_path: Path) -> None:
    document = json.loads((OUTPUTS / "cyclictest-2.10.json").read_text())
    text = f"hello\n{json.dumps(document)}\nbye\n"
    (found,) = runs_of(tmp_path / "x", text.encode())
    assert found.format == "rt-tests-json"


SUMMARY = (
    "T: 0 ( 4090) P:99 I:1000 C: 100000 Min:      8 Act:   13 Avg:   19 Max:      17650"
)


@pytest.mark.parametrize("at", range(12, len(SUMMARY)))
@pytest.mark.parametrize("mark", ["", "> "])
def test_a_line_broken_anywhere_by_a_terminal_is_read(
    tmp_path: Path, at: int, mark: str
) -> None:
    if SUMMARY[at - 1].isdigit() and at < 60 and SUMMARY[at].isspace():
        pytest.skip("no terminal is so narrow")
    text = f"{mark}{SUMMARY[:at]}\n{mark}{SUMMARY[at:]}\n{mark}\n"
    (run,) = runs_of(tmp_path / "x", text.encode())
    (thread,) = run.threads
    assert (thread.samples, thread.min_ns, thread.max_ns, thread.mean_ns) == (
        *(100_000, 8000, 17_650_000, 19_000),
    )


@pytest.mark.parametrize(
    ("text", "samples", "longest"),
    [
        (
            "T: 0 ( 5407) P:80 I: 1100 C: 2047 Min: 7 Act: 15 Avg: 9\nMax: 59\n",
            2047,
            59,
        ),
        (
            "T: 0 ( 5407) P:80 I: 1100\nC: 2047 Min: 7 Act: 15\nAvg: 9 Max: 59\n",
            2047,
            59,
        ),
        (
            "T: 0 (12) P:80 C: 20 Min:  7\n  Act: 15 Avg: 9 Max: 59\n",
            *(20, 59),
        ),
        (
            "T: 0 (12) I:100 C: 20 Min:  7 Act: 15\nAvg: 9 Max:\n59\n",
            *(20, 59),
        ),
        (
            "#0: ID10, P90, CPU0, I1000; #1: ID11, P90, CPU0,\nCycles 20\n"
            "#1 -> #0, Min    1, Cur    4, Avg    4,\n  Max   59\n",
            *(20, 59),
        ),
    ],
)
def test_lines_wrapped_by_a_mail_are_read(
    tmp_path: Path, text: str, samples: int, longest: int
) -> None:
    if text.startswith("#0"):
        text = text.replace("#1 -> #0", "#1 -> #0")
    (run,) = runs_of(tmp_path / "x", text.encode())
    (thread,) = run.threads
    assert (thread.samples, thread.max_ns) == (samples, longest * 1000)


def test_lines_that_are_whole_are_not_joined() -> None:
    lines = [SUMMARY, "T: 1 (1) P:1", "# Total: 5", "T: 2 (", "", SUMMARY, "policy: x"]
    assert list(unwrapped(iter(lines))) == lines


def test_a_screen_drawn_again_counts_once(tmp_path: Path) -> None:
    first = SUMMARY.replace("100000", " 50000").replace("17650", "   12")
    text = f"policy: fifo: loadavg: 0\r\n\r\n{first}\r{SUMMARY}\r\n\x1b[1A{SUMMARY}\r\n"
    (run,) = runs_of(tmp_path / "x", text.encode())
    assert [t.samples for t in run.threads] == [100_000]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("T: 0 ( 12) P:80\n", "line 1 ('T: 0 ( 12) P:80') looks like cyclictest-text"),
        (
            "hi\n> RTD| 1| 2| 3|\n",
            "line 2 ('RTD| 1| 2| 3|') looks like xenomai-latency",
        ),
        ("a\nb\nIndex  IRQ-000\n", "line 3 ('Index  IRQ-000') looks like rtla"),
        ("hello\n", "; import the output"),
        ("000001 000002\n", "line 1 ('000001 000002') looks like"),
    ],
)
def test_a_refusal_names_the_line_that_looks_nearest(
    tmp_path: Path, text: str, said: str
) -> None:
    with pytest.raises(RecordError) as raised:
        runs_of(tmp_path / "x", text.encode())
    assert said in str(raised.value)
    assert format_of(Source(tmp_path / "x")) == ""
