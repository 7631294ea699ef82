"""What the agent writes of changed and restored settings, files and directories."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Field

from rtscope.contract.values import MAX_LINE_BYTES, Count, Schema, Text


@dataclass(frozen=True, slots=True)
class Keeping:
    """`keep` has taken charge of its directory."""

    type: Literal["keep"] = field(kw_only=True, default="keep")


@dataclass(frozen=True, slots=True)
class Restored:
    """A setting was put back: `value` is what it was before it was changed."""

    type: Literal["restored"] = field(kw_only=True, default="restored")
    knob: Text
    index: Count
    value: Text


@dataclass(frozen=True, slots=True)
class Applied:
    """A setting is as it was asked for; it was before if `old` is `value`."""

    type: Literal["applied"] = field(kw_only=True, default="applied")
    knob: Text
    index: Count
    """Of the CPU, interrupt, ...; see `KNOB_STRIDE` in `agent/journal/knob.h`."""
    old: Text
    value: Text


@dataclass(frozen=True, slots=True)
class Refused:
    """A setting could not be made, or put back; `cause` is a word of the contract."""

    type: Literal["refused"] = field(kw_only=True, default="refused")
    knob: Text
    index: Count
    value: Text
    cause: Text
    reason: Text


@dataclass(frozen=True, slots=True)
class Tuned:
    """Every setting was tried; with `hold` they stay until the host ends it."""

    type: Literal["tuned"] = field(kw_only=True, default="tuned")
    schema: Schema
    applied: Count
    already: Count
    refused: Count


# --- files and directories of the target --------------------------------------------


@dataclass(frozen=True, slots=True)
class FileLine:
    """A file of the target, as `read` found it; base64 is there if status is `ok`."""

    type: Literal["file"] = field(kw_only=True, default="file")
    path: Text
    status: Literal["ok", "missing", "denied"]
    base64: Annotated[str, Field(max_length=MAX_LINE_BYTES)] = ""
    reason: Text = ""


@dataclass(frozen=True, slots=True)
class DiskLine:
    """Room of a directory of the target; `fs_magic` as in the kernel's magic.h."""

    type: Literal["disk"] = field(kw_only=True, default="disk")
    path: Text
    fs_magic: Count
    free_bytes: Count
    free_inodes: Count
