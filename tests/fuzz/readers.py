"""
What reads input that others wrote: each with valid seeds and the errors it may raise.

A reader gives a value or raises one of its errors. Anything else is a defect.
"""

import json
import tarfile
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from random import Random
from typing import Protocol

import numpy as np

from fakes.auditcases import CASES
from fakes.audited import BOOTED
from fakes.foreign import DESCRIBED
from fakes.printed import render_text
from fakes.trees import reader_of
from fuzz import binaries, folders, histories
from fuzz.mutate import mutated
from rtscope.contract import KernelMessage, LoadWindow, parse_line
from rtscope.host.errors import RtscopeError
from rtscope.machine.audit.context import Observed
from rtscope.machine.audit.examine import auditing, catalogue, examine, read_context
from rtscope.machine.audit.model import checks_document
from rtscope.machine.kernelconfig import parse_config
from rtscope.measure.loadproof import LoadProof
from rtscope.measure.loads import get_load
from rtscope.present.documents.results import render_markdown
from rtscope.present.formats.data import render_json
from rtscope.present.model.build import build_model
from rtscope.record.caveats.catalogue import caveats_from_log
from rtscope.record.events.dat import open_trace
from rtscope.record.explanation import read_explained
from rtscope.record.foreign import read as read_foreign
from rtscope.record.foreign.source import Source
from rtscope.record.model import record_from_json, record_to_json
from rtscope.stats.runcaveats import all_caveats
from rtscope.verbs.audit.capture import NOTES_NAME, open_tree
from rtscope.verbs.exchange.records import Stated, record_of

FORMATS = Path(__file__).parents[2] / "format"
OUTPUTS = Path(__file__).parents[1] / "foreign"
RECORDS = Path(__file__).parents[1] / "structure" / "records.tar.gz"


class Mutate(Protocol):
    """Returns bytes after mutations, at most so many of them."""

    def __call__(self, data: bytes, random: Random, /, *, most: int) -> bytes: ...


@dataclass(frozen=True, slots=True)
class FuzzedReader:
    """One reader of foreign input."""

    name: str
    seeds: Callable[[], Sequence[bytes]]
    read: Callable[[bytes], object]
    share: float = 1.0
    """Of the cases of a reader that is fast; slow ones get fewer."""
    errors: tuple[type[BaseException], ...] = (RtscopeError,)
    mutate: Mutate = mutated


@cache
def _agent_lines() -> Sequence[bytes]:
    files = sorted(FORMATS.glob("v*/*.jsonl"))
    lines = [line for file in files for line in file.read_bytes().splitlines()]
    return [line for line in lines if len(line) < 20_000]


@cache
def _task_lines() -> Sequence[bytes]:
    files = sorted(file for file in FORMATS.glob("v*/tasks/*") if file.is_file())
    return [line for file in files for line in file.read_bytes().splitlines()]


def _read_load(data: bytes) -> object:
    """Whatever a guard says of its processes, it can be judged, or it is refused."""
    lines = [parse_line(line) for line in data.splitlines()]
    windows = [line for line in lines if isinstance(line, LoadWindow)]
    span = (windows[0].from_ns, windows[-1].to_ns) if windows else (0, 1)
    proof = LoadProof(get_load("custom"), ("sh",), windows, span)
    return proof.workers, list(proof.caveats(ended_early=False))


@cache
def _foreign() -> Sequence[bytes]:
    real = [path.read_bytes() for path in sorted(OUTPUTS.iterdir())]
    described = [text.encode() for text in DESCRIBED.values()]
    return [*(text for text in real if len(text) < 10_000), *described]


def _import(data: bytes, *, shown: bool = False) -> object:
    """Whatever a file says, it has a report with every number's caveat, or none."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x"
        path.write_bytes(data)
        source = Source(path)
        for number, run in enumerate(read_foreign(source), 1):
            record = record_of(
                run, source, Stated(), run_id=f"{number:03}-x", repetition=1, command=()
            )
            raised = {caveat.id for caveat in all_caveats(record)}
            assert {"imported", "import_load_unknown"} <= raised
            if shown:
                render_text(build_model([record], deadline_ns=100_000))
    return None


@cache
def _packed(name: str) -> Sequence[bytes]:
    with tarfile.open(RECORDS) as records:
        files = [m for m in records.getmembers() if m.name.endswith(name)]
        return [
            file.read() for m in files if (file := records.extractfile(m)) is not None
        ]


def _read_trace(data: bytes) -> object:
    with tempfile.NamedTemporaryFile(suffix=".dat") as file:
        file.write(data)
        file.flush()
        trace = open_trace(Path(file.name))
        chosen = [
            (rows, np.arange(min(len(rows.at_ns), 200), dtype=np.int64))
            for rows in trace.rows
        ]
        return [trace.events(rows, some) for rows, some in chosen]


@cache
def _records() -> Sequence[bytes]:
    """Small ones first and mostly: reading one takes a tenth of the time."""
    little = [record_to_json(folders.small(seed)) for seed in (1, 2)] * 30
    return [*little, *_packed("record.json"), *_format_files("record.json")]


def _report(data: bytes) -> object:
    """Whatever a record says, it can be reported, or it is refused."""
    model = build_model([record_from_json(data, name="record.json")])
    return render_text(model), render_json(model), render_markdown(model)


def _read_explained(data: bytes) -> object:
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        file.write(data)
        file.flush()
        return read_explained(Path(file.name))


_CONFIG = (
    b"# Automatically generated file; DO NOT EDIT.\n"
    b"# Linux/x86 6.12.1 Kernel Configuration\n"
    b'CONFIG_X86_64=y\nCONFIG_HZ=1000\nCONFIG_LOCALVERSION="-rt"\n'
    b"# CONFIG_PREEMPT_RT is not set\nCONFIG_PREEMPT_DYNAMIC=m\n"
)

_LOG = (
    b"6,1,1000,-;Linux version 6.12.1\n",
    b"3,2,2000,-;BUG: scheduling while atomic: rt/12/0x00000002\n",
    b"4,3,3000,-;sched: RT throttling activated\n",
    b"4,9,9000,-;clocksource: timekeeping watchdog on CPU3: Marking clocksource\n",
    b'4,10,9000,-;Unknown kernel command line parameters "a b=c", will be passed\n',
)


def _read_log(data: bytes) -> object:
    text = data.decode("utf-8", "replace")
    raised = caveats_from_log([KernelMessage(1, 3, text[:1000])], load="idle")
    by_log = ("late_microcode", "efi_runtime", "lockdown", "preemption_model")
    kinds = [k for k in catalogue().values() if "log" in k.function or k.id in by_log]
    observed = Observed(kernel_log=f"{BOOTED}{text}")
    context = read_context(reader_of({}), kinds, observed=observed)
    return raised, examine(context, kinds)


@cache
def _machines() -> Sequence[bytes]:
    """Paths and texts in turns, so that most mutations change a text."""
    found = [case.good for case in CASES.values()] + [c.bad for c in CASES.values()]
    return [
        b"\0".join(
            part if isinstance(part, bytes) else part.encode()
            for pair in case.files.items()
            for part in pair
        )
        for case in found
        if case.files
    ]


def _read_machine(data: bytes) -> object:
    """Every check that reads them, of a machine whose files say anything at all."""
    parts = [part.decode("utf-8", "replace") for part in data.split(b"\0")]
    texts = {
        path: text
        for path, text in zip(parts[::2], parts[1::2], strict=False)
        if path.isascii() and path.startswith("/")
    }
    kinds = [
        kind
        for kind in catalogue().values()
        if kind.group != "unit"
        and any(fnmatchcase(path, one) for one in kind.paths for path in texts)
    ]
    reader = reader_of({"/proc/sys/kernel/osrelease": "6.12.1", **texts})
    return examine(read_context(reader, kinds, cpus=(1,)), kinds)


@cache
def _captures() -> Sequence[bytes]:
    """What was observed, as a capture keeps it."""
    found = [one for case in CASES.values() for one in (case.good, case.bad)]
    notes = (
        {"schema": 1, "denied": {"/a": "b"}, "observed": asdict(case.observed)}
        for case in found
        if case.observed != Observed()
    )
    return [json.dumps(one).encode() for one in notes]


def _read_capture(data: bytes) -> object:
    """Every check, of a capture whose notes say anything at all."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, NOTES_NAME).write_bytes(data)
        tree = open_tree(Path(folder))
        kinds = auditing()
        context = read_context(tree, kinds, cpus=(1,), observed=tree.observed)
    document = checks_document(
        examine(context, kinds), target="capture", kernel=context.kernel
    )
    return json.dumps(document)


@cache
def _format_files(name: str) -> Sequence[bytes]:
    return [file.read_bytes() for file in sorted(FORMATS.glob(f"v*/{name}"))]


READERS = (
    FuzzedReader("agent", _agent_lines, parse_line),
    FuzzedReader("tasks", _task_lines, parse_line),
    FuzzedReader("load", lambda: _format_files("loads/*.jsonl"), _read_load, share=0.1),
    FuzzedReader(
        "record",
        _records,
        lambda data: record_from_json(data, name="record.json"),
        share=0.2,
    ),
    FuzzedReader(
        "report",
        _records,
        _report,
        share=0.02,
    ),
    FuzzedReader(
        "explained",
        lambda: _format_files("explain.json"),
        _read_explained,
        share=0.3,
    ),
    FuzzedReader("import", _foreign, _import, share=0.2),
    FuzzedReader(
        "report of an import",
        _foreign,
        lambda data: _import(data, shown=True),
        share=0.01,
    ),
    FuzzedReader("trace", lambda: _packed("trace.dat"), _read_trace, share=0.02),
    FuzzedReader(
        "kernel configuration",
        lambda: [_CONFIG],
        lambda data: parse_config(data, source="config"),
    ),
    FuzzedReader("kernel log", lambda: _LOG, _read_log, share=0.5),
    FuzzedReader("files of a machine", _machines, _read_machine, share=0.2),
    FuzzedReader("capture of an audit", _captures, _read_capture, share=0.02),
    FuzzedReader("pack", folders.packed, folders.read_packed, share=0.02),
    FuzzedReader("bundle", folders.bundles, folders.read_bundle, share=0.02),
    FuzzedReader("unit", folders.units, folders.read_unit, share=0.1),
    FuzzedReader("recipe", folders.recipes, folders.read_recipe, share=0.2),
    FuzzedReader("campaign", folders.campaigns, folders.read_campaign, share=0.2),
    FuzzedReader("sweep file", folders.sweep_files, folders.read_sweep_file, share=0.2),
    FuzzedReader("test", histories.tests, histories.read_test, share=0.2),
    FuzzedReader("baseline of a test", histories.baselines, histories.read_kept),
    FuzzedReader("kept wake-ups", histories.wakeups, histories.read_wakeups, share=0.2),
    FuzzedReader("index", histories.indexes, histories.read_index, share=0.01),
    FuzzedReader(
        "folder of a sweep",
        folders.sweep_folders,
        folders.read_sweep_folder,
        share=0.01,
    ),
    FuzzedReader(
        "folder of a search",
        folders.search_folders,
        folders.read_search_folder,
        share=0.02,
    ),
    FuzzedReader(
        "answer of a worker",
        folders.worker_answers,
        folders.read_worker_answer,
        share=0.2,
        errors=(RtscopeError, ValueError),
    ),
    FuzzedReader(
        "elf",
        binaries.elf_files,
        binaries.read_elf,
        share=0.2,
        errors=binaries.ERRORS,
        mutate=binaries.mutated_elf,
    ),
    FuzzedReader(
        "debug information",
        binaries.elf_files,
        binaries.read_debug_info,
        share=0.2,
        errors=binaries.ERRORS,
        mutate=binaries.mutated_debug_info,
    ),
)
