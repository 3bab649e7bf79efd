"""Putting the parts of one run together: what they are, in the end, is the run undivided. Pure."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from conformance.cells.cell import is_unresolved_id
from conformance.cells.nightly import stable_cell_ids
from conformance.errors import UsageError
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from conformance.engine.run_loader import LoadedRun
    from conformance.model.record import Record
    from conformance.model.run import Exclusion, RunCell, RunInfo

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
