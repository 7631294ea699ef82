"""What the agent writes of files and directories of the target."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Field

from rtscope.contract.values import MAX_LINE_BYTES, Count, Text


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
