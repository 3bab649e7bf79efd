"""Pass bisection: probes in a simulated pipeline of 500, and seconds in real cells.

python benchmarks/pass_bisection.py [CELL ...]
"""

from __future__ import annotations

import itertools
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any

from conformance.search.ddmin import SetResult, SetTest, Units, find_enough, minimize

if TYPE_CHECKING:
    from collections.abc import Iterable

HERE = Path(__file__).resolve().parent
CASES = HERE / "cases_passes"
CELLS = ("0.4.38", "0.5.3", "0.6.2", "0.8.3", "0.12.0.1", "0.8.3@tpu:v5e:2x2")
PROGRAMS = ("division", "both", "loop")
COUNT = 500


def main() -> None:
    """Measure and print."""
    passes = [f"pass-{number}" for number in range(COUNT)]
    singles = [count_probes(passes, {name}) for name in passes]
    print(format_counts(f"probes, one of {COUNT} passes", singles))
    pick = random.Random(0)  # noqa: S311 - which of the pairs are tried
    pairs = pick.sample(list(itertools.combinations(passes, 2)), COUNT)
    print(
        format_counts(
            f"probes, two of {COUNT} passes together", [count_probes(passes, p) for p in pairs]
        )
    )
    for cell in sys.argv[1:] or CELLS:
        for name in PROGRAMS:
            # A compile-only cell gives no value, so the search compares a fact.
            print_search(cell, f"passes/{name}", *(("--fact", "dtypes") if "@" in cell else ()))


def count_probes(passes: list[str], culprits: Iterable[str]) -> int:
    """Return the number of probes of a search, including the unmodified program."""
    wanted, probes = set(culprits), 1

    def test(disabled: tuple[str, ...]) -> SetResult:
        nonlocal probes
        probes += 1
        return SetResult.ENOUGH if wanted <= set(disabled) else SetResult.NOT_ENOUGH

    tested = SetTest(Units(order=tuple(passes)), test)
    assert set(minimize(tested, find_enough(tested).enough, strict=True).culprits) == wanted
    return probes


def print_search(cell: str, case: str, *more: str) -> None:
    """Run the command for a program in a cell, and print a line."""
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder)
        (project / "cases").symlink_to(CASES)
        (project / "matrix").symlink_to(HERE.parent / "matrix")
        file = project / "found.json"
        command = [sys.executable, "-m", "conformance", "passes", case, "--cell", cell, *more]
        start = perf_counter()
        subprocess.run([*command, "--json", file], cwd=project, check=False, capture_output=True)
        whole = perf_counter() - start
        found: dict[str, Any] = json.loads(file.read_text())
    probes = [step for step in found["steps"] if step["what"] == "pass" and not step["again"]]
    spent = [step["seconds"] for step in probes]
    print(
        f"{cell:20} {case:16} {','.join(found['culprits']) or 'none':20} "
        f"{len(probes):3d} probes of {len(found['passes']):3d} passes, {sum(spent):5.2f} s "
        f"(median {1000 * median(spent or [0]):4.0f} ms); the command {whole:5.1f} s"
    )


def format_counts(what: str, counts: list[int]) -> str:
    """Return a line with the median and the range of some counts."""
    return f"{what:44s} {median(counts):5.0f}   ({min(counts)} .. {max(counts)})"


if __name__ == "__main__":
    main()
