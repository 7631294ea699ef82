"""
Read a source tree's Kconfig files: what each symbol depends on, and who sets it.

Not an evaluator: kbuild itself resolves a configuration, and this reader finds the
reasons. kconfiglib, which could, reads neither `modules` (Linux 6.3 and later)
nor `transitional` (6.18 and later).
"""

import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from rtscope.host.errors import KernelError

_WORD = re.compile(
    r'\$\([^()]*(?:\([^()]*\)[^()]*)*\)|"[^"]*"|\'[^\']*\'|[A-Za-z0-9_]+'
)
_SYMBOL = re.compile(
    r"[A-Z0-9_]*[A-Z_][A-Z0-9_]*|[0-9]+[A-Z_][A-Z0-9_]*|\w*[A-Za-z]\w*"
)
_CONSTANTS = {"y", "n", "m"}
_TYPES = "bool|tristate|string|hex|int"
_PROMPT = re.compile(rf'^(?:{_TYPES}|prompt)\s+["\'](?:.*?)["\'](?:\s+if\s+(.*))?$')
_DEFAULT = re.compile(r"^(?:default|def_bool|def_tristate)\s+(.*?)(?:\s+if\s+(.*))?$")
_TYPE = re.compile(rf"^(?:def_)?({_TYPES})\b")
_SELECT = re.compile(r"^(select|imply)\s+(\w+)(?:\s+if\s+(.*))?$")
_DEPENDS = re.compile(r"^(?:depends\s+on|visible\s+if)\s+(.*)$")
_SOURCE = re.compile(r'^(o?r?source)\s+"?([^"]+?)"?$')
_BLOCKS = ("if", "menu", "choice")


@dataclass(slots=True)
class Symbol:
    """All definitions of a symbol together; expressions as written."""

    name: str
    kind: str = ""
    """bool, tristate, string, hex or int; empty: no definition says."""
    definitions: list[tuple[str, ...]] = field(default_factory=list)
    """Each definition's conditions, those of the blocks around it included."""
    prompts: list[str] = field(default_factory=list)
    """Conditions under which it can be chosen; an empty one is always true."""
    defaults: list[str] = field(default_factory=list)
    selected_by: dict[str, str] = field(default_factory=dict)
    """Who keeps it on, and under which condition."""
    implied_by: dict[str, str] = field(default_factory=dict)
    """Who switches it on where nobody switches it off, and under which condition."""
    choice: str = ""
    """Tells apart the choices that symbols are offered in; empty: it is in none."""

    def names(self) -> set[str]:
        """Return all symbols that its value can follow from."""
        set_by = (self.selected_by, self.implied_by)
        texts = [*self.prompts, *self.defaults]
        texts += [text for by in set_by for text in by.values()]
        texts += [text for parts in self.definitions for text in parts]
        names = {name for text in texts for name in symbols_of(text)}
        return names.union(*set_by) - {self.name}


def read_kconfig(tree: Path, *, srcarch: str) -> Mapping[str, Symbol]:
    """Read all symbols that an architecture has in a source tree."""
    reader = _Reader(tree, srcarch)
    reader.read("Kconfig", ())
    for word, name, target, condition in reader.selects:
        symbol = reader.symbol(target)
        by = symbol.selected_by if word == "select" else symbol.implied_by
        by[name] = _either(by.get(name), condition)
    return {n: s for n, s in reader.symbols.items() if s.definitions}


def _either(one: str | None, other: str) -> str:
    """Join the conditions of two lines; None: there is one line so far."""
    if one is None:
        return other
    return f"({one}) || ({other})" if one and other else ""


def symbols_of(expression: str) -> Iterator[str]:
    """Yield the names of symbols in an expression."""
    for word in _WORD.findall(expression):
        if word[0] not in "$\"'" and word not in _CONSTANTS and _SYMBOL.fullmatch(word):
            yield word


def near_names(name: str, symbols: Mapping[str, Symbol]) -> list[str]:
    """Return the names that are most like one that does not exist."""
    # Comparing with all of some 20,000 takes seconds.
    part = [s for s in symbols if s[:3] == name[:3] or name in s or s in name]
    return difflib.get_close_matches(name, part, n=3, cutoff=0.6)


def unmet(expression: str, values: Mapping[str, str]) -> list[str]:
    """
    Return what keeps an expression from being true, each part as `NAME, which is n`.

    `values` has the symbols that are not n, without CONFIG_. A part that only kbuild
    knows (a test of the compiler) is taken as true.
    """
    words = [w for w in _tokens(expression) if w]
    try:
        return _Parser(words, values).conjunction()
    except IndexError as error:
        raise KernelError(f"Kconfig: cannot parse {expression[:200]!r}") from error


class _Reader:
    """The walk through the files; a class because files include each other."""

    def __init__(self, tree: Path, srcarch: str) -> None:
        self._tree = tree
        self._srcarch = srcarch
        self._choices = 0
        self.symbols: dict[str, Symbol] = {}
        self.selects: list[tuple[str, str, str, str]] = []
        """`select` or `imply`, whose line it is, what it names, and the condition."""

    def symbol(self, name: str) -> Symbol:
        return self.symbols.setdefault(name, Symbol(name))

    def read(self, name: str, around: tuple[str, ...]) -> None:
        path = self._tree / name
        if not path.is_file():
            return
        # The conditions of each block: of the file, and of what is open in it.
        blocks = [list(around)]
        # The choice that each block is, or is in.
        choices = [""]
        current: Symbol | None = None
        for line in _lines(path.read_text("utf-8", "replace")):
            word, _, rest = line.partition(" ")
            if word in {"config", "menuconfig"}:
                current = self._begin(rest.strip(), blocks)
                current.choice = current.choice or choices[-1]
            elif word in _BLOCKS:
                blocks.append([rest] if word == "if" else [])
                self._choices += word == "choice"
                here = f"choice {self._choices}" if word == "choice" else choices[-1]
                choices.append(here)
                current = None
            elif word in {"endif", "endmenu", "endchoice"}:
                blocks.pop()
                choices.pop()
                current = None
            elif source := _SOURCE.match(line):
                self._source(source[2], blocks)
                current = None
            elif word == "comment":
                current = Symbol("")
            elif current is not None:
                self._property(current, line)
            elif depends := _DEPENDS.match(line):
                blocks[-1].append(depends[1])

    def _begin(self, name: str, blocks: list[list[str]]) -> Symbol:
        symbol = self.symbol(name)
        symbol.definitions.append(tuple(chain(*blocks)))
        return symbol

    def _source(self, text: str, blocks: list[list[str]]) -> None:
        for word in ("$(SRCARCH)", "$SRCARCH"):
            text = text.replace(word, self._srcarch)
        text = text.replace("$(srctree)/", "")
        self.read(text, tuple(chain(*blocks)))

    def _property(self, symbol: Symbol, line: str) -> None:
        if kind := _TYPE.match(line):
            symbol.kind = kind[1]
        if depends := _DEPENDS.match(line):
            symbol.definitions[-1:] = [(*_last(symbol), depends[1])]
        elif select := _SELECT.match(line):
            self.selects.append((select[1], symbol.name, select[2], select[3] or ""))
        elif default := _DEFAULT.match(line):
            symbol.defaults.append(" ".join(filter(None, default.groups())))
        elif prompt := _PROMPT.match(line):
            symbol.prompts.append(prompt[1] or "")


def _last(symbol: Symbol) -> tuple[str, ...]:
    return symbol.definitions[-1] if symbol.definitions else ()


def _lines(text: str) -> Iterator[str]:
    """Yield the lines that mean something: joined, without comments and help texts."""
    help_indent: int | None = None
    for raw in text.replace("\\\n", " ").splitlines():
        line = raw.expandtabs(8)
        bare = " ".join(line.split())
        if not bare:
            continue
        indent = len(line) - len(line.lstrip())
        if help_indent is not None:
            if help_indent < 0:
                help_indent = indent
                if indent > 0:
                    continue
            elif indent >= help_indent:
                continue
        help_indent = None
        if bare in {"help", "---help---"}:
            help_indent = -1
        elif not bare.startswith("#"):
            yield bare.partition(" #")[0]


def _tokens(text: str) -> Iterator[str]:
    at = re.compile(r"\s*(&&|\|\||!=|<=|>=|[!=<>()]|" + _WORD.pattern + r"|[^\s])")
    yield from (match[1] for match in at.finditer(text))


class _Parser:
    """Recursive descent over `!`, `&&`, `||`, comparisons and parentheses."""

    def __init__(self, words: list[str], values: Mapping[str, str]) -> None:
        self._words = [*words, ""]
        self._at = 0
        self._values = values

    def conjunction(self) -> list[str]:
        """Return what is unmet of a disjunction: nothing if one side holds."""
        sides = [self._all()]
        while self._take("||"):
            sides.append(self._all())
        if not all(sides):
            return []
        return (
            sides[0]
            if len(sides) == 1
            else [" or ".join(" and ".join(parts) for parts in sides)]
        )

    def _all(self) -> list[str]:
        missing = self._one()
        while self._take("&&"):
            missing = missing + self._one()
        return missing

    def _one(self) -> list[str]:
        if self._take("!"):
            start = self._at
            inner = self._one()
            text = " ".join(self._words[start : self._at])
            return [] if inner else [f"{text} off, which is {self._value(text)}"]
        if self._take("("):
            inner = self.conjunction()
            self._take(")")
            return inner
        word = self._next()
        if self._words[self._at] in {"=", "!=", "<", ">", "<=", ">="}:
            return self._comparison(word)
        if word[0] == "$" or self._value(word) in {"y", "m"} or word in {"y", "m"}:
            return []
        return [f"{word}, which is {self._value(word)}"]

    def _comparison(self, left: str) -> list[str]:
        sign, right = self._next(), self._next()
        one, two = self._value(left), self._value(right)
        # Less and greater compare versions of the compiler, which kbuild knows.
        holds = sign not in {"=", "!="} or (one == two) is (sign == "=")
        return [] if holds else [f"{left} {sign} {right}, and it is {one}"]

    def _value(self, word: str) -> str:
        if word[:1] in {'"', "'"}:
            return word[1:-1]
        return word if word in _CONSTANTS else self._values.get(word, "n")

    def _next(self) -> str:
        word = self._words[self._at]
        if not word:
            raise IndexError
        self._at += 1
        return word

    def _take(self, word: str) -> bool:
        if self._words[self._at] != word:
            return False
        self._at += 1
        return True
