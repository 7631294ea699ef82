"""Lines of the agent: each comes back as it went, and damage never becomes a number."""

import dataclasses
import hashlib
import json
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes import cycling, democases, targets, telling, threads, traces, watching
from fakes.measurements import record, thread
from rtscope import contract
from rtscope.contract import (
    AgentError,
    AgentResult,
    Applied,
    CounterDelta,
    FileLine,
    Growth,
    Keeping,
    KernelMessage,
    KernelThread,
    Line,
    LoadTick,
    LoadWindow,
    ProcessInWindow,
    Refused,
    Restored,
    Samples,
    ThreadResult,
    Tick,
    TickCpu,
    Tuned,
    Wakeup,
    WorstSoFar,
    bucket_width_ns,
    dump_line,
    is_bucket_low,
    lines,
    parse_line,
    require,
    result_digest,
)
from rtscope.host.errors import ContractError
from rtscope.record.caveats.catalogue import Effect, kind_of
from rtscope.stats.runcaveats import lint

SEED = 20_260_101


@cache
def a_result() -> AgentResult:
    """Return a result with something in every list, sums beyond 64 bits included."""
    rng = random.Random(SEED)
    usual = [int(rng.lognormvariate(9, 0.4)) for _ in range(120)]
    threads = (
        thread([*usual, 3_500_000, *usual, 1_200_000], worst_kept=8),
        thread([2**34 + 5, 7_000, 6_000], cpu=1, interval_ns=10**9),
        thread([], cpu=None),
    )
    made = record(threads).result
    assert made.machine is not None
    machine = replace(
        made.machine,
        interrupts=(CounterDelta("39", 'dwc_otg "usb"', {0: 4_800_000, 1: 20}),),
        kernel_threads=(KernelThread(39, "irq/39-dwc_otg", "irq", 0, 10**9),),
    )
    return replace(made, machine=machine, tracing=traces.tracing(overrun=7))


LINES: Mapping[str, Line] = {
    "hello": replace(targets.HELLO, restored=("governor",)),
    "started": telling.started([thread([5_000]), thread([], cpu=None)]),
    "growth": Growth((telling.growth(thread([5_000, 7_000])),)),
    "tick": Tick(
        10**9, (TickCpu(0, 5, 1, 7), TickCpu(None, 0, 0, 0)), {0: 1}, {"a": -5}
    ),
    "worst": WorstSoFar(Wakeup(3, 17, 10**15, 10**15 + 12_345)),
    "kmsg": KernelMessage(12, 4, "usb 1-1: \u00e9 \x1b[31m\n"),
    "error": AgentError("cannot", cause="capability", remedy="sudo"),
    "load_hello": targets.LOAD_HELLO,
    "load": LoadTick(10**15, 3, 10**12),
    "load_window": LoadWindow(
        10**15,
        10**15 + 10**9,
        (
            ProcessInWindow(7, 6, 10**12, "w\x1b", "R", 10**9, 0, 12),
            ProcessInWindow(8, 6, 10**12, "w", "gone", None, None, None),
        ),
        not_watched=1,
    ),
    "load_end": targets.ASKED,
    "file": FileLine("/proc/cmdline", "ok", "cXVpZXQK"),
    "file-denied": FileLine("/proc/kmsg", "denied", reason="Permission denied"),
    "disk": targets.A_DISK,
    "keep": Keeping(),
    "restored": Restored("rt_runtime_us", 0, "950000"),
    "applied": Applied("irq_affinity", 24, old="0-3", value="0-1"),
    "refused": Refused("boost", 0, value="0", cause="missing", reason="no such"),
    "tuned": Tuned(schema=2, applied=1, already=0, refused=1),
    "task": threads.task(7, "deadline", name="\x1b\n", unreadable={"cpus": "why"}),
    "result-refused": targets.traced_result(traces.tracing(cause="lockdown")),
    "trace_file": traces.FILES[0],
    "samples": Samples(cpu=1, first=8192, periods=1, base64="Bw=="),
    "trace_pages": traces.trace_pages(1, 17, [traces.page(5)]),
    "tasks_end": threads.ending(1, vanished=2),
    "watch": watching.begin(watching.event("malloc", cause="capability")),
    "watch_sample": watching.sample("minor_fault", 17),
    "executed": watching.executed(2000, name="control"),
    "watched": watching.thread(17, minor_fault=3),
    "watch_end": watching.end(),
    "cycles": cycling.begin(),
    "cycle_runs": cycling.periodic(3),
    "cycles_end": cycling.end(losses=1),
    **{
        name: democases.an_example()[place]
        for place, name in ((0, "demo"), (1, "demo_events"), (-1, "demo_end"))
    },
}


def all_lines() -> list[Line]:
    return [*LINES.values(), a_result()]


@pytest.mark.parametrize("name", [*LINES, "result"])
def test_each_type_of_line_comes_back_as_it_went(name: str) -> None:
    line = a_result() if name == "result" else LINES[name]
    written = dump_line(line)

    assert parse_line(written) == line
    kind = name.removesuffix("-denied").removesuffix("-refused")
    assert written.startswith(b'{"type":"' + kind.encode())
    assert b"\n" not in written


def test_there_is_an_example_of_every_type_of_line() -> None:
    known = {
        thing.__name__
        for thing in vars(contract).values()
        if dataclasses.is_dataclass(thing)
        and isinstance(thing, type)
        and "type" in thing.__slots__  # type: ignore[attr-defined]
    }
    assert {type(line).__name__ for line in all_lines()} == known


def test_a_sum_beyond_64_bits_is_written_as_decimal_text() -> None:
    document = json.loads(dump_line(a_result()))

    squares = (2**34 + 5) ** 2 + 7_000**2 + 6_000**2
    assert squares > 2**64
    assert document["threads"][1]["sum_sq_ns2"] == str(squares)


def test_what_a_newer_agent_adds_is_ignored() -> None:
    document = json.loads(dump_line(a_result()))
    document["invented"] = {"later": [1, 2]}
    document["threads"][0]["invented"] = "later"

    assert parse_line(json.dumps(document).encode()) == a_result()


@pytest.mark.parametrize(
    "damage",
    [
        {"samples": -1},
        {"samples": 1.0},
        {"samples": "5"},
        {"samples": True},
        {"samples": None},
        {"samples": 2**63},
        {"sum_ns": "-5"},
        {"sum_ns": "1e5"},
        {"sum_ns": "\u0665"},
        {"sum_ns": 5.0},
        {"sum_ns": None},
        {"sum_ns": str(2**128)},
        {"sum_ns": "9" * 10_000},
        {"histogram": [[1]]},
        {"histogram": [[1, -1]]},
        {"histogram": {"1": 1}},
        {"cpu": -1},
        {"cpu": 2**16},
        {"policy": "x" * 100_000},
        {"worst": [{"cpu": 0, "seq": 1, "expiry_ns": 5}]},
        {"clock_before": None},
    ],
)
def test_a_value_outside_the_contract_is_refused(damage: dict[str, Any]) -> None:
    document = json.loads(dump_line(a_result()))
    document["threads"][0] |= damage
    (key,) = damage

    with pytest.raises(ContractError, match=rf"result\.threads\.0[.:].*{key}"):
        parse_line(json.dumps(document).encode())


@pytest.mark.parametrize(
    "field",
    [
        f.name
        for f in dataclasses.fields(ThreadResult)
        if f.name not in ("foreign", "event", "hwlat", "timerlat")
    ],
)
def test_no_figure_of_a_thread_may_be_missing(field: str) -> None:
    document = json.loads(dump_line(a_result()))
    del document["threads"][0][field]

    with pytest.raises(ContractError, match=rf"{field}: Field required"):
        parse_line(json.dumps(document).encode())


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b'{"type":"no such"}',
        b'{"type":[]}',
        b'{"type":"keep"}x',
        b'{"type":"keep"',
        b'\xff{"type":"keep"}',
        b'{"type":"keep","x":' + b"[" * 100_000,
        b'{"type":"keep","x":' + b"[" * 5_000 + b"]" * 5_000 + b"}",
        b'{"type":"hello","schema":' + b"9" * 100_000 + b"}",
        b"\0" * 1000,
    ],
)
def test_what_is_no_line_is_refused_in_one_short_sentence(line: bytes) -> None:
    with pytest.raises(ContractError) as refused:
        parse_line(line)

    told = str(refused.value)
    assert told.isascii()
    assert told.isprintable()
    assert len(told) < 500


def test_a_line_of_absurd_length_is_refused_unread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lines, "MAX_LINE_BYTES", 100)

    with pytest.raises(ContractError, match="a line of 101 bytes"):
        parse_line(b"x" * 101)


# --- fuzzing: 100,000 damaged lines ---------------------------------------------------

Damage = Callable[[random.Random, bytearray], None]


def flip_a_bit(rng: random.Random, line: bytearray) -> None:
    line[rng.randrange(len(line))] ^= 1 << rng.randrange(8)


def change_a_byte(rng: random.Random, line: bytearray) -> None:
    line[rng.randrange(len(line))] = rng.randrange(256)


def cut_the_end(rng: random.Random, line: bytearray) -> None:
    del line[rng.randrange(len(line)) :]


def lose_a_piece(rng: random.Random, line: bytearray) -> None:
    start = rng.randrange(len(line))
    del line[start : start + rng.randrange(1, 40)]


def swap_two_pieces(rng: random.Random, line: bytearray) -> None:
    size = rng.randrange(1, 12)
    a, b = (rng.randrange(max(1, len(line) - size)) for _ in range(2))
    line[a : a + size], line[b : b + size] = line[b : b + size], line[a : a + size]


def repeat_a_piece(rng: random.Random, line: bytearray) -> None:
    start, size = rng.randrange(len(line)), rng.randrange(1, 40)
    line[start:start] = line[start : start + size]


ABSURD = (
    *(b"9" * 30, b"-1", b"1e400", b"-0", b"0.5", b"NaN", b"-Infinity", b"1" * 5000),
    *(b"null", b"true", b'""', b"[]", b"{}", b'"\\ud800"', b'"\\u0000"', b"00"),
    *(b"[" * 300 + b"]" * 300, b'{"a":' * 300 + b"1" + b"}" * 300),
)


def put_something_absurd(rng: random.Random, line: bytearray) -> None:
    digits = [at for at, byte in enumerate(line) if byte in b"0123456789"]
    if not digits:
        return
    start = end = rng.choice(digits)
    while end < len(line) and line[end] in b"0123456789":
        end += 1
    line[start:end] = rng.choice(ABSURD)


DAMAGES: tuple[Damage, ...] = (
    flip_a_bit,
    change_a_byte,
    cut_the_end,
    lose_a_piece,
    swap_two_pieces,
    repeat_a_piece,
    put_something_absurd,
)


def damaged(cases: int, lines: list[bytes], *, seed: int) -> Iterator[bytes]:
    rng = random.Random(seed)
    for _ in range(cases):
        line = bytearray(rng.choice(lines))
        for _ in range(rng.choice((1, 1, 1, 2, 5))):
            if line:
                rng.choice(DAMAGES)(rng, line)
        yield bytes(line)


def not_a_number(_name: str) -> None:
    """NaN and Infinity are no JSON; where anything may stand, they become null."""


def read_strictly(line: bytes) -> Any:
    return json.loads(line.decode("utf-8"), parse_constant=not_a_number)


def test_the_agent_cannot_say_that_another_tool_measured() -> None:
    document = json.loads(dump_line(a_result()))
    document["threads"][0] |= {"foreign": {"step_ns": 1000, "end_ns": 0}}

    with pytest.raises(ContractError, match="another tool"):
        parse_line(json.dumps(document).encode())


def says_the_same(parsed: Any, strict: Any) -> bool:
    """Whether all that was understood is what is written there."""
    if isinstance(parsed, dict):
        return isinstance(strict, dict) and has_the_same(parsed, strict)
    if isinstance(parsed, list):
        return (
            isinstance(strict, list)
            and len(parsed) == len(strict)
            and all(map(says_the_same, parsed, strict))
        )
    if isinstance(parsed, str) and is_number(parsed):
        # A sum: it may come as a number too, or with zeros before it.
        return int(parsed) == int(strict)
    return type(parsed) is type(strict) and bool(parsed == strict)


def has_the_same(parsed: dict[str, Any], strict: dict[str, Any]) -> bool:
    # A CPU's number may have zeros before it too, and 0 a sign.
    written = {
        str(int(k)) if is_number(k.removeprefix("-")) else k: v
        for k, v in strict.items()
    }
    return all(
        says_the_same(value, written[key]) if key in written else key in DEFAULTS
        for key, value in parsed.items()
    )


def is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 39


DEFAULTS = {
    *("restored", "ticks_lost", "base64", "reason", "tracing", "counter_deltas"),
    *("times", "samples_lost", "own_events", "wakeup_plain_ns", "wakeup_recorded_ns"),
    *("wakeup_beside_plain_ns", "wakeup_beside_recorded_ns"),
    *("started_ns", "capabilities", "cgroup"),
    *("errors", "left", "opening_ns", "settable"),
    "foreign",  # refused unless null
}


@pytest.mark.parametrize(
    "part", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 2, 3))]
)
def test_damage_is_refused_or_what_is_understood_is_written_there(part: int) -> None:
    small = [dump_line(line) for line in all_lines()]
    refused = 0
    for line in damaged(25_000, small, seed=SEED + part):
        try:
            parsed = parse_line(line)
        except ContractError:
            refused += 1
            continue
        assert says_the_same(json.loads(dump_line(parsed)), read_strictly(line)), line
    assert refused > 15_000


def figures(t: ThreadResult) -> tuple[object, ...]:
    return t.cpu, t.samples, t.early, t.overflow, t.min_ns, t.max_ns


def test_a_wrong_digit_in_a_result_is_refused_or_makes_it_invalid() -> None:
    """
    What cannot be noticed is within what the histogram resolves.

    A sum may be off by a bucket's width (0.1 %), the skipped activations by the one
    that the run's own end may cut off.
    """
    good = replace(a_result(), threads=a_result().threads[:1])
    line = dump_line(good)
    start, end = line.index(b'"interval_ns"'), line.index(b'"worst"')
    digits = [at for at in range(start, end) if line[at] in b"0123456789"]
    about, rng, noticed = record(good.threads), random.Random(SEED), 0
    for at in digits:
        other = rng.choice([digit for digit in b"0123456789" if digit != line[at]])
        changed = line[:at] + bytes([other]) + line[at + 1 :]
        try:
            parsed = parse_line(changed)
        except ContractError:
            noticed += 1
            continue
        assert isinstance(parsed, AgentResult)
        found = lint(replace(about, result=parsed))
        if any(kind_of(caveat).effect is Effect.INVALID for caveat in found):
            noticed += 1
            continue
        (was,), (now,) = good.threads, parsed.threads
        assert figures(now) == figures(was)
        assert abs(require(now.missed_periods) - require(was.missed_periods)) <= 1
        assert (
            abs(require(now.sum_ns) - require(was.sum_ns)) <= require(was.sum_ns) / 1000
        )
        assert abs(require(now.sum_sq_ns2) - require(was.sum_sq_ns2)) <= (
            require(was.sum_sq_ns2) / 500
        )
    assert noticed > 0.85 * len(digits)


# --- buckets and digests --------------------------------------------------------------


@pytest.mark.parametrize(
    ("low_ns", "width_ns"),
    [(0, 1), (1023, 1), (1024, 1), (2047, 1), (2048, 2), (4096, 4), (1 << 33, 1 << 23)],
)
def test_a_bucket_spans_a_thousandth_of_its_values(low_ns: int, width_ns: int) -> None:
    assert bucket_width_ns(low_ns) == width_ns


@given(st.integers(min_value=0, max_value=2**34 - 1))
def test_each_value_has_one_bucket(value_ns: int) -> None:
    low_ns = value_ns - value_ns % bucket_width_ns(value_ns)

    assert is_bucket_low(low_ns)
    assert low_ns <= value_ns < low_ns + bucket_width_ns(low_ns)
    assert is_bucket_low(low_ns + bucket_width_ns(low_ns)) or value_ns >= 2**34 - 2**24


@pytest.mark.parametrize("low_ns", [-1, 2049, 2**34, 2**34 + 1])
def test_what_is_no_lower_edge_is_told(low_ns: int) -> None:
    assert not is_bucket_low(low_ns)


@pytest.mark.parametrize("schema", [0, 1, 3])
def test_a_line_of_another_contract_names_both_and_the_remedy(schema: int) -> None:
    line = dump_line(LINES["tuned"]).replace(b'"schema":2', b'"schema":%d' % schema)

    with pytest.raises(ContractError) as refused:
        parse_line(line)
    assert (
        f"schema: the agent speaks version {schema}, and this rtscope version 2, of "
        "their contract; build the agent of this rtscope: make agent"
    ) in str(refused.value)


def test_the_digest_of_a_measurement_is_the_same_for_ever() -> None:
    one = thread([5_000, 7_000], cpu=3)
    settled = (
        '[{"cpu":3,"early":0,"histogram":[[5000,1],[7000,1]],"max_ns":7000,'
        '"min_ns":5000,"skipped":0,"sum_ns":"12000","sum_sq_ns2":"74000000",'
        '"worst":[[3,2,1000002000000,1000002007000],[3,1,1000001000000,1000001005000]]}]'
    )

    assert result_digest([one]) == hashlib.sha256(settled.encode()).hexdigest()


def test_equal_digests_mean_the_same_measurement() -> None:
    one, again = thread([5_000, 7_000]), thread([5_000, 7_000])

    assert result_digest([one]) == result_digest([again])
    assert result_digest([replace(one, tid=5, end_ns=one.end_ns)]) == result_digest(
        [one]
    )


@pytest.mark.parametrize(
    "change",
    [
        {"cpu": 1},
        {"histogram": ((5_000, 2),)},
        {"sum_ns": 1},
        {"sum_sq_ns2": 1},
        {"min_ns": 1},
        {"max_ns": 1},
        {"missed_periods": 1},
        {"early": 1},
        {"worst": ()},
    ],
)
def test_a_digest_covers_all_that_was_measured(change: dict[str, Any]) -> None:
    one = thread([5_000, 7_000])

    assert result_digest([replace(one, **change)]) != result_digest([one])
