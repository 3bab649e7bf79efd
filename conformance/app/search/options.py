"""The options of searches: the ends, the axis, and the predicate of a bad point."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from conformance.app.context import TIMEOUT, count_usable_cores
from conformance.errors import UsageError
from conformance.search.axes import JAX
from conformance.search.endpoints import PredicateOptions
from conformance.search.metrics import (
    LEAK,
    MEMORY,
    PRINTED,
    TIME,
    make_growth_metric,
    make_phase_metric,
    make_region_metric,
)

if TYPE_CHECKING:
    from conformance.search.metrics import Metric

GROWTH: Final = "growth"
METRICS: Final = {metric.name: metric for metric in (TIME, MEMORY, LEAK)}
"""Metrics by their names for `--when`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOptions:
    """Options of `conformance bisect`, `blame` and `passes`; defaults where a command has none.

    Attributes:
        good: The good end, empty for none in a search that needs none.
        bad: The bad end.
        axis: The name of the axis.
        jax: The release of jax on another axis.
        values: Values of an option, in order, comma-separated.
        find: `bad` or `fix`.
        when: The predicate, None for any that separates the ends.
        fact: The fact that makes a point bad.
        phase: The phase of a case whose time or growth counts, None for `run` if it grows.
        region: The region of a program whose time counts.
        metric: Pattern of a number that a program prints.
        platform: Platform of the points, empty for the default.
        settings: Whether XLA flags and options of jax are tried in addition to passes.
        is_command: Whether the target is known to be a command line.
        timeout: Seconds that a script may take.
        wanted: Requirements in addition to the packages of the cells.
        fresh: Whether the log of an earlier search is ignored.
        jobs: Trials at the same time, 0 for one per core.
        every: Whether every point is tried.
        repeat: Number of good trials that a good point needs.
    """

    good: str
    bad: str
    axis: str = JAX
    jax: str = "latest"
    values: str = ""
    find: str = "bad"
    when: str | None = None
    fact: str = ""
    phase: str | None = None
    region: str = ""
    metric: re.Pattern[str] | None = None
    platform: str = ""
    settings: bool = True
    is_command: bool = False
    timeout: float = TIMEOUT
    wanted: tuple[str, ...] = ()
    fresh: bool = False
    jobs: int = 0
    every: bool = False
    repeat: int = 1

    @property
    def predicate(self) -> PredicateOptions:
        """The options that name the predicate; none where a metric is measured."""
        return PredicateOptions("" if self.measured_metric else self.when or "", self.fact)

    @property
    def width(self) -> int:
        """Trials at the same time; measured trials run alone, as others would slow them down."""
        return 1 if self.measured_metric else self.jobs or count_usable_cores()

    @property
    def measured_metric(self) -> Metric | None:
        """The metric that is measured, None if one sample per point is enough.

        Raises:
            UsageError: If the options contradict each other.
        """
        given = {
            "--fact": self.fact, "--phase": self.phase, "--region": self.region,
            "--metric": self.metric,
        }  # fmt: skip
        named = [f"{option} {_format_value(value)}" for option, value in given.items() if value]
        if len(named) > 1:
            raise UsageError(f"{' and '.join(named)}: expected one of them")
        goes = ["facts"] if self.fact else ["time", GROWTH] if self.phase else ["time"]
        if named and self.when is not None and (self.metric or self.when not in goes):
            expected = " or ".join(goes)
            raise UsageError(f"{named[0]}: goes with --when {expected}, got --when {self.when}")
        found = self._find_metric()
        # A measured point is compared by medians of many samples, which --repeat would multiply.
        if found is not None and self.repeat > 1:
            raise UsageError("--repeat: goes with what one look shows, expected nothing measured")
        return found

    def _find_metric(self) -> Metric | None:
        # At most one of these is given, so their order does not matter.
        if self.metric is not None:
            return PRINTED
        if self.region:
            return make_region_metric(self.region)
        if self.when == GROWTH:
            return make_growth_metric(self.phase or "run")
        if self.phase is not None:
            return make_phase_metric(self.phase)
        return METRICS.get(self.when or "")

    @property
    def words(self) -> str:
        """The words of the question, which are part of the name of its log."""
        # Only options that change a result: a log is reused whatever the width, order or
        # repetition.
        given = (self.when, self.fact, self.phase, self.region, _format_value(self.metric))
        return " ".join(word or "" for word in given)


def _format_value(value: str | re.Pattern[str] | None) -> str:
    return value.pattern if isinstance(value, re.Pattern) else value or ""
