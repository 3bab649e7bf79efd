"""A kernel whose result is not used."""

import jax

from conformance.kit import defaults, probe

from ._helpers import double, kernel_call, rows, shape, vector

defaults(platforms=("cpu",))


@probe(source="jax-ml/jax@549eb64326ff", records="whether the call remains is up to JAX")
def unused_result(env):
    """The number of loops in a program with a kernel whose result is not used."""
    specs = {"grid": (4,), "in_specs": [rows()], "out_specs": rows()}
    call = kernel_call(double, shape(8), **specs)
    text = jax.jit(lambda x: (call(x), x)[1]).lower(vector()).as_text()
    return text.count("stablehlo.while")
