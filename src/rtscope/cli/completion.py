"""Print what makes a shell complete the command line; `make docs` writes it."""

from dataclasses import dataclass
from enum import StrEnum
from importlib import resources
from typing import Annotated

import typer

from rtscope.cli.console import put


class Shell(StrEnum):
    """A shell, with the file that it reads."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


FILES = {
    Shell.BASH: "rtscope.bash",
    Shell.ZSH: "_rtscope",
    Shell.FISH: "rtscope.fish",
}
"""Called as the shells want them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionRequest:
    """The argument of `rtscope completion`."""

    shell: Annotated[Shell, typer.Argument()]
    """Shell: bash, zsh or fish."""


def completion(request: CompletionRequest) -> int:
    """Print the completion of commands, options and values for a shell.

    It starts no program when a key is pressed. Try it with: source <(rtscope completion
    bash).
    """
    file = resources.files("rtscope.cli") / "completions" / FILES[request.shell]
    put(file.read_text("utf-8"))
    return 0
