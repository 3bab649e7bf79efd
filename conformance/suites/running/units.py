"""Dividing the tests of a cell into units that one worker runs in a row. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from conformance.engine.job import Job

PIECES: Final = 8
"""Into how many pieces, of the share that a worker has in all, a large file is divided."""
LARGE: Final = 0.5
"""Part of such a share from which a file is divided, if that is safe."""


def divide(
    jobs: Sequence[Job],
    workers: int,
    bounds: Mapping[str, str],
    weigh: Callable[[Job], float],
    *,
    intact: bool = False,
) -> list[list[Job]]:
    """Divide tests of a cell into units.

    The tests of a file stay together, and in their order. One worker runs all as pytest would;
    for several the longest come first, and a file that makes up a large part is divided: tests
    that have a fixture in common, as far as its scope says, stay together all the same.

    Args:
        jobs: The tests, in the order they were collected.
        workers: Workers at the same time.
        bounds: Widest scope of the fixtures of each test, by its name.
        weigh: Says how long a test takes.
        intact: Whether no file is divided: its tests may depend on those before them.
    """
    files: dict[object, list[Job]] = {}
    packages = {
        job.case.file.parent for job in jobs if bounds.get(job.case.name, "module") == "package"
    }
    for job in jobs:
        folder = job.case.file.parent
        whole = next((f for f in (folder, *folder.parents) if f in packages), None)
        files.setdefault(whole or job.case.file, []).append(job)
    if workers == 1:
        return list(files.values())
    share = sum(map(weigh, jobs)) / workers
    units = []
    for key, own in files.items():
        fits = sum(map(weigh, own)) <= LARGE * share
        apart = not (intact or fits or key in packages)
        units += _pieces(own, share / PIECES, bounds, weigh) if apart else [own]
    return sorted(units, key=lambda unit: -sum(map(weigh, unit)))


def _pieces(
    jobs: Iterable[Job], size: float, bounds: Mapping[str, str], weigh: Callable[[Job], float]
) -> list[list[Job]]:
    """Divide a file into pieces of about a size, where nothing binds its tests."""
    pieces: list[list[Job]] = []
    filled, before = 0.0, ""
    for atom in _atoms(jobs, bounds):
        weight = sum(map(weigh, atom))
        function = _function(atom[0])
        # A function that does not fit begins a piece: its programs are compiled once only.
        room = size if function == before else size / 2
        if not pieces or filled + weight > room:
            pieces.append([])
            filled = 0.0
        pieces[-1] += atom
        filled += weight
        before = function
    return pieces


def _atoms(jobs: Iterable[Job], bounds: Mapping[str, str]) -> Iterable[list[Job]]:
    """Return tests as they are bound to one another, each with its like."""
    atoms: dict[object, list[Job]] = {}
    for job in jobs:
        function = _function(job)
        match bounds.get(job.case.name, "module"):
            case "function":
                key: object = job.id
            case "class" if "::" in function.partition("::")[2]:
                key = function.rpartition("::")[0]
            case _:
                key = None
        atoms.setdefault(key, []).append(job)
    return atoms.values()


def _function(job: Job) -> str:
    return job.case.name.partition("[")[0]
