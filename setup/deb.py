# SPDX-License-Identifier: MIT
"""
deb.py WHEEL - makes a package for Debian 13 and later of a wheel, beside it.

The Python packages that it depends on are Debian's own. It needs dpkg-deb and nothing
else of Debian, so that it can be made anywhere. DEBFULLNAME and DEBEMAIL name the one
who makes it, SOURCE_DATE_EPOCH is the time of all files: the same wheel gives the same
bytes.
"""

import gzip
import hashlib
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from email import message_from_string
from email.utils import formatdate
from pathlib import Path
from zipfile import ZipFile

ROOT = Path(__file__).parents[1]
PACKAGES = "usr/lib/python3/dist-packages"
DOC = "usr/share/doc/rtscope"
AGENT = "rtscope-agent"

# What Debian calls a Python package, where that is not python3-NAME, and its epochs.
NAMES = {"pyyaml": "yaml"}
EPOCHS = {"numpy": "1:"}

SUMMARY = "wake-up latency of real-time threads, with explanations"
DESCRIPTION = """\
 rtscope measures how late a Linux machine wakes its real-time threads,
 explains the worst wake-up, and states which promises the measurement
 supports.
 .
 It measures this machine, a board over SSH, or a virtual board whose results
 are identical on every host. Agents for amd64, arm64, armhf and riscv64 are
 included.
"""

# Programs that measure on boards of any kind, with nothing installed there.
OVERRIDES = """\
# rtscope copies its agent to boards of other architectures, with nothing installed.
rtscope: binary-from-other-architecture [*/agents/*]
# The agent depends on no file of the board, not even its C library.
rtscope: statically-linked-binary [*/agents/*]
"""

COPYRIGHT = """\
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: rtscope

Files: *
Copyright: 2026 the rtscope authors
License: MIT

Files: usr/lib/python3/dist-packages/rtscope/plugins/*
 usr/share/doc/rtscope/plugin/*
Copyright: 2026 the rtscope authors
License: GPL-2.0-or-later
 The plugin is loaded into QEMU. Its source is in /usr/share/doc/rtscope/plugin.
 .
 On Debian systems, the text of the GNU General Public License version 2 is in
 /usr/share/common-licenses/GPL-2.

License: MIT
"""

START = """\
#!/usr/bin/python3
import sys

from rtscope.cli.start import main

sys.exit(main())
"""

# Bytecode, as every package of Python programs has it: made here, removed with it.
POSTINST = """\
#!/bin/sh
set -e
if [ "$1" = configure ] && command -v py3compile >/dev/null 2>&1; then
	py3compile -p rtscope
fi
"""
PRERM = f"""\
#!/bin/sh
set -e
if command -v py3clean >/dev/null 2>&1; then
	py3clean -p rtscope
else
	find /{PACKAGES}/rtscope -name __pycache__ -prune -exec rm -r {{}} +
fi
"""


def depends(metadata: str) -> str:
    """Return Debian's names and versions of what a wheel requires."""
    found = ["libc6 (>= 2.17)", "python3 (>= 3.11)"]
    for line in message_from_string(metadata).get_all("Requires-Dist", []):
        if "extra ==" in line:
            continue
        parts = re.fullmatch(r"([\w-]+)>=([\d.]+)", line)
        if parts is None:
            sys.exit(f"deb.py: no Debian package is known for {line!r}")
        name, version = parts.groups()
        package = f"python3-{NAMES.get(name, name)}"
        found.append(f"{package} (>= {EPOCHS.get(name, '')}{version})")
    return ", ".join(found)


def control(metadata: str, version: str, *, size_kib: int) -> str:
    """Return the package's description for dpkg."""
    return (
        f"Package: rtscope\nVersion: {version}\nArchitecture: amd64\n"
        f"Maintainer: {maintainer()}\nInstalled-Size: {size_kib}\n"
        f"Depends: {depends(metadata)}\n"
        "Recommends: debian-archive-keyring, openssh-client, stress-ng\n"
        f"Section: utils\nPriority: optional\nDescription: {SUMMARY}\n{DESCRIPTION}"
    )


def maintainer() -> str:
    """Return who makes the package, from the variables that Debian's tools read."""
    name = os.environ.get("DEBFULLNAME", "the rtscope authors")
    return f"{name} <{os.environ.get('DEBEMAIL', 'rtscope@example.org')}>"


def packed(text: str) -> bytes:
    """Compress a text as Debian wants it: best, without name and time."""
    return gzip.compress(text.encode(), 9, mtime=0)


def contents(wheel: ZipFile, version: str, epoch_s: int) -> Iterator[tuple[str, bytes]]:
    """Yield all files of the package: path and content."""
    for name in wheel.namelist():
        first, _, rest = name.partition("/")
        if first == "rtscope":
            yield f"{PACKAGES}/{name}", wheel.read(name)
        elif first.endswith(".data"):
            yield in_debian(rest.removeprefix("data/"), wheel.read(name))
        elif rest in ("METADATA", "entry_points.txt", "top_level.txt"):
            yield f"{PACKAGES}/{name}", wheel.read(name)
    yield "usr/bin/rtscope", START.encode()
    yield "usr/share/lintian/overrides/rtscope", OVERRIDES.encode()
    text = (ROOT / "LICENSE").read_text().partition("\n\n")[2]
    lines = (f" {line or '.'}\n" for line in text.strip().splitlines())
    yield f"{DOC}/copyright", (COPYRIGHT + "".join(lines)).encode()
    yield f"{DOC}/changelog.gz", packed((ROOT / "CHANGELOG.md").read_text())
    date = formatdate(epoch_s)
    entry = (
        f"rtscope ({version}) unstable; urgency=medium\n\n"
        f"  * Made of the wheel by setup/deb.py.\n\n -- {maintainer()}  {date}\n"
    )
    yield f"{DOC}/changelog.Debian.gz", packed(entry)


def in_debian(name: str, content: bytes) -> tuple[str, bytes]:
    """Return path and content of a shared file as Debian's policy wants them."""
    if name.startswith("share/man/"):
        return f"usr/{name}.gz", packed(content.decode())
    # zsh looks into site-functions for the machine's own files only.
    return (
        f"usr/{name.replace('zsh/site-functions', 'zsh/vendor-completions')}",
        content,
    )


def write(root: Path, files: Mapping[str, bytes]) -> None:
    """Write files below a folder; programs are executable."""
    for name, content in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        runs = name.startswith(("usr/bin/", "DEBIAN/p")) or file.name == AGENT
        file.chmod(0o755 if runs else 0o644)
    for folder in (root, *(p for p in root.rglob("*") if p.is_dir())):
        folder.chmod(0o755)


def make(path: Path) -> Path:
    """Make the package; return its file."""
    epoch_s = int(os.environ.get("SOURCE_DATE_EPOCH", time.time()))
    if not path.name.endswith("_x86_64.whl"):
        sys.exit(f"deb.py: {path.name}: the package is for amd64")
    stamp = time.strftime("%Y%m%d.%H%M%S", time.gmtime(epoch_s))
    version = f"{path.name.split('-')[1]}+{stamp}-1"
    target = path.parent / f"rtscope_{version}_amd64.deb"
    with ZipFile(path) as wheel, tempfile.TemporaryDirectory() as name:
        files = dict(contents(wheel, version, epoch_s))
        metadata = next(t.decode() for f, t in files.items() if f.endswith("/METADATA"))
        size_kib = sum(-(-len(content) // 1024) for content in files.values())
        sums = (f"{hashlib.md5(t).hexdigest()}  {f}\n" for f, t in files.items())
        ours = {
            "DEBIAN/control": control(metadata, version, size_kib=size_kib).encode(),
            "DEBIAN/md5sums": "".join(sums).encode(),
            "DEBIAN/postinst": POSTINST.encode(),
            "DEBIAN/prerm": PRERM.encode(),
        }
        write(Path(name), {**files, **ours})
        argv = ["dpkg-deb", "--root-owner-group", "-Zxz", "--build", name, str(target)]
        env = {**os.environ, "SOURCE_DATE_EPOCH": str(epoch_s), "LC_ALL": "C"}
        subprocess.run(argv, check=True, env=env, stdout=subprocess.DEVNULL)
    return target


if __name__ == "__main__":
    print(make(Path(sys.argv[1])))
