"""A process that adds runs to a store: `python -m tests.store.adds_runs WHERE FIRST COUNT`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from conformance.store.database import parse_address
from conformance.store.store import Store
from tests.store.nights import BAD, FINE, night

if TYPE_CHECKING:
    from conformance.engine.runs.digests import JobState

CASES, CELLS = 60, 20


def jobs(number: int) -> dict[tuple[str, str], JobState]:
    """Return the jobs of a run: half of them differ from run to run."""
    return {
        (f"f/case{case}", f"jax0.{cell}.0-py311-cpu8"): BAD if (case * number) % 2 else FINE
        for case in range(CASES)
        for cell in range(CELLS)
    }


def main() -> None:
    """Add runs one after another, and say of each when it begins."""
    where, first, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    store = Store(parse_address(where), sys.exit)
    for number in range(first, first + count):
        sys.stdout.write(f"{number}\n")
        sys.stdout.flush()
        store.add(night(number, jobs(number)))


if __name__ == "__main__":
    main()
