"""The campaign of a bundle: somebody else wrote it."""

import pytest

from rtscope.boards.catalogue import get_board
from rtscope.boards.parts.bundle import Bundle
from rtscope.host.errors import UsageError
from rtscope.record.directory.place import CAMPAIGN
from rtscope.verbs.run.run import campaign_of


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"\xff", b"9" * 5000, b"[" * 200_000, b"[]", b'{"run": 1}'],
    ids=lambda content: repr(content[:12]),
)
def test_a_campaign_that_is_none_is_refused(content: bytes) -> None:
    bundle = Bundle(get_board("pc"), {}, {}, {CAMPAIGN.file: content}, "1", "")

    with pytest.raises(UsageError):
        campaign_of(bundle)


def test_a_bundle_without_a_campaign_needs_a_file() -> None:
    bundle = Bundle(get_board("pc"), {}, {}, {}, "1", "")

    with pytest.raises(UsageError, match="name a campaign file"):
        campaign_of(bundle)
