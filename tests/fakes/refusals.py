"""How a campaign is refused."""

from typing import Any

import pytest

from rtscope.host.errors import UsageError
from rtscope.measure.campaign.file import from_dict
from rtscope.measure.campaign.model import Campaign
from rtscope.measure.campaign.options import Options, with_options


def refused(document: Any) -> str:
    with pytest.raises(UsageError) as caught:
        from_dict(document, source="my.toml")
    return str(caught.value)


def refused_option(**given: Any) -> str:
    with pytest.raises(UsageError) as caught:
        with_options(Campaign(), Options(**given))
    return str(caught.value)
