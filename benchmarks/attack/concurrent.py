"""Writers of the same goldens at once, some of them killed: is everything recorded in the end?

`python benchmarks/attack/concurrent.py [--pairs 50] [--kill]`. Each pair is two processes that
accept other releases of the same eight documents, one of them through the sweep that removes
contents without a name. With `--kill` the second is killed (kill -9) at a random moment and
started again. Prints one row: pairs, pairs that lost nothing, seconds.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent.parent))

from conformance.golden.store import GoldenStore
from tests.builders import case

ROOT = Path(__file__).resolve().parent.parent.parent
DOCUMENTS = 8
RELEASES = ("0.5.0", "0.6.0")
LONGEST = 2.0
"""Seconds within which the second process is killed."""
WRITER = """
import sys
from pathlib import Path
from conformance.golden.accept import Candidate, apply, plan_accept
from conformance.locking import locked
from conformance.golden.store import GoldenStore
from conformance.golden.sweep import remove_unreferenced
from tests.builders import case, f32, ok

root, release, sweep = Path(sys.argv[1]), sys.argv[2], len(sys.argv) > 3
for number in range(8):
    seen = Candidate(
        case=case(f"family/name{number}"), variant="cpu", release=release,
        observation=ok(f32(float(release[2:]) + number)),
    )
    with locked([root], print):
        apply(plan_accept(GoldenStore(root), [seen], ["0.5.0", "0.6.0"]), env={})
        if sweep:
            remove_unreferenced(root / "family" / "golden" / "topic")
"""


def main() -> int:
    """Run pairs, and print how many lost nothing."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", type=int, default=50)
    parser.add_argument("--kill", action="store_true")
    given = parser.parse_args()
    begun = time.perf_counter()
    whole = 0
    with tempfile.TemporaryDirectory(prefix="concurrent-") as scratch:
        for number in range(given.pairs):
            root = Path(scratch) / str(number)
            root.mkdir()
            whole += pair(root, number, kill=given.kill)
    seconds = time.perf_counter() - begun
    what = "pairs, one killed" if given.kill else "pairs"
    print(f"| concurrent {what} | {given.pairs} | {whole} lost nothing | {seconds:.0f} s |")
    return 0 if whole == given.pairs else 1


def pair(root: Path, number: int, *, kill: bool) -> bool:
    """Run two writers, and return whether all that they recorded can be read."""
    first, second = start(root, RELEASES[0]), start(root, RELEASES[1], "sweep")
    if kill:
        moment = random.Random(number).uniform(0, LONGEST)  # noqa: S311 - the same each time
        time.sleep(moment)
        second.kill()
        second.wait()
        second = start(root, RELEASES[1], "sweep")
    if first.wait() or second.wait():
        return False
    store = GoldenStore(root)
    entries = (
        store.lookup(case(f"family/name{document}"), "cpu", release)
        for document in range(DOCUMENTS)
        for release in RELEASES
    )
    return all(entry is not None and entry.exact for entry in entries)


def start(root: Path, *arguments: str) -> subprocess.Popen[bytes]:
    """Start a writer."""
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", WRITER, str(root), *arguments]
    return subprocess.Popen(command, env=env, stderr=subprocess.DEVNULL)


if __name__ == "__main__":
    sys.exit(main())
