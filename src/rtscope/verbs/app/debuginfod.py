"""Debug files from a debuginfod server: off by default, bounded, kept by build."""

import re
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path

from rtscope.host.errors import UsageError
from rtscope.host.process import Progress, Step

MAX_FILES = 32
"""Of a check."""
MAX_FILE_BYTES = 256 << 20
MAX_KEPT_BYTES = 1 << 30
_TIMEOUT_S = 30.0
"""Of each read."""
_FILE_S = 300.0
_PIECE_BYTES = 1 << 20
_BUILD_ID = re.compile(r"[0-9a-f]{8,128}")


@dataclass(frozen=True, slots=True)
class Debuginfod:
    """A server, and the directory where its files are kept."""

    url: str
    directory: Path

    def fetch(self, build_ids: Iterable[str], progress: Progress) -> int:
        """Download the debug files of builds; return how many are there now."""
        there = 0
        for build_id in list(dict.fromkeys(build_ids))[:MAX_FILES]:
            if not _BUILD_ID.fullmatch(build_id):
                continue
            path = self.directory / build_id[:2] / f"{build_id[2:]}.debug"
            if path.is_file() or self._downloaded(build_id, path, progress):
                there += 1
        return there

    def _downloaded(self, build_id: str, path: Path, progress: Progress) -> bool:
        address = f"{self.url}/buildid/{build_id}/debuginfo"
        end = time.monotonic() + _FILE_S
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with (
                _OPENER.open(address, timeout=_TIMEOUT_S) as answer,
                tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file,
            ):
                part, done = Path(file.name), 0
                try:
                    while piece := answer.read(_PIECE_BYTES):
                        done += len(piece)
                        if done > MAX_FILE_BYTES or time.monotonic() > end:
                            return False
                        file.write(piece)
                        progress(Step("debug files", done, 0, "bytes"))
                    file.flush()
                    part.replace(path)
                finally:
                    part.unlink(missing_ok=True)
        except (OSError, urllib.error.URLError, HTTPException, ValueError):
            return False
        self._shrink()
        return True

    def _shrink(self) -> None:
        with suppress(OSError):
            files = []
            for path in self.directory.glob("*/*.debug"):
                about = path.lstat()
                files.append((about.st_mtime, about.st_size, path))
            total = sum(size for _, size, _ in files)
            for _, size, path in sorted(files)[:-1]:
                if total > MAX_KEPT_BYTES:
                    path.unlink(missing_ok=True)
                    total -= size


def _opener() -> urllib.request.OpenerDirector:
    """Return one for web addresses alone, also where a server redirects."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler,
        urllib.request.HTTPHandler,
        urllib.request.HTTPSHandler,
        urllib.request.HTTPDefaultErrorHandler,
        urllib.request.HTTPErrorProcessor,
        urllib.request.HTTPRedirectHandler,
        urllib.request.UnknownHandler,
    ):
        opener.add_handler(handler())
    return opener


_OPENER = _opener()


def debuginfod_at(url: str, cache: Path) -> Debuginfod:
    """Return the server at an address; UsageError for one that is none of the web."""
    if not re.fullmatch(r"https?://[^\s/?#]+[^\s?#]*", url):
        raise UsageError(
            f"--debuginfod: {url}: write the address of a server, e.g. "
            "https://debuginfod.debian.net"
        )
    return Debuginfod(url.rstrip("/"), cache / "debuginfod")
