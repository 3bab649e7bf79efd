"""A case file whose only case runs a batch of generated programs, each in several modes."""

from __future__ import annotations

import faulthandler
import functools
import warnings
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import export

from conformance.kit import probe

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Function = Callable[..., Any]

EPSILON = {
    "float8_e4m3fn": 2.0**-3, "float8_e5m2": 2.0**-2, "bfloat16": 2.0**-7, "float16": 2.0**-10,
    "float32": 2.0**-23, "complex64": 2.0**-23, "float64": 2.0**-52, "complex128": 2.0**-52,
}  # fmt: skip
"""Distance between 1 and the next number."""
SECONDS = 5.0
"""Seconds of a program in one mode, after which the process of a batch ends and it runs alone."""
LONGEST = 2000
"""Characters of an error message."""


@probe(records="only fuzzing runs it, which compares the results of different cells and modes")
def batch(_: Any, programs: Sequence[Mapping[str, Any]]) -> Any:
    """Run programs, and return the result or the error of each in each mode.

    Args:
        programs: For each program its `source`, which defines `function` and `args`, and `modes`.
            The mode `jit` is `launch(function, args)` if the source defines it. The mode
            `perturbed N` runs it without and with N different perturbations, in 64 bits and in its
            own dtypes, one after the other in its value; `dtypes` has the dtype of each variable
            by number.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [
            {mode: _run(number, len(programs), mode, program) for mode in program["modes"]}
            for number, program in enumerate(programs)
        ]


def _run(number: int, count: int, mode: str, program: Mapping[str, Any]) -> dict[str, Any]:
    """Return the observation of a program in a mode."""
    # If this process dies, its last line names the program that it was running.
    print(f"program {number}", flush=True)  # noqa: T201 - its output is evidence
    if count > 1:  # the time limit of a single program is that of its job
        faulthandler.dump_traceback_later(SECONDS, exit=True)
    try:
        return _observe(program, mode)
    finally:
        faulthandler.cancel_dump_traceback_later()


def _observe(program: Mapping[str, Any], mode: str) -> dict[str, Any]:
    """Return `{"value": leaves}` or `{"error": [TYPE, MESSAGE]}`."""
    kind, _, count = mode.partition(" ")
    try:
        if kind == "perturbed":
            value = _run_perturbed(program, int(count))
        else:
            names: dict[str, Any] = {}
            exec(program["source"], names)  # noqa: S102 - rendered from the tables of this project
            run = names.get("launch", MODES["jit"]) if kind == "jit" else MODES[kind]
            value = run(names["function"], names["args"])
        leaves = jax.tree_util.tree_leaves(jax.block_until_ready(value))
        return {"value": [_describe(leaf) for leaf in leaves]}
    except Exception as error:  # noqa: BLE001 - any error of a program is a result
        return {"error": [type(error).__name__, str(error)[:LONGEST]]}


def _describe(leaf: Any) -> Any:
    """Return a leaf that can be observed: arrays, and scalars as text."""
    if isinstance(leaf, jax.Array):
        return leaf
    if isinstance(leaf, np.ndarray) and leaf.dtype.kind != "V":
        return leaf
    # The tangent of an integer: each release has a class of its own for it.
    return "float0" if "float0" in str(getattr(leaf, "dtype", "")) else repr(leaf)


class _Perturbation:
    """Models the rounding of each step, as Monte Carlo arithmetic does.

    Args:
        dtypes: Dtype of each variable in the program as it was generated, by number.

    Attributes:
        seed: Seed of the roundings; 0 rounds nothing.
    """

    def __init__(self, dtypes: Mapping[str, str]) -> None:
        self._dtypes = dtypes
        self.seed: Any = 0.0

    def __call__(self, value: Any, number: int, normwise: bool) -> Any:
        """Return a value with another rounding error in each element.

        Args:
            value: Result of a step.
            number: Number of its variable.
            normwise: Whether the error is relative to the largest element.
        """
        epsilon = EPSILON.get(self._dtypes.get(str(number), ""), 0.0)
        if not epsilon or not jnp.issubdtype(value.dtype, jnp.inexact):
            return value
        # A hash of seed, step and element: the seed is an argument, so that all runs of a program
        # share one compilation.
        index = jnp.arange(value.size, dtype="float64").reshape(value.shape)
        noise = jnp.sin(self.seed * 12.9898 + number * 78.233 + index * 37.719) * 43758.5453
        noise = 2 * (noise - jnp.floor(noise)) - 1
        error = epsilon * jnp.where(self.seed > 0, noise, 0.0).astype(value.real.dtype)
        if not normwise or not value.size:
            return value * (1 + error)
        size = jnp.abs(jax.lax.stop_gradient(value))
        largest = jnp.max(jnp.where(jnp.isfinite(size), size, 0.0))
        return value * (1 + error) + error * largest


def _run_perturbed(program: Mapping[str, Any], count: int) -> Any:
    """Run a program without perturbation and with so many: in 64 bits, then in its own dtypes."""
    perturb = _Perturbation(program["dtypes"])
    names: dict[str, Any] = {"perturb": perturb}
    exec(program["source"], names)  # noqa: S102 - see above
    wide = {"f": np.float64, "c": np.complex128, "V": np.float64}
    # Kind V: a float that NumPy lacks, or an integer of four bits, which stays.
    args = [
        np.asarray(arg, wide.get(arg.dtype.kind) if str(arg.dtype) in EPSILON else None)
        for arg in names["args"]
    ]

    def run(seed: Any, *args: Any) -> Any:
        perturb.seed = seed
        return names["function"](*args)

    found = _run_seeds(run, args, count)
    try:
        return [found, _run_seeds(run, names["args"], count)]
    except Exception:  # noqa: BLE001 - with 64-bit types enabled, its dtypes may not fit together
        return [found, found]


def _run_seeds(run: Function, args: Sequence[Any], count: int) -> Any:
    """Run a function with the seeds from 0 to a count."""
    try:
        compiled = jax.jit(run)
        return [compiled(float(seed), *args) for seed in range(count + 1)]
    except Exception:  # noqa: BLE001 - the seed must be a constant, as in an exported program
        return [jax.jit(functools.partial(run, float(seed)))(*args) for seed in range(count + 1)]


def _run_sharded(function: Function, args: Sequence[Any]) -> Any:
    """Run a program with each argument sharded along its first divisible dimension."""
    mesh = jax.sharding.Mesh(np.array(jax.devices()), ("devices",))
    count = len(jax.devices())

    def place(arg: Any) -> Any:
        axes = [None] * arg.ndim
        for axis, extent in enumerate(arg.shape):
            if extent and extent % count == 0:
                axes[axis] = "devices"  # type: ignore[call-overload]
                break
        spec = jax.sharding.PartitionSpec(*axes)
        return jax.device_put(arg, jax.sharding.NamedSharding(mesh, spec))

    return jax.jit(function)(*map(place, args))


def _run_vmapped(function: Function, args: Sequence[Any]) -> Any:
    mapped = jax.jit(jax.vmap(function))(*(arg[None] for arg in args))
    return jax.tree_util.tree_map(lambda leaf: leaf[0], mapped)


def _run_exported(function: Function, args: Sequence[Any]) -> Any:
    exported = export.export(jax.jit(function))(*args)
    return export.deserialize(exported.serialize()).call(*args)


MODES: dict[str, Function] = {
    "jit": lambda function, args: jax.jit(function)(*args),
    "plain": lambda function, args: jax.jit(function)(*args),
    "eager": lambda function, args: function(*map(jnp.asarray, args)),
    "vmap": _run_vmapped,
    "sharded": _run_sharded,
    "remat": lambda function, args: jax.jit(jax.checkpoint(function))(*args),
    "export": _run_exported,
}
"""Ways to run a program that must agree with `jit`."""
