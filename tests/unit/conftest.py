"""What holds for every test of a unit."""

import gc
import signal
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import settings

from fakes.heldcauses import Held, is_held
from fakes.story import StoryOf, stories

# How long an example takes says more about the machine than about the program.
settings.register_profile("rtscope", deadline=None)
settings.register_profile("without slow", deadline=None, max_examples=25)


def pytest_configure(config: pytest.Config) -> None:
    """
    Choose how many examples a property gets: 100, or 25 where slow tests are left out.

    And take Ctrl-C, which a shell has its jobs in the background ignore.
    """
    fewer = "not slow" in config.getoption("markexpr")
    settings.load_profile("without slow" if fewer else "rtscope")
    signal.signal(signal.SIGINT, signal.default_int_handler)
    gc.set_threshold(100_000, 20, 100)


def pytest_collection_finish() -> None:
    """Keep 12,000 tests out of the rounds of the garbage collector."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Hold what a test explains against what it explained before."""
    if not is_held(pyfuncitem):
        return (yield)
    rewrite = bool(pyfuncitem.config.getoption("--rewrite-golden", default=False))
    with pytest.MonkeyPatch.context() as patch:
        held = Held.watching(pyfuncitem, patch)
        answer = yield
    held.compare(rewrite=rewrite)
    return answer


@pytest.fixture
def story(tmp_path: Path) -> StoryOf:
    """Campaigns on a fake target."""
    return stories(tmp_path)
