"""Tutorials and how-to guides, typed as they say: all that takes seconds."""

import pytest

from pages.blocks import Page, all_pages
from pages.typed import type_page, why_left_out

pytestmark = [pytest.mark.system, pytest.mark.long]

TYPED = [
    page
    for page in all_pages()
    if any(
        block.language == "sh" and not why_left_out(block, slow=False, root=False)
        for block in page.blocks
    )
]


@pytest.mark.parametrize("page", TYPED, ids=lambda page: page.name)
def test_a_page_does_as_it_says(page: Page) -> None:
    typed = [one for one in type_page(page, slow=False) if one.took_s is not None]

    assert typed
