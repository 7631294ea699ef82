import base64
from collections.abc import Mapping, Sequence

import pytest

from rtscope.contract import AgentError, FileLine, Line
from rtscope.host.errors import ContractError, TargetError
from rtscope.machine.reader import Denied, Missing
from rtscope.machine.target.agentreader import MAX_PATHS_BYTES, AgentReader


class Agent:
    """Answers `read` as the agent does: the shell's patterns are its own business."""

    def __init__(self, answers: Mapping[str, Sequence[FileLine]]) -> None:
        self._answers = answers
        self.asked: list[list[str]] = []

    def __call__(self, args: Sequence[str]) -> list[Line]:
        command, dashes, *paths = args
        assert (command, dashes) == ("read", "--")
        self.asked.append(paths)
        return [line for path in paths for line in self._answers[path]]


def there(path: str, content: bytes) -> FileLine:
    return FileLine(path, status="ok", base64=base64.b64encode(content).decode())


def missing(path: str) -> FileLine:
    return FileLine(path, status="missing")


def denied(path: str) -> FileLine:
    return FileLine(path, status="denied", reason="Permission denied")


def reader(*lines: FileLine, asked: str | None = None) -> AgentReader:
    """Make a reader that gets each line for its own path, or all for one."""
    if asked:
        return AgentReader(Agent({asked: lines}))
    return AgentReader(Agent({line.path: [line] for line in lines}))


def test_a_file_comes_byte_for_byte() -> None:
    content = bytes(range(256))

    assert reader(there("/f", content)).read_many(["/f"]) == {"/f": content}


def test_an_empty_file_is_not_a_missing_one() -> None:
    assert reader(there("/f", b"")).read_many(["/f"]) == {"/f": b""}


def test_missing_and_denied_are_told_apart() -> None:
    contents = reader(missing("/m"), denied("/d")).read_many(["/m", "/d"])

    assert contents == {"/m": Missing(), "/d": Denied("Permission denied")}


def test_a_pattern_stands_for_its_matches() -> None:
    lines = [there("/c/1/x", b"a"), denied("/c/2/x")]

    contents = reader(*lines, asked="/c/*/x").read_many(["/c/*/x"])

    assert contents == {"/c/1/x": b"a", "/c/2/x": Denied("Permission denied")}


def test_a_pattern_without_a_match_is_missing_under_its_own_name() -> None:
    contents = reader(missing("/c/*/x")).read_many(["/c/*/x"])

    assert contents == {"/c/*/x": Missing()}


def test_a_pattern_in_a_forbidden_directory_is_denied_under_its_own_name() -> None:
    contents = reader(denied("/c/*")).read_many(["/c/*"])

    assert contents == {"/c/*": Denied("Permission denied")}


def test_what_vanished_between_listing_and_reading_is_no_match() -> None:
    lines = [there("/p/1/comm", b"a"), missing("/p/2/comm")]

    contents = reader(*lines, asked="/p/*/comm").read_many(["/p/*/comm"])

    assert contents == {"/p/1/comm": b"a"}


def test_a_star_does_not_match_a_slash() -> None:
    agent = Agent({"/a/*": [missing("/a/*")], "/a/*/b": [there("/a/1/b", b"x")]})

    contents = AgentReader(agent).read_many(["/a/*", "/a/*/b"])

    assert contents == {"/a/*": Missing(), "/a/1/b": b"x"}


def test_a_path_that_the_agent_leaves_out_is_an_error_and_not_a_missing_file() -> None:
    with pytest.raises(TargetError, match="did not answer for '/f'"):
        AgentReader(Agent({"/f": []})).read_many(["/f"])


def test_an_answer_that_is_no_base64_is_an_error() -> None:
    line = FileLine("/f", status="ok", base64="a*b=")

    with pytest.raises(ContractError, match="invalid base64"):
        reader(line).read_many(["/f"])


def test_an_error_of_the_agent_is_an_error_of_the_target() -> None:
    def run(args: Sequence[str]) -> list[Line]:
        return [AgentError("no memory", cause="other", remedy="")]

    with pytest.raises(TargetError, match="no memory"):
        AgentReader(run).read_many(["/f"])


def test_nothing_is_asked_for_no_paths() -> None:
    agent = Agent({})

    assert AgentReader(agent).read_many([]) == {}
    assert agent.asked == []


def test_a_path_asked_twice_is_read_once() -> None:
    agent = Agent({"/f": [there("/f", b"x")]})

    assert AgentReader(agent).read_many(["/f", "/f"]) == {"/f": b"x"}
    assert agent.asked == [["/f"]]


def test_many_paths_are_asked_in_commands_that_a_small_server_takes() -> None:
    paths = [f"/sys/a/rather/long/path/number/{i}" for i in range(300)]
    agent = Agent({path: [there(path, path.encode())] for path in paths})

    contents = AgentReader(agent).read_many(paths)

    assert contents == {path: path.encode() for path in paths}
    assert [path for asked in agent.asked for path in asked] == paths
    assert all(len(" ".join(asked)) <= MAX_PATHS_BYTES for asked in agent.asked)
    assert len(agent.asked) == 4
