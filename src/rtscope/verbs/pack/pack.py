"""Pack a result into one file to mail."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from rtscope.cli.console import log, put
from rtscope.cli.results import model_of, question_of
from rtscope.host.errors import RecordError, UsageError
from rtscope.host.files.heldfolders import temporary_folder
from rtscope.host.units import parse_size
from rtscope.host.version import __version__
from rtscope.machine.redaction import NO_PROMISE
from rtscope.present.documents.pages import render_html
from rtscope.record.directory.records import open_records
from rtscope.record.pack import PAGE, RECORDINGS, SUFFIX, collect, folder_name
from rtscope.record.pack import pack as write_pack
from rtscope.verbs.pack.redact import redacted


@dataclass(frozen=True, slots=True, kw_only=True)
class PackRequest:
    """The arguments and options of `rtscope pack`."""

    directory: Annotated[Path, typer.Argument(metavar="DIR")]
    """Result directory of rtscope run, e.g. results."""
    out: Path | None = None
    """Archive to write (default: DIR.rtscope.tar.gz)."""
    max_size: str = "18M"
    """
    Largest archive (default: 18M, which fits into a mail of 25 MB); recordings that do
    not fit are left out, and listed.
    """
    redact: bool = False
    """
    Replace names of hosts and users, addresses, serial numbers and secrets; leave out
    recordings of machines.
    """


def pack(request: PackRequest) -> int:
    """Pack a result into one file to mail; report, compare and explain read it."""
    limit_bytes = parse_size(request.max_size)
    folder = folder_name(request.directory)
    out = request.out or Path(f"{folder}{SUFFIX}")
    if out.suffix not in (".gz", ".tgz"):
        raise UsageError(f"--out {out}: name a file that ends in .tar.gz")
    files = collect(request.directory)
    left_out: Mapping[str, str] = {}
    notes: dict[str, object] = {"rtscope": __version__, "redacted": None}
    if request.redact:
        folder = "results"
        out = request.out or Path(f"results{SUFFIX}")
        files, left_out, tally = redacted(files, salt=secrets.token_bytes(16))
        notes["redacted"] = tally.counts
        notes["redaction"] = NO_PROMISE
    packed = write_pack(
        out,
        with_page(files),
        name=folder,
        limit_bytes=limit_bytes,
        notes=notes,
        left_out=left_out,
    )
    for path, why in packed.left_out.items():
        log(f"left out: {path}: {why}")
    if request.redact:
        counts = ", ".join(f"{n} {kind}" for kind, n in tally.counts.items())
        log(f"redacted: {counts or 'nothing found'}; {NO_PROMISE}")
    put(f"{out}: {packed.size_bytes / 1e6:.1f} MB, {packed.files} files\n")
    return 0


def with_page(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the files with the page that they make, before recordings."""
    with temporary_folder("pack", error=RecordError) as place:
        for path, content in files.items():
            (place / path).parent.mkdir(parents=True, exist_ok=True)
            if not path.endswith(RECORDINGS):
                (place / path).write_bytes(content)
        records = open_records(place)
        model = model_of(records, question_of(records), paths=[place])
        page = render_html(model).encode()
    first = {path: c for path, c in files.items() if not path.endswith(RECORDINGS)}
    return {**first, PAGE: page, **files}
