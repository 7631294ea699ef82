"""
Programs of others that are built here from their sources: built/sources.toml.

The sources come by an ordinary client, of one version and digest, and are compiled with
zig: so each computer makes the same program. A row may have a script of its own.
"""

import json
import lzma
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

from programs.tested.asking import HERE, RESULTS
from rtscope.boards.kernels.catalogue import get_kernel_row
from rtscope.boards.parts.buildcontext import (
    BuildContext,
    cached_lock,
    part_of_packages,
)
from rtscope.boards.parts.cache import cache_dir
from rtscope.boards.parts.prepare import kernel_part
from rtscope.machine.target import agent_file

OWN = HERE / "built"
BUILT = RESULTS / "built"
ARCH = "x86_64"
"""Of the board whose programs a test file names; options name those of another."""
_JOBS = 2
_OPTIONS = ("-g", "-O2", "-w", "-fno-sanitize=all", "-static", "-pthread")
_PATIENCE_S = 1800.0

Row = Mapping[str, Any]


@cache
def rows() -> Mapping[str, Row]:
    """Return the programs that are built."""
    return tomllib.loads((OWN / "sources.toml").read_text())


def make(name: str, arch: str = ARCH, *, planted: bool = False) -> Path:
    """Return the folder with a program, made if it is not there."""
    row = rows()[name]
    folder = BUILT / f"{name}-{arch}{'-planted' if planted else ''}"
    with tempfile.TemporaryDirectory(dir=_made(BUILT)) as work:
        stamp = _stamp(row, planted=planted)
        if (folder / "stamp").exists() and (folder / "stamp").read_text() == stamp:
            return folder
        out, source = _made(Path(work) / "out"), Path(work) / name
        shutil.copytree(_fetched(name, row), source)
        _mend(source, row.get("mends", {}))
        if planted:
            _mend(source, row["planted"])
        if "script" in row:
            words = (OWN / row["script"], OWN / row["reads"], out / row["program"])
            _run(*words, cwd=source)
        else:
            _compile(row, source, out, arch)
        (out / "stamp").write_text(stamp)
        shutil.rmtree(folder, ignore_errors=True)
        out.rename(folder)
    return folder


def make_modules(name: str, kernels: Sequence[str], arch: str = ARCH) -> None:
    """Put the modules of a program's kernels where its test file finds them."""
    names = rows()[name].get("modules", ())
    for kernel in kernels if names else ():
        folder = BUILT / f"modules-{arch}"
        known = folder / f"{kernel}.release"
        if known.exists() and all(
            (folder / known.read_text() / f"{one}.ko").exists() for one in names
        ):
            continue
        release = _unpack_modules(kernel, arch, names, folder)
        known.write_text(release)


def _unpack_modules(kernel: str, arch: str, names: Sequence[str], folder: Path) -> str:
    """Take modules out of the package that the kernel of the board is of."""
    context = BuildContext(cache=cache_dir(), agent=agent_file, log=print)
    part = kernel_part(context, get_kernel_row(kernel, arch))
    packages = cached_lock(context.cache).parts[f"kernel-{kernel}-{arch}"]
    release: str = part.manifest["notes"]["release"]

    def keep(work: Path, root: Path) -> Mapping[str, Any]:
        for one in names:
            (found,) = root.rglob(f"{one}.ko.xz")
            (work / f"{one}.ko").write_bytes(lzma.decompress(found.read_bytes()))
        return {}

    _made(RESULTS / "parts")
    own = BuildContext(cache=RESULTS, agent=agent_file, log=print)
    made = part_of_packages(
        own,
        f"modules-{kernel}-{arch}",
        lambda _root: packages,
        recipe=list(names),
        build=keep,
    )
    into = _made(folder / release)
    for one in names:
        (into / f"{one}.ko").write_bytes(made.content(f"{one}.ko"))
    return release


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _stamp(row: Row, *, planted: bool) -> str:
    """Return what the result depends on."""
    names = [f"{one}.c" for one in row.get("own", ())]
    names += [row[key] for key in ("main", "script", "reads") if key in row]
    own = [(OWN / name).read_text() for name in names]
    return json.dumps([row, planted, _OPTIONS, own], sort_keys=True)


def _mend(source: Path, mends: Mapping[str, Sequence[str]]) -> None:
    for path, (text, other) in mends.items():
        before = (source / path).read_text()
        if before.count(text) != 1:
            raise ValueError(f"{path}: {before.count(text)} times {text!r}")
        (source / path).write_text(before.replace(text, other))


# --- clients of packages --------------------------------------------------------------


def _fetched(name: str, row: Row) -> Path:
    """Return the unpacked package, asked for once."""
    folder = RESULTS / "sources" / f"{row['package']}-{row['version']}"
    if not folder.exists():
        _made(folder.parent)
        with tempfile.TemporaryDirectory(dir=folder.parent) as work:
            fetch: Callable[[Row, Path], Path] = CLIENTS[row["client"]]
            fetch(row, Path(work)).rename(folder)
    return folder


def _by_pip(row: Row, work: Path) -> Path:
    """Fetch a source distribution; its build system is asked for its name alone."""
    package, version = row["package"], row["version"]
    pinned = work / "requirements"
    pinned.write_text(f"{package}=={version} --hash=sha256:{row['sha256']}\n")
    pip = (sys.executable, "-m", "pip", "download", "--quiet", "--no-deps")
    _run(*pip, "--no-binary", package, "--require-hashes", "-r", pinned, "-d", work)
    (archive,) = work.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        opened.extractall(work / "unpacked", filter="data")
    return work / "unpacked" / f"{package}-{version}"


def _by_cargo(row: Row, work: Path) -> Path:
    """Let cargo vendor a crate, and what that depends on; no build script runs."""
    package: str = row["package"]
    manifest = '[package]\nname = "none"\nversion = "0.0.0"\n[lib]\npath = "none"\n'
    needs = f'[dependencies]\n{package} = "={row["version"]}"\n'
    (work / "Cargo.toml").write_text(manifest + needs)
    _run("cargo", "vendor", "--quiet", cwd=work)
    crate = work / "vendor" / package
    digests = json.loads((crate / ".cargo-checksum.json").read_text())
    if digests["package"] != row["sha256"]:
        raise ValueError(f"{package}: the digest is {digests['package']}")
    return crate


def _by_git(row: Row, work: Path) -> Path:
    """Fetch some folders of a commit, whose name is the digest of its files."""
    made = work / "tree"
    _run("git", "clone", "-q", "--filter=blob:none", "--no-checkout", row["url"], made)
    _run("git", "sparse-checkout", "set", "--no-cone", *row["paths"], cwd=made)
    _run("git", "checkout", "--quiet", row["version"], cwd=made)
    return made


CLIENTS: Mapping[str, Callable[[Row, Path], Path]] = {
    "git": _by_git,
    "pip": _by_pip,
    "cargo": _by_cargo,
}

# --- compilation ----------------------------------------------------------------------


def _compile(row: Row, source: Path, out: Path, arch: str) -> None:
    zig = (sys.executable, "-m", "ziglang", "cc", "-target", f"{arch}-linux-musl")
    include = [word for path in row["include"] for word in ("-I", source / path)]
    # debug information has the same names of files, wherever this is
    names = [
        f"-ffile-prefix-map={folder}={name}"
        for folder, name in ((source, row["package"]), (OWN, "own"))
    ]
    words = (*zig, *_OPTIONS, *row.get("options", ()), *names, *include)
    objects = [
        (file, out / f"{number}.o") for number, file in enumerate(_files(row, source))
    ]
    with ThreadPoolExecutor(_JOBS) as pool:
        for done in [
            pool.submit(_run, *words, "-c", file, "-o", made, cwd=source)
            for file, made in objects
        ]:
            done.result()
    made = [path for _, path in objects]
    _run(*words, *made, "-lm", "-o", out / row["program"], cwd=source)
    for path in made:
        path.unlink()
    for own in row.get("own", ()):
        _run(*zig, *_OPTIONS, *names, f"{own}.c", "-o", out / own, cwd=OWN)


def _files(row: Row, source: Path) -> Iterator[Path]:
    for pattern in row["sources"]:
        found = sorted(source.glob(pattern))
        if not found:
            raise ValueError(f"{row['package']} has no {pattern}")
        yield from found
    if "main" in row:
        yield OWN / row["main"]


def _run(*words: str | Path, cwd: Path | None = None) -> None:
    done = subprocess.run(
        [str(word) for word in words],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=_PATIENCE_S,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{words[0]}: {done.stderr[-2000:]}")
