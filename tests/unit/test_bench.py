"""What `make bench` compiles, where nobody would notice until it is run."""

import re

from sampling_cost import FLAGS, ROOT


def test_the_agent_is_counted_as_it_is_built() -> None:
    makefile = (ROOT / "agent" / "Makefile").read_text()
    [flags] = re.findall(r"^FLAGS += ([^$]+)", makefile, re.MULTILINE)
    [level] = re.findall(r"^CFLAGS +:= (.+)", makefile, re.MULTILINE)

    assert {*flags.split(), *level.split()} <= set(FLAGS)
