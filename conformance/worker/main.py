"""Entry of the worker process: `python -s main.py serve|spawn|job FD`.

Run as a script by the cell's own interpreter, which does not have the project installed: the
package `conformance` is made here, with nothing but `kit` and `worker` to import, so that nothing
of the orchestrator's environment is put on the cell's path.
"""

import sys
import types
from pathlib import Path


def main(mode: str, fd: int) -> None:
    """Run the server, or one spawned job.

    Args:
        mode: `serve` (fork a child per job), `spawn` (a fresh interpreter per job) or `job`.
        fd: Descriptor frames are written to.
    """
    here = Path(__file__).resolve().parent
    # Python puts the folder of a script first: `import values` in a case would find our module.
    sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != here]
    package = types.ModuleType("conformance")
    package.__path__ = [str(here.parent)]
    sys.modules["conformance"] = package
    from conformance.worker import server  # the package exists only now

    if mode == "job":
        server.run_spawned_job(fd)
    else:
        server.Server(0, fd, spawn=mode == "spawn").serve()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
