"""Notes the files that a Python process reads: its folder stands on PYTHONPATH.

The variable CONFORMANCE_INPUTS names a file that gets a line of JSON for each: `[path, written]`.
Child processes add to the same file. Python imports a module of this name before any other.
"""

import json
import os
import sys

VARIABLE = "CONFORMANCE_INPUTS"
_WRITING = os.O_WRONLY | os.O_RDWR


def _begin(note: str) -> None:
    out = os.open(note, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    seen: set[tuple[str, bool]] = set()

    def hook(event: str, arguments: "tuple[object, ...]") -> None:
        if event != "open":
            return
        path, mode, flags = arguments
        if not isinstance(path, (str, bytes)):
            return  # a descriptor
        written = bool(int(flags) & _WRITING) if isinstance(flags, int) else "w" in str(mode)
        name = os.path.abspath(os.fsdecode(path))  # noqa: PTH100 - start-up time
        if (name, written) in seen:
            return
        seen.add((name, written))
        # A line in one call: those of other processes do not come between.
        os.write(out, json.dumps([name, written]).encode() + b"\n")

    sys.addaudithook(hook)


if os.environ.get(VARIABLE):
    _begin(os.environ[VARIABLE])
