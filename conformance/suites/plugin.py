"""Run a session of pytest, and report each of its tests as it goes: runs inside a cell.

    python plugin.py serve REPLIES
    python plugin.py session REPLIES ORDER

`serve` starts `session` as its child, with ORDER, a JSON file. Both read requests as frames from
standard input and write frames to the descriptor REPLIES: output of a test, or an early end of the
process, cannot garble earlier reports.
"""

from __future__ import annotations

import json
import os
import sys
import types

PACKAGES = ("conformance", "conformance.suites", "conformance.worker")
"""Packages around the modules that this script imports."""

if __name__ == "__main__":
    # No folder of this project may be on the path: packages next to it would hide the cell's. The
    # suite may have its own package `conformance`, so these modules are removed later.
    script = os.path.abspath(__file__)
    here, _ = os.path.split(script)
    above, _ = os.path.split(here)
    for package, folder in zip(PACKAGES, (above, here, f"{above}{os.sep}worker"), strict=True):
        sys.modules[package] = types.ModuleType(package)
        sys.modules[package].__path__ = [folder]
    del sys.path[0]
    if sys.argv[1] == "serve":
        from conformance.suites.inside.session_server import SessionServer

        SessionServer(int(sys.argv[2]), script).serve()
        sys.exit()
    from conformance.suites.inside.hooks import run_pytest

    for name in [name for name in sys.modules if name.partition(".")[0] == PACKAGES[0]]:
        del sys.modules[name]
    descriptor = int(sys.argv[2])
    with open(sys.argv[3], encoding="utf-8") as file:
        order = json.load(file)
    sys.argv[1:] = order["arguments"]
    del __file__
    run_pytest(descriptor, order)
