"""Runs the timed jobs in one long-lived process: the baseline of the isolation benchmark.

Run by the cell's interpreter: `python one_process.py KIT_FOLDER ROUNDS [clear] < requests.json`;
prints the seconds of each job, without the first round, which warms up the process. With `clear`,
no job finds the caches of the job before it.
"""

from __future__ import annotations

import json
import os
import sys
import time
import types
from pathlib import Path


def discard(*_: object) -> None:
    """Ignore the events of a stage."""


def main(kit: Path, rounds: int, *, clear: bool) -> None:
    """Run every request `rounds` times and print how long each took."""
    package = types.ModuleType("conformance")
    package.__path__ = [str(kit.parent)]
    sys.modules["conformance"] = package
    requests = json.load(sys.stdin)
    os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={requests[0]['devices']}"
    import jax  # noqa: PLC0415 - reads the flags

    from conformance.kit import env  # noqa: PLC0415 - the package exists only now
    from conformance.worker import job, stages  # noqa: PLC0415 - the package exists only now

    took = []
    for number in range(rounds + 1):
        for request in requests:
            start = time.perf_counter()
            fn = job.load_case(request["file"], request["family"], request["name"])
            observer = stages.Observer(discard)
            cell = env.CellInfo(**request["cell"])
            observer.observe(fn, request["kind"], env.Env(cell), request["params"])
            if clear:
                jax.clear_caches()
            if number:
                took.append(time.perf_counter() - start)
    print(json.dumps(took))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), clear="clear" in sys.argv[3:])
