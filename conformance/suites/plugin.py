"""Run a pytest suite, or some tests of it, and tell of each as it goes: runs inside a cell.

    python plugin.py DESCRIPTOR ORDER

ORDER is a JSON file, as `conformance.suites.inside.start.run` takes it. What happens is told on
DESCRIPTOR, one event a line, so that nothing that a test prints, and no way in which it ends the
process, can garble what was told before; which tests to run is heard there, too.
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
    from conformance.suites.inside.start import run

    for name in [name for name in sys.modules if name.partition(".")[0] == PACKAGES[0]]:
        del sys.modules[name]
    with open(sys.argv[2], encoding="utf-8") as file:  # noqa: PTH123 - start-up time
        order = json.load(file)
    descriptor = int(sys.argv[1])
    sys.argv[1:] = order["arguments"]
    del __file__
    run(descriptor, order)
