"""Kills processes of a run at random moments, resumes it, and checks that nothing is lost.

`python benchmarks/attack/kills.py [--times 100] [--first 0] [--folder DIR] [--cluster]`. Each trial
runs cases of this project in two cells, with SIGKILL for the orchestrator, a job or a fork server
at a random moment, resumes until the run ends, and compares records, artifacts, cache, processes
and files with those of an undisturbed run. One trial of ten also provisions the environments. With
`--cluster` the run is on a Dask cluster of two workers on this host, and its client, a worker, a
nanny or the scheduler is killed. With `--folder`, the folders of trials with a problem are kept.
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

from tests.faults.killing import CLUSTER_VICTIMS, VICTIMS, Trials

SHOWN, WIDTH = 5, 300
MAKING = 10
"""One of so many trials provisions the environments, too."""


def main() -> int:
    """Run trials until enough were killed, a line each, and print how many went well."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--times", type=int, default=100)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--cluster", action="store_true")
    options = parser.parse_args()
    victims = CLUSTER_VICTIMS if options.cluster else VICTIMS
    good, killed = Counter[str](), Counter[str]()
    with tempfile.TemporaryDirectory(prefix="kills-") as scratch:
        trials = Trials(options.folder.absolute() if options.folder else Path(scratch))
        trials.begin()
        trials.clustered = options.cluster
        print(f"undisturbed: {len(trials.whole)} jobs, {trials.seconds:.1f} s", flush=True)
        for number in count(options.first):
            if killed.total() == options.times:
                break
            victim = victims[number % len(victims)]
            moment = random.Random(number).random()  # noqa: S311 - the same moments each time
            making = number % MAKING == 0 and not options.cluster
            result = trials.run_trial(number, victim, moment, making=making)
            killed[victim] += result.killed
            good[victim] += result.killed and not result.problems
            ending = f"resumed {result.resumed}" if result.killed else "had ended before"
            print(
                f"{number}: {victim} at {result.moment:.2f} s, {result.recorded} recorded, {ending}"
            )
            shown = (f"    {problem}"[:WIDTH] for problem in result.problems[:SHOWN])
            print(*shown, sep="\n", end="\n" if result.problems else "", flush=True)
    for victim in victims:
        print(f"{victim}: killed {killed[victim]} times, {good[victim]} ended as undisturbed")
    return 0 if good == killed else 1


if __name__ == "__main__":
    sys.exit(main())
