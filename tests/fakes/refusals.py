"""How a campaign is refused."""

from typing import Any

import pytest

from rtscope.campaign.file import from_dict
from rtscope.campaign.model import Campaign
from rtscope.campaign.options import Options, with_options
from rtscope.errors import UsageError


def refused(document: Any) -> str:
    with pytest.raises(UsageError) as caught:
        from_dict(document, source="my.toml")
    return str(caught.value)


def refused_option(**given: Any) -> str:
    with pytest.raises(UsageError) as caught:
        with_options(Campaign(), Options(**given))
    return str(caught.value)
