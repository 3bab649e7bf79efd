"""Indices of a mutable array, which select as they do in NumPy, and its parts."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from conformance.kit import Observed, defaults, deviation, probe

from ._helpers import new_reference, outcome

AXIS_OF_INDICES_FIRST = deviation(
    "jax<0.6",
    outcome="ok",
    reason="the axis of an array of indices came first, wherever the array is",
    issue="jax-ml/jax@9f5f6edb8548",
)
defaults(platforms=("cpu",), source="jax-ml/jax@9f5f6edb8548", deviations=[AXIS_OF_INDICES_FIRST])

COLUMNS = np.array([2, 0], np.int32)


def matrix():
    """Return a matrix of two rows and three columns."""
    return np.arange(6, dtype=np.float32).reshape(2, 3)


@probe(params={"jit": {"jit": True}, "eager": {"jit": False}})
def columns_of_a_reference(env, jit):
    """`ref[:, columns]` is the matrix of these columns; up to 0.5.3 it was silently transposed."""

    def read(x):
        return new_reference(x)[:, COLUMNS]

    return Observed((jax.jit(read) if jit else read)(matrix()), reference=matrix()[:, COLUMNS])


@probe(params=["set", "add"])
def columns_written_to_a_reference(env, name):
    """`ref[:, columns] = x` writes each column of x; up to 0.5.3 it silently wrote its rows."""
    numbers = np.float32([[10, 20], [30, 40]])

    @jax.jit
    def write(x):
        ref = new_reference(x)
        if name == "set":
            ref[:, COLUMNS] = jnp.asarray(numbers)
        else:
            ref[:, COLUMNS] += jnp.asarray(numbers)
        return ref[...]

    exact = matrix()
    exact[:, COLUMNS] = numbers + (exact[:, COLUMNS] if name == "add" else 0)
    return Observed(write(matrix()), reference=exact)


MATRIX = np.arange(12, dtype=np.float32).reshape(3, 4)
ROWS, COLUMNS_OF_FOUR = np.array([[0], [2]]), np.array([0, 3])
PLACES = {
    "row_with_a_step": np.index_exp[1, ::2],
    "rows_with_a_step": np.index_exp[np.array([0, 2]), ::2],
    "grid": (ROWS, COLUMNS_OF_FOUR),
}


NUMBER_NOT_CONVERTED = deviation(
    "jax>=0.6,<0.7.2",
    params=["row_with_a_step"],
    outcome="ok",
    reason="a Python number among the indices was refused",
    issue="jax-ml/jax@9f5f6edb8548",
)
NUMBER_NOT_CONVERTED_AGAIN = deviation(
    "jax>=0.10.1",
    params=["row_with_a_step"],
    outcome="ok",
    reason="a Python number among the indices was refused",
    issue="jax-ml/jax@9f5f6edb8548",
)
STEP_IGNORED = deviation(
    "jax<0.4.33",
    params=["rows_with_a_step"],
    outcome="ok",
    reason="the step was ignored next to an array of indices",
    issue="jax-ml/jax@fc1af8d05092",
)
NO_STEPS = deviation(
    "jax<0.4.33",
    params=["row_with_a_step"],
    outcome="ok",
    reason="a reference had no steps",
    issue="jax-ml/jax@fc1af8d05092",
)
RANKS_COMPARED = deviation(
    "jax>=0.12",
    params=["grid"],
    outcome="ok",
    reason="the ranks of indices were compared before they were made equal",
    issue="jax-ml/jax@9f5f6edb8548",
)


@probe(
    params=[*PLACES],
    deviations=[
        NUMBER_NOT_CONVERTED,
        NUMBER_NOT_CONVERTED_AGAIN,
        STEP_IGNORED,
        NO_STEPS,
        RANKS_COMPARED,
    ],
)
def place_in_a_reference(env, name):
    """Under jit and outside of it, an index reads and writes the elements that NumPy selects."""
    index = PLACES[name]

    def negate(ref):
        ref[index] = -ref[index]

    values, outcomes = [], {}
    for how, f in (("eager", negate), ("jit", jax.jit(negate))):
        ref = new_reference(MATRIX)
        outcomes[how] = outcome(lambda f=f, ref=ref: f(ref))
        values.append(np.asarray(ref[...]))
    exact = MATRIX.copy()
    exact[index] = -exact[index]
    return Observed((outcomes, values), reference=({"eager": "ran", "jit": "ran"}, [exact, exact]))


@probe(
    source="jax-ml/jax@836563fadfa2",
    records="the value of an element that does not exist is up to JAX",
    deviations=[],
)
def place_beyond_a_reference(env):
    """The outcome of a write at an array beyond the end of a reference, and what it then holds."""
    ref = new_reference(np.float32([1, 2, 3]))

    def write():
        ref[jnp.int32(7)] = jnp.float32(-1)

    return outcome(write, "Out of bound"), np.asarray(ref[...])


@probe(
    source="jax-ml/jax@836563fadfa2",
    records="how parts of references may be used is up to JAX",
    deviations=[],
)
def part_of_a_matrix(env):
    """The outcomes of writes to parts and to other shapes of a reference, and what it then holds.

    Parts are used outside of jit, shapes within.
    """
    zeros = np.zeros((3, 4), np.int32)
    uses = {
        "row": lambda ref: ref.at[1].__setitem__(0, jnp.float32(-1)),
        "rows": lambda ref: ref.at[1:].__setitem__((0, 2), jnp.float32(-1)),
        "reshaped": jax.jit(lambda ref: ref.reshape(4, 3).__setitem__((0, 1), jnp.float32(-1))),
        "flat": jax.jit(lambda ref: ref.reshape(-1).__setitem__(..., -jnp.arange(12.0))),
        "bits": jax.jit(lambda ref: ref.bitcast(jnp.int32).__setitem__(..., zeros)),
    }
    values = {}
    for name, use in uses.items():
        ref = new_reference(MATRIX)
        how = outcome(lambda use=use, ref=ref: use(ref))
        values[name] = (how, np.asarray(ref[...]).sum())
    return values
