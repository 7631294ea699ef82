"""
One test file booted fifty times: every file that a user reads has the same bytes.

Forty boots as the machine is, ten beside two processes that take what they get of it;
then one with an empty cache, for which every part is fetched and built again, and one
as another user, with such a cache as well. The budget of the test is broken, so each
boot is booted once more with its paths recorded, and explained.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from sysconfig import get_path

from programs.tested.asking import (
    ONLY_KEPT,
    RESULTS,
    ROOT,
    Asked,
    NotAskedError,
    Places,
    ask,
)

BOOTS, BESIDE_LOAD = 50, 10
TEST = "fifty.toml"
LOAD_S = 1800
"""The load ends by itself, if nobody ends it."""
OTHER = 65534
"""The user nobody."""
_OWNER = (OTHER, OTHER)
_AS_ANOTHER = (
    *("setpriv", f"--reuid={OTHER}", f"--regid={OTHER}"),
    *("--clear-groups", "--no-new-privs", "python3"),
)
"""With the interpreter of the system: that of a developer may be in a closed home."""
_FILES = {
    "answer": ".answer.json",
    "baseline": ".baseline.json",
    "junit": ".xml",
    "markdown": ".md",
    "html": ".html",
}
"""What a boot gives, and how the name of its file ends."""

Facts = Iterator[tuple[str, bool]]


def fifty(_names: Sequence[str], again: bool) -> Facts:
    """Compare the bytes of the files of all boots."""
    alone = BOOTS - BESIDE_LOAD
    numbers = {
        "as the machine is": range(1, alone + 1),
        "beside load": range(alone + 1, BOOTS + 1),
    }
    done = {
        what: list(_boots(some, beside=what == "beside load", again=again))
        for what, some in numbers.items()
    }
    done["with an empty cache"] = list(
        _apart("fifty/nothing/1", (sys.executable,), again=again)
    )
    if not os.geteuid():
        another = _apart("fifty/another/1", _AS_ANOTHER, again=again)
        done["as another user"] = list(another)
    known = [_digests(one) for boots in done.values() for one in boots]
    for what, boots in done.items():
        found = [_digests(one) for one in boots]
        apart = {
            name for one in found for name in _FILES if one[name] != known[0][name]
        }
        seconds = sum(one.cpu_s for one in boots) / max(1, len(boots))
        yield (
            f"{len(boots)} boots {what}, {seconds:.1f} s of CPU each: "
            f"{', '.join(sorted(apart)) or 'no file'} of {len(_FILES)} differs",
            all(one.ran for one in boots) and not apart,
        )
    for name in _FILES if known else ():
        yield f"{name}: {known[0][name]}", True


def _digests(asked: Asked) -> Mapping[str, str]:
    """Return the digest of each file; empty where there is none."""
    base = RESULTS / asked.name
    files = {name: base.with_name(base.name + end) for name, end in _FILES.items()}
    return {
        name: hashlib.sha256(file.read_bytes()).hexdigest()[:16]
        if file.exists()
        else ""
        for name, file in files.items()
    }


def _boots(numbers: Sequence[int], *, beside: bool, again: bool) -> Iterator[Asked]:
    names = [f"fifty/boots/{number}" for number in numbers]
    with beside_load(*names, again=again) if beside else nullcontext():
        for name in names:
            with suppress(NotAskedError):
                yield ask(name, _words(name), again=again)


@contextmanager
def beside_load(*names: str, again: bool) -> Iterator[None]:
    """Let two processes take all that they get, while an answer is asked for."""
    known = all(Places.of(name).facts.exists() for name in names) and not again
    if known or ONLY_KEPT:
        yield
        return
    words = ["stress-ng", "--quiet", "--cpu", "2", "--timeout", f"{LOAD_S}"]
    load = subprocess.Popen(words)
    try:
        yield
    finally:
        load.terminate()
        load.wait()


def _apart(name: str, python: Sequence[str], *, again: bool) -> Iterator[Asked]:
    """Yield a boot whose home is empty, and removed behind it."""
    folder = Places.of(name).facts.parent
    folder.mkdir(parents=True, exist_ok=True)
    os.chown(folder, *(_OWNER if python == _AS_ANOTHER else (-1, -1)))
    home = folder / "home"
    given = {
        "HOME": str(home),
        "XDG_CACHE_HOME": str(home / "cache"),
        "PYTHONPATH": f"{ROOT / 'src'}:{get_path('purelib')}",
        "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
    }
    try:
        words = _words(name)
        yield ask(name, words, environment=given, python=python, again=again)
    except NotAskedError:
        return
    finally:
        if home.exists():
            shutil.rmtree(home)


def _words(name: str) -> Sequence[str]:
    """Return the words that write every file beside the answer."""
    base = RESULTS / name
    files = {one: f"{base}{_FILES[one]}" for one in ("junit", "markdown", "html")}
    return [TEST, *(word for one, file in files.items() for word in (f"--{one}", file))]
