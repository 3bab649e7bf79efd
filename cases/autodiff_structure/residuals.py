"""Values that differentiation keeps, and the size of its programs, equation by equation."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.ad_checkpoint import checkpoint_name

from conformance.kit import Observed, deviation, probe
from conformance.kit.equations import counts, equations, size, types


def count_equations(fn):
    """Return the number of equations of a function and of its first three derivatives."""
    sizes = []
    for _ in range(4):
        sizes.append(size(fn, 2.0))
        fn = jax.grad(fn)
    return sizes


THREE_OPERATIONS_FOR_ONE = deviation(
    "jax<0.11.2",
    params=["tanh"],
    outcome="ok",
    reason="jax used two products and a sum where one operation suffices",
    issue="jax-ml/jax#39801",
)
POWERS_WRITTEN_OUT = deviation(
    "jax<0.10.1",
    params=["square", "cube"],
    outcome="ok",
    reason="powers 1 and 0 were written out",
    issue="jax-ml/jax@30f4c93c00e4",
)


@probe(
    source="jax-ml/jax@30f4c93c00e4",
    params={
        "tanh": {"name": "tanh", "sizes": [1, 3, 8, 18]},
        "square": {"name": "square", "sizes": [1, 3, 6, 7]},
        "cube": {"name": "cube", "sizes": [1, 4, 10, 16]},
        "sines": {"name": "sines", "sizes": [3, 9, 30, 90]},
        "quotient": {"name": "quotient", "sizes": [1, 5, 12, 22]},
    },
    deviations=[THREE_OPERATIONS_FOR_ONE, POWERS_WRITTEN_OUT],
)
def higher_derivatives(env, name, sizes):
    """The number of equations of a function and its first three derivatives.

    All of these equations are traced, lowered and compiled.
    """
    functions = {
        "tanh": jnp.tanh,
        "square": lambda x: x**2,
        "cube": lambda x: x**3,
        "sines": lambda x: jnp.sin(jnp.sin(jnp.sin(x))),
        "quotient": lambda x: 1 / x,
    }
    return Observed(count_equations(functions[name]), sizes)


ZEROS_KEPT = deviation(
    "jax<0.10.1",
    outcome="ok",
    reason="linearize made the zeros, and kept them",
    issue="jax-ml/jax#37377",
)


@probe(source="jax-ml/jax#37377", deviations=[ZEROS_KEPT])
def tangent_of_a_constant(env):
    """`linearize` keeps no array of zeros for the tangent of a constant result."""
    _, linear = jax.linearize(lambda x: (jnp.sin(x), jnp.ones(1000)), 1.0)
    elements = sum(np.size(c) for c in jax.make_jaxpr(linear)(1.0).consts)
    tangents = linear(2.0)
    return Observed(
        [elements, tangents[0], np.abs(tangents[1]).max()],
        [1, 2 * np.cos(np.float64(1)), np.float32(0)],
    )


@probe(source="jax-ml/jax@3699aa74ef3e")
def through_jit(env):
    """Residuals of a jitted function are results of its forward pass, unless they are arguments."""

    def shapes(fn, *args):
        jaxpr = jax.make_jaxpr(jax.grad(jax.jit(fn)))(*args)
        inner = [eqn for eqn in jaxpr.eqns if "jaxpr" in eqn.params]
        return [types(eqn.outvars) for eqn in inner]

    results = [shapes(lambda x, y: x * y, 1.0, 2.0), shapes(lambda x: jnp.sin(x) * 2, 1.0)]
    return Observed(results, [[["float32[]"], ["float32[]"]], [["float32[]"] * 2, ["float32[]"]]])


@probe(source="jax-ml/jax@3699aa74ef3e")
def through_scan(env):
    """For its gradient, a scan stacks only values that differ from step to step."""

    def trace_outputs(step):
        def fn(x, w):
            return lax.scan(lambda c, _: (step(c, w), None), x, length=3)[0].sum()

        jaxpr = jax.make_jaxpr(jax.grad(fn))(np.ones(2, np.float32), np.ones(2, np.float32))
        first = next(eqn for eqn in jaxpr.eqns if eqn.primitive.name == "scan")
        return types(first.outvars)

    outputs = [
        trace_outputs(lambda c, w: c * jnp.cos(w)),
        trace_outputs(lambda c, w: jnp.sin(c) * w),
    ]
    return Observed(outputs, [["float32[2]"], ["float32[2]", "float32[3,2]"]])


ZEROS_FOR_OTHER_BRANCH = deviation(
    "jax<0.10.2",
    outcome="ok",
    reason="zeros took the place of the values that the other branch keeps",
    issue="jax-ml/jax@15fca0293c80",
)


@probe(source="jax-ml/jax@15fca0293c80", deviations=[ZEROS_FOR_OTHER_BRANCH])
def through_cond(env):
    """From 0.10.2 a branch does not create zeros for values that only another branch keeps."""

    def fn(p, x):
        return lax.cond(p, lambda x: jnp.sin(jnp.sin(x)), lambda x: x**3, x)

    operations = counts(jax.grad(fn, 1), (True, 1.0), "cond empty2")
    return Observed([operations["cond"], operations["empty2"] > 0], [2, True])


@probe(source="jax-ml/jax@d0f17c0c04be")
def linear_program(env):
    """The linear function of `linearize` has one product for each factor, and nothing else."""

    def fn(x):
        return jnp.sin(x) * jnp.exp(x), jnp.floor(x), lax.stop_gradient(x) * x

    _, linear = jax.linearize(fn, 1.0)
    e, s, c = np.exp([1.0, 0])[0], np.sin(1.0), np.cos(1.0)
    operations = counts(linear, (1.0,), "sin exp mul floor")
    expected = {"sin": 0, "exp": 0, "mul": 5, "floor": 0}
    tangents = jax.jit(linear)(2.0)
    return Observed((operations, tangents), (expected, (2 * e * (s + c), 0.0 * e, 2.0 + 0 * e)))


NO_EQUATION_FOR_INTEGERS = deviation(
    "jax<0.8.2",
    outcome="ok",
    reason="integers and booleans passed without an equation",
    issue="jax-ml/jax#33689",
)


@probe(source="jax-ml/jax#33689", deviations=[NO_EQUATION_FOR_INTEGERS])
def stopped(env):
    """From 0.8.2 `stop_gradient` is an equation of the jaxpr for integers and booleans, too."""
    primitives = {}
    for value in (1.0, 1, True):
        jaxpr = jax.make_jaxpr(lambda x: jax.tree_util.tree_map(lax.stop_gradient, x))(value)
        primitives[type(value).__name__] = [eqn.primitive.name for eqn in jaxpr.eqns]
    once = ["stop_gradient"]
    return Observed(primitives, {"float": once, "int": once, "bool": once})


SLICE_FOR_EACH_PART = deviation(
    "jax<0.4.38",
    outcome="ok",
    reason="jax used a slice for each part, and a padded sum for its gradient",
    issue="jax-ml/jax#24970",
)


@probe(source="jax-ml/jax#24970", deviations=[SLICE_FOR_EACH_PART])
def parts_of_an_array(env):
    """From 0.4.38 `jnp.split` is one `split`, and its transpose is one `concatenate`."""

    def fn(x):
        a, b, c = jnp.split(x, 3)
        return (a * b * b * c).sum()

    operations = counts(jax.grad(fn), (np.ones(6, np.float32),), "split slice pad concatenate")
    return Observed(operations, {"split": 1, "slice": 0, "pad": 0, "concatenate": 1})


@probe(source="jax-ml/jax#500")
def mapped_over_a_basis(env):
    """`jacfwd` maps over inputs, `jacrev` over outputs: their arrays differ in size."""
    x, w = np.ones(2, np.float32), np.ones((5, 2), np.float32)

    def widest(transformation):
        jaxpr = jax.make_jaxpr(transformation(lambda x: jnp.tanh(w @ x)))(x)
        return max(eqn.outvars[0].aval.size for eqn in equations(jaxpr))

    return Observed([widest(jax.jacfwd), widest(jax.jacrev)], [10, 25])


@probe(source="jax-ml/jax#23831")
def checkpoints_of_a_loop(env):
    """Memory of the gradient of 64 steps of a loop: 64 states, or 8 and 8 with nested loops."""

    def step(c, _):
        return jnp.sin(jnp.sin(jnp.sin(c))), None

    def loop(body, length):
        return lambda c, _: (lax.scan(body, c, length=length)[0], None)

    def count_states(body):
        fn = jax.jit(jax.grad(lambda x: body(x, None)[0].sum()))
        memory = fn.lower(np.ones(1024, np.float32)).compile().memory_analysis()
        return int(memory.temp_size_in_bytes // 4096)

    remat = jax.checkpoint(step)
    states = [count_states(loop(remat, 64)), count_states(loop(jax.checkpoint(loop(remat, 8)), 8))]
    return Observed([64 <= states[0] < 68, 16 <= states[1] < 20], [True, True])


COMPLEX_NOT_ROUNDED = deviation(
    "jax>=0.4.31",
    error="TypeError",
    match="reduce_precision does not accept dtype complex",
    reason="jax rounds a saved value to its dtype, which fails for complex numbers",
    issue="jax-ml/jax#22244",
)


@probe(source="jax-ml/jax#22244", rtol=1e-4, deviations=[COMPLEX_NOT_ROUNDED])
def complex_number_saved_by_a_policy(env):
    """A checkpoint whose policy saves a complex value by name should have a gradient."""

    def loss(x, sin=jnp.sin, exp=jnp.exp, name=checkpoint_name):
        return abs(sin(name(exp(1j * x), "wave"))).sum()

    policy = jax.checkpoint_policies.save_only_these_names("wave")
    x = np.arange(3, dtype=np.float32)
    gradient = jax.grad(jax.checkpoint(loss, policy=policy))(x)
    step = 1e-6 * np.eye(3)
    rises = [loss(x + unit, np.sin, np.exp, lambda y, _: y) for unit in (*step, *-step)]
    return Observed(gradient, reference=(np.array(rises[:3]) - np.array(rises[3:])) / 2e-6)


FUNCTIONS = {
    "tanh": jnp.tanh,
    "arctanh": jnp.arctanh,
    "i0": jax.scipy.special.i0,
    "i1": jax.scipy.special.i1,
    "sinc": jnp.sinc,
    "gelu": jax.nn.gelu,
    "ndtri": jax.scipy.special.ndtri,
    "arctan2": jnp.arctan2,
    "hypot": jnp.hypot,
    "kl_div": jax.scipy.special.kl_div,
    "rel_entr": jax.scipy.special.rel_entr,
    "betaln": jax.scipy.special.betaln,
}
PAIRS = ("arctan2", "hypot", "kl_div", "rel_entr", "betaln")
MORE_THAN_THE_ARGUMENTS = deviation(
    params=["betaln", "gelu", "i1", "sinc"],
    outcome="ok",
    reason="every intermediate value with a derivative of its own is kept",
    issue="jax-ml/jax#34139",
)
MORE_BEFORE_0_11_2 = deviation(
    "jax<0.11.2",
    params=["arctanh", "i0", "tanh"],
    outcome="ok",
    reason="every intermediate value with a derivative of its own was kept",
    issue="jax-ml/jax#39801",
)
MORE_BEFORE_0_12 = deviation(
    "jax<0.12",
    params=["hypot", "kl_div", "ndtri", "rel_entr"],
    outcome="ok",
    reason="every intermediate value with a derivative of its own was kept",
)
PRODUCT_AND_DENOMINATOR = deviation(
    "jax<0.5.3",
    params=["arctan2"],
    outcome="ok",
    reason="a product with the derivative was divided, so both factors were kept",
    issue="jax-ml/jax@4eada56027a3",
)


@probe(
    source="jax-ml/jax#39801",
    params=[*FUNCTIONS],
    deviations=[
        MORE_THAN_THE_ARGUMENTS, MORE_BEFORE_0_11_2, MORE_BEFORE_0_12, PRODUCT_AND_DENOMINATOR,
    ],
)  # fmt: skip
def kept_for_the_backward_pass(env, name):
    """One array for each argument is enough for the backward pass of an elementwise function.

    Counted are arrays of the shape of the arguments that `jax.vjp` of the jitted function keeps.
    """
    arguments = [np.linspace(low, low + 0.5, 7, dtype=np.float32) for low in (0.1, 0.2)]
    count = 2 if name in PAIRS else 1
    _, backward = jax.vjp(jax.jit(FUNCTIONS[name]), *map(jnp.asarray, arguments[:count]))
    kept = [leaf.dtype.name for leaf in jax.tree_util.tree_leaves(backward) if leaf.shape == (7,)]
    observed = {"float32": kept.count("float32"), "bool": kept.count("bool")}
    return Observed(observed, {"float32": count, "bool": 0})
