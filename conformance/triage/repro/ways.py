"""The variants of a program as plain code for a one-file reproduction.

The code does what `conformance.worker.variants` does inside a cell.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from conformance.judge.ways import SAME_AS, checked_ways
from conformance.triage.repro.surroundings import Piece

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.model.case import Case
    from conformance.model.observation import Observation

NAMES: Final = frozenset({"other", "outline", "in_batch", "OneDevice"})
"""Names that the pieces and the statements bind."""
_STATIC_MATTERS: Final = frozenset({"aot", "vmap_of_one"})
"""Ways that treat static arguments in another manner."""


def told_ways(case: Case, observation: Observation, *, static: bool) -> tuple[str, ...]:
    """Return the ways of a case that a file of its own goes: those that the harness went.

    Args:
        case: The case.
        observation: What was seen.
        static: Whether the program has static arguments.
    """
    ways = checked_ways(case, observation)
    return tuple(way for way in ways if not (static and way in _STATIC_MATTERS))


def untold_ways(case: Case, told: tuple[str, ...]) -> tuple[str, ...]:
    """Return the claims that a file of its own does not check, by name."""
    return tuple(f"{SAME_AS} {way}" for way in case.same_as if way not in told)


def way_pieces(ways: tuple[str, ...]) -> Iterator[Piece]:
    """Yield what the statements of some ways call."""
    for way, piece in _PIECES.items():
        if way in ways:
            yield piece


def way_lines(way: str, *, call: str, jit: str, kwargs: bool) -> list[str]:
    """Return the statements that run a program in another way, and compare.

    Args:
        way: The way.
        call: Makes the program.
        jit: What `jax.jit` is handed.
        kwargs: Whether the program has keyword arguments.
    """
    given = "*program.args" + (", **program.kwargs" if kwargs else "")
    both = "(program.args, program.kwargs)" if kwargs else "program.args"
    name, made = ("args, kwargs", "*args, **kwargs") if kwargs else ("args", "*args")
    jitted = f"fn = program.fn if jitted else jax.jit({jit})"
    match way:
        case "eager":
            run = ["with jax.disable_jit():", f"    other = program.fn({given})"]
        case "aot":
            run = [
                f"{name} = jax.tree.map(outline, {both})",
                jitted,
                f"other = fn.lower({made}).compile()({given})",
            ]
        case "vmap_of_one":
            run = [
                f"{name} = jax.tree.map(in_batch, {both})",
                f"other = jax.jit(jax.vmap(program.fn))({made})",
                "other = jax.tree.map(lambda leaf: leaf[0], other)",
            ]
        case _:
            run = [jitted, f"other = fn({given})"]
    first = ["env = OneDevice()"] if way == "unsharded" else []
    return [*first, f"program = {call}", *run, f'print("{way}:", other)', "check(seen, other)"]


_PIECES: Final = {
    "aot": Piece(
        '''\
def outline(leaf):
    """Return an argument by its shape, dtype and, where it is committed to one, sharding."""
    if jax.dtypes.issubdtype(getattr(leaf, "dtype", None) or float, jax.dtypes.prng_key):
        return leaf
    if isinstance(leaf, jax.Array) and leaf._committed:
        return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=leaf.sharding)
    if not isinstance(leaf, (jax.Array, np.ndarray, np.generic)):
        return leaf
    return jax.ShapeDtypeStruct(leaf.shape, jax.dtypes.canonicalize_dtype(leaf.dtype))''',
        ("import numpy as np",),
    ),
    "vmap_of_one": Piece(
        '''\
def in_batch(leaf):
    """Return an argument with a leading axis of 1, placed as before."""
    sharding = getattr(leaf, "sharding", None)
    key = jax.dtypes.issubdtype(getattr(leaf, "dtype", None) or float, jax.dtypes.prng_key)
    if isinstance(sharding, jax.sharding.NamedSharding) and not key:
        spec = jax.sharding.PartitionSpec(None, *sharding.spec)
        mapped = jax.sharding.NamedSharding(sharding.mesh, spec, memory_kind=sharding.memory_kind)
        return jax.device_put(np.asarray(leaf)[None], mapped)
    return leaf[None] if isinstance(leaf, (jax.Array, np.ndarray)) else jnp.asarray(leaf)[None]''',
        ("import numpy as np", "import jax.numpy as jnp"),
    ),
    "unsharded": Piece(
        '''\
class OneDevice(Env):
    """The same, with one device in every mesh."""

    def mesh(self, shape, names, **more):
        return super().mesh((1,) if isinstance(shape, int) else (1,) * len(shape), names, **more)'''
    ),
}
