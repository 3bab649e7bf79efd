"""Costs of everything except running jobs: discovery, the cache, memory. No jax is started.

`python benchmarks/bookkeeping.py`. Targets: 1,000 cases listed in 0.5 s; 5,000 cached jobs judged
and recorded in 10 s; an unchanged run in a fraction of that; 20,000 results within 300 MB.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import ROOT, format_line, time_call

REPEATS = 5
SAMPLES = ROOT / "tests" / "ir" / "samples" / "cpu" / "0.12.0.1" / "while_collectives"
"""IRs of every record: records hold their fingerprints and facts in addition to values."""
CASE = '''
@program(source="jax-ml/jax#{number}", devices=4, params={{"a": {{"n": 1}}, "b": {{"n": 2}}}})
def case_{number}(env, n):
    """Case {number}."""
    return Program(lambda x: x * n, args=(1.0,))
'''


def write_cases(folder: Path, count: int) -> None:
    """Write `count` case ids in families of 50 functions, two parameters each."""
    for family in range(count // 100):
        path = folder / f"family_{family:02d}" / "topic.py"
        path.parent.mkdir(parents=True)
        head = "from conformance.kit import Program, program\n"
        path.write_text(head + "".join(CASE.format(number=n) for n in range(50)), encoding="utf-8")


def measure_conformance(*arguments: str | Path, cwd: Path, cache: Path) -> str:
    """Run the command line in a separate process; return its stderr, with the peak memory last."""
    code = (
        "import resource, sys; from conformance.cli import main; code = main(sys.argv[1:]);"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)"
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT), "CONFORMANCE_CACHE": str(cache)}
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        cwd=cwd, env=env, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stderr


def fill_cache(cases: Path, cwd: Path, cache: Path, selector: str) -> int:
    """Put a result for every case into the cache, as a run would; return how many."""
    code = f"""
import dataclasses, sys
from pathlib import Path
from conformance.app.context import ProjectContext
from conformance.corpus.discovery import discover, find_case_files
from conformance.engine.cache.results import ResultCache
from conformance.engine.job import FinishedJob, Job
from conformance.engine.record_judge import make_record
from conformance.engine.cache.blobs import BlobStore
from conformance.engine.workers.preparation import prepare_cells
from conformance.model.value import encode_value
from conformance.model.outcome import Outcome, Stage
from conformance.model.value import Leaf, Value
context = ProjectContext(Path({str(cwd)!r}))
cells, _ = context.select_cells(None, ({selector!r},))
ready = prepare_cells(cells, context.releases, folders=context.matrix_folders, cache=context.cache)
cache = ResultCache(context.cache)
blobs = BlobStore(Path({str(cwd)!r}) / "scratch")
samples = Path({str(SAMPLES)!r})
texts = {{"hlo": samples.with_suffix(".hlo").read_bytes(),
          "stablehlo": samples.with_suffix(".generic").read_bytes()}}
count, like = 0, None
for planned in ready.cells:
    for case in discover(find_case_files(Path({str(cases)!r}))):
        number = count.to_bytes(4, "little") * 64
        leaf = Leaf(path="out", kind="array", dtype="float32", shape=(64,), data=number)
        value = blobs.put(encode_value(Value(structure="*", leaves=(leaf,))))
        job = Job(case=case, planned=planned)
        if like is None:  # all records have the same IRs, analysed once
            like = make_record(FinishedJob(job=job, outcome=Outcome.OK, stage=Stage.EXECUTE,
                                      blobs=texts), blobs)
        record = dataclasses.replace(
            like, case=case.id, cell=planned.cell.id, case_hash=case.content_hash,
            cell_hash=planned.cell_hash,
            artifacts={{**like.artifacts, "value": value, "reference": value}})
        cache.put(job, record, blobs)
        count += 1
print(count)
"""
    env = {**os.environ, "PYTHONPATH": str(ROOT), "CONFORMANCE_CACHE": str(cache)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
    )
    return int(done.stdout)


def main() -> None:
    """Print every figure."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        cases, cache = folder / "cases", folder / "cache"
        write_cases(cases, 1000)
        listed = [
            time_call(lambda: measure_conformance("list", cases, "--json", cwd=folder, cache=cache))
            for _ in range(REPEATS)
        ]
        print(format_line("list 1,000 cases, whole process", listed))
        bare = [
            time_call(lambda: measure_conformance("list", "--help", cwd=folder, cache=cache))
        ] * 3
        print(format_line("  of which start-up", bare))
        for cells, repeats in ((">=0.6,<0.7.2", 3), (">=0.4.30,<0.8.2", 1)):
            made = fill_cache(cases, folder, cache, cells)
            result = folder / "out.json"
            took: dict[str, list[float]] = {"judged again": [], "unchanged": []}
            peaks = []
            for _ in range(repeats):
                shutil.rmtree(cache / "settled", ignore_errors=True)
                for runs in took.values():
                    start = time.perf_counter()
                    stderr = measure_conformance(
                        "run", cases, "--cell", cells, "--json", result, cwd=folder, cache=cache
                    )
                    runs.append(time.perf_counter() - start)
                    peaks.append(int(stderr.split()[-1]) / 1024)
            judged = len(json.loads(result.read_text(encoding="utf-8"))["results"])
            for kind, runs in took.items():
                print(format_line(f"run of {judged} cached jobs ({made} in cache), {kind}", runs))
            print(format_line("  peak memory of the orchestrator", peaks, "MB"))


if __name__ == "__main__":
    main()
