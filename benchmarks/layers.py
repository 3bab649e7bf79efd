"""How faithfully releases repeat each other's computations, and how long a pair takes.

    python benchmarks/layers.py [RELEASE ...]

Each release records the programs of `layers/programs.py`. It repeats its own recording, which must
give the same bits, and that of the release before and after it. Calls that cannot be repeated are
counted. The last line is the time of `layers` for a case of two releases in warm workers.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING

from common import ROOT, checkout_context

from conformance.app.layers.recordings import Recordings
from conformance.app.layers.search import LayerSearch
from conformance.app.search.options import SearchOptions
from conformance.app.session import Session
from conformance.cells.releases import load_releases
from conformance.triage.layers.comparison import summarize_error
from conformance.triage.programs.program import ProgramKind, ProgramTarget

if TYPE_CHECKING:
    from conformance.engine.job import PlannedCell
    from conformance.triage.layers.recording import Recording

PROGRAMS = Path(__file__).parent / "layers" / "programs.py"
CASE = "prng/permutation"
PAIR = ("0.4.38", "0.5.0")
TIMES = 5


def main() -> None:
    """Record, repeat and count."""
    releases = sys.argv[1:] or [*load_releases(ROOT / "matrix").versions]
    context = checkout_context()
    session = Session(context=context)
    cells, _ = context.select_cells(None, [f"{release}@cpu1" for release in releases])
    preparation = session.prepare(cells)
    locks = dict(preparation.locks)
    options = SearchOptions(good="", bad="")
    target = ProgramTarget(kind=ProgramKind.SCRIPT, text=str(PROGRAMS))
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(session.make_warm_executor(locks, slots=1)) as executor,
    ):
        computations = Recordings(
            session=session, target=target, options=options, folder=Path(folder),
            executor=executor, locks=locks,
        )  # fmt: skip
        versions = sorted({computations.get_version(planned) for planned in preparation.cells})
        recordings = [computations.record(planned, versions) for planned in preparation.cells]
        own: Counter[str] = Counter()
        crossed: Counter[str] = Counter()
        for recording, planned in zip(recordings, preparation.cells, strict=True):
            own += count(computations, recording, planned)
        pairs = list(zip(recordings, preparation.cells, strict=True))
        for (older, first), (newer, second) in pairwise(pairs):
            crossed += count(computations, older, second) + count(computations, newer, first)
    print(f"repeated by the release itself: {dict(own)}")
    print(f"repeated by its neighbours: {dict(crossed)}")
    time_pair()


def count(computations: Recordings, recording: Recording, planned: PlannedCell) -> Counter[str]:
    """Return the number of calls by what their repetition shows."""
    replay = computations.repeat(recording, planned)
    found: Counter[str] = Counter()
    for call in recording.calls:
        result = replay.results.get(call.number)
        if call.reasons:
            found["with a reason"] += 1
        elif result is None:
            found["missing"] += 1
        elif (call.error is None) != (result.error is None):
            found["refused or accepted by one"] += 1
            print(f"  {planned.cell.id} {call.name}: {summarize_error(result.error)[1]}")
        elif result.error is not None or result.outputs == call.outputs:
            found["same bits"] += 1
        else:
            found["other bits"] += 1
    return found


def time_pair() -> None:
    """Print the seconds of one pair in warm workers."""
    context = checkout_context()
    session = Session(context=context)
    cells, _ = context.select_cells(None, [*PAIR])
    preparation = session.prepare(cells)
    locks = dict(preparation.locks)
    with closing(session.make_warm_executor(locks, slots=2)) as executor:
        seconds = []
        for _ in range(TIMES + 1):
            with tempfile.TemporaryDirectory() as folder:
                computations = Recordings(
                    session=session, target=context.find_case(CASE), folder=Path(folder),
                    options=SearchOptions(good=PAIR[0], bad=PAIR[1]), executor=executor,
                    locks=locks,
                )  # fmt: skip
                search = LayerSearch(recordings=computations)
                start = perf_counter()
                search.observe(preparation.cells)
                search.compare(PAIR, preparation.cells, required=True)  # type: ignore[arg-type]
                seconds.append(perf_counter() - start)
    print(f"a pair in warm workers: median {median(seconds[1:]):.2f} s, "
          f"at most {max(seconds[1:]):.2f} s")  # fmt: skip


if __name__ == "__main__":
    main()
