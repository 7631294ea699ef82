"""How a campaign is refused."""

from typing import Any

import pytest

from rtscope.campaign import default_campaign, from_dict, with_options
from rtscope.errors import UsageError


def refused(document: Any) -> str:
    with pytest.raises(UsageError) as caught:
        from_dict(document, source="my.toml")
    return str(caught.value)


def refused_option(**given: object) -> str:
    with pytest.raises(UsageError) as caught:
        with_options(default_campaign(), **given)
    return str(caught.value)
