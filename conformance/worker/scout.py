"""Scouts: child processes that try an import before the fork server does it.

A scout imports a case file, or runs a tiny program, and reports the effects on its process:
modules, threads and changed settings. Only a harmless import is repeated in the server, where
every later job inherits it.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any

from conformance.worker import frames
from conformance.worker.job import find_import_site, load_case, read_settings, set_flags

if TYPE_CHECKING:
    from collections.abc import Iterable

LAPACK = ("scipy.linalg.cython_blas", "scipy.linalg.cython_lapack")
"""Modules from which jaxlib loads LAPACK when the first program of a process calls it."""


def scout(request: dict[str, Any], fd: int) -> None:
    """Run in a child: import the request's file, or the tiny program when it has none.

    Emits `{"stage": "import"}`, then `{"error": ...}` if the import raised, then
    `{"scouted": {"modules", "threads", "sets"}}` and `{"end": True}`.
    """
    from conformance.worker.stages import describe_error  # needs jax, the server may not

    frames.write(fd, {"stage": "import"})
    before, set_before = set(sys.modules), read_settings()
    try:
        if request["file"]:
            load_case(request["file"], request["family"], request["name"])
        else:
            set_flags(request)
            _tiny_program()
    except BaseException as error:  # an import may raise any exception
        described = describe_error(error)
        described["where"] = find_import_site(error, request["file"])
        frames.write(fd, {"error": described})
    found = {
        "modules": sorted(set(sys.modules) - before),
        "threads": count_threads(),
        "sets": [
            name for name, value in read_settings(set_before).items() if value != set_before[name]
        ],
    }
    frames.write(fd, {"scouted": found})
    frames.write(fd, {"end": True})


def _tiny_program() -> None:
    import jax  # only a warmed server has jax
    import numpy as np

    compiled = jax.jit(lambda x: x + 1).trace(np.ones(4, np.float32)).lower().compile()
    compiled.as_text()
    compiled(np.ones(4, np.float32)).block_until_ready()


def warm() -> None:
    """Do the common start of all jobs in the server, except initialising a backend."""
    import jax  # pays for the import once, before the fork
    import numpy as np

    from conformance.kit import env  # noqa: F401 - for the jobs
    from conformance.worker import jaxprs, values, variants  # noqa: F401 - for the jobs

    with contextlib.suppress(Exception):  # private: without it, jobs are only slower
        from jax._src.interpreters import mlir

        mlir.make_ir_context()
    with contextlib.suppress(Exception):  # private, too
        _discover_plugins()
    preload(LAPACK)
    with contextlib.suppress(Exception):  # a jax that cannot trace shows it in its jobs
        jaxprs.encode_jaxpr(jax.make_jaxpr(_loop_once)(np.ones(4, np.float32)))


def _discover_plugins() -> None:
    """Let jax look for plugins, which reads the metadata of every package.

    If a plugin is installed, each job looks itself: discovery runs code of the plugin.
    """
    from jax._src import xla_bridge

    if xla_bridge.jax_plugins is None and not entry_points(group="jax_plugins"):
        xla_bridge._discover_and_register_pjrt_plugins()  # has no public name


def rebuild_caches() -> None:
    """Rebuild caches that jax drops when a case file imports more of it.

    jax recognises files of users by a pattern that takes 3 ms to compile.
    """
    with contextlib.suppress(Exception):  # private: without it, jobs are only slower
        from jax._src import source_info_util

        source_info_util.is_user_filename(__file__)


def _loop_once(x: Any) -> Any:
    from jax import lax

    return lax.while_loop(lambda c: c[0] < 1, lambda c: (c[0] + 1, c[1] * c[1]), (0, x))


def preload(modules: Iterable[str]) -> None:
    """Import modules that otherwise every job would load."""
    for name in modules:
        with contextlib.suppress(Exception):  # a job that needs it reports the error
            importlib.import_module(name)


def find_fork_hazard() -> str:
    """Return why this process must not fork, empty if it may."""
    from jax._src import xla_bridge

    if sys.platform != "linux":
        return "threads can be counted, and libraries survive a fork, on Linux only"
    if xla_bridge.backends_are_initialized():
        return "a jax backend is initialised in the server"
    count = count_threads()
    return f"the server has {count} threads" if count > 1 else ""


def count_threads() -> int:
    """Return the number of threads of this process, 1 if it is unknown."""
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError:
        return 1
