"""Pages of the manual in roff: rtscope(1), rtscope-run(1) and others."""

import re
from collections.abc import Iterator, Mapping

from commandline import Param, Verb, about, verbs

HEAD = '.\\" Made by tools/docs/generate.py from src/rtscope/cli: type make docs.'


def man_pages(statuses: Mapping[int, str], version: str) -> dict[str, str]:
    """Return the text of every page by its file name."""
    made = {"rtscope.1": _whole(statuses, version)}
    for verb in verbs():
        made[f"{_page(verb)}.1"] = _of_verb(verb, version)
    return {name: "\n".join(lines) + "\n" for name, lines in made.items()}


def _page(verb: Verb) -> str:
    return "-".join(("rtscope", *verb.words))


def _head(title: str, brief: str, version: str) -> Iterator[str]:
    yield HEAD
    yield f'.TH "{title.upper()}" "1" "" "rtscope {version}" "rtscope"'
    yield ".SH NAME"
    yield f"{_text(title)} \\- {_text(brief.rstrip('.'))}"


def _whole(statuses: Mapping[int, str], version: str) -> Iterator[str]:
    yield from _head("rtscope", "wake-up latency of real-time threads", version)
    yield ".SH SYNOPSIS"
    yield ".B rtscope"
    yield ".I COMMAND"
    yield "[\\fIOPTIONS\\fR]"
    yield ".SH DESCRIPTION"
    yield from _prose(about())
    yield from _prose(
        "Results go to standard output, everything else to standard error."
    )
    yield ".SH COMMANDS"
    for verb in verbs():
        yield from (".TP", f"\\fB{_text(_page(verb))}\\fR(1)", _line(verb.brief))
    yield ".SH OPTIONS"
    yield from (".TP", "\\fB\\-\\-version\\fR", "Version of rtscope.")
    yield from (".TP", "\\fB\\-\\-help\\fR, \\fB\\-h\\fR", "Show the help.")
    yield ".SH EXIT STATUS"
    for status, words in statuses.items():
        yield from (".TP", f"\\fB{status}\\fR")
        yield from _prose(words)
    yield ".SH FILES"
    yield from (".TP", "\\fI~/.cache/rtscope\\fR")
    yield from _prose("Parts of virtual boards and kernels; XDG_CACHE_HOME moves it.")
    yield ".SH EXAMPLES"
    yield from _examples(
        ("rtscope doctor", "rtscope run -l idle -d 10s", "rtscope run")
    )
    yield ".SH SEE ALSO"
    others = ("cyclictest", "rtla", "stress\\-ng")
    yield ", ".join(f"\\fB{name}\\fR(1)" for name in others)


def _of_verb(verb: Verb, version: str) -> Iterator[str]:
    yield from _head(_page(verb), verb.brief, version)
    yield ".SH SYNOPSIS"
    yield f".B rtscope {_text(verb.name)}"
    for one in verb.arguments:
        name = f"\\fI{_text(one.name)}\\fR{'...' * one.many}"
        yield name if one.required else f"[{name}]"
    yield "[\\fIOPTIONS\\fR]"
    yield ".SH DESCRIPTION"
    for number, paragraph in enumerate(re.split(r"\n\s*\n", verb.text)):
        if number:
            yield ".PP"
        yield from _prose(paragraph)
    if verb.arguments:
        yield ".SH ARGUMENTS"
        for one in verb.arguments:
            yield from (".TP", f"\\fI{_text(one.name)}\\fR")
            yield from _prose(one.help)
    yield from _options(verb.options)
    yield ".SH EXAMPLES"
    yield from _examples(verb.examples)
    yield ".SH EXIT STATUS"
    yield "See \\fBrtscope\\fR(1)."
    yield ".SH SEE ALSO"
    near = [one for one in verbs() if one is not verb and one.words[0] == verb.words[0]]
    names = ["rtscope", *map(_page, near)]
    yield ", ".join(f"\\fB{_text(name)}\\fR(1)" for name in names)


def _options(options: tuple[Param, ...]) -> Iterator[str]:
    panels: dict[str, list[Param]] = {}
    for one in options:
        panels.setdefault(one.panel, []).append(one)
    yield ".SH OPTIONS"
    others = panels.pop("", [])
    for title, found in [*panels.items(), ("Others" if panels else "", others)]:
        if title:
            yield f".SS {_text(title)}"
        for one in found:
            value = "" if one.flag else f" \\fI{_text(one.name)}\\fR"
            names = ", ".join(f"\\fB{_text(name)}\\fR" for name in one.names)
            yield from (".TP", f"{names}{value}")
            yield from _prose(one.help)


def _examples(lines: tuple[str, ...]) -> Iterator[str]:
    yield ".EX"
    yield from map(_line, lines)
    yield ".EE"


def _prose(text: str) -> Iterator[str]:
    """Write each sentence on a line, and what is code in bold."""
    for sentence in re.split(r"(?<=[.!?]) (?=[A-Z`])", " ".join(text.split())):
        yield re.sub(r"`([^`]*)`", r"\\fB\1\\fR", _line(sentence))


def _line(text: str) -> str:
    """A line that begins with a dot or a quote would be a request to roff."""
    made = _text(text)
    return f"\\&{made}" if made.startswith((".", "'")) else made


def _text(text: str) -> str:
    for char, written in (("\\", "\\e"), ("-", "\\-"), ("µ", "u"), ("…", "...")):
        text = text.replace(char, written)
    return text
