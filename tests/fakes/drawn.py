"""
Charts that are drawn once: most commands of tests show the same few results.

A drawing is taken again, of this run or of one before, if the chart is the same, and
every module that draws it, and matplotlib. Without pytest's cache each is drawn anew:
so mutants are seen by each test that shows a chart.
"""

import hashlib
import importlib.metadata
import os
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from rtscope.present.charts import drawings
from structure.rooms import imports, module_of

SRC = Path(__file__).parents[2] / "src/rtscope"
KEPT: dict[str, bytes] = {}


@contextmanager
def drawn_once(config: pytest.Config) -> Iterator[None]:
    """Draw each chart once, until the end of the context."""
    if not config.pluginmanager.hasplugin("cacheprovider"):
        yield
        return
    assert config.cache is not None
    folder = config.cache.mkdir("charts")
    render = drawings._rendered

    def once(*chart: Any) -> bytes:
        name = hashlib.sha256(_of_sources() + pickle.dumps(chart)).hexdigest()
        if name not in KEPT:
            KEPT[name] = _kept(folder / name) or render(*chart)
            _keep(folder / name, KEPT[name])
        return KEPT[name]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(drawings, "_rendered", once)
        yield


def _kept(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _keep(path: Path, drawn: bytes) -> None:
    own = path.with_suffix(f".{os.getpid()}")
    own.write_bytes(drawn)
    own.replace(path)


@cache
def _of_sources() -> bytes:
    """Return a digest of matplotlib's version and all modules that charts need."""
    drawing, left = set(), {drawings.__name__}
    while left:
        drawing |= left
        left = {used for one in left for used in imports(SRC)[one]} - drawing
    files = sorted(p for p in SRC.rglob("*.py") if module_of(p, SRC) in drawing)
    digest = hashlib.sha256(importlib.metadata.version("matplotlib").encode())
    for path in files:
        digest.update(path.read_bytes())
    return digest.digest()
