"""Shards of a plan, balanced by how long jobs took in earlier runs. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field, replace
from itertools import chain, groupby
from statistics import median
from typing import TYPE_CHECKING, Any, Final

import msgspec

from conformance.cells.cell import is_unresolved_id
from conformance.cells.nightly import stable_cell_ids
from conformance.errors import UsageError
from conformance.files import MALFORMED
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from conformance.engine.job import Job
    from conformance.model.record import Record

    Seconds = Callable[[Job], float]
    from collections.abc import Mapping

    from conformance.engine.run_loader import LoadedRun
    from conformance.model.run import Exclusion, RunCell, RunInfo


OPEN = 20.0
"""Seconds that a runner takes to provide a cell's environment and to start its worker there."""
_ROUNDING = 1e-9
_STEPS = 60
"""Halvings of the interval in which the shortest time is."""
FILE_NAME: Final = "durations.json"
"""In the folder of the matrices, where every runner has the same."""
UNKNOWN: Final = 1.0
"""Seconds of a job where nothing at all is known."""
_KIND: Final = re.compile(r"-(cpu|gpu|tpu|cuda|rocm)(?=[\d.-]|$)")


@dataclass(slots=True)
class Shard:
    """A part of a plan: jobs that follow one another, so that it has few cells.

    Attributes:
        runner: Accelerator that its host must have, empty for none.
        jobs: The jobs.
        seconds: How long they take, one after another.
    """

    runner: str
    jobs: list[Job] = field(default_factory=list)
    seconds: float = 0.0


def get_required_accelerator(job: Job) -> str:
    """Return the accelerator that a job's host must have, `gpu` or `tpu`; empty for none."""
    place = job.planned.cell.place
    return place.kind if place.real else ""


def split_into_shards(jobs: Sequence[Job], count: int, seconds: Seconds) -> list[Shard]:
    """Return parts that take about as long as one another; together they are the whole, in order.

    No part has jobs for hosts of different kinds, unless there are fewer parts than kinds.

    Args:
        jobs: Jobs in the order of a plan: those of a cell together.
        count: Number of parts.
        seconds: How long a job takes.

    Returns:
        As many parts as asked for, or as there are jobs if those are fewer.
    """
    kinds = [list(some) for _, some in groupby(jobs, get_required_accelerator)]
    if len(kinds) > count:
        kinds = [list(jobs)]
    least = max(map(seconds, jobs), default=0.0)
    # A sum depends on its order: one part must be enough for all, whatever is added first.
    most = (sum(map(seconds, jobs)) + OPEN * len(jobs)) * (1 + _ROUNDING)
    for _ in range(_STEPS):
        middle = (least + most) / 2
        if len(_fill(kinds, middle, seconds)) > count:
            least = middle
        else:
            most = middle
    found = _fill(kinds, most, seconds)
    while len(found) < min(count, len(jobs)):
        _halve(found, seconds)
    return found


def _fill(kinds: Iterable[Sequence[Job]], limit: float, seconds: Seconds) -> list[Shard]:
    """Return as few parts as do not take longer than a limit, or have one job."""
    found = []
    for jobs in kinds:
        shard = Shard(next(filter(None, map(get_required_accelerator, jobs)), ""))
        for job in jobs:
            if shard.jobs and shard.seconds + _more(shard, job, seconds) > limit:
                found.append(shard)
                shard = Shard(shard.runner)
            shard.seconds += _more(shard, job, seconds)
            shard.jobs.append(job)
        found.append(shard)
    return found


def _more(shard: Shard, job: Job, seconds: Seconds) -> float:
    """Return how much longer a part takes with one more job."""
    opened = bool(shard.jobs) and shard.jobs[-1].planned is job.planned
    return seconds(job) + (0.0 if opened else OPEN)


def _halve(found: list[Shard], seconds: Seconds) -> None:
    """Make two parts of the longest that has several jobs."""
    place = max((n for n, one in enumerate(found) if len(one.jobs) > 1),
                key=lambda n: found[n].seconds)  # fmt: skip
    longest = found[place]
    first, second = Shard(longest.runner), Shard(longest.runner)
    for number, job in enumerate(longest.jobs):
        last = number == len(longest.jobs) - 1
        half = first.seconds + _more(first, job, seconds) > longest.seconds / 2
        into = second if second.jobs or (first.jobs and (half or last)) else first
        into.seconds += _more(into, job, seconds)
        into.jobs.append(job)
    found[place : place + 1] = [first, second]


class Durations(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How long jobs take.

    Attributes:
        seconds: Seconds by kind of platform, and by case.
    """

    seconds: dict[str, dict[str, float]] = msgspec.field(default_factory=dict)

    def of(self, job: Job) -> float:
        """Return how long a job takes, in seconds.

        Of a case that is not known on a kind of platform that is what cases take there.

        Args:
            job: The job.
        """
        known = self.seconds.get(job.planned.cell.place.kind, {})
        if job.case.id in known:
            return known[job.case.id]
        return median(known.values()) if known else UNKNOWN

    def encoded(self) -> bytes:
        """Return it as a file, a case a line, in the same order each time."""
        ordered = {kind: dict(sorted(of.items())) for kind, of in sorted(self.seconds.items())}
        text = msgspec.json.encode({"seconds": ordered})
        return msgspec.json.format(text, indent=1) + b"\n"


def update_durations(records: Iterable[Record], before: Durations) -> Durations:
    """Return what runs tell of durations; what they do not tell of stays as it was.

    Args:
        records: Records of any runs, with the seconds that each job took.
        before: What was known.
    """
    seen: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for record in records:
        named, took = _KIND.search(record.cell), record.seconds.get("job")
        if named is not None and took:
            seen[named[1]][record.case].append(took)
    found = {kind: dict(of) for kind, of in before.seconds.items()}
    for kind, of in seen.items():
        middles = {case: round(median(took), 2) for case, took in of.items()}
        found[kind] = {**found.get(kind, {}), **middles}
    return Durations(seconds=found)


def decode_durations(content: bytes, name: str) -> Durations:
    """Return what a file says.

    Args:
        content: The file.
        name: What it is called, for the message.

    Raises:
        UsageError: If it does not contain durations.
    """
    try:
        return msgspec.json.decode(content, type=Durations)
    except MALFORMED as error:
        raise UsageError(
            f"{name}: expected durations of jobs: {str(error).lower()}; make it anew with "
            "conformance plan --learn RUN"
        ) from None


WHOLE = "1/1"
_SHARD: Final = re.compile(r"([1-9][0-9]{0,5})/([1-9][0-9]{0,5})")
# Pages and files are named after ids: a family of two dots would be the folder above.
_CASE: Final = re.compile(r"(?!\.{1,2}/)[^/\x00-\x1f\x7f]+/[^\x00-\x1f\x7f]+")
_CELL: Final = re.compile(r"(?!\.{1,2}\Z)[^/\x00-\x1f\x7f]+")


def order_shards(runs: Iterable[LoadedRun]) -> list[LoadedRun]:
    """Return the parts of one run in their order.

    A nightly that one of them could not tell is called as the others call it.

    Args:
        runs: The parts, in any order.

    Raises:
        UsageError: If one is missing or there twice, did not end, is of another run, or holds
            what no run writes.
    """
    given = list(runs)
    for one in given:
        _check(one)
    parts = sorted(_with_nights_of_all(given), key=lambda run: _shard(run)[0])
    first = parts[0]
    for one in parts:
        if (what := _differs(first, one)) != "":
            raise UsageError(f"{one.id}: {what} as in {first.id}, expected parts of one run")
    count = _shard(first)[1]
    numbers = [_shard(one)[0] for one in parts]
    if twice := [n for n in set(numbers) if numbers.count(n) > 1]:
        ids = ", ".join(one.id for one in parts if _shard(one)[0] == twice[0])
        raise UsageError(f"shard {twice[0]}/{count} is there more than once: {ids}")
    if missing := [f"{n}/{count}" for n in range(1, count + 1) if n not in numbers]:
        raise UsageError(
            f"{'shards' if len(missing) > 1 else 'shard'} {', '.join(missing)} missing; name "
            "the directory, or see what there is with: conformance report DIR..."
        )
    _check_disjoint(parts)
    return parts


def _check(run: LoadedRun) -> None:
    """Check a part by itself: it may come from elsewhere, and its ids name files and pages.

    Raises:
        UsageError: If its plan and its records are not of the same jobs, or it names jobs or
            nightlies in a way that no run does.
    """
    nights = run.info.request.get("nights", ())
    if not (isinstance(nights, list | tuple) and all(isinstance(one, str) for one in nights)):
        raise UsageError(f"{run.id}: expected the names of nightlies in its request")
    planned = set(run.info.plan)
    ended = {(one.case, one.cell) for one in run.records}
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
    """Return the run that parts make: what is said of it but its end, and its records, in order.

    Args:
        parts: The parts, in order.
    """
    infos = [one.info for one in parts]
    cells: dict[str, RunCell] = {}
    for cell in chain.from_iterable(info.cells for info in infos):
        # A part that could not have a cell knows less of it than the others.
        if cell.lock or cell.id not in cells:
            cells[cell.id] = cell
    whole = replace(
        infos[0],
        started=min(info.started for info in infos),
        finished=max(info.finished for info in infos),
        request={**infos[0].request, "shard": WHOLE},
        cells=tuple(cells.values()),
        identities=_join(info.identities for info in infos),
        exclusions=_left_out(infos),
        plan=tuple(chain.from_iterable(info.plan for info in infos)),
        cases=_join(info.cases for info in infos),
    )
    records = {(one.case, one.cell): one for run in parts for one in run.records}
    return whole, [records[job] for job in whole.plan]


def _with_nights_of_all(parts: Sequence[LoadedRun]) -> list[LoadedRun]:
    nights = [stable_cell_ids(one.info.request.get("nights", ())) for one in parts]
    told = {
        place: cell for one in nights for cell, place in one.items() if not is_unresolved_id(cell)
    }
    made = []
    for part, one in zip(parts, nights, strict=True):
        names = {cell: told.get(place, cell) for cell, place in one.items()}
        untold = {cell: name for cell, name in names.items() if is_unresolved_id(cell)}
        made.append(_rename_cells(part, untold) if untold else part)
    return made


def _rename_cells(part: LoadedRun, names: Mapping[str, str]) -> LoadedRun:
    """Return a part in which some cells are called otherwise."""
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
                replace(one, cell=names.get(one.cell, one.cell)) for one in info.exclusions
            ),
        ),
        records=tuple(replace(one, cell=names.get(one.cell, one.cell)) for one in part.records),
    )


def _left_out(infos: Sequence[RunInfo]) -> tuple[Exclusion, ...]:
    """Return what no part ran: what the host of the first cannot have, another's may."""
    ran = set(chain.from_iterable(info.plan for info in infos))
    ran.update([("", cell) for _, cell in ran])
    found: dict[tuple[str, str], Exclusion] = {}
    for one in chain.from_iterable(info.exclusions for info in infos):
        found.setdefault((one.case, one.cell), one)
    return tuple(one for key, one in found.items() if key not in ran)


def _join(parts: Iterable[dict[str, Any]]) -> dict[str, Any]:
    return {name: one for part in parts for name, one in part.items()}


def _shard(run: LoadedRun) -> tuple[int, int]:
    """Return which part of how many a run is."""
    found = _SHARD.fullmatch(str(run.info.request.get("shard", "")))
    if found is None or not 1 <= int(found[1]) <= int(found[2]):
        raise UsageError(f"{run.id}: does not say which shard it is, expected a part of a run")
    return int(found[1]), int(found[2])


def _differs(one: LoadedRun, other: LoadedRun) -> str:
    """Return what two parts do not have in common although they must, empty if nothing."""
    requests = (_request(one), _request(other))
    if requests[0] != requests[1]:
        names = [n for n in requests[0] | requests[1] if requests[0].get(n) != requests[1].get(n)]
        return f"was not asked for the same {', '.join(names)}"
    if _shard(one)[1] != _shard(other)[1]:
        return "is not one of as many shards"
    kits = one.info.versions.get("kit"), other.info.versions.get("kit")
    return "" if kits[0] == kits[1] else "has not the same version of the harness"


def _request(run: LoadedRun) -> dict[str, Any]:
    """Return what was asked for but the part; paths as seen from the folder of the project."""
    said = {name: said for name, said in run.info.request.items() if name != "shard"}
    return {name: _from_root(one, f"{run.info.root}/") for name, one in said.items()}


def _from_root(said: Any, root: str) -> Any:
    if isinstance(said, str):
        return said.removeprefix(root)
    return [_from_root(one, root) for one in said] if isinstance(said, list | tuple) else said
