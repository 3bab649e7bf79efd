"""Observes a Python process and its children: put the folder of this file on PYTHONPATH.

Python imports a module of this name at start-up. Each part is enabled by a variable:

- CONFORMANCE_INPUTS names a file that gets a line of JSON for each file that is opened:
  `[path, written]`.
- CONFORMANCE_TIMES names a file that gets, when the process ends, the seconds that it took without
  its imports: `["own", "", seconds]`. `conformance.timed` adds its regions.
- CONFORMANCE_COMPUTATIONS, `FOLDER:VERSION:...`, makes jax record its computations, see
  `conformance.worker.computations`.
- CONFORMANCE_REACHED names a folder in which each process, its children included, records what it
  reaches of jax, see `conformance.worker.reach_recorder`.
- CONFORMANCE_HANG, `SECONDS:FILE`, makes the process write the stacks of its threads after that
  time.

`import conformance` finds the package that contains this file, unless another one is installed.
"""

import json
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

INPUTS = "CONFORMANCE_INPUTS"
TIMES = "CONFORMANCE_TIMES"
HANG = "CONFORMANCE_HANG"
COMPUTATIONS = "CONFORMANCE_COMPUTATIONS"
REACHED = "CONFORMANCE_REACHED"
_WRITING = os.O_WRONLY | os.O_RDWR
_HERE = os.path.dirname(os.path.abspath(__file__))
_PACKAGE = os.path.dirname(os.path.dirname(_HERE))


def _note_inputs(note: str) -> None:
    # An audit hook sees every open of the interpreter, also that of a module or by a library.
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
        # One call per line, so that lines of other processes are not mixed in.
        os.write(out, json.dumps([name, written]).encode() + b"\n")

    sys.addaudithook(hook)


def _note_own_time(note: str) -> None:
    """Measure the process without its outermost imports, of which jax alone takes seconds."""
    # Imported here: a process without this part should start as fast as without the module.
    import atexit
    import builtins
    import time

    start, importing, depth = time.perf_counter(), 0.0, 0
    original = builtins.__import__

    def timed_import(*args: object, **kwargs: object) -> object:
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

    builtins.__import__ = timed_import  # type: ignore[assignment]
    atexit.register(end)


def _note_hang(setting: str) -> None:
    import faulthandler

    seconds, _, file = setting.partition(":")
    # faulthandler writes to the descriptor, which must stay open until the process ends.
    out = open(file, "a")  # noqa: SIM115
    faulthandler.dump_traceback_later(float(seconds), file=out)


class _JaxFinder:
    """Finds jax as usual, and installs the recorder of computations once it is imported."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> object:  # noqa: ARG004
        if name != "jax":
            return None
        from importlib.util import find_spec

        # Only for this search: libraries ask for the spec to learn whether there is a jax.
        sys.meta_path.remove(_JaxFinder)  # type: ignore[arg-type]
        try:
            spec = find_spec(name)
        finally:
            sys.meta_path.insert(0, _JaxFinder)  # type: ignore[arg-type]
        if spec is not None and spec.loader is not None:
            _install_after(spec.loader)
        return spec


def _install_after(loader: "Any") -> None:
    """Install the recorder after a loader has executed its module."""
    execute = loader.exec_module

    def exec_module(module: object) -> None:
        execute(module)
        from importlib import import_module

        setting = os.environ.pop(COMPUTATIONS, "")  # child processes record nothing
        if setting:
            import_module("conformance.worker.computations").install_from_setting(setting)

    loader.exec_module = exec_module


def _record_computations(_: str) -> None:
    sys.meta_path.insert(0, _JaxFinder)  # type: ignore[arg-type]


def _record_reached(folder: str) -> None:
    try:
        recorder = _load("reach_recorder").ReachRecorder(folder)
    except OSError:  # the folder is gone: the command has ended, and this process goes on without
        return
    _load("reach_events").install(recorder)


def _load(name: str) -> "Any":
    """Return a module of the worker, by its path: the environment may have another version."""
    from importlib.util import module_from_spec, spec_from_file_location

    file = os.path.join(_PACKAGE, "worker", f"{name}.py")
    spec = spec_from_file_location(f"conformance.worker.{name}", file)
    assert spec is not None and spec.loader is not None  # noqa: PT018, S101
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class _Finder:
    """Finds the package `conformance` in environments that do not have it installed."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> object:  # noqa: ARG004
        if name != "conformance":
            return None
        from importlib.util import spec_from_file_location

        file = os.path.join(_PACKAGE, "__init__.py")
        return spec_from_file_location(name, file, submodule_search_locations=[_PACKAGE])


def _import_shadowed_module() -> None:
    """Import the `sitecustomize` of the environment, which this module shadows."""
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


def _enable() -> None:
    parts = (
        (INPUTS, _note_inputs), (TIMES, _note_own_time), (HANG, _note_hang),
        (COMPUTATIONS, _record_computations), (REACHED, _record_reached),
    )  # fmt: skip
    for variable, note in parts:
        if os.environ.get(variable):
            note(os.environ[variable])
    # Last, so that an installed package of this name is found first.
    sys.meta_path.append(_Finder)  # type: ignore[arg-type]
    _import_shadowed_module()


# Tests import this module by its full name, which must not instrument them.
if __name__ == "sitecustomize":
    _enable()
