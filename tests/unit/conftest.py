"""What holds for every test of a unit."""

import signal
from pathlib import Path

import pytest
from hypothesis import settings

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


@pytest.fixture
def story(tmp_path: Path) -> StoryOf:
    """Campaigns on a fake target."""
    return stories(tmp_path)
