"""Environments of every release, from a warm package cache, and their reuse.

`python benchmarks/provisioning.py [SELECTOR]`. Target: all releases within 60 s. A first pass
into a scratch folder warms uv's package cache; the second is measured, and then their reuse.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from functools import partial
from pathlib import Path

from common import prepare, time_call

from conformance.cells.provision import provision


def main(selector: str) -> None:
    """Print the time to provision the selected cells."""
    preparation = prepare(selector)
    cells = [planned.cell for planned in preparation.cells]

    def provide(cache: Path) -> list[float]:
        locks = preparation.locks
        work = [partial(provision, cell, lock=locks[cell.id], cache=cache) for cell in cells]
        return [time_call(provide_one) for provide_one in work]

    with tempfile.TemporaryDirectory() as scratch:
        provide(Path(scratch) / "warming")
        fresh = provide(Path(scratch) / "measured")
        again = provide(Path(scratch) / "measured")
    print(f"{len(cells)} environments made in {sum(fresh):.1f} s (target 60)")
    print(f"  one: median {statistics.median(fresh):.2f} s, slowest {max(fresh):.2f} s")
    print(f"used again in {1000 * sum(again):.0f} ms")


if __name__ == "__main__":
    main(sys.argv[1] if sys.argv[1:] else ">=0.4.30")
