"""`conformance suite run --repeat N`: each test several times, to find what is flaky."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import wraps
from typing import TYPE_CHECKING, Any, Protocol

import click

from conformance.engine.repeating import RepeatedRun
from conformance.engine.runner import Run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conformance.engine.cache import ResultCache
    from conformance.engine.job import Executor
    from conformance.engine.plan import Plan
    from conformance.engine.rundir import RunDirectory
    from conformance.model.record import Record
    from conformance.model.run import RunSuite


class Runs(Protocol):
    """A run of tests, each once or several times."""

    def execute(self) -> list[Record]:
        """Run them all, and return a record of each."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeat:
    """How often each test runs.

    Attributes:
        times: How often, None for once, and again only where that is unexpected.
        seed: What the orders begin with.
    """

    times: int | None = None
    seed: int = 0

    @property
    def each(self) -> int:
        """Attempts of each test."""
        return self.times or 1

    @property
    def restart(self) -> str:
        """What the same command does after an interrupt."""
        if self.times is None:
            return "the same command goes on where it was"
        return "attempts are counted from the beginning the next time"

    @property
    def lines(self) -> Iterator[str]:
        """Yield what is said of it below the results."""
        if self.times is not None:
            yield f"each test {self.times} times, in the orders of --repeat-seed {self.seed}"

    def described(self, suite: RunSuite) -> RunSuite:
        """Return what is told of a suite with the run."""
        if self.times is None:
            return suite
        told = {"repeat": self.times, "repeat_seed": self.seed}
        return replace(suite, settings={**suite.settings, **told})

    def run(
        self,
        plan: Plan,
        directory: RunDirectory,
        executor: Executor,
        cache: ResultCache,
        progress: Callable[[Record], None],
    ) -> Runs:
        """Return the run.

        Args:
            plan: What runs.
            directory: Where records and blobs go.
            executor: Runs jobs.
            cache: Observations of earlier runs.
            progress: Called with each record.
        """
        if self.times is None:
            return Run(plan, directory, executor, cache, progress=progress)
        return RepeatedRun(
            plan=plan, directory=directory, executor=executor, cache=cache,
            times=self.times, seed=self.seed, progress=progress,
        )  # fmt: skip


def repeat_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--repeat` and `--repeat-seed`, whose value is called `repeat`, a `Repeat`.

    Args:
        command: The command.
    """

    @wraps(command)
    def called(*, repeat: int | None, repeat_seed: int, **others: Any) -> Any:
        return command(repeat=Repeat(times=repeat, seed=repeat_seed), **others)

    options = (
        click.option(
            "--repeat", type=click.IntRange(2, 1000), metavar="N",
            help="Run each test N times, to find what is flaky.",
        ),
        click.option(
            "--repeat-seed", type=click.IntRange(0), default=0, show_default=True, metavar="N",
            help="What the orders of --repeat begin with.",
        ),
    )  # fmt: skip
    for option in reversed(options):
        called = option(called)
    return called
