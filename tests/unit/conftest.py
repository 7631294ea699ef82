"""What holds for every test of a unit."""

from pathlib import Path

import pytest
from hypothesis import settings

from fakes.story import StoryOf, stories

# How long an example takes says more about the machine than about the program.
settings.register_profile("rtscope", deadline=None)
settings.load_profile("rtscope")


@pytest.fixture
def story(tmp_path: Path) -> StoryOf:
    """Campaigns on a fake target."""
    return stories(tmp_path)
