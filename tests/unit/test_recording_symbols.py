"""A kernel's symbols are of the run's own part, whoever else claims its image."""

import gzip
import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from rtscope.boards.kernels.catalogue import IMAGE, SYMBOLS
from rtscope.boards.parts.cache import IMPORTED, Part, build_part, locked
from rtscope.boards.parts.prepared import Prepared
from rtscope.boards.recording import symbols
from rtscope.boards.recording.symbols import KALLSYMS, MODULES, find_symbols
from rtscope.host.errors import BoardError
from rtscope.host.process import Progress, Step

Log = Callable[[str], object]
KERNEL = b"the same image in each part"
DIGEST = hashlib.sha256(KERNEL).hexdigest()


def table(function: str) -> str:
    return f"ffffffff81000000 T _stext\nffffffff81000100 T {function}\n"


def kernel_part(cache: Path, name: str, function: str) -> Part:
    def build(work: Path) -> Mapping[str, Any]:
        (work / IMAGE).write_bytes(KERNEL)
        (work / SYMBOLS).write_text(table(function))
        return {}

    with locked(cache, log=lambda _text: None):
        inputs = {"of": function}
        return build_part(cache, f"kernel-{name}", inputs=inputs, build=build)


def imported(cache: Path, part: Part) -> Part:
    place = cache / IMPORTED / part.path.name
    place.parent.mkdir(exist_ok=True)
    return Part(part.path.rename(place), part.manifest)


def functions(cache: Path, *run: Part) -> set[str | None]:
    parts = {part.name: part.digest for part in run}
    found = find_symbols(cache, DIGEST, modules={}, parts=parts)
    return (
        set()
        if found is None
        else {name for name in found.names if name and name != "_stext"}
    )


def test_of_equal_images_with_other_symbols_the_part_of_the_run_counts(
    tmp_path: Path,
) -> None:
    one = kernel_part(tmp_path, "a", "right")
    other = kernel_part(tmp_path, "b", "wrong")

    assert functions(tmp_path, one) == {"right"}
    assert functions(tmp_path, other) == {"wrong"}
    assert functions(tmp_path) == set()  # the kernel itself will tell


def test_one_table_needs_no_name(tmp_path: Path) -> None:
    kernel_part(tmp_path, "a", "right")
    kernel_part(tmp_path, "b", "right")

    assert functions(tmp_path) == {"right"}


def test_a_bundle_gives_symbols_to_its_own_runs_only(tmp_path: Path) -> None:
    local = kernel_part(tmp_path, "a", "right")
    foreign = imported(tmp_path, kernel_part(tmp_path, "b", "wrong"))

    assert functions(tmp_path) == {"right"}
    assert functions(tmp_path, local) == {"right"}
    assert functions(tmp_path, foreign) == {"wrong"}


def test_symbols_that_were_changed_are_refused(tmp_path: Path) -> None:
    part = kernel_part(tmp_path, "a", "right")
    part.file(SYMBOLS).write_text(table("wrong"))

    with pytest.raises(BoardError, match="was changed: delete"):
        functions(tmp_path, part)


def test_what_a_kernel_told_is_for_the_part_that_was_booted(tmp_path: Path) -> None:
    """Its modules are in the part: another one with this image has others."""
    booted, other = {"kernel-a": "1"}, {"kernel-a": "2"}

    def build(work: Path) -> Mapping[str, Any]:
        (work / KALLSYMS).write_bytes(gzip.compress(table("told").encode()))
        (work / MODULES).write_bytes(b"")
        return {}

    with locked(tmp_path, log=lambda _text: None):
        inputs = symbols._inputs(DIGEST, booted)
        build_part(tmp_path, symbols._name(DIGEST), inputs=inputs, build=build)

    found = find_symbols(tmp_path, DIGEST, modules={}, parts=booted)
    assert found is not None
    assert "told" in found.names
    assert find_symbols(tmp_path, DIGEST, modules={}, parts=other) is None


def prepared(*parts: Part) -> Prepared:
    kernel = SimpleNamespace(digest=DIGEST, name="debian-6.12")
    return cast(Prepared, SimpleNamespace(kernel=kernel, parts=parts))


def test_symbols_are_read_before_the_first_recording_and_only_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    booted: list[str] = []

    def boot_for_them(
        one: Prepared, *, cache: Path, log: Log, progress: Progress
    ) -> None:
        booted.append(one.kernel.name)
        progress(Step("booting", 1))
        kernel_part(cache, "a", "right")

    monkeypatch.setattr(symbols, "read_symbols", boot_for_them)
    steps: list[Step] = []
    for _ in range(2):
        symbols.require_symbols(
            prepared(), cache=tmp_path, log=pytest.fail, progress=steps.append
        )

    assert booted == ["debian-6.12"]
    assert steps == [Step("booting", 1)]


def test_a_kernel_without_symbols_is_recorded_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise BoardError("debian-6.12: has no /proc/kallsyms")

    monkeypatch.setattr(symbols, "read_symbols", refuse)
    said: list[str] = []
    symbols.require_symbols(
        prepared(), cache=tmp_path, log=said.append, progress=lambda _: None
    )

    assert said == ["tasks are not recorded: debian-6.12: has no /proc/kallsyms"]
