"""
python -m pages.run [--fast] [PAGE...] - types what tutorials and how-to guides say.

All blocks but those that need a board or files of the reader, or with --fast only those
that take seconds. PAGE is a part of a page's name. Ends with status 1 if a page is not
as it works.
"""

import sys

from pages.blocks import all_pages
from pages.session import TooLongError
from pages.typed import NotAsWrittenError, type_page


def main(wanted: list[str]) -> int:
    """Print what became of each block; return the exit status."""
    fast = "--fast" in wanted
    wanted = [part for part in wanted if part != "--fast"]
    failed = 0
    for page in all_pages():
        if wanted and not any(part in page.name for part in wanted):
            continue
        try:
            for one in type_page(page, slow=not fast):
                took = "left out" if one.took_s is None else f"{one.took_s:7.1f} s"
                why = f" ({one.left_out})" if one.left_out else ""
                place = f"{one.page}:{one.line}"
                print(f"{took}  {place}  {one.first_command}{why}", flush=True)
        except (NotAsWrittenError, TooLongError) as error:
            print(f"  FAILED  {error}", flush=True)
            failed += 1
    print(f"{failed} pages are not as they work" if failed else "all as written")
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
