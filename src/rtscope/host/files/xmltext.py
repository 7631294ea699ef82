"""Text in XML: what XML cannot hold is replaced, and a tree is written as a file."""

import re
from xml.etree import ElementTree

MAX_CHARS = 2000
"""More than this of one text, nobody reads in a browser of test results."""

# Production 2 of XML 1.0.
_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def xml_text(text: str) -> str:
    """Return a text with `?` for each character that XML has not, and its end cut."""
    return _NOT_IN_XML.sub("?", text)[:MAX_CHARS]


def xml_file(root: ElementTree.Element) -> str:
    """Return a tree as an XML file, indented."""
    ElementTree.indent(root)
    text = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'
