"""
Source trees: their version, copied, and patched by a series, all of it or nothing.

Patches are applied by `git apply`, which takes no patch that does not fit exactly, to a
copy of the files that the series touches. Only when the last one fits do these files
move into the tree.
"""

import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rtscope.boards.kernels.publishers import published, require_there
from rtscope.host import process
from rtscope.host.errors import KernelError, RecordError, UsageError
from rtscope.host.files.opening import read_named

_VERSION = re.compile(r"^(VERSION|PATCHLEVEL|SUBLEVEL|EXTRAVERSION) *= *(\S*)", re.M)

# What a copy for building has no use for; the version would get a suffix from .git.
_LEFT_OUT = (".git", ".hg", ".svn")


def kernel_version(tree: Path) -> str:
    """Return the version in a source tree's Makefile, such as `6.1.176`."""
    makefile = tree / "Makefile"
    if not makefile.is_file() or not (tree / "Kconfig").is_file():
        raise UsageError(
            f"{tree}: not the source of a kernel (no Makefile and Kconfig)"
        )
    version: dict[str, str] = dict(
        _VERSION.findall(makefile.read_text("utf-8", "replace"))
    )
    if "VERSION" not in version:
        raise UsageError(f"{makefile}: has no VERSION")
    numbers = [
        version[n] for n in ("VERSION", "PATCHLEVEL", "SUBLEVEL") if version.get(n)
    ]
    return ".".join(numbers) + version.get("EXTRAVERSION", "")


def copy_tree(source: Path, tree: Path) -> None:
    """Copy a user's source tree, without its history; the original stays as it is."""
    kernel_version(source)
    try:
        shutil.copytree(
            source, tree, symlinks=True, ignore=shutil.ignore_patterns(*_LEFT_OUT)
        )
    except shutil.Error as error:
        why = error.args[0][0][2] if error.args[0] else error
        raise KernelError(f"cannot copy {source}: {why}") from error


def tree_digest(tree: Path) -> str:
    """Return one digest over names, kinds and contents of all files of a tree."""
    digest = hashlib.sha256()
    for folder, folders, files in os.walk(tree):
        folders[:] = sorted(set(folders) - set(_LEFT_OUT))
        # Of a worktree .git is a file.
        for name in sorted(set(files) - set(_LEFT_OUT)):
            path = Path(folder) / name
            digest.update(f"{path.relative_to(tree)}\0".encode())
            digest.update(_content_digest(path))
    return digest.hexdigest()


def move_files(source: Path, tree: Path, *, touched: set[str]) -> None:
    """Make the touched files of a tree what they are in another one."""
    for name in sorted(touched):
        new, old = source / name, tree / name
        if not new.exists():
            old.unlink(missing_ok=True)
            continue
        old.parent.mkdir(parents=True, exist_ok=True)
        # Not into the old file: a copy of the tree may share it by a hard link.
        old.unlink(missing_ok=True)
        shutil.move(new, old)


def _content_digest(path: Path) -> bytes:
    if path.is_symlink():
        return hashlib.sha256(os.fsencode(path.readlink())).digest()
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()


# --- series of patches: read one, and apply it to a source tree, all of it or nothing -

PATIENCE_S = 600.0

MAX_PATCH_BYTES = 256 << 20
"""The largest of a kernel's releases has 100 MB."""

_PACKED = {".xz": "xz -d", ".gz": "gzip -d", ".bz2": "bzip2 -d", ".zst": "zstd -d"}

_BASE = re.compile(r"^#\s*base:\s*(\S+)", re.M)
_SUBJECT = re.compile(r"^Subject: (?:\[[^\]]*\] *)?(.*(?:\n[ \t].*)*)", re.M)
_FILES = re.compile(r"^(?:---|\+\+\+|rename (?:from|to)) (\S+)", re.M)
# The only line on a file that is empty or binary, or of which only the mode changes.
_GIT_FILES = re.compile(r"^diff --git (\S+) (\S+)$", re.M)
_HUNK = re.compile(r"^@@ -(\d+)")
_FAILED = re.compile(r"^error: patch failed: (.+):(\d+)$", re.M)
_ERROR = re.compile(r"^error: (.*)$", re.M)


@dataclass(frozen=True, slots=True)
class Patch:
    """One patch of a series."""

    path: Path
    subject: str
    strip: int
    """How many leading folders of its file names are dropped."""

    @property
    def name(self) -> str:
        """What the series calls it."""
        return self.path.name

    def content(self) -> str:
        """Return its text."""
        return self.path.read_text("utf-8", "surrogateescape")

    def touches(self) -> set[str]:
        """Return the files that it changes, adds or deletes."""
        return set(_touched(self.content(), self.strip))


@dataclass(frozen=True, slots=True)
class Series:
    """Patches in the order in which they are applied."""

    name: str
    base: str | None
    """The version that they were made for, if the series names it (`# base: X`)."""
    patches: tuple[Patch, ...]

    def digest(self) -> str:
        """Return one digest over order, names and contents."""
        whole = hashlib.sha256()
        for patch in self.patches:
            content = hashlib.sha256(patch.path.read_bytes()).hexdigest()
            whole.update(f"{patch.name} -p{patch.strip} {content}\n".encode())
        return whole.hexdigest()


@dataclass(frozen=True, slots=True)
class Rejected:
    """The patch at which a series stops, and why."""

    patch: Patch
    file: str
    hunk: int | None
    """Counted from 1 in that file; None if it is not about one."""
    reason: str


def read_series(path: Path, *, name: str | None = None) -> Series:
    """
    Read a folder with a `series` file, as quilt has it, or one single patch.

    Raises UsageError if a file that it names is not there.
    """
    name = name or path.name
    if path.is_file():
        return Series(name, None, (_read_patch(path, strip=1),))
    text = _series_text(path, name)
    base = _BASE.search(text)
    patches = []
    for line in text.splitlines():
        file, *options = line.partition("#")[0].split() or [""]
        if file:
            strip = _strip(options, where=f"{name}: {file}")
            patches.append(_read_patch(path / file, strip=strip))
    if not patches:
        raise UsageError(f"{name}: its file series names no patch")
    return Series(name, base[1] if base else None, tuple(patches))


def _series_text(path: Path, name: str) -> str:
    if not path.exists():
        raise UsageError(
            f"no series of patches {name!r}: name riscv-6.1-rt, the path of a folder "
            "or a patch (./NAME), or debian/FOLDER of a source_package"
            f"{published(path.name)}"
        )
    try:
        content = read_named(path / "series", limit=MAX_PATCH_BYTES, kind="series")
        return content.decode()
    except RecordError as error:
        raise UsageError(
            f"{name}: a folder of patches needs a file 'series' with their names, one "
            f"in each line: {error}"
        ) from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{name}: its file series is no text (UTF-8)") from error


def _strip(options: list[str], *, where: str) -> int:
    """Read what quilt allows behind a patch's name; -pN alone means something here."""
    others = [word for word in options if not re.fullmatch(r"-p\d", word)]
    if others:
        raise UsageError(
            f"{where}: unknown option {others[0]!r}: only -pN is supported"
        )
    return int(options[-1][2:]) if options else 1


def apply_series(series: Series, tree: Path, *, wanted: str | None = None) -> None:
    """
    Apply a series to a tree; KernelError with file, hunk and reason, and no change.

    `wanted` is the version that it was made for, if the series does not name one.
    """
    rejected = try_series(series, tree, wanted=wanted, keep=True)
    if rejected is not None:
        raise KernelError(describe(series, rejected))


def try_series(
    series: Series, tree: Path, *, wanted: str | None = None, keep: bool = False
) -> Rejected | None:
    """Return the first patch that does not apply; `keep` changes the tree if all do."""
    version = kernel_version(tree)
    touched: set[str] = set()
    # Beside the tree: on the same disk, and outside of it.
    with tempfile.TemporaryDirectory(dir=tree.parent, prefix=".patching-") as folder:
        scratch = Path(folder)
        for patch in series.patches:
            names = patch.touches()
            _copy(tree, scratch, names - touched)
            touched |= names
            said = _apply(patch, scratch)
            if said is not None:
                base = _differs(series.base or wanted, version)
                return _explain(patch, scratch, said, base=base)
        if keep:
            move_files(scratch, tree, touched=touched)
    return None


def other_version(series: Series, version: str) -> str:
    """Return a note if a series was made for another version than this one."""
    if series.base in (None, version):
        return ""
    return f"made for Linux {series.base}, this is {version}"


def states(
    series: Series, rejected: Rejected | None, *, tried: bool
) -> tuple[str, ...]:
    """Return for each patch whether it applies, as `try_series` has found."""
    if not tried:
        return ("not tried",) * len(series.patches)
    if rejected is None:
        return ("applies",) * len(series.patches)
    at = series.patches.index(rejected.patch)
    after = len(series.patches) - at - 1
    why = f"REJECTED: {_place(rejected)}: {rejected.reason}"
    return (*("applies",) * at, why, *("not tried",) * after)


def describe(series: Series, rejected: Rejected) -> str:
    """Describe the patch at which a series stopped."""
    number = series.patches.index(rejected.patch) + 1
    return (
        f"{series.name}: patch {number} of {len(series.patches)} does not apply: "
        f"{rejected.patch.name}: {_place(rejected)}: {rejected.reason} "
        "(the tree is unchanged)"
    )


def _place(rejected: Rejected) -> str:
    return rejected.file + (f", hunk {rejected.hunk}" if rejected.hunk else "")


def _read_patch(path: Path, *, strip: int) -> Patch:
    require_there(path)
    content = read_named(path, limit=MAX_PATCH_BYTES, kind="patch", error=UsageError)
    text = content.decode("utf-8", "surrogateescape")
    if path.suffix in _PACKED:
        raise UsageError(f"{path}: is packed: unpack it first ({_PACKED[path.suffix]})")
    subject = _SUBJECT.search(text)
    words = " ".join(subject[1].split()) if subject else path.stem
    return Patch(path, words, strip)


def _touched(text: str, strip: int) -> Iterator[str]:
    in_git = (name for pair in _GIT_FILES.findall(text) for name in pair)
    for name in (*_FILES.findall(text), *in_git):
        # Names of renames have no a/ or b/ in front.
        parts = name.split("/")
        if name == "/dev/null":
            continue
        prefixed = parts[0] in {"a", "b"} or strip != 1
        yield "/".join(parts[strip:] if prefixed else parts)


def _copy(tree: Path, scratch: Path, names: set[str]) -> None:
    for name in names:
        source, target = tree / name, scratch / name
        if not target.resolve().is_relative_to(scratch.resolve()):
            raise KernelError(f"a patch names {name!r}, which is outside of the tree")
        if source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target, follow_symlinks=False)


def _apply(patch: Patch, scratch: Path, *options: str) -> str | None:
    """Apply one patch; return the error of git, or None."""
    # Inside a repository git would look for the files relative to its top.
    env = ("env", f"GIT_CEILING_DIRECTORIES={scratch.resolve().parent}", "LC_ALL=C")
    git = ("git", "-C", str(scratch), "apply", f"-p{patch.strip}")
    argv = [*env, *git, "--whitespace=nowarn", *options, str(patch.path.resolve())]
    done = process.run(argv, timeout_s=PATIENCE_S)
    if done.status == 127:
        raise KernelError("applying patches needs git: install it (apt install git)")
    return None if done.status == 0 else done.stderr


def _explain(patch: Patch, scratch: Path, said: str, *, base: str) -> Rejected:
    failed = _FAILED.search(said)
    if not patch.touches():
        return Rejected(patch, patch.name, None, "the file contains no patch")
    if failed:
        file = failed[1]
        hunk = _hunk_at(patch, file, line=int(failed[2]))
        reason = base or "the lines to change differ in this tree"
        if b"\r\n" in patch.path.read_bytes():
            reason += "; the patch has the line ends of DOS (\\r\\n)"
    else:
        error = _ERROR.search(said)
        words = error[1] if error else said.strip()[:200]
        # git 2.55 names the whole path, which is beside it anyway, and no "line".
        words = words.replace(f" at {patch.path.resolve()}:", " at line ")
        file, _, rest = words.partition(": ")
        hunk = None
        reason = rest or words
        if words.startswith("corrupt patch"):
            file, reason = patch.name, f"{words}: the line count of a hunk is wrong"
        if "No such file" in reason:
            reason = "this tree has no such file"
        reason = f"{reason}; {base}" if base else reason
    if _apply(patch, scratch, "--check", "--reverse") is None:
        reason = "it is applied already"
    return Rejected(patch, file, hunk, reason)


def _differs(wanted: str | None, version: str) -> str:
    if wanted is None or wanted == version:
        return ""
    return f"probably the wrong version: made for Linux {wanted}, this is {version}"


def _hunk_at(patch: Patch, file: str, *, line: int) -> int | None:
    """Return which hunk of a file in a patch begins at a line of the old file."""
    number, here = 0, False
    for text in patch.content().splitlines():
        if text.startswith("--- "):
            number = 0
        elif text.startswith("+++ "):
            here = text.split()[1].split("/", patch.strip)[-1] == file
        elif here and (hunk := _HUNK.match(text)):
            number += 1
            if int(hunk[1]) == line:
                return number
    return None
