"""Kill -9 of a run's processes at random moments: is everything as if nothing had been?

`python benchmarks/attack/kills.py [--times 100] [--first 0] [--folder DIR]`. Each trial runs cases
of this project in two cells, some make the environments too, kills the orchestrator, a job or a
fork server at a random moment, resumes until the run ends, and compares records, artifacts, cache,
processes and files with those of a run that nobody disturbed. Trials that show a problem keep their
folder when one is named.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections import Counter
from itertools import count
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.faults.killing import VICTIMS, Trials

SHOWN, WIDTH = 5, 300
MAKING = 10
"""Of so many trials one makes the environments, too."""


def main() -> int:
    """Run trials until enough were killed, a line each, and print how many went well."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--times", type=int, default=100)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    good, killed = Counter[str](), Counter[str]()
    with tempfile.TemporaryDirectory(prefix="kills-") as scratch:
        trials = Trials(given.folder.absolute() if given.folder else Path(scratch))
        trials.begin()
        print(f"undisturbed: {len(trials.whole)} jobs, {trials.seconds:.1f} s", flush=True)
        for number in count(given.first):
            if killed.total() == given.times:
                break
            victim = VICTIMS[number % len(VICTIMS)]
            moment = random.Random(number).random()  # noqa: S311 - the same moments each time
            told = trials.trial(number, victim, moment, making=number % MAKING == 0)
            killed[victim] += told.killed
            good[victim] += told.killed and not told.problems
            ending = f"resumed {told.resumed}" if told.killed else "had ended before"
            print(f"{number}: {victim} at {told.moment:.2f} s, {told.recorded} recorded, {ending}")
            shown = (f"    {problem}"[:WIDTH] for problem in told.problems[:SHOWN])
            print(*shown, sep="\n", end="\n" if told.problems else "", flush=True)
    for victim in VICTIMS:
        print(f"{victim}: killed {killed[victim]} times, {good[victim]} ended as undisturbed")
    return 0 if good == killed else 1


if __name__ == "__main__":
    sys.exit(main())
