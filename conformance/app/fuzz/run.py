"""`conformance fuzz`: a campaign is composed and run."""

from __future__ import annotations

from collections import Counter
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import hypothesis
import msgspec

from conformance.app.fuzz.findings import FindingFolders
from conformance.app.fuzz.report import load_known_behaviour
from conformance.app.plan import find_newest_night
from conformance.app.search.axes import make_upgrade_points
from conformance.app.session import Session
from conformance.engine.cache.blobs import BlobStore
from conformance.engine.finished_jobs import FinishedJobExecutor
from conformance.errors import InfrastructureError, UsageError
from conformance.files import write_atomically
from conformance.fuzz.campaign import Campaign
from conformance.fuzz.campaign_log import CampaignLog, CampaignSettings
from conformance.fuzz.evaluation import Evaluator
from conformance.fuzz.operation import select_operations
from conformance.fuzz.operations import OPERATIONS
from conformance.report.fuzz.markdown import render_fuzz_markdown
from conformance.report.fuzz.summary import summarize_campaigns
from conformance.scratch import temporary_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from conformance.app.cluster_choice import ClusterChoice
    from conformance.app.context import ProjectContext
    from conformance.cells.cell import Cell
    from conformance.cells.lock import Lock
    from conformance.engine.job import Executor
    from conformance.engine.workers.preparation import Preparation

OLDER: Final = "latest-1"
NEWER: Final = "latest"
"""Default releases."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FuzzOptions:
    """Options of `conformance fuzz`.

    Attributes:
        older: Oldest release, as a selector; None for the default.
        newer: Newest release, as a selector; equal to `older` to compare a release with itself;
            None for the default.
        cells: Selectors of the cells in place of all releases from `older` to `newer`; empty for
            these.
        minutes: Time limit.
        seed: Seed of the programs; None for the day of the newest nightly, or 0 without a nightly.
        operations: Patterns of operations; empty for all.
        folder: Folder of the campaign; None for one in `reports/campaigns`.
        resume: Whether to continue the campaign of the folder, with its settings where an option
            is not given.
        cases: Folder that gets the cases of new findings, None for none.
        jobs: Batches at the same time.
        cluster: Cluster that runs the batches, None for this host.
    """

    older: str | None = None
    newer: str | None = None
    cells: tuple[str, ...] = ()
    minutes: float
    seed: int | None = None
    operations: tuple[str, ...] = ()
    folder: Path | None = None
    resume: bool = False
    cases: Path | None = None
    jobs: int
    cluster: ClusterChoice | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignPlan:
    """A campaign before anything runs.

    Attributes:
        options: The options.
        cells: Its cells, the oldest release first.
        seed: Seed of the programs.
        operations: Patterns of operations; empty for all.
        folder: Folder of the campaign.
    """

    options: FuzzOptions
    cells: tuple[Cell, ...]
    seed: int
    operations: tuple[str, ...]
    folder: Path


def plan_campaign(context: ProjectContext, options: FuzzOptions) -> CampaignPlan:
    """Return the cells, the seed and the folder of a campaign.

    Args:
        context: The project.
        options: The options.

    Raises:
        UsageError: If a selector matches nothing, or there is no campaign to continue.
    """
    stored = None
    if options.resume and options.folder is not None:
        stored = CampaignLog.load(options.folder).settings
    if stored is not None and not (options.cells or options.older or options.newer):
        # A nightly of today may be another one than that of the campaign.
        cells = tuple(map(context.find_cell, stored.cells))
    else:
        cells = tuple(_select_cells(context, options))
    seed = stored.seed if options.seed is None and stored else options.seed
    if seed is None:
        seed = int(find_newest_night(cells).replace("-", "") or 0)
    ends = [cell.id if cell.interpreter else cell.release for cell in (cells[0], cells[-1])]
    return CampaignPlan(
        options=options, cells=cells, seed=seed,
        operations=options.operations or (stored.operations if stored else ()),
        folder=options.folder or context.campaigns / f"{'-'.join(ends)}-{seed}",
    )  # fmt: skip


def run_campaign(
    context: ProjectContext, plan: CampaignPlan, report: Callable[[str], None]
) -> CampaignLog:
    """Run a campaign, or continue one.

    Args:
        context: The project.
        plan: The campaign.
        report: Called with a line after each round and finding.

    Raises:
        UsageError: If a pattern matches nothing, or the folder does not fit the options.
        InfrastructureError: If a cell cannot be provided, or the disk refuses.
    """
    session = Session(context=context, cluster=plan.options.cluster)
    operations = select_operations(OPERATIONS, plan.operations)
    preparation = session.prepare(plan.cells)
    for planned in preparation.cells:
        if planned.failure:
            raise InfrastructureError(f"{planned.cell.id}: {planned.failure}")
    log = _open_log(plan)
    options = plan.options
    folders = FindingFolders(
        context=context, campaign=plan.folder, releases=_select_releases(context, preparation),
        versions=preparation.cells[-1].versions, cases=options.cases, jobs=options.jobs,
        report=report,
    )  # fmt: skip
    known = load_known_behaviour(context)
    with _open_executor(session, preparation.locks, options.jobs) as executor:
        campaign = Campaign(
            log=log,
            evaluator=Evaluator(executor, preparation.cells[0], preparation.cells[-1]),
            cells=preparation.cells,
            operations=operations,
            changes=known.changes,
            cases=known.cases,
            report=report,
            publish=folders.write,
        )
        for finding in log.findings.values():
            folders.write(finding)  # of a campaign that was interrupted meanwhile
        try:
            campaign.run(60 * options.minutes)
        finally:  # also after Ctrl-C
            page = render_fuzz_markdown(summarize_campaigns([log]), f"Campaign {log.folder.name}")
            write_atomically(log.folder / "findings.md", page.encode())
    return log


@contextmanager
def _open_executor(session: Session, locks: Mapping[str, Lock], jobs: int) -> Iterator[Executor]:
    """Yield an executor whose workers stay open between its runs.

    Args:
        session: The session of the campaign.
        locks: Lock of each cell, by cell id.
        jobs: Batches at the same time.
    """
    if session.cluster is not None:
        with temporary_folder("fuzz") as blobs:
            cluster = session.make_executor(locks, slots=jobs)
            yield FinishedJobExecutor(cluster, BlobStore(blobs))
        return
    with closing(session.make_warm_executor(locks, slots=jobs)) as executor:
        yield executor


def _open_log(plan: CampaignPlan) -> CampaignLog:
    settings = CampaignSettings(
        seed=plan.seed,
        cells=tuple(cell.id for cell in plan.cells),
        operations=plan.operations,
        hypothesis=hypothesis.__version__,
    )
    if not plan.options.resume:
        return CampaignLog.create(plan.folder, settings)
    log = CampaignLog.load(plan.folder)
    if log.settings != settings:
        raise UsageError(
            f"{plan.folder} is a campaign with {log.settings}, expected {settings}: "
            "name another folder with --run"
        )
    return log


def _select_releases(context: ProjectContext, preparation: Preparation) -> list[str]:
    """Return the releases of a campaign on which a case can be proposed, the oldest first.

    A nightly or an environment is none: the case then has the behaviour of the newest release.
    """
    known = context.releases.versions
    found = [one.cell.release for one in preparation.cells if one.cell.release in known]
    return found or [known[-1]]


def _select_cells(context: ProjectContext, options: FuzzOptions) -> list[Cell]:
    """Return the cells of a campaign, the oldest release first.

    Raises:
        UsageError: If a selector matches nothing, or the cells are not on CPU.
    """
    if not options.cells:
        ends = (options.older or OLDER, options.newer or NEWER)
        if len(set(ends)) == 1:
            return [context.find_cell(ends[0])]
        return [point.cell for point in make_upgrade_points(context, ends, "cpu")]
    cells, _ = context.select_cells(None, options.cells)
    if wrong := [cell.id for cell in cells if cell.platform != "cpu"]:
        raise UsageError(f"--cell {wrong[0]}: fuzz runs programs on CPU, expected a cell of it")
    return list(cells)


def make_json(log: CampaignLog) -> dict[str, Any]:
    """Return a campaign and its findings as JSON data.

    Args:
        log: Log of the campaign.
    """
    outcomes = Counter[str]()
    for done in log.rounds:
        outcomes.update(done.outcomes)
    return {
        "campaign": msgspec.to_builtins(log.settings),
        "programs": sum(len(done.programs) for done in log.rounds),
        "outcomes": dict(outcomes),
        "seconds": round(sum(done.total_seconds for done in log.rounds), 1),
        "findings": [msgspec.to_builtins(finding) for finding in log.findings.values()],
    }
