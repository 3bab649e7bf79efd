"""Variants of a program: other ways to run it that must give the same value.

A case opts in with `same_as`. Each variant builds the program again, because that may donate its
arguments, and runs after the program itself was observed. Results are emitted, never compared.
"""

from __future__ import annotations

import time
from functools import cached_property
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from conformance.kit import distributed
from conformance.kit.case import CaseError, Unsupported
from conformance.kit.env import Env
from conformance.worker.stages import (
    build,
    describe_arguments,
    describe_error,
    find_static,
    is_key,
    jit_program,
    select_dynamic,
)
from conformance.worker.values import LARGEST, flatten

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from conformance.kit.case import Program
    from conformance.worker.stages import Emit

    Build = Callable[[Env], Program]


def run_variants(
    names: Sequence[str],
    fn: Callable[..., Any],
    env: Env,
    params: dict[str, Any],
    emit: Emit,
    *,
    largest: int = LARGEST,
) -> None:
    """Run variants of a program one after another; their exceptions are emitted, not raised.

    Events of each variant: `{"same_as": NAME}` when it begins, then one of `{"same_as": NAME,
    "value": HEAD}` with bytes, `{"same_as": NAME, "error": ...}` and `{"same_as": NAME, "skipped":
    REASON}`, then `{"seconds": ["same_as NAME", S]}`.

    Args:
        names: Names of variants, keys of `VARIANTS`.
        fn: Function of the case.
        env: First argument of the function.
        params: Keyword arguments of the parametrisation.
        emit: Receives an event and its bytes; raises CaseError if the observation is too large.
        largest: Limit of the bytes of a value.
    """
    for variant in names:
        # Announced before it runs: if the process ends, the orchestrator knows by which variant.
        emit({"same_as": variant}, b"")
        start = time.perf_counter()
        try:
            _check_runs(env)
            value = VARIANTS[variant](lambda place: build(fn, place, params), env)
            head, data = flatten(value, largest=largest)
            emit({"same_as": variant, "value": head}, data)
        except Unsupported as reason:
            emit({"same_as": variant, "skipped": str(reason)}, b"")
        except BaseException as error:  # any exception of a case is its observation
            emit({"same_as": variant, "error": describe_error(error, fn)}, b"")
        emit({"seconds": [f"same_as {variant}", time.perf_counter() - start]}, b"")


def _check_runs(env: Env) -> None:
    """Check that the cell can run variants.

    Raises:
        Unsupported: If it cannot.
    """
    if env.compile_only:
        raise Unsupported("the program is compiled only, and gives no value")
    if distributed.is_distributed():
        raise Unsupported("the program runs as several processes")


def run_jitted(make: Build, env: Env) -> Any:
    """Call `jax.jit(fn)` as users do: jax traces, caches, and places the arguments."""
    # The program itself is observed stage by stage, without the dispatch of `jit`.
    built = make(env)
    return jit_program(built)(*built.args, **built.kwargs)


def run_eagerly(make: Build, env: Env) -> Any:
    """Call the function under `jax.disable_jit`: operation by operation, loops in Python."""
    built = make(env)
    with jax.disable_jit():
        return jax.block_until_ready(built.fn(*built.args, **built.kwargs))


def run_ahead_of_time(make: Build, env: Env) -> Any:
    """Compile for arguments described by shape, dtype and sharding, then call the executable."""
    built = make(env)
    args, kwargs = describe_arguments(built, _describe_argument)
    compiled = jit_program(built).lower(*args, **kwargs).compile()
    positional, named = select_dynamic(built)
    return compiled(*positional, **named)


def _describe_argument(leaf: Any) -> Any:
    described = distributed.describe_argument(leaf)
    if described is not leaf or not isinstance(leaf, jax.Array) or is_key(leaf):
        return described
    # The array is committed to its devices, so its sharding is part of the description.
    # `ShapeDtypeStruct` of 0.4.31 has no `weak_type`.
    weak = {"weak_type": True} if leaf.weak_type else {}
    return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=leaf.sharding, **weak)


def run_vmapped(make: Build, env: Env) -> Any:
    """Map over arguments with a leading axis of 1; the result keeps that axis.

    Static arguments are not mapped over. Other keywords of `Program.jit` are not used, because
    they are about arguments of another shape.

    Raises:
        CaseError: If the program has no argument that can have a leading axis.
    """
    built = make(env)
    numbers, names = find_static(built)
    args, kwargs = select_dynamic(built)
    fixed = {name: value for name, value in built.kwargs.items() if name in names}

    def call_unmapped(*mapped: Any, **named: Any) -> Any:
        rest = iter(mapped)
        merged = [arg if n in numbers else next(rest) for n, arg in enumerate(built.args)]
        return built.fn(*merged, **named, **fixed)

    if not jax.tree_util.tree_leaves((args, kwargs)):
        raise CaseError("the program has no arguments to map over; take vmap_of_one off same_as")
    args, kwargs = jax.tree_util.tree_map(_add_leading_axis, (args, kwargs))
    return jax.jit(jax.vmap(call_unmapped))(*args, **kwargs)


def _add_leading_axis(leaf: Any) -> Any:
    """Return an argument with a leading axis of 1, placed as before."""
    sharding = getattr(leaf, "sharding", None)
    if isinstance(sharding, jax.sharding.NamedSharding) and not is_key(leaf):
        spec = jax.sharding.PartitionSpec(None, *sharding.spec)
        kind = {"memory_kind": sharding.memory_kind}
        mapped = jax.sharding.NamedSharding(sharding.mesh, spec, **kind)
        return jax.device_put(np.asarray(leaf)[None], mapped)
    if isinstance(leaf, (jax.Array, np.ndarray)):
        return leaf[None]
    return jax.numpy.asarray(leaf)[None]  # the weak type of a Python number stays


def run_unsharded(make: Build, env: Env) -> Any:
    """Run the program on one device: every mesh of `env` has size 1.

    Raises:
        CaseError: If the program requests no mesh of several devices.
    """
    one_device = OneDevice(env)
    built = make(one_device)
    result = jax.block_until_ready(jit_program(built)(*built.args, **built.kwargs))
    # Without such a mesh the variant would compare the program with itself.
    if not one_device.narrowed:
        raise CaseError(
            "the program made no mesh of several devices with env.mesh, expected one that can be "
            "made smaller; take unsharded off same_as"
        )
    return result


class OneDevice(Env):
    """The environment of a case, reduced to its first device.

    Attributes:
        narrowed: Whether the case requested a mesh of several devices.
    """

    def __init__(self, env: Env) -> None:
        super().__init__(env.cell)
        self.narrowed = False

    @cached_property
    def devices(self) -> list[Any]:
        """The first device."""
        return super().devices[:1]

    def mesh(
        self, shape: int | Sequence[int], names: str | Sequence[str], *, explicit: bool = False
    ) -> Any:
        """Return a `jax.sharding.Mesh` with the requested axis names, each of size 1.

        Args:
            shape: Requested size of the axis, or of each axis.
            names: Name of the axis, or of each axis.
            explicit: See `Env.mesh`.
        """
        sizes = (shape,) if isinstance(shape, int) else tuple(shape)
        self.narrowed = self.narrowed or any(size > 1 for size in sizes)
        return super().mesh((1,) * len(sizes), names, explicit=explicit)


VARIANTS: dict[str, Callable[[Build, Env], Any]] = {
    "jit": run_jitted,
    "eager": run_eagerly,
    "aot": run_ahead_of_time,
    "vmap_of_one": run_vmapped,
    "unsharded": run_unsharded,
}
"""Functions that run a variant of a program, by name of the variant."""
