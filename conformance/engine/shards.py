"""Shards of a run: split by the durations of earlier runs, and merged when all have ended. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from itertools import chain, groupby
from typing import TYPE_CHECKING, Any, Final

from conformance.cells.cell import is_unresolved_id
from conformance.cells.nightly import make_stable_cell_ids
from conformance.engine.batches import ROUNDS, cut_batches, get_required_accelerator
from conformance.errors import UsageError
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from conformance.engine.batches import Batch
    from conformance.engine.job import Job
    from conformance.engine.runs.loader import LoadedRun
    from conformance.model.record import Record
    from conformance.model.run import Exclusion, RunCell, RunInfo

    Seconds = Callable[[Job], float]

OPEN = 20.0
"""Estimated seconds to provide a cell's environment and start its worker."""
_ROUNDING = 1e-9
"""Relative difference below which two durations count as equal."""


@dataclass(slots=True)
class Shard:
    """A part of a plan: consecutive jobs, so that it has few cells.

    Attributes:
        runner: Accelerator that its host needs, empty for none.
        jobs: Jobs in the order of the plan.
        seconds: Duration of the jobs in sequence.
    """

    runner: str
    jobs: list[Job] = field(default_factory=list)
    seconds: float = 0.0


def split_into_shards(jobs: Sequence[Job], count: int, seconds: Seconds) -> list[Shard]:
    """Split jobs into shards of about the same duration, keeping their order.

    A shard has whole batches, as a node of a cluster gets them but shorter, unless these are too
    few. No shard has jobs for hosts of different kinds, unless there are fewer shards than kinds.
    The limit that `_fill` needs for `count` shards is found by bisection.

    Args:
        jobs: Jobs in the order of a plan: those of a cell together.
        count: Number of shards.
        seconds: Returns the duration of a job.

    Returns:
        `count` shards, or as many as there are jobs if those are fewer.
    """
    kinds = [list(some) for _, some in groupby(jobs, get_required_accelerator)]
    if len(kinds) > count:
        kinds = [list(jobs)]
    durations = [seconds(job) for job in jobs]
    # Longer batches than the longest job would make the longest shard longer than jobs do.
    limit = min(sum(durations) / (ROUNDS * count), max(durations, default=0.0))
    batches = [list(cut_batches(own, limit, seconds)) for own in kinds]
    least = max((batch.seconds for own in batches for batch in own), default=0.0)
    # Floating-point sums depend on their order: rounding must not make one shard too few.
    most = (sum(durations) + OPEN * len(jobs)) * (1 + _ROUNDING)
    while most - least > _ROUNDING * most:
        middle = (least + most) / 2
        if len(_fill(batches, middle)) > count:
            least = middle
        else:
            most = middle
    shards = _fill(batches, most)
    # Filling up to the limit may need fewer shards, and then a runner would be idle.
    while len(shards) < min(count, len(jobs)):
        _halve(shards, seconds)
    return shards


def _fill(kinds: Iterable[Sequence[Batch]], limit: float) -> list[Shard]:
    """Fill shards up to a limit of seconds; a shard over the limit has a single batch."""
    filled = []
    for batches in kinds:
        shard = Shard(next((batch.accelerator for batch in batches if batch.accelerator), ""))
        for batch in batches:
            # Batches are in the order of cells: only the last one can be of the same cell.
            opened = bool(shard.jobs) and shard.jobs[-1].planned is batch.jobs[0].planned
            added = batch.seconds + (0.0 if opened else OPEN)
            if shard.jobs and shard.seconds + added > limit:
                filled.append(shard)
                shard = Shard(shard.runner)
                added = batch.seconds + OPEN
            shard.seconds += added
            shard.jobs += batch.jobs
        filled.append(shard)
    return filled


def _estimate_added_seconds(shard: Shard, job: Job, seconds: Seconds) -> float:
    """Return the seconds that a job adds to a shard."""
    # Jobs are in the order of cells: only the last job can be of the same cell.
    opened = bool(shard.jobs) and shard.jobs[-1].planned is job.planned
    return seconds(job) + (0.0 if opened else OPEN)


def _halve(shards: list[Shard], seconds: Seconds) -> None:
    """Split the longest shard with several jobs in two."""
    place = max((n for n, shard in enumerate(shards) if len(shard.jobs) > 1),
                key=lambda n: shards[n].seconds)  # fmt: skip
    longest = shards[place]
    first, second = Shard(longest.runner), Shard(longest.runner)
    for number, job in enumerate(longest.jobs):
        # The last job goes to the second shard in any case, so that neither is empty.
        last = number == len(longest.jobs) - 1
        half = first.seconds + _estimate_added_seconds(first, job, seconds) > longest.seconds / 2
        into = second if second.jobs or (first.jobs and (half or last)) else first
        into.seconds += _estimate_added_seconds(into, job, seconds)
        into.jobs.append(job)
    shards[place : place + 1] = [first, second]


WHOLE = "1/1"
_SHARD: Final = re.compile(r"([1-9][0-9]{0,5})/([1-9][0-9]{0,5})")
# Pages and files are named after ids: a family of two dots would be the folder above.
_CASE: Final = re.compile(r"(?!\.{1,2}/)[^/\x00-\x1f\x7f]+/[^\x00-\x1f\x7f]+")
_CELL: Final = re.compile(r"(?!\.{1,2}\Z)[^/\x00-\x1f\x7f]+")


def order_shards(runs: Iterable[LoadedRun]) -> list[LoadedRun]:
    """Return the shards of one run in order.

    A nightly that a shard could not resolve gets its name from the other shards.

    Args:
        runs: The shards, in any order.

    Raises:
        UsageError: If a shard is missing, duplicate, unfinished, of another run or malformed.
    """
    unordered = list(runs)
    # Before anything of a shard is used.
    for part in unordered:
        _check(part)
    parts = sorted(_resolve_nights(unordered), key=lambda run: _parse_shard(run)[0])
    first = parts[0]
    for part in parts:
        if (difference := _find_mismatch(first, part)) != "":
            raise UsageError(f"{part.id}: {difference} as in {first.id}, expected parts of one run")
    count = _parse_shard(first)[1]
    numbers = [_parse_shard(part)[0] for part in parts]
    if twice := [n for n in set(numbers) if numbers.count(n) > 1]:
        ids = ", ".join(part.id for part in parts if _parse_shard(part)[0] == twice[0])
        raise UsageError(f"shard {twice[0]}/{count} was given more than once: {ids}")
    if missing := [f"{n}/{count}" for n in range(1, count + 1) if n not in numbers]:
        raise UsageError(
            f"{'shards' if len(missing) > 1 else 'shard'} {', '.join(missing)} missing; name "
            "the directory, or see what there is with: conformance report DIR..."
        )
    _check_disjoint(parts)
    return parts


def _check(run: LoadedRun) -> None:
    """Check one shard. It is untrusted input, and its ids become names of files and pages.

    Raises:
        UsageError: If its plan and its records differ, or an id of a job or nightly is malformed.
    """
    nights = run.info.request.get("nights", ())
    if not (isinstance(nights, list | tuple) and all(isinstance(night, str) for night in nights)):
        raise UsageError(f"{run.id}: expected the names of nightlies in its request")
    planned = set(run.info.plan)
    ended = {(record.case, record.cell) for record in run.records}
    for case, cell in planned | ended:
        if not (_CASE.fullmatch(case) and _CELL.fullmatch(cell)):
            raise UsageError(f"{run.id}: got a job {case!r} on {cell!r}, expected ids of a run")
    if len(planned) < len(run.info.plan):
        raise UsageError(f"{run.id}: its plan names a job twice, expected each once")
    if left := [job for job in run.info.plan if job not in ended]:
        raise UsageError(
            f"{run.id}: {plural(len(left), 'job')} not ended; the first is {_name_job(left[0])}; "
            "finish the shard with conformance run --resume"
        )
    if strange := sorted(ended - planned):
        raise UsageError(
            f"{run.id}: holds a record of {_name_job(strange[0])}, which is not planned"
        )


def _check_disjoint(parts: Sequence[LoadedRun]) -> None:
    owners: dict[tuple[str, str], str] = {}
    for part in parts:
        for job in part.info.plan:
            if (owner := owners.setdefault(job, part.id)) != part.id:
                raise UsageError(f"{_name_job(job)} is planned in {owner} and in {part.id}")


def _name_job(job: tuple[str, str]) -> str:
    case, cell = job
    return f"{case} on {cell}"


def merge_shards(parts: Sequence[LoadedRun]) -> tuple[RunInfo, list[Record]]:
    """Return the merged `run.json` of shards, without its end, and their records in order.

    Args:
        parts: The shards, in order.
    """
    infos = [part.info for part in parts]
    cells: dict[str, RunCell] = {}
    for cell in chain.from_iterable(info.cells for info in infos):
        # A shard that could not provide a cell has no lock of it; another shard may.
        if cell.lock or cell.id not in cells:
            cells[cell.id] = cell
    whole = replace(
        infos[0],
        started=min(info.started for info in infos),
        finished=max(info.finished for info in infos),
        request={**infos[0].request, "shard": WHOLE},
        cells=tuple(cells.values()),
        identities=_merge_tables(info.identities for info in infos),
        exclusions=_merge_exclusions(infos),
        plan=tuple(chain.from_iterable(info.plan for info in infos)),
        cases=_merge_tables(info.cases for info in infos),
    )
    records = {(record.case, record.cell): record for part in parts for record in part.records}
    return whole, [records[job] for job in whole.plan]


def _resolve_nights(parts: Sequence[LoadedRun]) -> list[LoadedRun]:
    nights = [make_stable_cell_ids(night.info.request.get("nights", ())) for night in parts]
    names_by_place = {
        place: cell
        for night in nights
        for cell, place in night.items()
        if not is_unresolved_id(cell)
    }
    made = []
    for part, night in zip(parts, nights, strict=True):
        names = {cell: names_by_place.get(place, cell) for cell, place in night.items()}
        # Resolved ids stay, even if another shard has resolved the nightly differently.
        unresolved = {cell: name for cell, name in names.items() if is_unresolved_id(cell)}
        made.append(_rename_cells(part, unresolved) if unresolved else part)
    return made


def _rename_cells(part: LoadedRun, names: Mapping[str, str]) -> LoadedRun:
    """Return a shard with other names for some cells."""
    info = part.info
    nights = [names.get(cell, cell) for cell in info.request["nights"]]
    return replace(
        part,
        info=replace(
            info,
            request={**info.request, "nights": nights},
            cells=tuple(replace(cell, id=names.get(cell.id, cell.id)) for cell in info.cells),
            plan=tuple((case, names.get(cell, cell)) for case, cell in info.plan),
            exclusions=tuple(
                replace(entry, cell=names.get(entry.cell, entry.cell)) for entry in info.exclusions
            ),
        ),
        records=tuple(
            replace(entry, cell=names.get(entry.cell, entry.cell)) for entry in part.records
        ),
    )


def _merge_exclusions(infos: Sequence[RunInfo]) -> tuple[Exclusion, ...]:
    """Return the exclusions that hold for the whole run: another host may have run a job."""
    ran = set(chain.from_iterable(info.plan for info in infos))
    # The exclusion of a whole cell does not hold either if any of its jobs ran.
    ran.update([("", cell) for _, cell in ran])
    found: dict[tuple[str, str], Exclusion] = {}
    for exclusion in chain.from_iterable(info.exclusions for info in infos):
        found.setdefault((exclusion.case, exclusion.cell), exclusion)
    return tuple(exclusion for key, exclusion in found.items() if key not in ran)


def _merge_tables(parts: Iterable[dict[str, Any]]) -> dict[str, Any]:
    return {name: value for part in parts for name, value in part.items()}


def _parse_shard(run: LoadedRun) -> tuple[int, int]:
    """Return the number of a shard and the count of shards."""
    found = _SHARD.fullmatch(str(run.info.request.get("shard", "")))
    if found is None or not 1 <= int(found[1]) <= int(found[2]):
        raise UsageError(f"{run.id}: does not say which shard it is, expected a part of a run")
    return int(found[1]), int(found[2])


def _find_mismatch(run: LoadedRun, other: LoadedRun) -> str:
    """Return how two shards differ although they must not, empty if they do not."""
    requests = (_normalise_request(run), _normalise_request(other))
    if requests[0] != requests[1]:
        names = [n for n in requests[0] | requests[1] if requests[0].get(n) != requests[1].get(n)]
        return f"was not run with the same {', '.join(names)}"
    if _parse_shard(run)[1] != _parse_shard(other)[1]:
        return "has not the same number of shards"
    kits = run.info.versions.get("kit"), other.info.versions.get("kit")
    return "" if kits[0] == kits[1] else "has not the same version of the harness"


def _normalise_request(run: LoadedRun) -> dict[str, Any]:
    """Return the request without the shard, with paths relative to the project."""
    # Runners may have their checkouts in different folders.
    option = {name: option for name, option in run.info.request.items() if name != "shard"}
    return {name: _relativise(option, f"{run.info.root}/") for name, option in option.items()}


def _relativise(option: Any, root: str) -> Any:
    if isinstance(option, str):
        return option.removeprefix(root)
    return (
        [_relativise(item, root) for item in option] if isinstance(option, list | tuple) else option
    )
