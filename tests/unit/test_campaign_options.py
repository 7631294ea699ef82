"""Options of the command line in the place of a campaign's values."""

from dataclasses import fields, replace

import pytest

from fakes.measurements import SECOND_NS
from fakes.refusals import refused_option
from rtscope.measure.campaign import file as campaign_file
from rtscope.measure.campaign.file import key_schemas
from rtscope.measure.campaign.model import Campaign, RunTable
from rtscope.measure.campaign.options import Options, option_of, with_options


def test_no_option_leaves_the_campaign_alone() -> None:
    campaign = Campaign()

    assert with_options(campaign, Options()) is campaign


def test_an_option_takes_the_place_of_the_files_value_in_every_run() -> None:
    campaign = Campaign(
        name="x", runs=(RunTable(loads=("idle",)), RunTable(loads=("cpu",)))
    )

    changed = with_options(
        campaign, Options(duration="5s", target="ssh:vf2", kernel="a,b")
    )

    assert changed == replace(
        campaign,
        target="ssh:vf2",
        kernels=("a", "b"),
        runs=tuple(
            replace(run, durations_ns=(5 * SECOND_NS,)) for run in campaign.runs
        ),
    )


def test_runs_that_an_option_makes_equal_are_run_once() -> None:
    campaign = Campaign(runs=(RunTable(loads=("idle",)), RunTable(loads=("cpu",))))

    assert with_options(campaign, Options(load="os")).runs == (RunTable(loads=("os",)),)


@pytest.mark.parametrize(
    ("options", "interval_ns"),
    [
        (Options(event="hwlat:threshold=5"), 1_000_000_000),
        (Options(event="hwlat", interval="200ms"), 200_000_000),
        (Options(event="udp"), 200_000),
    ],
)
def test_hwlat_looks_each_second_if_nothing_else_is_said(
    options: Options, interval_ns: int
) -> None:
    (run,) = with_options(Campaign(), options).runs

    assert run.intervals_ns == (interval_ns,)


def test_only_readers_of_timerlat_are_ordinary_threads() -> None:
    (run,) = with_options(Campaign(), Options(event="timerlat")).runs

    assert (run.policy_names, run.priorities) == (("other",), ())
    assert refused_option(event="timerlat,udp").startswith("--policy: timerlat")
    assert refused_option(event="timerlat", policy="rr").startswith("--policy: ")


def test_another_event_beside_hwlat_needs_an_interval_that_is_said() -> None:
    assert refused_option(event="hwlat,udp").startswith("--interval: hwlat looks once")


def test_options_take_lists_and_words() -> None:
    campaign = with_options(
        Campaign(),
        Options(
            load="idle, custom",
            command="sh -c 'sleep 1'",
            policy="rr",
            priority="10,20",
            cpus="1-2",
            hold_cpu_awake=True,
            settle="0",
        ),
    )

    assert campaign.command == ("sh", "-c", "sleep 1")
    assert campaign.runs[0].policies == (("rr", 10), ("rr", 20))
    assert campaign.runs[0].cpus == (1, 2)
    assert campaign.hold_cpu_awake


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"duration": "200"}, "--duration: 200: no unit; write 200us"),
        ({"target": "ssh:-x"}, "--target: 'ssh:-x': write local"),
        ({"kernel": "A"}, "--kernel: 'A': write for example"),
        ({"rt_throttling": "on"}, "--rt-throttling: no such setting"),
        ({"claim": "1/1h"}, "--claim: a claim needs a deadline"),
        ({"load": "custom"}, "--command: the custom load needs a command"),
        (
            {"policy": "idle", "priority": "3"},
            "--priority: policy idle has no priority",
        ),
        ({"policy": "deadline", "cpus": "0"}, "--cpus: the kernel pins no thread"),
        ({"duration": "1s", "interval": "1s"}, "--duration: 1s is shorter than two"),
    ],
)
def test_a_wrong_option_is_refused_by_its_name(
    given: dict[str, object], message: str
) -> None:
    assert refused_option(**given).startswith(message)


def test_an_option_displaces_what_only_made_sense_with_the_files_value() -> None:
    campaign = Campaign(
        runs=(
            RunTable(
                loads=("custom",), policy_names=("fifo", "deadline"), priorities=(80,)
            ),
        ),
        command=("ls",),
        deadline_runtime_ns=50_000,
    )

    changed = with_options(campaign, Options(load="cpu", policy="other"))

    assert changed == Campaign(
        runs=(RunTable(loads=("cpu",), policy_names=("other",)),)
    )


def test_an_option_keeps_the_files_priority_where_it_still_applies() -> None:
    campaign = Campaign(runs=(RunTable(priorities=(80,)),))

    assert with_options(campaign, Options(policy="rr")).runs[0].policies == (
        ("rr", 80),
    )


def test_every_option_is_a_key_and_a_few_keys_have_no_option() -> None:
    keys = {option_of(key) for key in key_schemas()}
    options = {field.name for field in fields(Options)}

    assert options < keys
    assert keys - options == {
        *(
            "name",
            "order",
            "order_seed",
            "variant",
            "kernel_release",
            "deadline_runtime",
            "config",
        ),
    }


def test_without_descriptions_of_pydantic_there_is_still_a_help(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Version 2.10, which Debian 13 has, finds none."""
    monkeypatch.setattr(campaign_file, "key_schemas", lambda: {"run.duration": {}})

    assert campaign_file.description("run.duration") == ""
