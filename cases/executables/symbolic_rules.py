"""Constraints of symbolic sizes that are equations, and functions that depend on such sizes."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import export

from conformance.kit import Observed, defaults, deviation, probe

defaults(platforms=("cpu",))


def export_for(f, dims, *constraints):
    """Export a function of a float32 array of a symbolic shape."""
    sizes = export.symbolic_shape(dims, constraints=constraints)
    return export.export(jax.jit(f))(jax.ShapeDtypeStruct(sizes, np.float32))


EQUATION_NOT_APPLIED = deviation(
    "jax<0.4.33",
    outcome="ok",
    reason="the names were kept, and only comparisons used the equation",
    issue="jax-ml/jax@0d8ffd33abad",
)


@probe(source="jax-ml/jax@0d8ffd33abad", deviations=[EQUATION_NOT_APPLIED])
def sizes_that_are_equal(env):
    """An equation such as `b == a` replaces the size wherever it is used."""
    constraints = ("b == a", "c == a + b", "d == 5")
    sizes = export.symbolic_shape("a, b, c, d", constraints=constraints)
    return Observed([str(size) for size in sizes], ["a", "a", "2*a", "5"])


SIZE_OF_A_TRIANGLE = deviation(
    "jax<0.7",
    error="TypeError",
    match="cannot be interpreted as an integer",
    reason="the size was converted to an integer",
    issue="jax-ml/jax@688d15346df2",
)


@probe(source="jax-ml/jax@688d15346df2", deviations=[SIZE_OF_A_TRIANGLE])
def indices_of_a_triangle(env):
    """`jnp.tril_indices` of a symbolic size can be exported."""
    triangle = export_for(lambda x: jnp.tril_indices(x.shape[0]), "n, n")
    return Observed(triangle.call(np.ones((3, 3), np.float32)), np.tril_indices(3))


WIDTH_OF_A_PADDING = deviation(
    "jax<0.4.31",
    error="TypeError",
    match="cannot be interpreted as an integer",
    reason="the width was converted to an integer",
    issue="jax-ml/jax@7817b6785b20",
)


@probe(source="jax-ml/jax@7817b6785b20", deviations=[WIDTH_OF_A_PADDING])
def padding_of_a_symbolic_width(env):
    """`jnp.pad` with `mode="linear_ramp"` accepts a symbolic width."""
    pad = lambda n, x: n.pad(x, [(x.shape[0], 1)], mode="linear_ramp")  # noqa: E731 - short
    x = np.arange(1, 4, dtype=np.float32)
    return Observed(export_for(lambda x: pad(jnp, x), "b", "b >= 2").call(x), pad(np, x))


ZERO_BETWEEN_THE_BOUNDS = deviation(
    "jax<0.11.2",
    outcome="ok",
    reason="the least square was that of the least number, -4, although 0 is between",
    issue="jax-ml/jax#40054",
)
NOT_DECIDED = deviation(
    "jax>=0.11.2",
    error="InconclusiveDimensionOperation",
    match="is inconclusive",
    reason="a comparison that depends on the size is refused",
    issue="jax-ml/jax#40054",
)


@probe(source="jax-ml/jax#40054", deviations=[ZERO_BETWEEN_THE_BOUNDS, NOT_DECIDED])
def square_of_a_difference(env):
    """A comparison of the square of a symbolic number that may be positive or negative."""

    def f(x):
        half = (x.shape[0] - 9) // 2
        return x[0] + int(half * half >= 16)

    x = np.ones(9, np.float32)
    return Observed(export_for(f, "n").call(x), reference=f(x))
