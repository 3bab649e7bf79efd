"""Observes a Python process and its children: the folder of this file stands on PYTHONPATH.

Python imports a module of this name before any other. Each part is switched on by a variable:

- CONFORMANCE_INPUTS names a file that gets a line of JSON for each file that is opened:
  `[path, written]`.
- CONFORMANCE_TIMES names a file that gets, when the process ends, the seconds that it took without
  its imports: `["own", "", seconds]`. `conformance.timed` adds its regions.
- CONFORMANCE_HANG, `SECONDS:FILE`, makes the process write where its threads are after that time.

`import conformance` finds the package that this file is part of, unless another one is installed.
"""

import json
import os
import sys

INPUTS = "CONFORMANCE_INPUTS"
TIMES = "CONFORMANCE_TIMES"
HANG = "CONFORMANCE_HANG"
_WRITING = os.O_WRONLY | os.O_RDWR
_HERE = os.path.dirname(os.path.abspath(__file__))
_PACKAGE = os.path.dirname(os.path.dirname(_HERE))


def _note_inputs(note: str) -> None:
    out = os.open(note, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    seen: set[tuple[str, bool]] = set()

    def hook(event: str, arguments: "tuple[object, ...]") -> None:
        if event != "open":
            return
        path, mode, flags = arguments
        if not isinstance(path, (str, bytes)):
            return  # a descriptor
        written = bool(int(flags) & _WRITING) if isinstance(flags, int) else "w" in str(mode)
        name = os.path.abspath(os.fsdecode(path))
        if (name, written) in seen:
            return
        seen.add((name, written))
        # A line in one call: those of other processes do not come between.
        os.write(out, json.dumps([name, written]).encode() + b"\n")

    sys.addaudithook(hook)


def _note_own_time(note: str) -> None:
    """Measure the process without its outermost imports, which take seconds of jax alone."""
    import atexit
    import builtins
    import time

    start, importing, depth = time.perf_counter(), 0.0, 0
    original = builtins.__import__

    def measured(*args: object, **kwargs: object) -> object:
        nonlocal importing, depth
        begin, depth = time.perf_counter(), depth + 1
        try:
            return original(*args, **kwargs)  # type: ignore[arg-type]
        finally:
            depth -= 1
            if depth == 0:
                importing += time.perf_counter() - begin

    def end() -> None:
        line = json.dumps(["own", "", time.perf_counter() - start - importing])
        with open(note, "a", encoding="utf-8") as file:
            file.write(line + "\n")

    builtins.__import__ = measured  # type: ignore[assignment]
    atexit.register(end)


def _note_hang(setting: str) -> None:
    import faulthandler

    seconds, _, file = setting.partition(":")
    # It stays open for as long as the process lives.
    out = open(file, "a")  # noqa: SIM115
    faulthandler.dump_traceback_later(float(seconds), file=out)


class _Finder:
    """Finds the package `conformance` where no other is installed."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> object:  # noqa: ARG004
        if name != "conformance":
            return None
        from importlib.util import spec_from_file_location

        file = os.path.join(_PACKAGE, "__init__.py")
        return spec_from_file_location(name, file, submodule_search_locations=[_PACKAGE])


def _go_on() -> None:
    """Import the module of this name that the environment has itself."""
    import importlib

    mine = sys.modules.pop(__name__, None)
    path = list(sys.path)
    sys.path[:] = [entry for entry in path if os.path.abspath(entry) != _HERE]
    try:
        importlib.import_module(__name__)
    except ImportError:
        if mine is not None:
            sys.modules[__name__] = mine
    finally:
        sys.path[:] = path


def _begin() -> None:
    for variable, note in ((INPUTS, _note_inputs), (TIMES, _note_own_time), (HANG, _note_hang)):
        if os.environ.get(variable):
            note(os.environ[variable])
    sys.meta_path.append(_Finder)  # type: ignore[arg-type]
    _go_on()


if __name__ == "sitecustomize":
    _begin()
