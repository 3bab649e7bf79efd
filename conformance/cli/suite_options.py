"""Options of a suite, for all commands that run one."""

from __future__ import annotations

from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from conformance.app.suite_target import InSuite
from conformance.suites.catalogue.standards import CLAIMED
from conformance.suites.suite import Examples

if TYPE_CHECKING:
    from collections.abc import Callable


_OPTIONS = (
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


def in_suite_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a suite, as one value called `suite`, an `InSuite`.

    Args:
        command: The command.
    """

    @wraps(command)
    def called(
        *,
        suite_path: Path | None,
        max_examples: int | None,
        seed: int | None,
        shrink: bool,
        standard: str,
        **others: Any,
    ) -> Any:
        examples = Examples(number=max_examples, seed=seed, shrink=shrink)
        suite = InSuite(path=suite_path, examples=examples, standard=standard)
        return command(suite=suite, **others)

    for option in reversed(_OPTIONS):
        called = option(called)
    return called
