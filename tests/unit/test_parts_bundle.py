"""Bundles: the same bytes for the same parts, and nothing in one is believed."""

import errno
import gzip
import io
import json
import os
import tarfile
import tracemalloc
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fakes.bundles import prepared
from rtscope.boards.catalogue import get_board
from rtscope.boards.parts.buildcontext import cached_lock
from rtscope.boards.parts.bundle import (
    MAX_READ_BYTES,
    export_bundle,
    import_bundle,
    prepare_bundle,
)
from rtscope.boards.parts.cache import (
    IMPORTED,
    all_parts,
    build_part,
    imported_parts,
    locked,
)
from rtscope.host.errors import BoardError, UsageError


def silent(_text: str) -> None:
    pass


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    path = tmp_path / "b.tar"
    export_bundle(
        path, {"k": prepared(tmp_path / "from")}, files={"c.toml": b"x"}, rtscope="1"
    )
    return path


def _rewrite(
    path: Path, change: Callable[[str, bytes], bytes | None], *extra: tarfile.TarInfo
) -> None:
    """Write a bundle again with other contents; None leaves a member out."""
    with tarfile.open(path) as old:
        members = {m.name: opened.read() for m in old if (opened := old.extractfile(m))}
    with tarfile.open(path, "w") as new:
        for name, content in members.items():
            changed = change(name, content)
            if changed is not None:
                info = tarfile.TarInfo(name)
                info.size = len(changed)
                new.addfile(info, io.BytesIO(changed))
        for info in extra:
            new.addfile(info, io.BytesIO(bytes(info.size)))


def test_what_was_exported_is_imported(tmp_path: Path, bundle: Path) -> None:
    got = import_bundle(bundle, cache=tmp_path / "to", log=silent)

    assert got.board == get_board("pc")
    assert (got.kernels, got.files) == ({"k": "kernel-k-x86_64"}, {"c.toml": b"x"})
    there = {part.name: part.digest for part in imported_parts(tmp_path / "to")}
    assert there == {p.name: p.digest for p in all_parts(tmp_path / "from")}
    assert set(got.pins) == {"qemu-x86_64", "kernel-k-x86_64"}


def test_a_full_disk_of_the_cache_is_not_the_fault_of_the_bundle(
    tmp_path: Path, bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_from: object, _to: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    cache = tmp_path / "to"
    monkeypatch.setattr("rtscope.boards.parts.bundle.shutil.copyfileobj", full)
    with pytest.raises(BoardError, match=f"no space left in {cache}"):
        import_bundle(bundle, cache=cache, log=silent)
    assert [path for path in cache.rglob("*") if path.name != "lock"] == [
        cache / "parts"
    ]

    monkeypatch.undo()
    assert import_bundle(bundle, cache=cache, log=silent).kernels


def test_a_run_without_the_bundle_never_gets_its_parts(tmp_path: Path) -> None:
    """The bundle names the inputs of a real part, and has other bytes for it."""
    cache, built = tmp_path / "to", []
    made = prepared(tmp_path / "from")
    inputs = made.parts[0].manifest["inputs"]
    export_bundle(tmp_path / "b.tar", {"k": made}, files={}, rtscope="1")
    bundle = import_bundle(tmp_path / "b.tar", cache=cache, log=silent)

    def build(work: Path) -> Mapping[str, Any]:
        built.append(work)
        (work / "genuine").write_text("x")
        return {}

    with locked(cache, log=silent):
        part = build_part(cache, "qemu-x86_64", inputs=inputs, build=build)

    assert len(built) == 1
    assert list(part.manifest["files"]) == ["genuine"]
    assert all_parts(cache) == [part]
    assert cached_lock(cache).parts == {}
    with pytest.raises(BoardError, match="lacks parts: agent, plugin, userland"):
        prepare_bundle(bundle, cache=cache)  # found the bundle's QEMU and kernel


def test_two_bundles_with_the_same_inputs_keep_their_own_parts(tmp_path: Path) -> None:
    cache = tmp_path / "to"
    pins = []
    for content in ("one", "two"):
        made = prepared(tmp_path / content, program=content)
        path = tmp_path / f"{content}.tar"
        export_bundle(path, {"k": made}, files={}, rtscope="1")
        pins.append(import_bundle(path, cache=cache, log=silent).pins["qemu-x86_64"])

    texts = [
        (cache / IMPORTED / f"qemu-x86_64-{pin[:16]}" / "bin/q").read_text()
        for pin in pins
    ]
    assert texts == ["one", "two"]


@pytest.mark.parametrize("ending", [".tar", ".tar.gz"])
def test_the_same_parts_give_the_same_bytes(tmp_path: Path, ending: str) -> None:
    digests = {
        export_bundle(
            tmp_path / f"{name}{ending}",
            {"k": prepared(tmp_path / name)},
            files={},
            rtscope="1",
        )
        for name in ("a", "b")
    }

    assert len(digests) == 1
    one, two = ((tmp_path / f"{name}{ending}").read_bytes() for name in ("a", "b"))
    assert one == two
    imported = import_bundle(tmp_path / f"a{ending}", cache=tmp_path / "c", log=silent)
    assert {imported.digest} == digests


def test_importing_twice_changes_nothing(tmp_path: Path, bundle: Path) -> None:
    one = import_bundle(bundle, cache=tmp_path / "to", log=silent)
    two = import_bundle(bundle, cache=tmp_path / "to", log=silent)

    assert one == two


def test_a_changed_part_in_the_cache_is_not_exported(tmp_path: Path) -> None:
    made = prepared(tmp_path)
    made.parts[0].file("bin/q").write_text("other")

    with pytest.raises(BoardError, match="was changed"):
        export_bundle(tmp_path / "b.tar", {"k": made}, files={}, rtscope="1")

    assert not (tmp_path / "b.tar").exists()


def _special(
    name: str, kind: bytes, target: str = "", *, size: int = 0
) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.size = kind, size
    info.linkname = target
    return info


PART = "parts/qemu-x86_64-0123456789abcdef"


@pytest.mark.parametrize(
    "member",
    [
        _special("../escaped", tarfile.REGTYPE),
        _special("/escaped", tarfile.REGTYPE),
        _special(f"{PART}/../../../escaped", tarfile.REGTYPE),
        _special("parts/qemu/x", tarfile.REGTYPE),
        _special("files/a/b", tarfile.REGTYPE),
        _special("elsewhere", tarfile.REGTYPE),
        _special(f"{PART}/l", tarfile.SYMTYPE, "/etc/passwd"),
        _special(f"{PART}/h", tarfile.LNKTYPE, "bundle.json"),
        _special(f"{PART}/d", tarfile.CHRTYPE),
        _special(f"{PART}/f", tarfile.FIFOTYPE),
        _special(f"{PART}", tarfile.DIRTYPE),
        _special("bundle.json", tarfile.REGTYPE),
        _special(f"{PART}/unlisted", tarfile.REGTYPE),
    ],
    ids=lambda m: f"{m.type!r} {m.name}",
)
def test_a_hostile_member_is_refused_and_leaves_nothing(
    tmp_path: Path, bundle: Path, member: tarfile.TarInfo
) -> None:
    _rewrite(bundle, lambda _name, content: content, member)
    cache = tmp_path / "to"

    with pytest.raises(BoardError):
        import_bundle(bundle, cache=cache, log=silent)

    assert list((cache / "parts").iterdir()) == []
    assert not list(tmp_path.rglob("escaped"))


def test_a_size_beyond_all_bounds_is_refused_before_it_is_written(
    tmp_path: Path, bundle: Path
) -> None:
    huge = tarfile.TarInfo("files/huge")
    huge.size = 5 << 30
    # Its header only: addfile of Python 3.13 refuses to write one without the content.
    bundle.write_bytes(huge.tobuf())

    with pytest.raises(BoardError, match="too large for a bundle"):
        import_bundle(bundle, cache=tmp_path / "to", log=silent)

    assert list((tmp_path / "to" / "parts").iterdir()) == []


@pytest.mark.parametrize("ending", ["/bin/q", "/kernel", "/manifest.json", "c.toml"])
def test_one_changed_byte_is_refused(tmp_path: Path, bundle: Path, ending: str) -> None:
    def change(name: str, content: bytes) -> bytes:
        return content[:-1] + b"!" if name.endswith(ending) else content

    _rewrite(bundle, change)

    with pytest.raises(BoardError):
        import_bundle(bundle, cache=tmp_path / "to", log=silent)
    assert list((tmp_path / "to" / "parts").iterdir()) == []


@pytest.mark.parametrize("ending", ["/bin/q", "/manifest.json", "c.toml"])
def test_a_missing_file_is_refused(tmp_path: Path, bundle: Path, ending: str) -> None:
    _rewrite(bundle, lambda name, body: None if name.endswith(ending) else body)

    with pytest.raises(BoardError):
        import_bundle(bundle, cache=tmp_path / "to", log=silent)


def test_a_part_that_another_key_was_put_on_is_refused(
    tmp_path: Path, bundle: Path
) -> None:
    def change(name: str, content: bytes) -> bytes:
        if not name.endswith("manifest.json"):
            return content
        return json.dumps({**json.loads(content), "inputs": {}}).encode()

    _rewrite(bundle, change)

    with pytest.raises(BoardError, match="its key does not match"):
        import_bundle(bundle, cache=tmp_path / "to", log=silent)


@pytest.mark.parametrize("length", [0, 100, 5000])
def test_a_bundle_that_was_cut_short_is_refused(
    tmp_path: Path, bundle: Path, length: int
) -> None:
    bundle.write_bytes(bundle.read_bytes()[:length])

    with pytest.raises((UsageError, BoardError)):
        import_bundle(bundle, cache=tmp_path / "to", log=silent)


def test_a_missing_bundle_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        import_bundle(tmp_path / "none", cache=tmp_path / "to", log=silent)


def test_one_s_own_qemu_is_not_exported(tmp_path: Path) -> None:
    made = prepared(tmp_path)
    own = replace(made, parts=made.parts[1:])

    with pytest.raises(UsageError, match="--qemu"):
        export_bundle(tmp_path / "b.tar", {"k": own}, files={}, rtscope="1")


def _manifest(
    **changes: object,
) -> Callable[[str, bytes], bytes | None]:
    """Change the manifest of the QEMU part, its keys along with it; None deletes."""

    def change(name: str, content: bytes) -> bytes:
        if "qemu" not in name or not name.endswith("manifest.json"):
            return content
        manifest = {**json.loads(content), **changes}
        return json.dumps({k: v for k, v in manifest.items() if v is not None}).encode()

    return change


@pytest.mark.parametrize(
    "changes",
    [
        {"inputs": [1, 2]},
        {"inputs": {"packages": [{"name": "x"}]}},
        {"inputs": None},
        {"digest": None},
        {"digest": 5},
        {"name": None},
        {"notes": []},
        {"notes": {"program": 5}},
        {"files": {"bin/q": {}}},
        {"files": {"bin/q": {"sha256": "a", "size": [], "runs": True}}},
        {"files": [1]},
    ],
    ids=str,
)
def test_odd_values_in_a_manifest_are_refused(
    tmp_path: Path, bundle: Path, changes: Mapping[str, object]
) -> None:
    _rewrite(bundle, _manifest(**changes))
    _refused(bundle, tmp_path / "to")


def _refused(bundle: Path, cache: Path) -> str:
    with pytest.raises((BoardError, UsageError)) as refused:
        import_bundle(bundle, cache=cache, log=silent)
    for folder in ("parts", IMPORTED):
        assert not (cache / folder).exists() or not list((cache / folder).iterdir())
    return str(refused.value)


@pytest.mark.parametrize("name", ["bundle.json", "manifest.json"])
@pytest.mark.parametrize(
    "content",
    [
        b"[" * 200_000,
        b"[]",
        b"5",
        b"{}",
        b'"x"',
        b"9" * 5000,
        b'{"schema": 1}',
        b"\xff",
    ],
    ids=lambda c: repr(c[:12]),
)
def test_a_document_of_another_shape_is_refused(
    tmp_path: Path, bundle: Path, name: str, content: bytes
) -> None:
    _rewrite(bundle, lambda n, kept: content if n.endswith(name) else kept)
    _refused(bundle, tmp_path / "to")


def _bomb(kind: bytes, *, name: str = "x") -> bytes:
    """A header that claims 3 GiB of itself."""
    info = tarfile.TarInfo(name)
    info.type = kind
    info.size = 3 << 30
    return info.tobuf(tarfile.GNU_FORMAT)


BOMBS = {
    "pax": _bomb(tarfile.XHDTYPE),
    "global pax": _bomb(tarfile.XGLTYPE),
    "long name": _bomb(tarfile.GNUTYPE_LONGNAME),
    "long link": _bomb(tarfile.GNUTYPE_LONGLINK),
}


@pytest.mark.parametrize("name", ["bundle.json", "/manifest.json", "files/c.toml"])
def test_what_is_read_whole_is_refused_before_it_fills_the_memory(
    tmp_path: Path, bundle: Path, name: str
) -> None:
    too_long = MAX_READ_BYTES + 1
    _rewrite(bundle, lambda n, kept: kept.ljust(too_long) if n.endswith(name) else kept)

    tracemalloc.start()
    told = _refused(bundle, tmp_path / "to")
    _, most_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert f"more than {MAX_READ_BYTES:,} bytes" in told
    assert most_bytes < MAX_READ_BYTES


def test_many_files_that_are_read_whole_count_together(
    tmp_path: Path, bundle: Path
) -> None:
    half = MAX_READ_BYTES // 2 + 1
    _rewrite(
        bundle,
        lambda _name, content: content,
        *(_special(f"files/{name}", tarfile.REGTYPE, size=half) for name in "ab"),
    )

    assert f"more than {MAX_READ_BYTES:,} bytes" in _refused(bundle, tmp_path / "to")


@pytest.mark.parametrize("ending", [".tar", ".tar.gz"])
@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS)
def test_a_header_that_would_fill_the_memory_is_refused(
    tmp_path: Path, bomb: bytes, ending: str
) -> None:
    path = tmp_path / f"bomb{ending}"
    packed = gzip.compress if ending == ".tar.gz" else bytes
    path.write_bytes(packed(bomb + bytes(8 << 20)))

    tracemalloc.start()
    told = _refused(path, tmp_path / "to")
    _, most_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert "more than 1,048,576 bytes" in told
    assert most_bytes < 4 << 20


def test_headers_of_headers_are_refused(tmp_path: Path) -> None:
    pax = tarfile.TarInfo("x")
    pax.type, pax.size = tarfile.XGLTYPE, 512
    one = pax.tobuf(tarfile.GNU_FORMAT) + b"9 a=bcde\n".ljust(512, b"\0")
    (tmp_path / "b.tar").write_bytes(one * 900)

    _refused(tmp_path / "b.tar", tmp_path / "to")


@pytest.mark.parametrize(
    "member",
    [
        _special("/".join([PART, *["d"] * 20]), tarfile.REGTYPE),
        _special(f"{PART}/s", tarfile.GNUTYPE_SPARSE),
    ],
)
def test_a_member_that_takes_more_than_its_size_is_refused(
    tmp_path: Path, bundle: Path, member: tarfile.TarInfo
) -> None:
    _rewrite(bundle, lambda _name, content: content, member)
    _refused(bundle, tmp_path / "to")


def test_a_bundle_with_damaged_compression_is_refused(
    tmp_path: Path, bundle: Path
) -> None:
    packed = bytearray(gzip.compress(bundle.read_bytes()))
    packed[len(packed) // 2] ^= 0xFF
    (tmp_path / "b.tar.gz").write_bytes(packed)

    _refused(tmp_path / "b.tar.gz", tmp_path / "to")
