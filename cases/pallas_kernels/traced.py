"""When a kernel is traced, and what becomes of it: variables, derivatives, symbolic sizes."""

import jax
from jax import lax

from conformance.kit import Observed, defaults, deviation, probe

from ._helpers import F32, double, kernel_call, rows, run, shape, vector

defaults(platforms=("cpu",))


TRACED_ONCE_BEFORE = deviation(
    "jax<0.4.31",
    outcome="ok",
    reason="the trace of a kernel was kept under its function",
    issue="jax-ml/jax#40847",
)
TRACED_ONCE = deviation(
    "jax>=0.11",
    outcome="ok",
    reason="the trace of a kernel is kept under its function",
    issue="jax-ml/jax#40847",
)


@probe(source="jax-ml/jax#40847", deviations=[TRACED_ONCE_BEFORE, TRACED_ONCE])
def kernel_with_a_changed_variable(env):
    """A second `pallas_call` of a kernel reads the new value of a variable of Python."""
    factors = [1]

    def kernel(x_ref, o_ref):
        o_ref[...] = factors[0] * x_ref[...]

    first = kernel_call(kernel, shape(4))(vector(4))
    factors[0] = 5
    second = kernel_call(kernel, shape(4))(vector(4))
    return Observed((first, second), reference=(vector(4), 5 * vector(4)))


CONSTANTS_UNEXPECTED = deviation(
    "jax<0.6.1",
    error="ValueError",
    match="too many values to unpack",
    reason="the derivative of the loop had constants",
    issue="jax-ml/jax@d872812a359a",
)


@probe(source="jax-ml/jax@d872812a359a", deviations=[CONSTANTS_UNEXPECTED])
def derivative_of_a_loop(env):
    """`jax.jvp` of a kernel whose loop writes to the result."""

    def kernel(x_ref, o_ref):
        def body(_, carry):
            o_ref[...] = o_ref[...] * x_ref[...]
            return carry

        o_ref[...] = x_ref[...]
        lax.fori_loop(0, 2, body, 0)

    x = F32([1, 2])
    values = jax.jvp(lambda x: run(kernel, shape(2), x), (x,), (x,))
    return Observed(values, reference=(x**3, 3 * x**3))


SIZES_ASSERTED = deviation(
    "jax<0.9.1",
    error="AssertionError",
    reason="the number of lanes had to be known",
    issue="jax-ml/jax@e32872da643f",
)


@probe(source="jax-ml/jax@e32872da643f", releases="jax>=0.4.33", deviations=[SIZES_ASSERTED])
def exported_with_a_symbolic_batch(env):
    """A kernel under `vmap` is exported for any number of lanes, and called with two."""
    from jax import export  # noqa: PLC0415 - not on the first release

    specs = {"grid": (2,), "in_specs": [rows()], "out_specs": rows()}
    f = jax.jit(jax.vmap(kernel_call(double, shape(4), **specs)))
    lanes = jax.ShapeDtypeStruct(export.symbolic_shape("b, 4"), F32)
    x = vector().reshape(2, 4)
    return Observed(export.export(f)(lanes).call(x), reference=2 * x)
