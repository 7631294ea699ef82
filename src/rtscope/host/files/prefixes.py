"""
Find and remove text before each line: time stamps, labels, quote marks, indents.

A journal, a container's log, a CI system, a mail or a README puts them there. A prefix
is removed only if more lines then look like lines of a known format.

Numbers may differ from line to line, and so may the spaces that align them. A shape
needs a letter or a mark such as a bracket, for numbers alone, or with colons, may be
the tool's own; or it is the number of the line.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from rtscope.host.errors import RecordError
from rtscope.host.files.documents import json_value
from rtscope.host.files.plaintext import without_escapes

# --- text that many lines begin with, whatever tool put it there: found by its shape --

_MOST_SHAPES = 24
_TRIED = 200
_MOST_CHARACTERS = 160
_LOOKED_AT = 400
"""Lines whose beginnings are looked at."""
_END = re.compile(r"[^\w.\s-]+|(?<=\S)[ \t]|(?<=\s)[ \t]+(?=\S)")
"""A mark, one blank, or all blanks of some: an indent may be the tool's own."""
_MARK = re.compile(r"[A-Za-z|\]>)=+]|^[^\d]*:")
"""Numbers with colons alone are columns of a tool, such as those of `cyclictest -v`."""
_OF_DOCUMENTS = re.compile(r'["{}<]')
"""JSON and XML begin with these, and no text before a line has them."""
_PART = re.compile(r"\d+|[ \t]+|[^\d \t]+")
_NUMBERED = re.compile(r" *(\d{1,9})(?:\t|[:.)] ?| )")


@dataclass(frozen=True, slots=True)
class Shape:
    """What lines begin with, and what it is in words."""

    told: str
    pattern: re.Pattern[str]

    def removed_from(self, line: str) -> str:
        """Return a line without it; a line that does not begin so, as it is."""
        match = self.pattern.match(line)
        return line[match.end() :] if match else line


def shapes_of(lines: Sequence[str], least: float) -> Iterator[Shape]:
    """Yield the shapes that this part of the lines begin with, those of most first."""
    if _are_numbered(lines):
        yield Shape("a line number", _NUMBERED)
    sample = lines[:_LOOKED_AT]
    counts: Counter[str] = Counter()
    for line in sample:
        counts.update(_beginnings(line))
    found = []
    for text, _ in counts.most_common(_TRIED):
        pattern = re.compile(text)
        number = sum(pattern.match(line) is not None for line in sample)
        if number > 1 and number >= least * len(sample):
            found.append((-number, len(text), text))
    for _, _, text in sorted(found)[:_MOST_SHAPES]:
        yield Shape("a text of one shape", re.compile(text))


def _are_numbered(lines: Sequence[str]) -> bool:
    """Tell whether each line begins with its number, as `cat -n` writes it."""
    numbers = [_NUMBERED.match(line) for line in lines]
    found = [int(one[1]) for one in numbers if one]
    # Lines without text were left out of the sample; their numbers are missing.
    rising = all(0 < b - a <= 4 for a, b in pairwise(found))
    return rising and len(found) == len(lines) > 2


def _beginnings(line: str) -> set[str]:
    """Return patterns of all that a line may begin with, up to each of its marks."""
    text = _OF_DOCUMENTS.split(line[:_MOST_CHARACTERS], maxsplit=1)[0]
    ends = [match.end() for match in _END.finditer(text)]
    return {_pattern(text[:end]) for end in ends if _MARK.search(text[:end])}


def _pattern(text: str) -> str:
    """Return a pattern for text whose numbers and inner spaces may differ."""
    parts = _PART.findall(text)
    last = len(parts) - 1
    return "".join(
        r"\d+"
        if part.isdecimal()
        else (re.escape(part) if at == last else r"[ \t]+")
        if part.isspace()
        else re.escape(part)
        for at, part in enumerate(parts)
    )


# --- find and remove text before each line: time stamps, labels, quote marks, indents -

_DAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_CLOCK = r"\d{1,2}:\d{2}:\d{2}(?:[.,]\d{1,9})?"
_ZONE = r"(?: ?(?:Z|UTC|GMT|[A-Z]{2,4}T|[+-]\d{2}:?\d{2})(?![\w.:]))?"
_DATED = rf"\d{{4}}[-/.]\d{{2}}[-/.]\d{{2}}[T _]{_CLOCK}{_ZONE}"
_STAMP = "|".join(
    (
        rf"(?:{_DAY},? )?{_DATED}",
        rf"(?:{_DAY} )?{_MONTH} [ \d]?\d (?:\d{{4}} )?{_CLOCK}(?: \d{{4}})?",
        rf"{_CLOCK}",
        r"\d{9,10}\.\d{3,9}",
    )
)

_TIME = "a time stamp"
_HOST = "a host and process"
_LABEL = "a label"
_LEVEL = "a level"
_QUOTE = "a quote mark"
_INDENT = "an indent"
_RECORD = "a log record in JSON"

_TOKENS: Sequence[tuple[str, re.Pattern[str]]] = tuple(
    (told, re.compile(pattern))
    for told, pattern in (
        # syslog's priority, with the version of RFC 5424.
        (_LEVEL, r"<\d{1,3}>(?:1 (?=\d{4}-))?"),
        # dmesg, with the caller, or with -T; printk's `[T123]`.
        (_TIME, r"\[ *\d{1,10}\.\d{3,9}\](?:\[ *[TC]\d+\])? ?"),
        # GitLab: stream and number after the time.
        (_TIME, rf"{_DATED} \d\d[OE][ +]"),
        (
            _TIME,
            rf"(?:\[(?:{_STAMP})\]|\((?:{_STAMP})\)|(?:{_STAMP}))(?:[:,;]?[ \t]|$)",
        ),
        # Seconds since the start: `ts -s %.s`.
        (_TIME, r"\d{1,7}\.\d{2,9}[ \t]"),
        # glog: level, date, time, thread, file, line.
        (_LABEL, rf"[IWEF]\d{{4}} {_CLOCK} +\d+ [\w./-]+:\d+\] ?"),
        # The logs of Kubernetes' runtimes: stream, and whether the line is whole.
        (_LABEL, r"std(?:out|err) [FP] "),
        (_LABEL, r"\[[^\]\n]{1,160}\]:? ?"),
        # docker compose, foreman.
        (_LABEL, r"[\w.@/-]{1,80} +\| ?"),
        # grep in several files, with -n.
        (_LABEL, r"[\w./-]{1,160}\.(?:txt|log|out|md)[:-](?:\d{1,9}[:-])?"),
        (
            _LEVEL,
            r"(?:- )?(?:TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR)\b"
            r"(?::[\w.]{1,80}:| {1,8}[\w.]{1,80}:| -|:)? ?",
        ),
        (_LABEL, r"- (?:[\w.]{1,80} - )?"),
        (_QUOTE, r"(?:>|\|(?= |\||$)|\+(?=[\w#\s]))[ ]?"),
    )
)
_HOST_AND_PROCESS = re.compile(
    r"(?:[\w.:-]{1,80} )?[\w./@()+-]{1,80}(?:\[\d{1,10}\])?: ?"
    r"|[\w.:-]{1,80} [\w./-]{1,80} (?:\d{1,10}|-) [\w-]{1,32} (?:-|\[[^\]]{0,200}\]) ?"
)
"""Behind a time stamp only: `T: 0` looks like one."""
_PROCESS = re.compile(r"[\w./@()+-]{1,80}\[\d{1,10}\]: ?")
_LAVA = re.compile(r'- \{.{0,200}?"?msg"?: ?(?P<text>"(?:[^"\\]|\\.)*"|.*)\}$')
_LOGFMT = re.compile(r'.{0,300}\b(?:msg|message)=(?P<text>"(?:[^"\\]|\\.)*")')
_SENT = r'\[ ?[\d.]{1,20}, ?"\w{1,16}", ?'
_OF_TERMINAL = re.compile(rf'{_SENT}(?P<text>"(?:[^"\\]|\\.)*") ?\]\s*$')
"""When, `o`, and a piece of what a terminal was sent, as asciinema records it."""
_DIVIDED = re.compile(
    r'\S+ std(?:out|err) P |\{"log":"(?:[^"\\]|\\.)*+(?<!\\n)","stream"'
    rf'|{_SENT}"(?:[^"\\]|\\.)*+(?<!\\n)" ?\]'
)
"""
A line of which the rest comes next, as Kubernetes and Docker divide long ones, and as
a terminal writes them.
"""
_QUOTED = re.compile(r'\s*(?P<text>"(?:[^"\\]|\\.)*"),?\s*$')
"""A line of a list of JSON, as Ansible prints what a command wrote."""
_JSON_KEYS = ("log", "MESSAGE", "msg", "message", "line", "text")

_MOST, _SOME = 0.75, 0.1
"""The part of all lines that begin with a shape; some only if nothing else helps."""

_MOST_TOKENS = 8
_MOST_JOINED = 1 << 20
"""Characters of a line that a log divided."""
_SAMPLE = 4000
"""Lines that are tried."""


@dataclass(frozen=True, slots=True)
class Prefix:
    """Text before each line, and what it is in words."""

    kinds: tuple[str, ...]
    indent: int
    """Columns of white space that stand before each line behind the rest."""
    records: bool = False
    """Whether each line is an object of JSON, one of whose values is the line."""
    shape: Shape | None = None
    """What each line begins with, if it is nothing that has a name here."""

    @property
    def told(self) -> str:
        """What it is, in words."""
        words = [*self.kinds, *([_INDENT] if self.indent else [])]
        *first, last = words
        return f"each line began with {', '.join(first)}{' and ' * bool(first)}{last}"

    def removed_from(self, line: str) -> str:
        """Return a line without it; a line that does not begin so, as it is."""
        return self._bare(without_escapes(_of_record(line)) if self.records else line)

    def _bare(self, line: str) -> str:
        rest = line
        if self.shape:
            rest = self.shape.removed_from(rest)
        elif self.kinds:
            rest = _without_tokens(rest, host=_HOST in self.kinds)[0]
        return _dedented(rest, self.indent)

    def freed(self, lines: Iterable[str]) -> Iterator[str]:
        """Yield lines without it, those that a log or terminal divided as a whole."""
        begun = ""
        for line in lines:
            begun += _of_record(line) if self.records else self.removed_from(line)
            if not _DIVIDED.match(line) or len(begun) > _MOST_JOINED:
                yield from self._lines_of(begun)
                begun = ""
        if begun:
            yield from self._lines_of(begun)

    def _lines_of(self, text: str) -> Iterator[str]:
        """Yield the lines of a record; other text is one."""
        if not self.records:
            yield text
            return
        whole = without_escapes(text.replace("\r\n", "\n"))
        yield from map(self._bare, whole.split("\n"))


def prefix_of(
    lines: Sequence[str], understood: Callable[[str], object]
) -> Prefix | None:
    """
    Return the prefix of lines; None if fewer are `understood` without one.

    `understood` returns whether a line looks like one of a known format.
    """
    sample = [line for line in lines if line.strip()][:_SAMPLE]
    best, most = None, _count(sample, understood)
    for candidates in (_candidates(sample), _shaped(sample, _SOME)):
        for prefix in candidates:
            number = _count(map(prefix.removed_from, sample), understood)
            if number > most:
                best, most = prefix, number
        if best is not None:
            break
    return best


def without_prefix(text: str, understood: Callable[[str], object]) -> tuple[str, str]:
    """Return a text without its prefix, and what that was in words; empty: none."""
    lines = text.split("\n")
    prefix = prefix_of(lines, understood)
    if prefix is None:
        return text, ""
    return "\n".join(prefix.freed(lines)), prefix.told


def _candidates(sample: Sequence[str]) -> Iterator[Prefix]:
    """Yield the prefixes that lines may have, the shorter ones first."""
    for indent in _indents(sample):
        yield Prefix((), indent)
    texts = [_of_record(line) for line in sample]
    records = sum(a is not b for a, b in zip(texts, sample, strict=True)) > 1
    if records:
        yield Prefix((_RECORD,), 0, records=True)
    first = (_RECORD,) if records else ()
    for host in (False, True):
        told, rests = _found(texts if records else sample, host=host)
        if told and (not host or _HOST in told):
            yield Prefix((*first, *told), 0, records=records)
            for indent in _indents(rests):
                yield Prefix((*first, *told), indent, records=records)
    if not records:
        yield from _shaped(sample, _MOST)


def _shaped(sample: Sequence[str], least: float) -> Iterator[Prefix]:
    for shape in shapes_of(sample, least):
        yield Prefix((shape.told,), 0, shape=shape)


def _found(lines: Sequence[str], *, host: bool) -> tuple[Sequence[str], Sequence[str]]:
    """Return the kinds of text that stand before lines, and the rests of those."""
    kinds: Counter[str] = Counter()
    rests = []
    for line in lines:
        rest, found = _without_tokens(line, host=host)
        kinds.update(dict.fromkeys(found, 1))
        if found:
            rests.append(rest)
    least = len(rests) // 10
    return [kind for kind, number in kinds.items() if number > least], rests


def _count(lines: Iterable[str], understood: Callable[[str], object]) -> int:
    return sum(bool(understood(line)) for line in lines)


def _without_tokens(line: str, *, host: bool) -> tuple[str, Sequence[str]]:
    """Return the rest of a line behind all that may stand before it, and the kinds."""
    rest = line
    found: list[str] = []
    for _ in range(_MOST_TOKENS):
        # An indent stands before a prefix, too: a quote in a list of a README.
        begun = rest if found else rest.lstrip(" \t")
        told, end = _token(begun)
        if not end:
            break
        found.append(told)
        rest = begun[end:]
        behind = _HOST_AND_PROCESS.match(rest) if host and told == _TIME else None
        if behind is not None:
            found.append(_HOST)
            rest = rest[behind.end() :]
    return rest, found


def _token(line: str) -> tuple[str, int]:
    """Return the kind and length of what stands before a line; 0: nothing."""
    for told, pattern in _TOKENS:
        if match := pattern.match(line):
            return told, match.end()
    match = _PROCESS.match(line)
    return _HOST, match.end() if match else 0


def _of_record(line: str) -> str:
    """Return the text in a line of a log in JSON; any other line itself."""
    begun = line.lstrip()
    if begun.startswith("- {") and (match := _LAVA.match(begun)):
        return _string_of(match["text"], line)
    for form in (_QUOTED, _LOGFMT, _OF_TERMINAL):
        if match := form.match(line):
            return _string_of(match["text"], line)
    if not (begun.startswith('{"') and begun.rstrip().endswith("}")):
        return line
    try:
        record = json_value(begun, name="a line")
    except RecordError:
        return line
    values = (record.get(key) for key in _JSON_KEYS) if isinstance(record, dict) else ()
    text = next((value for value in values if isinstance(value, str)), None)
    return line if text is None else text.rstrip("\r\n")


def _string_of(text: str, line: str) -> str:
    try:
        quoted = text.startswith('"')
        value = json_value(text, name="a line") if quoted else text.strip("'")
    except RecordError:
        return line
    return str(value).rstrip("\r\n")


def _indents(lines: Sequence[str]) -> Sequence[int]:
    """Return the columns of white space before all lines, nearly all, and most."""
    widths = sorted(len(x) - len(x.lstrip(" \t")) for x in lines if x.strip())
    found = (
        {widths[len(widths) * part // 10] for part in (0, 1, 5, 8)} if widths else ()
    )
    return sorted(width for width in found if width)


def _dedented(line: str, indent: int) -> str:
    return line[indent:] if indent and not line[:indent].strip(" \t") else line
