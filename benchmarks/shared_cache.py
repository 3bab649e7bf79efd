"""Measures the shared cache: a second runner with an empty local cache, nothing has changed.

    python benchmarks/shared_cache.py [--cells SELECTOR] [--url URL]

Every case of this checkout on every release: real cells, goldens and keys, and judged records with
the IRs of a sample, so that no jax is started. The first runner stores them with `--cache-write`'s
classes. The second one is the command `conformance run`, three times: with an empty local cache and
the shared cache, again with the local copies of that, and with a local cache that has run the jobs.
Without `--url` the cache is moto's S3 server on this machine, which shares its cores.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from common import ROOT, checkout_context

from conformance.app.session import Session
from conformance.cache_folder import SHARED_URL, SHARED_WRITE, VARIABLE
from conformance.engine.cache.verdicts import group_by_file
from conformance.engine.job import FinishedJob
from conformance.engine.plan import make_plan
from conformance.engine.record_judge import make_record
from conformance.model.outcome import Conformance, Outcome, Stage, Verdict
from conformance.model.value import Leaf, Value, encode_value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.engine.cache.blobs import BlobStore
    from conformance.engine.job import Job
    from conformance.model.record import Record

SAMPLES = ROOT / "tests" / "ir" / "samples" / "cpu" / "0.12.0.1" / "while_collectives"
"""IRs of every record: records hold their fingerprints and facts in addition to values."""
SERVER = "from moto.server import main; import sys; main(['-H', '127.0.0.1', '-p', sys.argv[1]])"
PORT = 5059
LONGEST = 300
"""Seconds of a run."""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--cells", default=">=0.4.30", help="the cells, a selector")
    parser.add_argument("--url", help="the shared cache, for which the environment has credentials")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, serve(options.url) as url:
        folder = Path(name)
        os.environ[SHARED_URL] = url
        start = time.perf_counter()
        count, files = fill(folder / "first", options.cells)
        seconds = time.perf_counter() - start
        print(f"first runner: {count:,} records, {files:,} case files stored in {seconds:.1f} s")
        figures = {}
        for label, cache, shared in (
            ("empty local cache", "second", url),
            ("again, copies of records in the local cache", "second", url),
            ("everything in the local cache, no shared one", "first", "none"),
        ):
            figures[label] = run(folder, folder / cache, shared, options.cells, count)
        first, *_, last = figures.values()
        print(f"the shared cache takes {first / last:.1f} times as long as the local one")


def fill(cache: Path, selector: str) -> tuple[int, int]:
    """Store a judged record of every job, as a run does; return the numbers of jobs and files."""
    os.environ |= {VARIABLE: str(cache), SHARED_WRITE: "1"}
    context = checkout_context()
    session = Session(context=context)
    cells, _ = context.select_cells(None, [selector])
    preparation = session.prepare(cells)
    cases = context.select_cases(())
    plan = make_plan(cases, preparation.cells, preparation.exclusions)
    blobs = session.results.blobs
    like = make_like(plan.jobs[0], blobs)
    files = [(jobs, [make_judged(job, like, blobs) for job in jobs]) for jobs in
             group_by_file(plan.jobs)]  # fmt: skip
    session.results.put_files(files)
    session.results.share_files(files, len(plan.jobs))
    del os.environ[SHARED_WRITE]
    return len(plan.jobs), len(files)


def make_like(job: Job, blobs: BlobStore) -> Record:
    """Return a record with the IRs of the sample, analysed once."""
    texts = {
        "hlo": SAMPLES.with_suffix(".hlo").read_bytes(),
        "stablehlo": SAMPLES.with_suffix(".generic").read_bytes(),
    }
    finished = FinishedJob(job=job, outcome=Outcome.OK, stage=Stage.EXECUTE, blobs=texts)
    return make_record(finished, blobs)


def make_judged(job: Job, like: Record, blobs: BlobStore) -> Record:
    """Return the judged record of a job, with the value of its case."""
    number = hashlib.sha256(job.case.id.encode()).digest() * 8
    leaf = Leaf(path="out", kind="array", dtype="int32", shape=(64,), data=number)
    value = blobs.put(encode_value(Value(structure="*", leaves=(leaf,))))
    return replace(
        like, case=job.case.id, cell=job.planned.cell.id, case_hash=job.case.content_hash,
        cell_hash=job.planned.cell_hash, conformance=Conformance.CONFORMS, verdict=Verdict.MATCH,
        artifacts={**like.artifacts, "value": value, "reference": value},
        seconds={"build": 0.01, "trace": 0.02, "lower": 0.03, "compile": 0.04, "job": 0.123456},
    )  # fmt: skip


def run(folder: Path, cache: Path, url: str, selector: str, count: int) -> float:
    """Run every case with a cache; print and return the seconds of the whole process."""
    result = folder / "result.json"
    env = {**os.environ, "PYTHONPATH": str(ROOT), VARIABLE: str(cache), SHARED_URL: url}
    directory = folder / "run"
    shutil.rmtree(directory, ignore_errors=True)
    command = [
        sys.executable, "-m", "conformance", "run", "--all", "--cell", selector, "--run",
        str(directory), "--json", str(result), "--no-report",
    ]  # fmt: skip
    start = time.perf_counter()
    # A miss would run its job: that is not what is measured, and takes minutes.
    done = subprocess.run(
        command, cwd=ROOT, env=env, capture_output=True, text=True, check=False, timeout=LONGEST
    )
    seconds = time.perf_counter() - start
    records = json.loads(result.read_text(encoding="utf-8"))["results"]
    hits = sum(record["cached"] for record in records)
    note = next((line for line in done.stderr.splitlines() if "cache:" in line), "")
    print(f"{seconds:7.1f} s, {hits:,} of {count:,} hits ({hits / count:.1%}): {note or url}")
    return seconds


@contextmanager
def serve(url: str | None) -> Iterator[str]:
    """Yield the URL of the shared cache; without one, start moto's S3 server with a bucket."""
    if url is not None:
        yield url
        return
    endpoint = f"http://127.0.0.1:{PORT}"
    os.environ |= {
        "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": endpoint, "AWS_ALLOW_HTTP": "true",
    }  # fmt: skip
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER, str(PORT)],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        create_bucket(f"{endpoint}/conformance")
        yield "s3://conformance/benchmark"
    finally:
        server.kill()
        server.wait()


def create_bucket(address: str) -> None:
    """Create a bucket as soon as its server answers."""
    for _ in range(100):
        try:
            request = urllib.request.Request(address, method="PUT")  # noqa: S310 - of this machine
            urllib.request.urlopen(request).close()  # noqa: S310 - the same
        except OSError:
            time.sleep(0.2)
        else:
            return
    raise SystemExit(f"{address}: does not answer")


if __name__ == "__main__":
    main()
