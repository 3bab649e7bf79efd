"""Seconds and memory of `conformance.ir` for small and large modules.

`python benchmarks/ir_speed.py [--big DIR]`. Each pair is measured in a separate process: parsing
both, computing both exact and both canonical forms, and the whole difference.
Targets: a pair of 10,000 instructions in 1.5 s, one of 60,000 in 8 s and 300 MB; small: 30 ms.

Without `--big` the large modules are many copies of a sample, consistently renamed, and the second
of a pair is the first with noise and one change. `--big DIR` also takes real ones, from
`python tests/ir/samples/generate.py --platform big --out OUT` with two releases: DIR is `OUT/big`.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from packaging.version import Version

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from conformance.ir.analysis import parse_ir  # noqa: E402
from conformance.ir.difference import diff  # noqa: E402 - the tests' package is needed
from conformance.ir.normal.forms import to_canonical, to_exact  # noqa: E402
from tests.ir.mutators import MEANING, NOISE  # noqa: E402
from tests.ir.mutators.text import Block, Line  # noqa: E402
from tests.ir.mutators.text import read as lines_of  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable

SAMPLES = ROOT / "tests" / "ir" / "samples"
SMALL = SAMPLES / "cpu" / "0.10.2" / "while_collectives.hlo"
SEED = SAMPLES / "cpu" / "0.12.0.1" / "loops.hlo"
"""Sample of which the large modules are copies."""
REPEATS = 3


def make_copies(text: str, instructions: int) -> str:
    """Return a module that calls renamed copies of another up to a size in instructions."""
    module = lines_of(text)
    size = sum(1 for _ in module.lines())
    entry = module.entry
    blocks: list[Block] = []
    calls: list[Line] = []
    parameters = [p.copy() for p in entry.parameters()]
    for number in range(max(1, instructions // size)):
        copy = lines_of(text)
        renamed = {block.name: f"{block.name}.copy{number}" for block in copy.blocks}
        for block in copy.blocks:
            rename_block(block, f".copy{number}", renamed)
        blocks += copy.blocks
        call = entry.root.copy(name=f"call.{number}", op="call", attributes=[])
        call.operands = [f"%{p.name}" for p in parameters]
        call.attributes = [f"to_apply=%{renamed[entry.name]}"]
        calls.append(call)
    type_ = f"({', '.join(call.type for call in calls)})"
    root = Line("  ", True, "%", "results", type_, "tuple", [f"%{c.name}" for c in calls], [])
    head, _, _ = entry.rest.partition(" -> ")
    lines = [*parameters, *calls, root]
    module.blocks = [
        *blocks,
        Block(True, "%", "everything", f"{head} -> {type_} {{", lines, ["}", ""]),
    ]
    module.put_header("entry_computation_layout", None)
    return str(module)


def rename_block(block: Block, end: str, computations: dict[str, str]) -> None:
    """Rename a computation of a copy, so that names stay unique."""
    block.entry = False
    block.name = computations[block.name]
    names = [p.name for p in block.parameters()]
    for line in block.lines:
        line.operands = line.operands if line.op in {"constant", "parameter"} else [
            operand + end for operand in line.operands
        ]  # fmt: skip
        line.name += end
        line.recall(computations)
    for name in names:
        block.rest = block.rest.replace(f"{name}: ", f"{name}{end}: ", 1)


def change_module(text: str) -> str:
    """Return a module with noise and one change of meaning."""
    rng = Random(1)  # noqa: S311 - reproducible
    for name in ("instructions_renamed", "metadata_changed"):
        text = NOISE[name].run(text, rng) or text
    pair = MEANING["operation_changed"].run(text, rng)
    assert pair is not None, "nothing to change"
    return pair[1]


def measure_pair(first: Path, second: Path) -> dict[str, float]:
    """Return the seconds of each step for a pair, and the peak memory."""
    a, b = first.read_text(encoding="utf-8"), second.read_text(encoding="utf-8")
    found: dict[str, float] = {}
    found["parse"] = time_best(lambda: (parse_ir(a, "hlo"), parse_ir(b, "hlo")))
    modules = parse_ir(a, "hlo"), parse_ir(b, "hlo")
    found["instructions"] = sum(len(c.instructions) for c in modules[0].computations.values())
    start = time.perf_counter()
    for module in modules:
        to_exact(module)
    found["structure"] = time.perf_counter() - start
    start = time.perf_counter()
    for module in modules:
        to_canonical(module)
    found["neutral"] = time.perf_counter() - start
    # The peak memory must be that of the diff, which parses the texts itself.
    del modules
    found["diff"] = time_best(lambda: diff(a, b, kind="hlo"))
    found["entries"] = len(diff(a, b, kind="hlo").changes)
    found["MB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return found


def time_best(work: Callable[[], object]) -> float:
    """Return the shortest of a few runs, in seconds."""
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def print_pair(what: str, first: Path, second: Path) -> None:
    """Measure a pair in a separate process, and print the figures."""
    command = [sys.executable, __file__, "--pair", str(first), str(second)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    micro = found["parse"] / 2 / found["instructions"] * 1e6
    print(
        f"{what:30s} {found['instructions']:7.0f} instructions   parse {found['parse']:7.3f} s "
        f"({micro:.0f} us each)   structure {found['structure']:6.3f} s   "
        f"neutral {found['neutral']:6.3f} s   diff {found['diff']:7.3f} s   "
        f"{found['entries']:.0f} entries   {found['MB']:.0f} MB",
        flush=True,
    )


def main() -> None:
    """Measure every pair."""
    parser = argparse.ArgumentParser(description="Time the IR layer.")
    parser.add_argument("--big", type=Path, help="modules of two releases, made by generate.py")
    parser.add_argument("--pair", type=Path, nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.pair is not None:
        print(json.dumps(measure_pair(*options.pair)))
        return
    with tempfile.TemporaryDirectory() as folder:
        for what, size in (
            ("a small case", 0),
            ("copies, 10,000", 10_000),
            ("copies, 60,000", 60_000),
        ):
            text = make_copies(SEED.read_text(), size) if size else SMALL.read_text()
            first, second = Path(folder, f"a{size}"), Path(folder, f"b{size}")
            first.write_text(text, encoding="utf-8")
            second.write_text(change_module(text), encoding="utf-8")
            print_pair(what, first, second)
    releases = sorted(options.big.iterdir(), key=lambda r: Version(r.name)) if options.big else []
    for name in ("transformer12", "transformer80"):
        files = [file for r in releases if (file := r / f"{name}.full.hlo").exists()]
        for first, second in pairwise(files):
            print_pair(f"{name} {first.parent.name} {second.parent.name}", first, second)


if __name__ == "__main__":
    main()
