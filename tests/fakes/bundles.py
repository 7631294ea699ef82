"""What boots a board, made of parts of a few bytes: for bundles."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rtscope.boards.catalogue import get_board
from rtscope.boards.kernels.catalogue import kernel_of_part
from rtscope.boards.parts.cache import build_part, locked
from rtscope.boards.parts.prepared import Prepared
from rtscope.boards.parts.qemu import Qemu

PACKAGE = {
    "name": "qemu",
    "version": "1",
    "arch": "amd64",
    "url": "http://x/qemu_1_amd64.deb",
    "size_bytes": 1,
    "sha256": "a" * 64,
}


def prepared(
    cache: Path, *, program: str = "#!/bin/sh\n", others: Sequence[str] = ()
) -> Prepared:
    """Build a QEMU, these other parts and a kernel; the kernel is the last part."""

    def qemu(work: Path) -> Mapping[str, Any]:
        (work / "bin").mkdir()
        (work / "bin" / "q").write_text(program)
        (work / "bin" / "q").chmod(0o755)
        return {"program": "bin/q", "loader": "", "version": "1"}

    def kernel(work: Path) -> Mapping[str, Any]:
        (work / "kernel").write_text("k")
        return {"release": "6.12"}

    inputs = {"packages": [PACKAGE], "recipe": 1}
    with locked(cache, log=lambda _: None):
        parts = (
            build_part(cache, "qemu-x86_64", inputs=inputs, build=qemu),
            *(
                build_part(cache, f"{name}-x86_64", inputs={"a": name}, build=kernel)
                for name in others
            ),
            build_part(cache, "kernel-k-x86_64", inputs={"image": "k"}, build=kernel),
        )
    return Prepared(
        get_board("pc"),
        Qemu((), version="1", digest=""),
        plugin=Path("/plugin.so"),
        kernel=kernel_of_part(parts[-1], "k"),
        archives=(),
        parts=parts,
    )
