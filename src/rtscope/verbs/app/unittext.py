"""Write the unit of systemd that a running program needs."""

import textwrap
from collections.abc import Iterator

from rtscope.host.escape import printable
from rtscope.verbs.app.service import Service

WIDTH = 88


def render_unit(service: Service) -> str:
    """Return the text of the unit: before each line, in a comment, its reason."""
    program = service.program
    name = printable(program.name)
    described = name.strip()
    if described.endswith("\\"):  # at the end of a line it would continue it
        described += f" (process {program.pid})"
    lines = [
        *_comment(
            f"A unit for {name}, made by rtscope app unit of process {program.pid}."
        ),
        *_comment(
            "It asks for what the program had then. Its end says what could not "
            "be known."
        ),
        "",
        "[Unit]",
        f"Description={described.replace('%', '%%')}",
        "",
        "[Service]",
    ]
    for setting in service.settings:
        lines += _comment(printable(setting.why))
        if setting.key:
            lines.append(f"{setting.key}={setting.value}")
    lines += ["", "[Install]"]
    lines += _comment("systemctl enable starts it at boot.")
    lines += ["WantedBy=multi-user.target", ""]
    lines += _comment("Not known from outside:")
    for sentence in service.unknown:
        lines += _comment(f"* {printable(sentence)}", indent="  ")
    return "\n".join(lines) + "\n"


def _comment(text: str, *, indent: str = "") -> Iterator[str]:
    # A backslash at the end of a comment would continue it in old systemds.
    for line in textwrap.wrap(text, WIDTH - 2, subsequent_indent=indent):
        yield f"# {line}".rstrip("\\")
