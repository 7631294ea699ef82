"""A trace in the forms in which people have it: the same answer, or why not."""

import gzip
import lzma
from pathlib import Path

import numpy as np
import pytest

from rtscope.explain.directory import explained_file
from rtscope.explain.events.window import WakeupSelector
from rtscope.host.errors import RecordError
from rtscope.record.events.dat import open_trace
from rtscope.record.events.text import text_trace

TASKS = {"swapper/1": (0, 120), "hog": (77, 1), "a [b] c=1:2": (900, 4)}
CTL = "a [b] c=1:2"

Step = tuple[int, str, str, str]
"""Time in ns since 500 s, current task, event and its fields."""


def switch(at_ns: int, prev: str, to: str, state: str = "S") -> Step:
    (a, m), (b, n) = TASKS[prev], TASKS[to]
    return (
        *(at_ns, prev, "sched_switch"),
        f"prev_comm={prev} prev_pid={a} prev_prio={m} prev_state={state} ==> "
        f"next_comm={to} next_pid={b} next_prio={n}",
    )


def woken(at_ns: int, by: str, event: str = "sched_waking") -> Step:
    pid, prio = TASKS[CTL]
    return at_ns, by, event, f"comm={CTL} pid={pid} prio={prio} target_cpu=001"


def expired(at_ns: int, by: str) -> Step:
    now = 500_000_000_000 + at_ns - 1_000
    body = f"hrtimer=00000000aa function=hrtimer_wakeup now={now}"
    return at_ns, by, "hrtimer_expire_entry", body


STEPS = (
    switch(5_000, "swapper/1", CTL, "R"),
    switch(25_000, CTL, "hog"),
    *(expired(at, "hog") for at in (400_000, 900_000, 1_100_000, 1_600_000)),
    woken(1_102_000, "hog"),
    woken(1_104_000, "hog", "sched_wakeup"),
    switch(1_180_000, "hog", CTL, "R+"),
    switch(1_200_000, CTL, "swapper/1"),
)
IN_ORDER = tuple(sorted(STEPS))


def stamp(at_ns: int, digits: int = 6) -> str:
    return f"500.{at_ns // 10 ** (9 - digits):0{digits}}"


def ftrace(step: Step) -> str:
    at, task, name, body = step
    return f"{task:>16}-{TASKS[task][0]:<7} [001] d..2. {stamp(at)}: {name}: {body}"


def perf(step: Step) -> str:
    at, task, name, body = step
    group = "timer" if name.startswith("hrtimer") else "sched"
    pid = TASKS[task][0]
    return f"{task:>16} {pid:5} [001] {stamp(at)}: {group + ':' + name:>28}: {body}"


def perf_with_threads(step: Step) -> str:
    line = perf(step)
    pid = f"{TASKS[step[1]][0]:5} [001]"
    return line.replace(pid, f" {pid.strip().split()[0]}/{pid.strip()}", 1).replace(
        "sched:sched", "1 sched:sched"
    )


def lttng(step: Step, *, seconds: bool = False) -> str:
    at, _, name, body = step
    fields = []
    for word in body.replace(" ==> ", " ").split(" "):
        if "=" in word and word.partition("=")[0] in KEYS:
            fields.append(word.split("=", 1))
        else:
            fields[-1][1] += f" {word}"
    told = ", ".join(f"{_key(k)} = {_lttng_value(k, v)}" for k, v in fields)
    when = f"[500.{at:09}]" if seconds else f"[00:08:20.{at:09}]"
    named = f"timer_{name}" if name.startswith("hrtimer") else name
    return f"{when} (+0.000001000) box {named}: {{ cpu_id = 1 }}, {{ {told} }}"


KEYS = {
    *("prev_comm", "prev_pid", "prev_prio", "prev_state", "next_comm", "next_pid"),
    *("next_prio", "comm", "pid", "prio", "target_cpu", "hrtimer", "function", "now"),
}


def _key(key: str) -> str:
    return key.replace("pid", "tid")


def _lttng_value(key: str, value: str) -> str:
    if key.endswith("comm"):
        return f'"{value}"'
    if key.endswith("prio"):
        return str(int(value) - 100)
    if key == "prev_state":
        return {"S": "1", "R": "0", "R+": "0"}[value]
    return f"0x{value}" if key == "hrtimer" else value


def ticks(step: Step, per_ns: float = 2.9) -> str:
    at = round((500_000_000_000 + step[0]) * per_ns)
    return ftrace(step).replace(f"{stamp(step[0])}:", f"{at}:")


def lines(form: "object", *, head: str = "") -> str:
    assert callable(form)
    return head + "".join(f"{form(step)}\n" for step in IN_ORDER)


PLAIN = lines(ftrace, head="# tracer: nop\n#\n")
FORMS = {
    "plain": PLAIN,
    "a comma for the point": PLAIN.replace(" 500.", " 500,"),
    "CRLF": PLAIN.replace("\n", "\r\n"),
    "Android": PLAIN.replace(" [001] d..2.", " (  900) [001] d..2"),
    "without flags": PLAIN.replace(" d..2.", ""),
    "a journal": "".join(
        f"Nov 27 18:00:01 box rt-test[812]: {line}\n" for line in PLAIN.splitlines()
    ),
    "a container": "".join(
        f"2026-11-27T18:00:01.123456789Z {line}\n" for line in PLAIN.splitlines()
    ),
    "a quoted mail": "".join(f"> {line}\n" for line in PLAIN.splitlines()),
    "perf script": lines(perf),
    "perf script with threads and periods": lines(perf_with_threads),
    "perf script with nanoseconds": lines(
        lambda step: perf(step).replace(stamp(step[0]), stamp(step[0], 9))
    ),
    "a quoted perf script": lines(lambda step: f"> {perf(step)}"),
    "babeltrace": lines(lttng),
    "babeltrace in seconds": lines(lambda step: lttng(step, seconds=True)),
    "x86-tsc": lines(ticks),
    "ticks of 24 MHz": lines(lambda step: ticks(step, 0.024)),
    "nanoseconds": lines(lambda step: ticks(step, 1), head="# clock: mono_raw\n"),
}
ENCODED = {
    "gzip": gzip.compress(PLAIN.encode()),
    "xz": lzma.compress(PLAIN.encode()),
    "UTF-16": PLAIN.encode("utf-16"),
    "a byte-order mark": b"\xef\xbb\xbf" + PLAIN.encode(),
    "perf script in gzip": gzip.compress(FORMS["perf script"].encode()),
    "UTF-16 with CRLF": PLAIN.replace("\n", "\r\n").encode("utf-16"),
}


def sentence_of(path: Path, thread: str = CTL) -> tuple[str, str, int]:
    """Return the cause, its name and its length in whole us."""
    found = explained_file(
        path, WakeupSelector(thread=thread), bound=False, log=lambda _: None
    )
    (explained,) = found.wakeups[0]
    dominant = explained.explanation.dominant
    assert dominant is not None
    return dominant.cause.value, dominant.name, round(dominant.duration_ns, -3) // 1000


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_every_form_has_the_same_answer(form: str, tmp_path: Path) -> None:
    (tmp_path / "trace").write_bytes(FORMS[form].encode())

    cause, name, us = sentence_of(tmp_path / "trace")

    assert (cause, name) == ("another task", "hog (real-time, priority 98)")
    assert 75 <= us <= 78


@pytest.mark.parametrize("form", ENCODED)
def test_every_encoding_has_the_same_answer(form: str, tmp_path: Path) -> None:
    (tmp_path / "trace").write_bytes(ENCODED[form])

    assert sentence_of(tmp_path / "trace")[1] == "hog (real-time, priority 98)"


def refusal(text: str) -> str:
    with pytest.raises(RecordError) as caught:
        text_trace(memoryview(text.encode()), name="trace.txt")
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "# tracer: function_graph\n#\n 1)   0.625 us    |  _raw_spin_lock();\n",
            ("line 1", "function_graph", "sched_switch"),
        ),
        (
            "\n 1)   0.625 us    |  _raw_spin_lock();\n",
            ("line 2", "function_graph"),
        ),
        (
            lines(lambda step: ticks(step).replace("hrtimer_expire_entry", "x")),
            ("line 1", "x86-tsc", "-C mono"),
        ),
        (
            "".join(
                ftrace(step).replace(f"{stamp(step[0])}:", f"{number}:") + "\n"
                for number, step in enumerate(IN_ORDER, 100)
            ),
            ("line 1", "-C mono"),
        ),
        (
            "# tracer: hwlat\n  <...>-1 [001] d.... 678.473449: #1 inner/outer(us)\n",
            ("line 1", "tracer hwlat", "sched_waking"),
        ),
        (
            "# tracer: osnoise\n  <...>-859 [000] .... 81.637220: 1000000 190 99.9 9\n",
            ("line 1", "tracer osnoise", "sched_waking"),
        ),
        ("one\n", ("line 1 ('one')", "no CPU in brackets")),
        (
            "# x\nhog 77 500.000001: sched:sched_switch: prev_comm=x\n",
            ("line 2", "perf script: add -F +cpu"),
        ),
        ("hog-77 [001] sched_switch: x\n", ("no time before a colon",)),
        ("# only\n# comments\n", ("no event in it",)),
    ],
)
def test_a_refusal_names_the_line_and_what_it_lacks(
    text: str, told: tuple[str, ...]
) -> None:
    message = refusal(text)

    assert message.startswith("trace.txt: ")
    for words in told:
        assert words in message


def test_what_was_undone_is_told(tmp_path: Path) -> None:
    (tmp_path / "trace").write_bytes(ENCODED["perf script in gzip"])
    told: list[str] = []
    explained_file(tmp_path / "trace", WakeupSelector(), bound=False, log=told.append)

    assert any("text of perf script" in line for line in told)
    assert open_trace(tmp_path / "trace").told


def test_a_compressed_file_that_was_cut_is_refused(tmp_path: Path) -> None:
    (tmp_path / "trace").write_bytes(ENCODED["gzip"][:-20])

    with pytest.raises(RecordError):
        open_trace(tmp_path / "trace")


def test_a_kernel_that_is_no_text_is_none_to_stumble_over() -> None:
    head = b"# wakeup_rt latency trace v1.1.5 on \xff\xfe6.1\n"
    trace = text_trace(memoryview(head + PLAIN.encode()), name="trace.txt")

    assert "6.1" in trace.kernel


def test_lttng_does_not_tell_who_lent_a_priority() -> None:
    lines = [
        lttng(switch(5_000, "swapper/1", "hog", "R")),
        "[00:08:20.000200000] (+0.1) box sched_pi_setprio: { cpu_id = 2 }, "
        '{ comm = "hog", tid = 77, oldprio = 20, newprio = -96 }',
    ]
    trace = text_trace(memoryview("\n".join(lines).encode()), name="trace.txt")
    (lent,) = trace.events(trace.rows[1], np.arange(1))

    assert (lent.pid, lent.comm) == (-1, "")
    assert (lent.numbers["oldprio"], lent.numbers["newprio"]) == (120, 4)


PERF = """\
# ========
# os release : 6.1.0-18-rt-amd64
# ========
#
            perf  4242 [000] 12345.678900: sched:sched_stat_runtime: comm=perf pid=4242
         swapper     0 [001] 12345.678903:     sched:sched_wakeup: rt:812 [4] CPU:001
         swapper     0 [001] 12345.678915:     sched:sched_switch: swapper/1:0 [120] R ==> rt:812 [4]
              rt   812 [001] 12345.679000:     sched:sched_switch: rt:812 [4] S ==> kworker/1:1:77 [-1]
        \t    ffffffff81 schedule+0x1 ([kernel.kallsyms])
     kworker/1:1    77 [001] 12345.680000:     sched:sched_wakeup: rt:812 [4] CPU:001
     kworker/1:1    77 [001] 12345.680150:     sched:sched_switch: kworker/1:1:77 [-1] R+ ==> rt:812 [4]
              rt   812 [001] 12345.680170:     sched:sched_switch: rt:812 [4] S ==> kworker/1:1:77 [120]
"""  # noqa: E501 -- as perf writes it


def test_perf_prints_switches_in_its_own_way_too(tmp_path: Path) -> None:
    (tmp_path / "perf.txt").write_text(PERF)

    assert sentence_of(tmp_path / "perf.txt", "rt") == (
        *("another task", "kworker/1:1 (SCHED_DEADLINE at that time)"),
        150,
    )
    assert open_trace(tmp_path / "perf.txt").kernel.startswith("6.1.0-18-rt-amd64")
