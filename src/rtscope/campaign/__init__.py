"""
What is to be measured: a campaign, from a file, from options, or from a record.

All three go through the same keys and the same checks (`keys`, `check`), so a value
is refused with the same words wherever it was written.
"""

from rtscope.campaign.document import (
    MAX_FILE_BYTES,
    default_campaign,
    from_dict,
    load_campaign,
    to_dict,
    with_options,
    with_places,
)
from rtscope.campaign.kernelnames import kernels_by_label
from rtscope.campaign.keys import TABLES, Key, duration_text
from rtscope.campaign.model import VIRTUAL, Campaign, RunTable, untraced_ns

__all__ = [
    "MAX_FILE_BYTES",
    "TABLES",
    "VIRTUAL",
    "Campaign",
    "Key",
    "RunTable",
    "default_campaign",
    "duration_text",
    "from_dict",
    "kernels_by_label",
    "load_campaign",
    "to_dict",
    "untraced_ns",
    "with_options",
    "with_places",
]
