"""
The kinds of values in a campaign: pydantic types, with their messages.

A message gives the wrong value and what to write instead.
"""

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal, TypeVar, get_args

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)
from pydantic_core import CoreSchema, core_schema

from rtscope.host.errors import UsageError, quote
from rtscope.host.units import (
    MAX_DURATION_NS,
    NS_PER_DAY,
    NS_PER_H,
    NS_PER_S,
    NS_PER_US,
    exact_duration,
    parse_claim,
    parse_duration,
)
from rtscope.machine.cpulist import format_cpulist, parse_cpulist
from rtscope.machine.target.address import parse_address
from rtscope.measure.events import parse_event
from rtscope.measure.loads import get_load

MAX_SEED = 2**63 - 1

MAX_ITEMS = 1000
"""Items of one list; a larger matrix is a mistake."""

MAX_TEXT = 4096


def _parser(parse: Callable[[str], Any]) -> Callable[[str], Any]:
    """Pass the message of a parser on to pydantic."""

    def parsed(text: str) -> Any:
        try:
            return parse(text)
        except UsageError as error:
            raise ValueError(str(error)) from error

    return parsed


@dataclass(frozen=True, slots=True)
class Written:
    """A value written as a text: its parser, its writer, and an example."""

    parse: Callable[[str], Any]
    write: Callable[[Any], str]
    kind: str
    example: str

    def _read(self, value: object) -> Any:
        if not isinstance(value, str):
            raise ValueError(f'{quote(value)}: write a text such as "{self.example}"')
        return _parser(self.parse)(value)

    def __get_pydantic_core_schema__(
        self, _source: object, _handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """Have pydantic read and write the text."""
        return core_schema.no_info_plain_validator_function(
            self._read,
            serialization=core_schema.plain_serializer_function_ser_schema(self.write),
        )

    def __get_pydantic_json_schema__(
        self, _schema: CoreSchema, _handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """Describe the text."""
        return {"type": "string", "format": self.kind, "examples": [self.example]}


def _parse_within(low_ns: int, high_ns: int, text: str) -> int:
    zero = low_ns == 0 and text.strip() in ("0", "0s")
    duration_ns = 0 if zero else parse_duration(text)
    if not low_ns <= duration_ns <= high_ns:
        raise UsageError(
            f"{quote(text)}: write {exact_duration(low_ns)} to "
            f"{exact_duration(high_ns)}"
        )
    return duration_ns


def duration_between(low_ns: int, high_ns: int, *, example: str) -> Written:
    """Return the kind of a duration in these bounds."""
    kind = f"a duration, {exact_duration(low_ns)} to {exact_duration(high_ns)}"
    return Written(
        partial(_parse_within, low_ns, high_ns), exact_duration, kind, example
    )


def _write_claim(claim: tuple[int, int]) -> str:
    return f"{claim[0]}/{exact_duration(claim[1])}"


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError(f"{quote(text)} has control characters; leave them out")
    return text


def _address(text: str) -> str:
    parse_address(text)
    return text


def _path(text: str) -> str:
    if text.startswith("-"):
        raise ValueError(f"{quote(text)} begins with '-'; write ./{text}")
    return text


def _kernel(text: str) -> str:
    if "/" in text:
        return _path(text)
    if not re.fullmatch("[a-z0-9][a-z0-9._+-]{0,60}", text):
        raise ValueError(
            f"{quote(text)}: write for example debian-6.12-rt, or the path of an image "
            "with a slash, such as ./bzImage"
        )
    return text


def _command(value: object) -> list[object]:
    try:
        words = shlex.split(value) if isinstance(value, str) else value
    except ValueError as error:
        raise ValueError(
            f"{quote(value)}: no closing quotation mark; add it"
        ) from error
    if not isinstance(words, list | tuple) or not 0 < len(words) <= MAX_ITEMS:
        raise ValueError(
            f'{quote(value)}: write a command such as ["iperf3", "-c", "host"]'
        )
    for word in words:
        if not isinstance(word, str) or "\0" in word or len(word) > MAX_TEXT:
            raise ValueError(f"{quote(word)}: each word is a text in quotes")
    if not words[0]:
        raise ValueError("the program is empty; write its name first")
    return list(words)


def _words(value: object) -> object:
    """Return a text as its words; a list of words stays."""
    words = value.split() if isinstance(value, str) else value
    if not isinstance(words, list | tuple) or not 0 < len(words) <= MAX_ITEMS:
        raise ValueError(f'{quote(value)}: write words such as "quiet nohz=off"')
    for word in words:
        if not isinstance(word, str) or not word or len(word.split()) != 1:
            raise ValueError(f"{quote(word)}: each word is a text without blanks")
    return words


def _symbol(word: str) -> str:
    if not re.fullmatch(
        r"CONFIG_\w+=([ymn]|-?\d+|0x[0-9a-fA-F]+|\"[\w.,/:+-]*\")", word
    ):
        raise ValueError(
            f"{quote(word)}: write a symbol with its value, such as CONFIG_HZ_1000=y, "
            "or CONFIG_DEBUG_LIST=n for one that is off"
        )
    return word


def number(value: object) -> object:
    """Return a text of digits as a number, and everything else unchanged."""
    digits = isinstance(value, str) and re.fullmatch("[0-9]{1,19}", value.strip())
    return int(str(value)) if digits else value


def _counted(value: object) -> object:
    """A count N means the seeds 1 to N; a text with commas is a list."""
    if isinstance(value, list | tuple) or (isinstance(value, str) and "," in value):
        return value
    count = number(value)
    if not isinstance(count, int) or isinstance(count, bool):
        raise ValueError(f"{quote(value)}: write a whole number, 1 to {MAX_ITEMS}")
    if not 0 < count <= MAX_ITEMS:
        raise ValueError(f"{quote(count)}: write 1 to {MAX_ITEMS}")
    return range(1, count + 1)


def _many(value: object, read: ValidatorFunctionWrapHandler) -> Any:
    """A value, a list of values, or a text with commas; each value once."""
    items: list[object]
    if isinstance(value, str):
        items = [part.strip() for part in value.split(",")]
    else:
        items = list(value) if isinstance(value, list | tuple | range) else [value]
    values = read(items)
    twice = [item for n, item in enumerate(items) if values[n] in values[:n]]
    if twice:
        raise ValueError(
            f"{quote(twice[0])} occurs twice; write it once; for more runs, write "
            "repetitions"
        )
    return values


Item = TypeVar("Item")
Many = Annotated[
    tuple[Item, ...], Field(min_length=1, max_length=MAX_ITEMS), WrapValidator(_many)
]

Text = Annotated[
    str,
    Field(strict=True, min_length=1, max_length=MAX_TEXT),
    AfterValidator(_printable),
]
Flag = Annotated[bool, Field(strict=True)]
Times = Annotated[int, Field(strict=True, ge=1, le=10_000)]
Worst = Annotated[int, Field(strict=True, ge=1, le=64)]

Settle = Annotated[int, duration_between(0, NS_PER_DAY, example="3m")]
HostLimit = Annotated[int, duration_between(NS_PER_S, 7 * NS_PER_DAY, example="10m")]
Warmup = Annotated[int, duration_between(0, NS_PER_H, example="5s")]
Deadline = Annotated[int, duration_between(1, MAX_DURATION_NS, example="200us")]
DeadlineRuntime = Annotated[
    int, duration_between(NS_PER_US, 10 * NS_PER_S, example="50us")
]
Duration = Annotated[int, duration_between(NS_PER_S, MAX_DURATION_NS, example="10m")]
Interval = Annotated[
    int, duration_between(10 * NS_PER_US, 10 * NS_PER_S, example="1ms")
]
Claim = Annotated[
    tuple[int, int], Written(parse_claim, _write_claim, "misses per time", "1/1h")
]
CpuList = Annotated[
    tuple[int, ...], Written(parse_cpulist, format_cpulist, "a list of CPUs", "2-3")
]

Seed = Annotated[int, Field(strict=True, ge=0, le=MAX_SEED), BeforeValidator(number)]
Seeds = Annotated[Many[Seed], BeforeValidator(_counted)]
Priority = Annotated[int, Field(strict=True, ge=1, le=99), BeforeValidator(number)]
RealtimePolicy = Literal["fifo", "rr"]
Policy = Annotated[
    Literal[RealtimePolicy, "other", "batch", "idle", "deadline"], Field(title="policy")
]
Order = Annotated[Literal["interleaved", "blocked", "random"], Field(title="order")]
Throttling = Annotated[Literal["keep", "off"], Field(title="setting")]

FilePath = Annotated[
    Text, AfterValidator(_path), Field(json_schema_extra={"format": "a path"})
]
Kernel = Annotated[Text, AfterValidator(_kernel), Field(examples=["debian-6.12-rt"])]
Load = Annotated[
    Text,
    AfterValidator(_parser(lambda name: get_load(name).name)),
    Field(examples=["cpu"]),
]
Event = Annotated[Text, AfterValidator(_parser(parse_event)), Field(examples=["futex"])]
Target = Annotated[
    Text, AfterValidator(_parser(_address)), Field(examples=["ssh:board"])
]
Command = Annotated[tuple[str, ...], BeforeValidator(_command)]
Words = Annotated[tuple[Text, ...], BeforeValidator(_words)]
Symbols = Annotated[
    tuple[Annotated[Text, AfterValidator(_symbol)], ...], BeforeValidator(_words)
]
Governor = Annotated[Text, Field(pattern="^[a-z_]{1,32}$", examples=["performance"])]
Remedy = Annotated[
    Text,
    Field(pattern="^[a-z0-9_]{1,64}(:.{1,64}=[0-9]{1,9})?$", examples=["safe"]),
]

REALTIME_POLICIES = get_args(RealtimePolicy)
"""The policies that have a priority."""
