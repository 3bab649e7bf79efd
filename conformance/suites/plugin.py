"""Run a session of pytest, and report each of its tests as it goes: runs inside a cell.

    python plugin.py serve REPLIES
    python plugin.py session REPLIES ORDER

`serve` starts `session` as its child, with ORDER, a JSON file. Both read requests as frames from
standard input and write frames to the descriptor REPLIES, so that nothing that a test prints, and
no way in which it ends the process, can garble what was reported before.
"""

from __future__ import annotations

import json
import os
import sys
import types

PACKAGES = ("conformance", "conformance.suites", "conformance.worker")
"""What is around all that is imported here, and is none of the suite's."""

if __name__ == "__main__":
    # Nothing can be imported from this folder, nor from those above, where other packages may lie:
    # the suite's pytest counts. Once that begins, which may be one of a package of that very name,
    # nothing is left to be seen of this one.
    here = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - start-up time
    above = os.path.dirname(here)  # noqa: PTH120
    worker = os.path.join(above, "worker")  # noqa: PTH118
    for package, folder in zip(PACKAGES, (above, here, worker), strict=True):
        sys.modules[package] = types.ModuleType(package)
        sys.modules[package].__path__ = [folder]
    del sys.path[0]
    if sys.argv[1] == "serve":
        from conformance.suites.inside.session_server import SessionServer

        SessionServer(int(sys.argv[2]), os.path.abspath(__file__)).serve()  # noqa: PTH100
        sys.exit()
    from conformance.suites.inside.start import run

    for name in [name for name in sys.modules if name.partition(".")[0] == PACKAGES[0]]:
        del sys.modules[name]
    descriptor = int(sys.argv[2])
    with open(sys.argv[3], encoding="utf-8") as file:  # noqa: PTH123 - start-up time
        order = json.load(file)
    sys.argv[1:] = order["arguments"]
    del __file__
    run(descriptor, order)
