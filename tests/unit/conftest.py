"""What holds for every test of a unit."""

import signal
from pathlib import Path

import pytest
from hypothesis import settings

from fakes.story import StoryOf, stories

# How long an example takes says more about the machine than about the program.
settings.register_profile("rtscope", deadline=None)
settings.load_profile("rtscope")


def pytest_configure() -> None:
    """Take Ctrl-C, which a shell has its jobs in the background ignore."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def story(tmp_path: Path) -> StoryOf:
    """Campaigns on a fake target."""
    return stories(tmp_path)
