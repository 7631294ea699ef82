"""What names the functions of a text that the checked program runs: an option of it."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from rtscope.programs.naming import NamedStack


@dataclass(frozen=True, slots=True)
class _Runtime:
    """A program that runs texts, and how it names their functions for profilers."""

    images: re.Pattern[str]
    names: re.Pattern[str]
    advice: str


_RUNTIMES = (
    _Runtime(
        re.compile(r"(?:lib)?python3"),
        re.compile("py::"),
        "functions of Python have names from 3.12 on: python3 -X perf",
    ),
    _Runtime(
        re.compile(r"node(?:js)?$"),
        re.compile("JS:|LazyCompile:"),
        "functions of JavaScript have names with: node --perf-basic-prof "
        "--interpreted-frames-native-stack",
    ),
    _Runtime(
        re.compile(r"libjvm\.so"),
        re.compile(r"\S+ [\w.$]+\("),
        "functions of Java have names with: java -XX:+PreserveFramePointer, then "
        "jcmd PID Compiler.perfmap",
    ),
)


def naming_advice(stacks: Iterable[NamedStack]) -> Iterator[str]:
    """Yield what to type where stacks go through such a program, and none is named."""
    frames = [frame for one in stacks for frame in one.frames]
    images = {one.image for one in frames}
    made = [one.function for one in frames if not one.image and one.function]
    for one in _RUNTIMES:
        runs = any(map(one.images.match, images))
        if runs and not any(map(one.names.match, made)):
            yield one.advice
