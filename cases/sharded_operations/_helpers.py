"""The comparison of this family: an operation on sharded arrays against NumPy."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed

SIZE = 8
LAYOUTS = {
    "rows": P("x"),
    "columns": P(None, "y"),
    "both": P("x", "y"),
    "rows_over_all": P(("x", "y")),
}
"""Sharding of a matrix on a mesh of 4 x 2; `rows` and `columns` are replicated over one axis."""
OF_GRADIENTS = ("columns", "both")
"""Layouts of gradients, whose programs take half of the time of a case."""
UNEVEN_LAYOUTS = {
    "rows": P("x"),
    "columns": P(None, "x"),
    "both": P("y", "x"),
    "rows_over_all": P(("x", "y")),
}
"""Sharding of a matrix of 7 x 6, whose shards have different sizes: no axis but y divides 6."""
RNG = np.random.RandomState(0)
MATRIX = RNG.uniform(0.5, 2.0, (SIZE, SIZE)).astype(np.float32)
UNEVEN_MATRIX = MATRIX[:7, :6].copy()
INDICES = np.array([3, 0, 7, 5, 5, 1, 2, 6])
"""Indices of rows, with a duplicate."""
WEIGHTS = np.array([0.5, -1.0, 0.25], np.float32)


class Operation(NamedTuple):
    """A function of a matrix, and the function that computes its reference."""

    fn: object
    reference: object


def numpy_api(fn):
    """Return the operation of a function of a namespace, `jnp` or `np`, and a matrix."""
    return Operation(lambda a: fn(jnp, a), lambda a: fn(np, a))


def operators(fn):
    """Return the operation of a function that is written with operators and methods alone."""
    return Operation(fn, fn)


def unsharded(fn):
    """Return an operation whose reference is its own result for a matrix on one device."""
    return Operation(fn, lambda a: np.asarray(jax.jit(fn)(a)))


def compare(env, operation, eager=True):
    """Return where the results for sharded matrices differ from the reference.

    All layouts are in one program, which takes a fourth of the time of a program for each.

    Args:
        env: Environment of the case.
        operation: Operation on a matrix of shape (8, 8), float32.
        eager: Whether it runs in eager mode, too. An operation that consists of many is compiled
            many times there.

    Returns:
        The wrong layouts under `jit`, in eager mode, and of the gradient, which is compared with
        that of a matrix on one device; and the shardings of the results, which jit chooses.
    """
    mesh = env.mesh((4, 2), ("x", "y"))
    matrices = {
        name: jax.device_put(MATRIX, NamedSharding(mesh, spec)) for name, spec in LAYOUTS.items()
    }
    expected = operation.reference(MATRIX)
    results = run_all(operation.fn, matrices)
    found = {"jit": list_wrong(results, expected)}
    if eager:
        one = {"rows": attempt(operation.fn, matrices["rows"])}
        found["eager"] = list_wrong(one, expected)
    if is_differentiable(expected):
        gradient = jax.grad(lambda a: weigh(operation.fn(a)))
        exact = attempt(jax.jit(gradient), MATRIX)
        few = {name: matrices[name] for name in OF_GRADIENTS}
        found["gradient"] = list_wrong(run_all(gradient, few), exact)
    # No sharding is wrong: the reference has those that were found, the golden dates a change.
    chosen = {"shardings": {name: format_sharding(out) for name, out in results.items()}}
    return Observed({**found, **chosen}, {**dict.fromkeys(found, ""), **chosen})


def compare_uneven(env, operation):
    """Return where the results differ for a matrix of shape (7, 6) with shards of unequal size.

    `jax.device_put` refuses such shardings, so they are constraints within the program.

    Args:
        env: Environment of the case.
        operation: Operation on a matrix of shape (7, 6), float32.

    Returns:
        The wrong layouts under `jit`, and of the gradient.
    """
    mesh = env.mesh((4, 2), ("x", "y"))

    def run(fn, a, layouts=tuple(UNEVEN_LAYOUTS)):
        shardings = {name: NamedSharding(mesh, UNEVEN_LAYOUTS[name]) for name in layouts}
        return {
            name: fn(jax.lax.with_sharding_constraint(a, sharding))
            for name, sharding in shardings.items()
        }

    matrix = jax.device_put(UNEVEN_MATRIX, NamedSharding(mesh, P()))
    expected = operation.reference(UNEVEN_MATRIX)
    results = jax.jit(lambda a: run(operation.fn, a))(matrix)
    found = {"jit": list_wrong(results, expected)}
    if is_differentiable(expected):
        gradient = jax.grad(lambda a: weigh(operation.fn(a)))
        exact = jax.jit(gradient)(UNEVEN_MATRIX)
        slopes = jax.jit(lambda a: run(gradient, a, OF_GRADIENTS))(matrix)
        found["gradient"] = list_wrong(slopes, exact)
    return Observed(found, dict.fromkeys(found, ""))


def is_differentiable(expected):
    """Return whether a result has a gradient: whether it is of floats."""
    return np.asarray(expected).dtype.kind == "f"


def run_all(fn, arrays):
    """Return the results of a function under `jit` for each array, or its errors."""
    found = attempt(jax.jit(lambda given: {name: fn(a) for name, a in given.items()}), arrays)
    if isinstance(found, Exception):
        return {name: attempt(jax.jit(fn), array) for name, array in arrays.items()}
    return found


def attempt(fn, array):
    """Return the result of a function, or its error."""
    try:
        return jax.block_until_ready(fn(array))
    except Exception as error:  # noqa: BLE001 - an error in one layout is an observation
        return error


def list_wrong(results, expected):
    """Return the names of results that are not as expected and their differences, as text."""
    wrong = {name: describe_difference(result, expected) for name, result in results.items()}
    return ", ".join(f"{name}: {text}" for name, text in wrong.items() if text)


def describe_difference(result, expected):
    """Return how a result differs, empty if it does not."""
    if isinstance(result, Exception):
        return "" if type(result) is type(expected) else type(result).__name__
    if isinstance(expected, Exception):
        return f"no {type(expected).__name__}"
    value, exact = np.asarray(result), np.asarray(expected)
    if value.shape != exact.shape:
        return f"shape {value.shape}"
    wrong = ~np.isclose(value, exact, rtol=1e-4, atol=1e-4, equal_nan=True)
    return f"{wrong.sum()} of {wrong.size} wrong" if wrong.any() else ""


def weigh(out):
    """Return a sum in which each element of a result has a different weight."""
    return (out * np.linspace(1, 2, out.size, dtype=np.float32).reshape(out.shape)).sum()


def format_sharding(out):
    """Return the shards along each axis of a result and its devices, e.g. `4x2 of 8`."""
    if isinstance(out, Exception):
        return "none"
    shard = out.sharding.shard_shape(out.shape)
    parts = [whole // part for whole, part in zip(out.shape, shard, strict=True)]
    return f"{'x'.join(map(str, parts)) or '1'} of {len(out.sharding.device_set)}"
