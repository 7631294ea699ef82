"""Traces in the Common Trace Format: their bytes, and as babeltrace2 reads them."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from rtscope.host.errors import UsageError
from rtscope.record.events.events import Event
from rtscope.verbs.explain.ctf import refuse_used
from rtscope.verbs.explain.ctftrace import METADATA, CtfTrace, ctf_of_calls

Seen = list[tuple[int, int, str]]


def event(at_ns: int, cpu: int, name: str, **fields: int | str) -> Event:
    return Event(at_ns, cpu, name, 7, "task", None, None, fields)


def trace_of(*events: Event) -> CtfTrace:
    made = CtfTrace("mono")
    for one in events:
        made.add(one)
    return made


def read_back(trace: CtfTrace, folder: Path) -> Seen:
    """Return time, CPU and name of each event, as babeltrace2 reads them."""
    program = shutil.which("babeltrace2")
    if program is None:
        pytest.skip("needs babeltrace2: apt install babeltrace2")
    for name, content in trace.files().items():
        (folder / name).write_bytes(content)
    done = subprocess.run(
        [program, "--clock-cycles", str(folder)],
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stderr == ""
    found = re.findall(
        r"^\[(\d+)\] \(\S+\) (\S+): \{ cpu_id = (\d+)", done.stdout, re.M
    )
    return sorted((int(at), int(cpu), name) for at, name, cpu in found)


def test_babeltrace_reads_the_same_events(tmp_path: Path) -> None:
    given = [
        event(5, 1, "sched_waking", pid=-3, comm='a"b\\', target_cpu=0),
        event(7, 0, "sched_switch", prev_comm="struct", int=2**63 - 1),
        event(9, 0, "sched_switch", prev_comm="é\0x"),
        event(9, 0, 'odd"\n', **{"a b": 1, "a_b": 2}),
    ]

    found = read_back(trace_of(*given), tmp_path)

    assert [(at, cpu) for at, cpu, _ in found] == [(5, 1), (7, 0), (9, 0), (9, 0)]


def test_a_kind_with_other_fields_is_described_again() -> None:
    made = trace_of(
        event(1, 0, "x", a=1), event(2, 0, "x", a="1"), event(3, 0, "x", a=2)
    )

    assert len(made.kinds) == 2
    metadata = made.files()[METADATA].decode()
    assert metadata.count('name = "x"') == 2
    assert "int64_t _a;" in metadata
    assert "string _a;" in metadata


def test_the_sizes_of_a_stream_are_its_own() -> None:
    stream = trace_of(event(1, 3, "x", text="abc")).files()["cpu3"]

    assert int.from_bytes(stream[24:32], "little") == 8 * len(stream)
    assert int.from_bytes(stream[32:40], "little") == 8 * len(stream)
    assert stream[:4] == bytes.fromhex("c11ffcc1")


def test_calls_of_a_board_open_and_close_in_turn() -> None:
    made = ctf_of_calls([(0, 0, 90, "outer"), (0, 10, 20, "in"), (0, 20, 20, "none")])
    metadata = made.files()[METADATA].decode()

    assert "func_entry" in metadata
    assert made.spans == {0: (0, 90)}
    assert len(made.streams[0]) == 6


def test_a_folder_in_use_is_refused(tmp_path: Path) -> None:
    refuse_used(tmp_path / "new")
    refuse_used(tmp_path)
    (tmp_path / "there").touch()
    for place in (tmp_path, tmp_path / "there"):
        with pytest.raises(UsageError, match="name a new folder"):
            refuse_used(place)
