"""Which functions and files of a program are of Go's standard library."""

import re

_PACKAGES = (
    *("archive", "bufio", "bytes", "cmp", "compress", "container", "context"),
    *("crypto", "database", "debug", "embed", "encoding", "errors", "expvar", "flag"),
    *("fmt", "go", "hash", "html", "image", "index", "internal", "io", "iter", "log"),
    *("maps", "math", "mime", "net", "os", "path", "plugin", "reflect", "regexp"),
    *("runtime", "slices", "sort", "strconv", "strings", "structs", "sync", "syscall"),
    *("testing", "text", "time", "unicode", "unique", "unsafe", "weak", "vendor"),
)
_STANDARD = re.compile(rf"(?:type:\.\w+\.)?(?:{'|'.join(_PACKAGES)})[./]")
_INSTALLED = re.compile(r".*/(?:go(?:-[0-9.]+)?|golang[^/]*)/src/")
"""Where it is installed; `-trimpath` leaves this away."""


def is_of_go(function: str) -> bool:
    """Whether a function is of the library, by the package in its name."""
    return bool(_STANDARD.match(function))


def is_file_of_go(file: str) -> bool:
    """Whether a file is of the library."""
    bare = _INSTALLED.sub("", file)
    return bare.startswith("<") or bool(_STANDARD.match(bare))
