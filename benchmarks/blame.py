"""Searches for the package to blame: environments tried, in simulated and in real worlds.

    python benchmarks/blame.py [--real]

In the simulated worlds one package, two together, or either of two make the change; in some a share
of the mixtures is unresolved. With `--real`, scripts with a documented answer are searched by the
whole command twice: the second time its environments are provisioned.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
from itertools import combinations
from pathlib import Path
from statistics import mean
from time import perf_counter
from typing import TYPE_CHECKING

from conformance.search.ddmin import SetResult, SetTest, minimize_all
from conformance.triage.blame.mixtures import make_units

if TYPE_CHECKING:
    from conformance.triage.blame.mixtures import Unit

SCRIPTS = Path(__file__).parent / "behaviour_changes" / "scripts"
REAL = (
    ("float_of_vector.py", "0.9.0.1", "0.9.2", {"numpy"}),
    ("ml_dtypes_e8m0.py", "0.4.30", "0.4.33", {"ml-dtypes"}),
    ("flax_list_of_layers.py", "0.7.2", "0.8.1", {"flax"}),
    ("pmap_sharding.py", "0.7.2", "0.8.0", {"jax", "jaxlib"}),
)
"""Script, both ends, and the packages to blame, as in `answers.toml`."""
COUNTS = (8, 16, 30)
WORLDS = 300
ENDS = 2
"""Environments of the two ends, which every search tries."""


def main() -> None:
    """Search and print."""
    for count in COUNTS:
        for silent in (0.0, 0.1, 0.3):
            simulate(count, silent)
    for row in REAL if "--real" in sys.argv[1:] else ():
        measure_command(*row)


def simulate(count: int, silent: float) -> None:
    """Search worlds with a number of packages, in which a share of the mixtures is unresolved."""
    names = [f"p{number}" for number in range(count)]
    chance = random.Random(count)  # noqa: S311 - no secret
    pairs = list(combinations(names, 2))
    kinds = {
        "one": [[{name}] for name in names],
        "two together": [[set(pair)] for pair in pairs],
        "one of two": [[{one}, {other}] for one, other in pairs],
    }
    for kind, worlds in kinds.items():
        chosen = worlds if len(worlds) < WORLDS else chance.sample(worlds, WORLDS)
        results = [search_world(names, enough, silent, chance) for enough in chosen]
        counts = [number for number, _ in results]
        right = sum(exact for _, exact in results)
        print(
            f"{count:3} packages, {kind:12}, {silent:4.0%} say nothing: "
            f"{mean(counts):5.1f} environments, at most {max(counts):3}; "
            f"exact {right} of {len(results)}"
        )


def search_world(
    names: list[str], enough: list[set[str]], silent: float, chance: random.Random
) -> tuple[int, bool]:
    """Search one world; return the number of environments, and whether the answer is exact."""
    units = make_units(names, {})
    trials = 0

    def test(chosen: tuple[Unit, ...]) -> SetResult:
        nonlocal trials
        trials += 1
        if chance.random() < silent:
            return SetResult.UNRESOLVED
        moved = {name for unit in chosen for name in unit}
        is_enough = any(one <= moved for one in enough)
        return SetResult.ENOUGH if is_enough else SetResult.NOT_ENOUGH

    known = {frozenset(units.order): SetResult.ENOUGH}
    found, _ = minimize_all(SetTest(units, test, known))
    blamed = [{name for unit in guilty.culprits for name in unit} for guilty in found]
    return trials + ENDS, sorted(map(sorted, blamed)) == sorted(map(sorted, enough))


def measure_command(script: str, before: str, after: str, culprits: set[str]) -> None:
    """Run the whole command twice; the second time its environments are provisioned."""
    for how in ("as it comes", "warm"):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "found.json"
            start = perf_counter()
            subprocess.run(
                [
                    *(sys.executable, "-m", "conformance", "blame", str(SCRIPTS / script)),
                    *(before, after, "--fresh", "--json", str(file)),
                ],
                capture_output=True, check=True,
            )  # fmt: skip
            took = perf_counter() - start
            found = json.loads(file.read_text())
        named = {one["package"] for one in found["culprits"]}
        cells = len({step["cell"] for step in found["steps"]})
        print(
            f"{script:24} {before} to {after}, {len(found['packages'])} packages: "
            f"{', '.join(sorted(named))} {'right' if named == culprits else 'WRONG'}, "
            f"{cells} environments, {took:.1f} s {how}",
            flush=True,
        )


if __name__ == "__main__":
    main()
