"""
Names of Rust, as they are in its source: of both manglings, without hashes.

The newer one is that of RFC 2603. A name that is damaged, or that unfolds to more than
MAX_TEXT, is left as it is.
"""

import re
from collections.abc import Callable

MAX_TEXT = 1 << 14
"""Characters of a name."""
_MAX_DEPTH = 128

# --- before 2021: as C++, with escapes and a hash at its end -------------------------

_OLD = re.compile(r"_ZN(.+)17h[0-9a-f]{16}E(?:\.[\w.$@]+)?")
_WORDS = {"LT": "<", "GT": ">", "C": ",", "RF": "&", "BP": "*", "SP": "@"}
_WORDS |= {"LP": "(", "RP": ")"}
_ESCAPE = re.compile(r"\$(?:u([0-9a-f]{1,6})|([A-Z]{1,2}))\$")


def from_old(name: str) -> str | None:
    """Return the name; None if it is none of the older mangling."""
    match = _OLD.fullmatch(name)
    if match is None:
        return None
    rest, words = match[1], []
    while rest:
        number = re.match(r"[0-9]{1,5}", rest)
        if number is None:
            return None
        end = number.end() + int(number[0])
        if end > len(rest):
            return None
        words.append(_unescaped(rest[number.end() : end]))
        rest = rest[end:]
    return "::".join(words)


def _unescaped(word: str) -> str:
    if word.startswith("_$"):
        word = word[1:]
    text = _ESCAPE.sub(_escape, word)
    return text.replace("..", "::")


def _escape(match: re.Match[str]) -> str:
    if match[1]:
        code = int(match[1], 16)
        return chr(code) if code < 0x110000 else match[0]
    return _WORDS.get(match[2], match[0])


# --- since: RFC 2603 ----------------------------------------------------------------

_BASIC = {
    **{"a": "i8", "b": "bool", "c": "char", "d": "f64", "e": "str", "f": "f32"},
    **{"h": "u8", "i": "isize", "j": "usize", "l": "i32", "m": "u32", "n": "i128"},
    **{
        "o": "u128",
        "p": "_",
        "s": "i16",
        "t": "u16",
        "u": "()",
        "v": "...",
        "x": "i64",
    },
    **{"y": "u64", "z": "!"},
}
_POINTERS = {"R": "&", "Q": "&mut ", "P": "*const ", "O": "*mut "}
_BASE62 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


class _Wrong(Exception):
    """It is no name of this mangling, or unfolds to too much."""


def from_new(name: str) -> str | None:
    """Return the name; None if it is none of the newer mangling."""
    if not name.startswith("_R"):
        return None
    text = re.split(r"[.$]", name[2:], maxsplit=1)[0]
    try:
        parser = _Parser(text)
        parser.path(in_value=True)
    except (_Wrong, IndexError, ValueError, OverflowError, RecursionError):
        return None
    return "".join(parser.out)


class _Parser:
    """Reads a name and writes it as in the source."""

    def __init__(self, text: str) -> None:
        self._text, self._at, self._depth = text, 0, 0
        self._written, self._lifetimes = 0, 0
        self._silent = 0
        self.out: list[str] = []

    # --- letters and numbers ---

    def _next(self) -> str:
        letter = self._text[self._at]
        self._at += 1
        return letter

    def _eat(self, letter: str) -> bool:
        if self._text[self._at : self._at + 1] != letter:
            return False
        self._at += 1
        return True

    def _write(self, text: str) -> None:
        if self._silent:
            return
        self._written += len(text)
        if self._written > MAX_TEXT:
            raise _Wrong
        self.out.append(text)

    def _base62(self) -> int:
        value = 0
        if self._eat("_"):
            return 0
        while (letter := self._next()) != "_":
            value = value * 62 + _BASE62.index(letter)
            if value > 1 << 64:
                raise _Wrong
        return value + 1

    def _optional(self, letter: str) -> int:
        return self._base62() + 1 if self._eat(letter) else 0

    def _identifier(self) -> str:
        coded = self._eat("u")
        match = re.compile(r"0|[1-9][0-9]{0,5}").match(self._text, self._at)
        if match is None:
            raise _Wrong
        self._at = match.end()
        self._eat("_")
        end = self._at + int(match[0])
        word = self._text[self._at : end]
        if end > len(self._text):
            raise _Wrong
        self._at = end
        return _decoded(word) if coded else word

    def _deeper(self, read: Callable[[], None]) -> None:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise _Wrong
        read()
        self._depth -= 1

    def _back(self, read: Callable[[], None]) -> None:
        """Read again what is at a place before."""
        begin = self._at - 1
        place = self._base62()
        if place >= begin:
            raise _Wrong
        if self._silent:
            return
        here, self._at = self._at, place
        self._deeper(read)
        self._at = here

    # --- paths ---

    def path(self, *, in_value: bool) -> None:
        """Read and write a path."""
        self._deeper(lambda: self._path(in_value=in_value))

    def _path(self, *, in_value: bool) -> None:
        kind = self._next()
        if kind == "C":
            self._optional("s")
            self._write(self._identifier())
        elif kind == "N":
            self._nested(in_value=in_value)
        elif kind in "MX":
            self._silent += 1
            self._optional("s")
            self.path(in_value=False)
            self._silent -= 1
            self._qualified(trait=kind == "X")
        elif kind == "Y":
            self._qualified(trait=True)
        elif kind == "I":
            self.path(in_value=in_value)
            self._write("::<" if in_value else "<")
            self._list(self._argument)
            self._write(">")
        elif kind == "B":
            self._back(lambda: self.path(in_value=in_value))
        else:
            raise _Wrong

    def _qualified(self, *, trait: bool) -> None:
        self._write("<")
        self._type()
        if trait:
            self._write(" as ")
            self.path(in_value=False)
        self._write(">")

    def _nested(self, *, in_value: bool) -> None:
        space = self._next()
        self.path(in_value=in_value)
        number = self._optional("s")
        word = self._identifier()
        if space.isupper():
            what = {"C": "closure", "S": "shim"}.get(space, space)
            self._write(f"::{{{what}{word and f':{word}'}#{number}}}")
        elif word:
            self._write(f"::{word}")

    def _list(self, read: Callable[[], None], between: str = ", ") -> int:
        count = 0
        while not self._eat("E"):
            if count:
                self._write(between)
            read()
            count += 1
        return count

    def _argument(self) -> None:
        if self._eat("L"):
            self._lifetime(self._base62())
        elif self._eat("K"):
            self._constant()
        else:
            self._type()

    def _lifetime(self, number: int) -> None:
        if not number:
            self._write("'_")
            return
        depth = self._lifetimes - number
        if depth < 0:
            raise _Wrong
        self._write(f"'{chr(ord('a') + depth)}" if depth < 26 else f"'_{depth}")

    # --- types ---

    def _type(self) -> None:
        self._deeper(self._one_type)

    def _one_type(self) -> None:
        kind = self._next()
        if kind in _BASIC:
            self._write(_BASIC[kind])
        elif kind in _POINTERS:
            self._pointer(kind)
        elif kind in "AS":
            self._write("[")
            self._type()
            if kind == "A":
                self._write("; ")
                self._constant()
            self._write("]")
        elif kind == "T":
            self._write("(")
            self._write(",)" if self._list(self._type) == 1 else ")")
        elif kind == "F":
            self._bound(self._function)
        elif kind == "D":
            self._traits()
        elif kind == "B":
            self._back(self._type)
        else:
            self._at -= 1
            self.path(in_value=False)

    def _pointer(self, kind: str) -> None:
        number = self._base62() if kind in "RQ" and self._eat("L") else 0
        if number:
            self._write("&")
            self._lifetime(number)
            self._write(" mut " if kind == "Q" else " ")
        else:
            self._write(_POINTERS[kind])
        self._type()

    def _traits(self) -> None:
        self._write("dyn ")
        self._bound(lambda: self._list(self._trait, " + "))
        if not self._eat("L"):
            raise _Wrong
        if number := self._base62():
            self._write(" + ")
            self._lifetime(number)

    def _bound(self, read: Callable[[], object]) -> None:
        new = self._optional("G")
        if new > 64:
            raise _Wrong
        if new:
            self._write("for<")
            for number in range(new):
                self._write(", " if number else "")
                self._lifetimes += 1
                self._lifetime(1)
            self._write("> ")
        read()
        self._lifetimes -= new

    def _function(self) -> None:
        self._write("unsafe " if self._eat("U") else "")
        if self._eat("K"):
            abi = "C" if self._eat("C") else self._identifier().replace("_", "-")
            self._write(f'extern "{abi}" ')
        self._write("fn(")
        self._list(self._type)
        self._write(")")
        if not self._eat("u"):
            self._write(" -> ")
            self._type()

    def _trait(self) -> None:
        opened = self._path_open()
        while self._eat("p"):
            self._write(", " if opened else "<")
            opened = True
            self._write(f"{self._identifier()} = ")
            self._type()
        if opened:
            self._write(">")

    def _path_open(self) -> bool:
        """Read a path; leave its arguments open for more. Tell whether it has any."""
        if self._eat("B"):
            opened: list[bool] = []
            self._back(lambda: opened.append(self._path_open()))
            return bool(opened and opened[0])
        if self._eat("I"):
            self.path(in_value=False)
            self._write("<")
            self._list(self._argument)
            return True
        self.path(in_value=False)
        return False

    # --- constants ---

    def _constant(self) -> None:
        self._deeper(self._one_constant)

    def _one_constant(self) -> None:
        kind = self._next()
        if kind == "B":
            self._back(self._constant)
        elif kind == "p":
            self._write("_")
        elif kind in "hijlmnostxya":
            negative = self._eat("n")
            self._write(f"{'-' if negative else ''}{self._hexadecimal()}")
        elif kind == "b":
            self._write("true" if self._hexadecimal() else "false")
        elif kind == "c":
            self._write(repr(chr(self._hexadecimal())))
        else:
            self._at -= 1
            raise _Wrong

    def _hexadecimal(self) -> int:
        end = self._text.index("_", self._at)
        digits = self._text[self._at : end]
        self._at = end + 1
        return int(digits or "0", 16)


def _decoded(word: str) -> str:
    """Return a word that is written in Punycode."""
    plain, mark, coded = word.rpartition("_")
    try:
        return f"{plain}{mark and '-'}{coded}".encode().decode("punycode")
    except UnicodeError as error:
        raise _Wrong from error
