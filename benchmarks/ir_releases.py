"""Counts the IRs that differ between neighbouring releases: as text, exactly, and canonically.

`python benchmarks/ir_releases.py [RUN]` reads a run of the matrix `releases` (the newest run if
none is named), and runs nothing. Patch releases are counted separately: between two of them a
difference should be rare and real.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.version import Version

from conformance.engine.runs.directory import RunDirectory
from conformance.engine.runs.project_runs import ProjectRuns
from conformance.errors import ConformanceError
from conformance.ir.analysis import analyse
from conformance.ir.graph import IRS

if TYPE_CHECKING:
    from conformance.engine.cache.blobs import BlobStore

LEVELS = ("text", "structure", "neutral")


def compute_forms(blobs: BlobStore, blob: str, ir: str) -> tuple[str, str, str]:
    """Return the hashes of a text at each level: as text, in exact and in canonical form."""
    text = blobs.get(blob).decode("utf-8", "surrogatepass")
    try:
        found = analyse(text, ir)
    except ConformanceError:
        return text, text, text
    return blob, found.exact, found.canonical


def main() -> None:
    """Print a line for each pair of neighbouring releases, and the sums."""
    directory = (
        RunDirectory(Path(sys.argv[1]))
        if len(sys.argv) > 1
        else ProjectRuns(Path.cwd()).find_latest()
    )
    forms: dict[str, dict[tuple[str, str], tuple[str, str, str]]] = defaultdict(dict)
    known: dict[tuple[str, str], tuple[str, str, str]] = {}
    for record in directory.read_records():
        release = record.cell.removeprefix("jax").partition("-")[0]
        for ir in IRS:
            blob = record.artifacts.get(ir)
            if blob is not None:
                key = (blob, ir)
                if key not in known:
                    known[key] = compute_forms(directory.blobs, blob, ir)
                forms[release][record.case, ir] = known[key]
    order = sorted(forms, key=Version)
    sums: dict[str, Counter[str]] = {"patch": Counter(), "other": Counter()}
    print(f"{'':20}{'':7}" + "".join(f"{ir:>27}" for ir in IRS))
    for one, other in pairwise(order):
        kind = "patch" if Version(one).release[:2] == Version(other).release[:2] else "other"
        cells = []
        for ir in IRS:
            both = [c for c in forms[one] if c[1] == ir and c in forms[other]]
            counts = [
                sum(forms[one][c][level] != forms[other][c][level] for c in both)
                for level in range(len(LEVELS))
            ]
            sums[kind].update({f"{ir} pairs": len(both)})
            for level, count in zip(LEVELS, counts, strict=True):
                sums[kind].update({f"{ir} {level}": count})
            cells.append("{:>8}{:>6}{:>6} /{:>4}".format(*counts, len(both)))
        print(f"{one:>9} {other:>9} {kind:7}" + " ".join(cells))
    for kind, found in sums.items():
        for ir in IRS:
            levels = ", ".join(f"{level} {found[f'{ir} {level}']}" for level in LEVELS)
            print(f"{kind} pairs, {ir}: {found[f'{ir} pairs']} compared; differ: {levels}")


if __name__ == "__main__":
    main()
