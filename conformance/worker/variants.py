"""Other ways to run a program, in each of which it is to give the same value.

A case opts in with `same_as`. Each way builds the program anew, for it may donate its arguments,
and runs it after the program itself was observed. What came of it is emitted, never compared.
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
    ways: Sequence[str],
    fn: Callable[..., Any],
    env: Env,
    params: dict[str, Any],
    emit: Emit,
    *,
    largest: int = LARGEST,
) -> None:
    """Run a program in other ways, one after the other; never raises for what it does there.

    Events of each way: `{"same_as": WAY}` when it begins, then one of `{"same_as": WAY, "value":
    HEAD}` with bytes, `{"same_as": WAY, "error": ...}` and `{"same_as": WAY, "skipped": REASON}`,
    then `{"seconds": ["same_as WAY", S]}`.

    Args:
        ways: Names of them, of `VARIANTS`.
        fn: The case's function.
        env: Handed to it.
        params: Keyword arguments of the parametrisation.
        emit: Takes an event and its bytes; raises CaseError for what is too large.
        largest: Bytes that a value may have.
    """
    for way in ways:
        emit({"same_as": way}, b"")
        start = time.perf_counter()
        try:
            _check_runs(env)
            value = VARIANTS[way](lambda place: build(fn, place, params), env)
            head, data = flatten(value, largest=largest)
            emit({"same_as": way, "value": head}, data)
        except Unsupported as reason:
            emit({"same_as": way, "skipped": str(reason)}, b"")
        except BaseException as error:  # any exception of a case is its observation
            emit({"same_as": way, "error": describe_error(error, fn)}, b"")
        emit({"seconds": [f"same_as {way}", time.perf_counter() - start]}, b"")


def _check_runs(env: Env) -> None:
    """Say why nothing can be run in another way, if so.

    Raises:
        Unsupported: With the reason.
    """
    if env.compile_only:
        raise Unsupported("the program is compiled only, and gives no value")
    if distributed.is_distributed():
        raise Unsupported("the program runs as several processes")


def run_jitted(make: Build, env: Env) -> Any:
    """Call `jax.jit(fn)` as a user does: jax itself traces, caches, and places the arguments."""
    built = make(env)
    return jit_program(built)(*built.args, **built.kwargs)


def run_eagerly(make: Build, env: Env) -> Any:
    """Call the function under `jax.disable_jit`: operation by operation, loops in Python."""
    built = make(env)
    with jax.disable_jit():
        return jax.block_until_ready(built.fn(*built.args, **built.kwargs))


def run_ahead_of_time(make: Build, env: Env) -> Any:
    """Compile for arguments of which only shape, dtype and sharding are told, then call that."""
    built = make(env)
    args, kwargs = describe_arguments(built, _outline)
    compiled = jit_program(built).lower(*args, **kwargs).compile()
    given, named = select_dynamic(built)
    return compiled(*given, **named)


def _outline(leaf: Any) -> Any:
    described = distributed.describe_argument(leaf)
    if described is not leaf or not isinstance(leaf, jax.Array) or is_key(leaf):
        return described
    # It is committed to where it lies.
    weak = {"weak_type": True} if leaf.weak_type else {}
    return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=leaf.sharding, **weak)


def run_vmapped(make: Build, env: Env) -> Any:
    """Map over arguments with a leading axis of 1; the result keeps that axis.

    Static arguments are not mapped over. Of `Program.jit` nothing else is used, for its keywords
    are about arguments of another shape.

    Raises:
        CaseError: If there is nothing that can have a leading axis.
    """
    built = make(env)
    numbers, names = find_static(built)
    args, kwargs = select_dynamic(built)
    fixed = {name: value for name, value in built.kwargs.items() if name in names}

    def called(*given: Any, **named: Any) -> Any:
        rest = iter(given)
        merged = [arg if n in numbers else next(rest) for n, arg in enumerate(built.args)]
        return built.fn(*merged, **named, **fixed)

    if not jax.tree_util.tree_leaves((args, kwargs)):
        raise CaseError("the program has no arguments to map over; take vmap_of_one off same_as")
    args, kwargs = jax.tree_util.tree_map(_in_batch, (args, kwargs))
    return jax.jit(jax.vmap(called))(*args, **kwargs)


def _in_batch(leaf: Any) -> Any:
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
    """Run the program on one device: every mesh that `env` makes has one.

    Raises:
        CaseError: If it asked for no mesh of more.
    """
    alone = OneDevice(env)
    built = make(alone)
    result = jax.block_until_ready(jit_program(built)(*built.args, **built.kwargs))
    if not alone.narrowed:
        raise CaseError(
            "the program made no mesh of several devices with env.mesh, expected one that can be "
            "made smaller; take unsharded off same_as"
        )
    return result


class OneDevice(Env):
    """The surroundings of a case with all but its first device gone.

    Attributes:
        narrowed: Whether a mesh was asked for that has several.
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
        """Return a mesh whose axes have the names asked for, and size 1.

        Args:
            shape: Size of the axis, or of each axis, that is wanted elsewhere.
            names: Name of the axis, or of each.
            explicit: As of `Env.mesh`.

        Returns:
            A `jax.sharding.Mesh`.
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
"""How a program is run in each way."""
