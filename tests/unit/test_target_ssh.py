import re
import subprocess
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rtscope.host.errors import ContractError, TargetError, UsageError
from rtscope.machine.reader import Content, Missing
from rtscope.machine.target import ssh
from rtscope.machine.target.address import Address, address_of
from rtscope.machine.target.ssh import RemoteShell, SshTarget, exec_line, why_refused
from rtscope.machine.target.stream import PipeStream, collect
from rtscope.measure.machine import how_to_install

# --- the host -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host", ["", "-oProxyCommand=id", "-", "a b", "a\nb", "a\x1b[2J", "a\tb", "a\0b"]
)
def test_what_is_no_host_name_is_refused(host: str) -> None:
    with pytest.raises(
        UsageError, match=r"--target: .* write local, ssh:HOST or lab:PLACE"
    ):
        address_of(f"ssh:{host}")


@pytest.mark.parametrize(
    "host", ["pi", "me@pi", "192.0.2.7", "ssh://me@pi:2222", "b-1"]
)
def test_what_ssh_takes_is_taken(host: str) -> None:
    assert address_of(f"ssh:{host}") == Address(host=host)


# --- commands -------------------------------------------------------------------------


def run_as_login_shell(command: str) -> bytes:
    return subprocess.run(
        ["sh", "-c", f"printf 'noise without an end'; {command}"],
        check=True,
        capture_output=True,
        timeout=600,
    ).stdout


words = st.lists(st.text(st.characters(exclude_characters="\0", codec="utf-8")))


@settings(max_examples=30, deadline=None)
@given(words)
def test_any_words_reach_a_program_as_they_are(arguments: list[str]) -> None:
    shell = RemoteShell()
    command = shell.wrap(exec_line(["printf", "<%s>", "first", *arguments]))

    answer = shell.answer(run_as_login_shell(command))

    assert answer == "".join(f"<{word}>" for word in ["first", *arguments])


@given(st.text())
def test_what_the_login_shell_sees_means_the_same_in_every_shell(script: str) -> None:
    command = RemoteShell().wrap(script.replace("\0", ""))

    fixed, quoted = command[:-1].rsplit("'", 1)
    assert fixed == """exec sh -c 'eval "$(printf %b "$1")"' sh """
    assert re.fullmatch(r"(?:[a-zA-Z0-9 @%+=:,./_-]|\\0[0-7]{3})*", quoted)


def test_output_before_the_word_agreed_upon_is_not_the_answer() -> None:
    shell = RemoteShell(b"word")

    assert shell.answer(b"Welcome!\nword of the day\nword\naarch64\n") == "aarch64\n"
    assert shell.answer(b"{\nword\n") == ""


def test_without_the_word_there_is_no_answer() -> None:
    assert RemoteShell(b"word").answer(b"aarch64\n0\n0\n") is None


def test_each_session_agrees_upon_a_word_of_its_own() -> None:
    assert RemoteShell().word != RemoteShell().word


def test_a_nul_character_is_refused() -> None:
    with pytest.raises(TargetError, match="NUL"):
        RemoteShell().wrap("a\0b")


# --- what ssh says --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stderr", "advice"),
    [
        ("@@@ WARNING @@@\nHost key verification failed.\r\n", "ssh-keygen -R pi"),
        ("me@pi: Permission denied (publickey,password).\n", "ssh-copy-id pi"),
        (
            "ssh: Could not resolve hostname pi: Name or service not known\n",
            "~/.ssh/config",
        ),
        (
            "ssh: connect to host pi port 22: Connection refused\n",
            "start an SSH server",
        ),
        (
            "ssh: connect to host pi port 22: Connection timed out\n",
            "check that the board is up",
        ),
        (
            "ssh: connect to host pi port 22: No route to host\n",
            "check that the board is up",
        ),
        ("kex_exchange_identification: read: reset\n", "try: ssh pi uname -m"),
        ("", "try: ssh pi uname -m"),
    ],
)
def test_a_failure_is_told_in_sshs_last_words_and_with_what_to_try(
    stderr: str, advice: str
) -> None:
    why = why_refused("pi", status=255, stderr=stderr)

    assert (stderr.splitlines() or [""])[-1] in why
    assert advice in why


def test_a_board_that_runs_no_commands_is_told_from_one_that_refuses() -> None:
    why = why_refused("pi", status=1, stderr="This account is not available.\n")

    assert "the board ran no command (This account is not available.)" in why


def test_a_host_in_advice_is_quoted_as_a_shell_wants_it() -> None:
    assert "ssh-keygen -R 'a;b'" in why_refused(
        "a;b", status=255, stderr="Host key verification failed."
    )


# --- packages -------------------------------------------------------------------------


class OsRelease:
    def __init__(self, content: Content) -> None:
        self._content = content

    def read_many(self, paths: Sequence[str]) -> Mapping[str, Content]:
        return {
            path: self._content if path.startswith("/usr") else Missing()
            for path in paths
        }


@pytest.mark.parametrize(
    ("os_release", "command"),
    [
        ('ID=debian\nNAME="Debian"\n', "apt install stress-ng"),
        ("ID=raspbian\nID_LIKE=debian\n", "apt install stress-ng"),
        ("ID=linuxmint\nID_LIKE='ubuntu debian'\n", "apt install stress-ng"),
        ("ID=alpine\n", "apk add stress-ng"),
        ("ID=fedora\n", "dnf install stress-ng"),
        (
            'ID="rocky"\nID_LIKE="rhel centos fedora"\n',
            "dnf install stress-ng (from EPEL)",
        ),
        ("ID=openwrt\n", "opkg update && opkg install stress-ng"),
        ("ID=buildroot\n", "add it to the image: BR2_PACKAGE_STRESS_NG=y"),
        (
            "ID=something-new\n",
            "use its package manager, e.g. apt install stress-ng",
        ),
        ("ID='broken\n", "use its package manager, e.g. apt install stress-ng"),
    ],
)
def test_the_distribution_of_the_board_decides_what_to_type(
    os_release: str, command: str
) -> None:
    assert how_to_install(OsRelease(os_release.encode()), "stress-ng") == command


def test_a_board_that_does_not_name_itself_gets_an_example() -> None:
    assert "e.g. apt install" in how_to_install(OsRelease(Missing()), "stress-ng")


@pytest.mark.parametrize(
    ("keeper", "told", "lost_s"), [("cat", "was killed on", 0.1), (":", "lost", 600.0)]
)
def test_an_agent_that_was_killed_is_told_from_a_lost_connection(
    keeper: str, told: str, lost_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For both, ssh ends with 255."""
    monkeypatch.setattr(ssh, "LOST_S", lost_s)
    on = SshTarget("board")
    on._keeper = PipeStream(["sh", "-c", keeper], heartbeat=False)
    agent = PipeStream(
        ["sh", "-c", "exit 255"], heartbeat=False, why_ended=on._why_ended
    )
    collect(agent, timeout_s=600)
    said = agent.stderr_tail()
    on._keeper.kill()

    assert told in said


@pytest.mark.parametrize("output", ["", '{"type":"growth","cpus":['])
def test_an_agent_that_gives_up_without_a_word_says_that_the_link_stalled(
    output: str,
) -> None:
    agent = PipeStream(
        ["sh", "-c", f"printf '%s' '{output}'; exit 3"],
        heartbeat=True,
        why_ended=SshTarget("board")._why_ended,
    )
    try:
        collect(agent, timeout_s=600)
        said = agent.stderr_tail()
    except ContractError as error:
        said = str(error)

    assert "the link was lost, or the host stood still" in said
