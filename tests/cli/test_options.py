"""The same option has the same spelling in every command."""

from __future__ import annotations

import click
import pytest

from conformance.cli import cli
from conformance.cli.options import HiddenArgument, RenamedOption
from conformance.cli.target_options import suite_options
from tests import printed

COMMANDS = {
    name.removeprefix("conformance "): command
    for name, command in printed.walk_commands(cli, "conformance")
    if not isinstance(command, click.Group)
}
SEARCHES = {"bisect", "blame", "layers", "passes", "shrink"}
COMPARISONS = {"diff", "upgrade"}
IN_SUITES = {"bisect", "blame", "upgrade", "suite run"}
"""Commands whose target may be a suite, or a test of one."""


def visible_options(name: str) -> dict[str, click.Option]:
    """Return the options that the help of a command shows, by spelling."""
    shown = (one for one in COMMANDS[name].params if isinstance(one, click.Option))
    return {spelling: one for one in shown if not one.hidden for spelling in one.opts}


def argument_metavars(name: str) -> list[str]:
    """Return the placeholders of the arguments in the usage of a command."""
    command = COMMANDS[name]
    context = click.Context(command)
    arguments = (one for one in command.params if isinstance(one, click.Argument))
    return [piece for one in arguments for piece in one.get_usage_pieces(context)]


@pytest.mark.parametrize("name", COMMANDS)
def test_json_option_takes_a_file_in_every_command(name: str) -> None:
    """`-` is standard output."""
    option = visible_options(name)["--json"]
    assert isinstance(option.type, click.Path)
    assert (option.metavar, option.type.allow_dash, option.is_flag) == ("FILE", True, False)


@pytest.mark.parametrize("name", COMMANDS)
def test_searches_take_good_and_bad_and_comparisons_from_and_to(name: str) -> None:
    """No command has other names for its two ends."""
    given = visible_options(name)
    assert ({"--good", "--bad"} <= given.keys()) is (name in SEARCHES)
    assert not {"--good-cell", "--bad-cell"} & given.keys()
    words = " ".join(argument_metavars(name))
    assert ("FROM" in words and "TO" in words) is (name in COMPARISONS)


@pytest.mark.parametrize("name", COMMANDS)
def test_run_directories_are_named_by_the_run_option(name: str) -> None:
    """Also the directory of a new run; folders of runs are arguments."""
    given = visible_options(name)
    assert not {"--run-dir", "--directory"} & given.keys()
    assert not any("RUN" in piece for piece in argument_metavars(name))
    about_run = {one.name for one in given.values()} & {"run", "run_dir", "runs"}
    assert bool(about_run) is ("--run" in given)


@pytest.mark.parametrize("name", COMMANDS)
def test_time_limits_are_called_timeout(name: str) -> None:
    """In seconds."""
    given = visible_options(name)
    # Those of a campaign and of measurements end no work that has begun.
    limits = {"--seconds", "--minutes", "--time-limit"} - (
        {"--minutes"} if name in {"fuzz", "bench"} else set()
    )
    assert not limits & given.keys()
    assert {one.metavar for one in given.values()} & {"SECONDS"} == (
        {"SECONDS"} if "--timeout" in given else set()
    )


def test_suite_options_exist_only_where_a_suite_can_be_the_target() -> None:
    """All of them or none."""

    @suite_options
    def command() -> None: ...

    own = {spelling for one in click.command()(command).params for spelling in one.opts}
    for name in COMMANDS:
        # The seed of a campaign is that of its programs.
        given = visible_options(name).keys() - ({"--seed"} if name == "fuzz" else set())
        assert own & given == (own if name in IN_SUITES else set()), name


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("run --run-dir here", {"run_dir": "here"}),
        ("merge . --run-dir here", {"run_dir": "here"}),
        ("passes f/a --cell 0.6.2", {"bad": "0.6.2"}),
        ("passes f/a --good-cell 0.5.3 --bad-cell 0.6.2", {"good": "0.5.3", "bad": "0.6.2"}),
        ("shrink f/a --cell 0.6.2 --good-cell none", {"good": "none", "bad": "0.6.2"}),
        ("shrink f/a --cell 0.6.2 --seconds 9", {"timeout": "9.0"}),
        ("triage here --minutes 2", {"directory": "here", "minutes": "2.0"}),
        ("notify here", {"directory": "here"}),
        ("suite accept mine one two", {"more_runs": "('one', 'two')"}),
        ("blame f/a 0.5.3 0.6.2", {"ends": "('0.5.3', '0.6.2')"}),
        ("list --json", {"json_file": "-"}),
        ("matrix --prune --json", {"json_file": "-", "prune": "True"}),
        ("doctor --disk", {"disk": "True"}),
        ("plan --format json", {"form": "json"}),
    ],
)
def test_renamed_options_and_arguments_are_still_accepted(
    command: str, expected: dict[str, str]
) -> None:
    """Existing scripts use them."""
    params = printed.parse_command(f"conformance {command}").params
    assert {name: str(params[name]) for name in expected} == expected


def test_renamed_options_are_hidden_in_help() -> None:
    """Arguments as well as options."""
    for name, command in COMMANDS.items():
        text = command.get_help(click.Context(command, info_name=name))
        for one in command.params:
            assert not any(f"{old} " in text for old in getattr(one, "old", ())), name
    params = [one for command in COMMANDS.values() for one in command.params]
    assert {type(one) for one in params} >= {RenamedOption, HiddenArgument}
