"""
Turn matplotlib's SVG into one that lives inside a page, the same to the byte each time.

Colours become variables of the page (so one drawing serves dark and light), text
inherits the page's font, identifiers are made unique or dropped, coordinates are
rounded. Outside a page the variables fall back to the light palette.
"""

import re
from collections.abc import Mapping
from html import escape

_TAG = re.compile(r"<[^>]*>")
_ID = re.compile(r'\sid="([^"]*)"')
_REFERENCE = re.compile(r'(xlink:href="#|url\(#)([^")]+)')
_FLOAT = re.compile(r"-?\d+\.\d{2,}")
_FONT = re.compile(
    r"font-family: ?[^;\"]*;? ?|(font: )([^;\"]*?)(?: '[^;\"]*)(?=[;\"])"
)
_EMPTY = re.compile(r"<(g|defs)(?: [^>]*)?>\s*</\1>")
_LONE_GROUP = re.compile(
    r"<g>\s*(<(?:use|path|text)\b[^<>]*/?>(?:[^<]*</text>)?)\s*</g>"
)


def embed(
    svg: str, name: str, *, title: str, description: str, colours: Mapping[str, str]
) -> str:
    """
    Return an `<svg>` element for a page; `name` keeps its identifiers apart.

    `colours` maps each drawn colour (`#rrggbb`) to the page's variable name.
    """
    body = svg[svg.index("<svg") :]
    # The style's only rule would act on the whole page: it is on the root element.
    for element in (r"<metadata>.*?</metadata>", r"<!--.*?-->", r"<style.*?</style>"):
        body = re.sub(element, "", body, flags=re.DOTALL)
    used = {match[1] for tag in _TAG.findall(body) for match in _REFERENCE.findall(tag)}

    def settled(tag: re.Match[str]) -> str:
        """Change a tag; text between tags (a kernel is called 6.12) stays as it is."""
        return _settled_tag(tag[0], name=name, used=used, colours=colours)

    box = re.search(r'viewBox="([^"]*)"', body)
    assert box is not None
    inside = _without_idle_groups(_TAG.sub(settled, body))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="chart" viewBox="{box[1]}" '
        f'role="img" aria-labelledby="{name}-title {name}-desc" '
        'stroke-linejoin="round" '
        'font-family="system-ui, Helvetica, Arial, sans-serif">'
        f'<title id="{name}-title">{escape(title)}</title>'
        f'<desc id="{name}-desc">{escape(description)}</desc>'
        f"{inside[inside.index('>') + 1 :]}"
    )


def _settled_tag(
    tag: str, *, name: str, used: set[str], colours: Mapping[str, str]
) -> str:
    def renamed(match: re.Match[str]) -> str:
        return f' id="{name}-{match[1]}"' if match[1] in used else ""

    tag = tag.replace(' transform="rotate(-0', ' transform="rotate(0')
    tag = re.sub(r' transform="rotate\(0 [^"]*"', "", tag)
    tag = _FLOAT.sub(lambda m: f"{float(m[0]):.1f}".removesuffix(".0"), tag)
    tag = _REFERENCE.sub(rf"\1{name}-\2", _ID.sub(renamed, tag))
    tag = _FONT.sub(lambda m: f"{m[1] or ''}{m[2] or ''}", tag)
    for colour, variable in colours.items():
        tag = tag.replace(colour, f"var({variable}, {colour})")
    return re.sub(r"\s*\n\s*", "\n", tag.replace("xlink:href", "href"))


def _without_idle_groups(body: str) -> str:
    while _EMPTY.search(body):
        body = _EMPTY.sub("", body)
    while _LONE_GROUP.search(body):
        body = _LONE_GROUP.sub(r"\1", body)
    return re.sub(r">\s*\n\s*<", ">\n<", body)
