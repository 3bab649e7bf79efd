"""Options of commands about a target: how it runs, how it is measured, and those of suites."""

from __future__ import annotations

import re
from functools import reduce, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from conformance.app.context import TIMEOUT
from conformance.app.search.commit_ends import JAX_REPOSITORY
from conformance.app.search.options import GROWTH, METRICS
from conformance.app.suites.target import SuiteOptions
from conformance.bench.measured import PHASES
from conformance.cli.options import no_downloads_option, timeout_option, with_option
from conformance.search.endpoints import PREDICATES
from conformance.suites.catalogue.standards import CLAIMED
from conformance.suites.suite import Examples

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Command = Callable[..., Any]
    Decorator = Callable[[Command], Command]
    PatternType = click.ParamType[re.Pattern[str]]
else:
    # `ParamType` is generic from click 8.2 on.
    PatternType = click.ParamType


class Pattern(PatternType):
    """A regular expression."""

    name = "regex"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> re.Pattern[str]:
        """Return the compiled pattern; an error shows where it is malformed."""
        try:
            # Multiline, because the output of a program has many lines and `^` means one of them.
            return re.compile(value, re.MULTILINE)
        except re.error as error:
            self.fail(f"{value}: {error}; expected a regular expression", param, ctx)


def _add_options(options: Sequence[Decorator], command: Command) -> Command:
    """Add options to a command, in the order in which its help lists them."""
    # Decorators apply from the inside out, and click lists options in the reverse order.
    return reduce(lambda inner, option: option(inner), reversed(options), command)


def predicate_options(command: Command) -> Command:
    """Add the options that decide whether a point is bad, and `--fresh`."""
    options = (
        click.option(
            "--when", type=click.Choice([*PREDICATES, *METRICS, GROWTH]), default=None,
            help="Predicate of a bad point.  [default: the difference between both ends]",
        ),
        click.option(
            "--fact", default="", metavar="NAME",
            help="Search for a change of this fact of the optimised HLO, e.g. "
            "collectives.all-gather.",
        ),
        click.option(
            "--phase", type=click.Choice(PHASES), default=None,
            help="Compare the time of this phase of a case, or its growth with --when growth.",
        ),
        click.option(
            "--region", default="", metavar="NAME",
            help="Compare the time of this region of a script: with conformance.timed(NAME).",
        ),
        click.option(
            "--metric", type=Pattern(), default=None, metavar="REGEX",
            help="Compare the last number that a program prints where this matches.",
        ),
        click.option("--fresh", is_flag=True, help="Ignore the log of earlier searches."),
    )  # fmt: skip
    return _add_options(options, command)


def program_options(command: Command) -> Command:
    """Add the options of scripts, tests and commands: `timeout`, `wanted` and `is_command`."""
    options = (
        timeout_option("Timeout of a script, test or command.", default=TIMEOUT),
        with_option,
        click.option("--command", "is_command", is_flag=True, help="TARGET is a command line."),
        no_downloads_option,
    )
    return _add_options(options, command)


def origin_options(command: Command) -> Command:
    """Add the options of what is searched for in a release: `layers`, `commits`, `jax_repo`."""
    options = (
        click.option("--layers", is_flag=True, help="Then find the layer, as layers does."),
        click.option("--commits", is_flag=True, help="Then find the commit of the package."),
        click.option(
            "--jax-repo", default="", envvar=JAX_REPOSITORY, metavar="PATH|URL",
            help="Clone of jax.  [default: the public repository]",
        ),
    )  # fmt: skip
    return _add_options(options, command)


SUITE_OPTIONS = (
    click.option(
        "--suite-path", metavar="DIR", type=click.Path(path_type=Path),
        help="Checkout of a named suite to use instead of the one in the cache.",
    ),
    click.option(
        "--max-examples", type=click.IntRange(1), metavar="N",
        help="Number of Hypothesis examples per test.  [default: of the suite]",
    ),
    click.option(
        "--seed", type=click.IntRange(0), metavar="N",
        help="Seed of Hypothesis.  [default: from the source of each test]",
    ),
    click.option(
        "--shrink", is_flag=True,
        help="Shrink the failing example, which takes many runs of the test.",
    ),
    click.option(
        "--standard", metavar="VERSION|claimed|all", default=CLAIMED, show_default=True,
        help="Version of the standard to test releases against.",
    ),
)  # fmt: skip


def suite_options(command: Command) -> Command:
    """Add the options of a suite, as one value called `suite`, an `SuiteOptions`."""

    # `wraps` carries the options that click has stored on the inner function.
    @wraps(command)
    def call(
        *,
        suite_path: Path | None,
        max_examples: int | None,
        seed: int | None,
        shrink: bool,
        standard: str,
        **others: Any,
    ) -> Any:
        examples = Examples(number=max_examples, seed=seed, shrink=shrink)
        suite = SuiteOptions(path=suite_path, examples=examples, standard=standard)
        return command(suite=suite, **others)

    return _add_options(SUITE_OPTIONS, call)
