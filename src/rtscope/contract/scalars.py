"""The numbers and texts that lines of the agent are made of, each with its bounds."""

from typing import Annotated

from pydantic import BeforeValidator, Field, PlainSerializer

MAX_TEXT = 64 * 1024


def _decimal(value: object) -> object:
    if isinstance(value, str) and value.isascii() and value.isdigit():
        return int(value) if len(value) <= 39 else value
    return value if isinstance(value, int) else None


Count = Annotated[int, Field(ge=0, le=2**63 - 1, strict=True)]
"""A count or a time in ns: a 64-bit integer that cannot be negative."""

Sum = Annotated[
    int,
    BeforeValidator(_decimal),
    Field(ge=0, lt=2**128, strict=True),
    PlainSerializer(str, return_type=str, when_used="json"),
]
"""A sum that may not fit 64 bits; in JSON a decimal string."""

Text = Annotated[str, Field(max_length=MAX_TEXT, strict=True)]
Flag = Annotated[bool, Field(strict=True)]
Cpu = Annotated[int, Field(ge=0, lt=2**16, strict=True)]
