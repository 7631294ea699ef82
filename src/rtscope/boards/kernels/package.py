"""
Pack a built kernel for the board: one archive, or a Debian package.

Both have the same files in the same places, in a fixed order, with a fixed time and
owner: the same kernel gives the same bytes.
"""

import gzip
import hashlib
import re
import shutil
import tarfile
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from io import BytesIO
from pathlib import Path
from typing import IO

from rtscope.boards.kernels.build import EPOCH
from rtscope.host import process
from rtscope.host.errors import KernelError
from rtscope.host.files import new_file

PATIENCE_S = 1800.0
SUMS = "SHA256SUMS"


@dataclass(frozen=True, slots=True)
class BuiltKernel:
    """What is packed."""

    name: str
    """The recipe's."""
    title: str
    release: str
    arch: str
    """As Debian calls it."""
    digest: str
    """SHA-256 of the image."""
    image: Path
    config: Path
    symbols: Path
    modules: Path | None
    """An archive with lib/modules/RELEASE; None if it has none."""
    device_trees: Path | None
    """An archive with dtbs/VENDOR/*.dtb; None if there are none."""


def pack_folder(folder: Path, archive: Path) -> None:
    """Write the regular files below a folder into an archive, sorted, without dates."""
    files = {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink()
    }
    with archive.open("wb") as out:
        _write_tar(files, out)


def write_tar(kernel: BuiltKernel, path: Path) -> None:
    """Write a .tar.gz with all files of a kernel, and SHA256SUMS over them."""
    files = _files(kernel)
    sums = "".join(
        f"{hashlib.sha256(content).hexdigest()}  {name}\n"
        for name, content in sorted(files.items())
    )
    with (
        new_file(path, KernelError) as new,
        new.open("wb") as out,
        gzip.GzipFile("", "wb", fileobj=out, mtime=EPOCH) as zipped,
    ):
        _write_tar({**files, SUMS: sums.encode()}, zipped)


def write_deb(kernel: BuiltKernel, path: Path) -> None:
    """Write a Debian package; KernelError if dpkg-deb is missing or refuses."""
    if shutil.which("dpkg-deb") is None:
        raise KernelError(
            "cannot make a .deb without dpkg-deb: install it (apt install dpkg)"
        )
    with (
        new_file(path, KernelError) as new,
        tempfile.TemporaryDirectory(prefix="rtscope-deb-", dir=path.parent) as name,
    ):
        root = Path(name)
        size = 0
        for file, content in _files(kernel).items():
            target = root / file
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
            target.chmod(0o644)
            size += len(content)
        _write_control(kernel, root / "DEBIAN", size_kib=-(-size // 1024))
        for folder in (root, *(p for p in root.rglob("*") if p.is_dir())):
            folder.chmod(0o755)
        options = ("--root-owner-group", "-Zxz", "--build", str(root), str(new))
        env = ("env", f"SOURCE_DATE_EPOCH={EPOCH}", "LC_ALL=C")
        done = process.run([*env, "dpkg-deb", *options], timeout_s=PATIENCE_S)
        if done.status != 0:
            raise KernelError(f"dpkg-deb: {done.stderr.strip()[-400:]}")


def deb_name(kernel: BuiltKernel) -> str:
    """Return what Debian calls the file of a package."""
    return f"{_package_name(kernel)}_{_version(kernel)}_{kernel.arch}.deb"


def _package_name(kernel: BuiltKernel) -> str:
    """Return a name that Debian allows, whatever local version the kernel has."""
    allowed = re.sub(r"[^a-z0-9+.-]", "-", kernel.release.lower())
    return f"linux-image-{allowed}"


def _version(kernel: BuiltKernel) -> str:
    numbers = re.match(r"[0-9.]+", kernel.release)
    # The digest: two builds of one release are two versions.
    return f"{numbers[0] if numbers else '0'}+rtscope.{kernel.digest[:8]}"


def _write_control(kernel: BuiltKernel, folder: Path, *, size_kib: int) -> None:
    folder.mkdir()
    texts = _texts()
    text = texts["control"].format(
        package=_package_name(kernel),
        version=_version(kernel),
        arch=kernel.arch,
        depends="Depends: kmod\n" if kernel.modules else "",
        size_kib=size_kib,
        title=kernel.title,
        name=kernel.name,
        digest=kernel.digest,
    )
    (folder / "control").write_text(text)
    release = kernel.release
    first = {"postinst": "", "postrm": ""}
    if kernel.modules:
        first = {"postinst": f"depmod {release}\n", "postrm": texts["forget"]}
    for stage, text in first.items():
        script = folder / stage
        words = texts["script"].format(
            first=text.format(release=release), stage=stage, release=release
        )
        script.write_text(words)
        script.chmod(0o755)


@cache
def _texts() -> Mapping[str, str]:
    folder = resources.files("rtscope.boards.kernels")
    return tomllib.loads(folder.joinpath("package.toml").read_text("utf-8"))


def _files(kernel: BuiltKernel) -> dict[str, bytes]:
    """Return the content of every file, by where it goes on the board."""
    release = kernel.release
    files = {
        f"boot/vmlinuz-{release}": kernel.image.read_bytes(),
        f"boot/config-{release}": kernel.config.read_bytes(),
        f"boot/System.map-{release}": kernel.symbols.read_bytes(),
    }
    for name, content in _archived(kernel.modules):
        files[name if name.startswith("usr/") else f"usr/{name}"] = content
    for name, content in _archived(kernel.device_trees):
        files[f"usr/lib/linux-image-{release}/{name.removeprefix('dtbs/')}"] = content
    return files


def _archived(archive: Path | None) -> Iterator[tuple[str, bytes]]:
    if archive is None:
        return
    with tarfile.open(archive) as tar:
        for member in tar:
            content = tar.extractfile(member)
            if content is not None:
                yield member.name, content.read()


def _write_tar(files: Mapping[str, bytes], out: IO[bytes] | gzip.GzipFile) -> None:
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, content in sorted(files.items()):
            member = tarfile.TarInfo(name)
            member.size = len(content)
            member.mode = 0o644
            member.mtime = EPOCH
            tar.addfile(member, BytesIO(content))
