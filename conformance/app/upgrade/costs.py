"""Time and memory of an upgrade: both ends measured in turn, and the release of each change."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from conformance.app.bench.measurer import BenchOptions
from conformance.app.bench.run import measure_cells
from conformance.app.layers.origin import find_origin
from conformance.app.search.bisect import find_change
from conformance.app.search.commit_ends import find_jax_location
from conformance.app.search.options import SearchOptions
from conformance.app.session import Session
from conformance.errors import ConformanceError
from conformance.report.bench.text import describe_alarm, describe_comparison
from conformance.search.axes import JAX, AxisPoint, SearchAxis
from conformance.triage.commits.render import list_culprit_commits
from conformance.triage.layers.answer import LayerAnswer
from conformance.triage.layers.render import describe_layer
from conformance.triage.upgrade.costs import CostChange, choose_searched

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from conformance.app.context import ProjectContext
    from conformance.app.upgrade.subject import UpgradeOptions
    from conformance.bench.comparison import CaseComparison
    from conformance.model.case import Case
    from conformance.search.axes import AxisCells


@dataclass(frozen=True, slots=True, kw_only=True)
class CostSearch:
    """The search for changes of time and memory on one platform.

    Attributes:
        context: The project.
        platform: The platform.
        cells: Both ends and the releases between them.
        options: Options of the upgrade.
        wanted: Requirements in addition to the packages of the cells.
        say: Called with each step, in a line.
    """

    context: ProjectContext
    platform: str
    cells: AxisCells
    options: UpgradeOptions
    wanted: tuple[str, ...]
    say: Callable[[str], None]

    def find(self, cases: Sequence[Case]) -> Iterator[CostChange]:
        """Measure cases at both ends, and yield those that differ, with the release.

        Args:
            cases: The cases.

        Raises:
            InfrastructureError: If a cell cannot be provided, or the disk refuses.
        """
        report: Callable[[CaseComparison], None] = lambda one: self.say(  # noqa: E731
            f"time and memory: {describe_comparison(one)}"
        )
        measured = measure_cells(
            Session(context=self.context), (self.cells[0], self.cells[-1]), self.cells.locks,
            cases, options=BenchOptions(), report=report,
        )  # fmt: skip
        if not measured.complete:
            raise KeyboardInterrupt  # an upgrade that is interrupted has no costs
        by_id = {case.id: case for case in cases}
        for comparison in measured.comparisons:
            if comparison.alarms:
                yield self._find_release(by_id[comparison.case], comparison)

    def _find_release(self, case: Case, comparison: CaseComparison) -> CostChange:
        searched = choose_searched(comparison)
        change = CostChange(
            case=case.id, platform=self.platform, is_worse=searched.is_worse,
            differences=tuple(map(describe_alarm, comparison.alarms)),
        )  # fmt: skip
        if not searched.when:
            return replace(change, problem="no search measures this difference")
        points = [
            AxisPoint(label=label, cell=planned.cell)
            for label, planned in zip(self.cells.labels, self.cells, strict=True)
        ]
        options = SearchOptions(
            good=points[0].label, bad=points[-1].label, platform=self.platform,
            when=searched.when, phase=searched.phase, wanted=self.wanted, fresh=self.options.fresh,
        )  # fmt: skip
        say = partial(self._say_below, case)
        axis = SearchAxis(name=JAX, points=points)
        try:
            found = find_change(self.context, case, options, say, axis=axis)
            answer = found.answer
            change = replace(
                change,
                last=answer.labels[answer.last_good],
                changed_in=answer.labels[answer.first_bad],
            )
            asked = self.options
            location = find_jax_location(self.context, asked.jax_repo) if asked.commits else ""
            for part in find_origin(
                self.context, case, options, found, layers=asked.layers, location=location, say=say,
            ):  # fmt: skip
                if isinstance(part, LayerAnswer):
                    change = replace(change, layer=describe_layer(part))
                else:
                    change = replace(change, commits=list_culprit_commits(part))
        except ConformanceError as error:
            return replace(change, problem=str(error))
        return change

    def _say_below(self, case: Case, line: str) -> None:
        self.say(f"time and memory: {case.id}: {line}")
