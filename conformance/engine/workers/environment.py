"""The environment variables of workers, suites and scripts: an allow-list, and pinned values."""

from __future__ import annotations

import os
from contextlib import contextmanager
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

from conformance.cells.secret_masking import is_secret

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from conformance.engine.job import PlannedCell

ALLOWED: Final = (
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "PATH",
    "TERM",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "TMPDIR",
    "XDG_*",
    "CI",
    # The dynamic loader and sanitizers: a jaxlib built at home may not start without them.
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "DYLD_*",
    "MALLOC_*",
    "[ALTU]SAN_OPTIONS",
    "UBSAN_OPTIONS",
    # Accelerators.
    "CUDA_*",
    "NVIDIA_*",
    "NCCL_*",
    "ROCM_*",
    "ROCR_*",
    "HIP_*",
    "HSA_*",
    # The way to the network, for tests that need it.
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "*_PROXY",
    "*_proxy",
)
"""Names and patterns of the caller's variables that workers get.

An allow-list, because a list of secrets is never complete. It has no variable that jax, XLA or
Python heed: a verdict must not depend on the shell that started the run.
"""
PINNED: Final = {
    "JAX_PLATFORMS": "cpu",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    # A job's memory in huge pages and one arena: it is short, and page faults are much of its time.
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1:glibc.malloc.arena_max=1",
    # The order of a set may reach the program that a case builds.
    "PYTHONHASHSEED": "0",
    "TF_CPP_MIN_LOG_LEVEL": "2",
    "LC_ALL": "C.UTF-8",
    "TZ": "UTC",
}
"""Variables with the same value in every worker."""


def make_worker_environment(
    outer: Mapping[str, str],
    variables: Mapping[str, str],
    *,
    keep_python_path: bool,
    passed: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Return the environment of a worker.

    Args:
        outer: Environment of the orchestrator. Only the variables of `ALLOWED` are taken from it,
            and none of them that holds a secret, such as a proxy with a password.
        variables: Variables of the cell's platform.
        keep_python_path: Whether PYTHONPATH is kept: a development build in a `path:` cell may
            need it.
        passed: Variables that the user passes on with `pass-env`; see `select_passed_variables`.

    Returns:
        Variables for the worker, with thread counts, hash seed, locale and time zone pinned.
    """
    allowed = {name: value for name, value in outer.items() if is_allowed(name, value)}
    if keep_python_path and "PYTHONPATH" in outer:
        allowed["PYTHONPATH"] = outer["PYTHONPATH"]
    # The cell's own variables are last: an accelerator needs another JAX_PLATFORMS. Variables that
    # users pass do not replace pinned ones.
    return {**allowed, **(passed or {}), **PINNED, **variables}


def is_allowed(name: str, value: str) -> bool:
    """Return whether workers get a variable of the caller by default.

    Args:
        name: Name of the variable.
        value: Its value.
    """
    return any(fnmatchcase(name, pattern) for pattern in ALLOWED) and not is_secret(name, value)


def select_passed_variables(patterns: Iterable[str], outer: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that the user passes on to workers.

    Args:
        patterns: Names, and patterns such as `MYLIB_*`. A name passes a secret, too, which is
            masked in all output; a pattern passes none.
        outer: Environment of the orchestrator.

    Returns:
        The variables that are set, by name.
    """
    names = tuple(patterns)
    return {
        name: value
        for name, value in sorted(outer.items())
        if name in names
        or (any(fnmatchcase(name, pattern) for pattern in names) and not is_secret(name, value))
    }


def make_option_variables(planned: PlannedCell) -> dict[str, str]:
    """Return the variables that set a cell's options; a program may still override them.

    Args:
        planned: Cell with the options.
    """
    cell = planned.cell
    # Those of the cell last: XLA takes the last of two equal flags.
    flags = [*cell.place.xla_flags, *cell.xla_flags]
    if cell.devices > 1 and not cell.place.real:
        flags.append(f"--xla_force_host_platform_device_count={cell.devices}")
    variables = {"XLA_FLAGS": " ".join(flags)} if flags else {}
    if cell.x64:
        variables["JAX_ENABLE_X64"] = "1"
    return variables | {name.upper(): value for name, value in cell.config}


@contextmanager
def set_variable(name: str, value: str) -> Iterator[None]:
    """Set a variable of this process until the block ends, in child processes too.

    Args:
        name: Name of the variable.
        value: Its value.
    """
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before
