"""Which packages changed what a case does: for other searches, which have cells and a trier."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from conformance.judge.tolerance import Tolerance
from conformance.search.prober import CaseProber
from conformance.search.trials import Trials
from conformance.triage.blame.additions import with_additions
from conformance.triage.blame.blame import Blame
from conformance.triage.blame.ends import ends_of, provide
from conformance.triage.blame.mixtures import Mixtures
from conformance.triage.blame.suspects import sources_of, suspects

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from conformance.cells.cell import Cell
    from conformance.cells.lock import Lock
    from conformance.cells.releases import Releases
    from conformance.engine.job_runner import JobRunner
    from conformance.engine.preparation import Preparation
    from conformance.model.case import Case
    from conformance.search.trials import SearchStep
    from conformance.triage.blame.answer import BlameAnswer, MovedUnits


def blame_case(
    case: Case,
    cells: tuple[Cell, Cell],
    *,
    releases: Releases,
    prepare: Callable[[Iterable[Cell]], Preparation],
    trier: JobRunner,
    locks: dict[str, Lock],
    cache: Path,
    wanted: Sequence[str] = (),
    when: str = "",
    fact: str = "",
    progress: Callable[[SearchStep[MovedUnits], int], None] = lambda *_: None,
) -> BlameAnswer:
    """Search for the packages that changed what a case does; results are cached as those of runs.

    Args:
        case: The case.
        cells: The cell that is left, and the one that is gone to.
        releases: Known releases.
        prepare: Looks up locks.
        trier: Tries jobs.
        locks: Where the trier finds locks, by cell id; gets those of mixtures.
        cache: Cache folder.
        wanted: Requirements of the cells in addition to their own packages.
        when: The value of `--when`; empty for any predicate that tells the ends apart.
        fact: The value of `--fact`, the name of a fact.
        progress: Called with each step, and the number of packages that differ.

    Raises:
        UsageError: If the ends differ in no package or in more than packages.
        EndsError: If nothing tells the ends apart, or an end says nothing.
        OtherwiseError: If an end does not show what it stands for does.
        InfrastructureError: If something cannot be tried now, or the disk refuses.
    """
    wanted = tuple(wanted)
    ends = ends_of(cells, releases, prepare, locks=locks, cache=cache, wanted=wanted)
    ends, wanted = with_additions(ends, wanted, locks=locks, cache=cache)
    mixtures = Mixtures(
        ends=ends, suspects=suspects(sources_of(case), ends), locks=locks,
        provide=partial(provide, ends=ends, cache=cache, wanted=wanted),
    )  # fmt: skip
    trials = Trials(
        cell_of=mixtures.cell_of, prober=CaseProber(case=case, trier=trier), blobs=trier.blobs,
        keep=lambda _: None, tolerance=Tolerance.of(case),
        progress=lambda step: progress(step, len(mixtures.packages)),
    )  # fmt: skip
    return Blame(mixtures=mixtures, trials=trials, when=when, fact=fact).run()
