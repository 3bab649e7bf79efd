"""Primitives with rules of their own, composites, and annotations of operations."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.example_libraries import optimizers
from jax.experimental.jet import jet
from jax.interpreters import ad, batching, mlir

from conformance.kit import Observed, defaults, deviation, probe

from ._helpers import find, floats, new_primitive, outcome

defaults(platforms=("cpu",))


def make_scale(rules=True):
    """Return a function `scale(x, factor)`, a primitive with or without its rules."""
    scale_p = new_primitive("scale")
    shaped = find("jax.core:ShapedArray")

    def lower(x, *, factor):
        return x * factor

    scale_p.def_impl(lambda x, *, factor: jnp.asarray(np.asarray(x) * np.float32(factor)))
    scale_p.def_abstract_eval(lambda x, **_: shaped(x.shape, x.dtype))
    if rules:
        mlir.register_lowering(scale_p, mlir.lower_fun(lower, multiple_results=False))
        ad.deflinear2(scale_p, lambda g, _, *, factor: [scale_p.bind(g, factor=factor)])
        batching.primitive_batchers[scale_p] = lambda xs, axes, *, factor: (
            scale_p.bind(xs[0], factor=factor),
            axes[0],
        )
    return lambda x, factor=3.0: scale_p.bind(x, factor=factor)


X = floats(1, 2, 3)


@probe(source="jax-ml/jax@74c2e2531445")
def primitive_with_rules(env):
    """A primitive with rules runs eagerly, jitted, batched and differentiated both ways."""
    scale = make_scale()
    observed = {
        "eager": scale(X),
        "jit": jax.jit(scale)(X),
        "vmap": jax.jit(jax.vmap(scale))(X),
        "jvp": jax.jvp(scale, (X,), (X,))[1],
        "grad": jax.jit(jax.grad(lambda x: scale(x).sum()))(X),
        "transpose": jax.linear_transpose(scale, X)(X)[0],
    }
    return Observed(observed, {**dict.fromkeys(observed, 3 * X), "grad": floats(3, 3, 3)})


@probe(source="jax-ml/jax@74c2e2531445")
def primitive_without_rules(env):
    """A primitive without rules runs eagerly alone; the errors name the missing rule."""
    scale = make_scale(rules=False)
    observed = {
        "eager": outcome(lambda: scale(X)),
        "jit": outcome(lambda: jax.jit(scale)(X), "translation rule"),
        "vmap": outcome(lambda: jax.vmap(scale)(X), "Batching rule"),
        "jvp": outcome(lambda: jax.jvp(scale, (X,), (X,)), "Differentiation rule"),
        "transpose": outcome(lambda: jax.linear_transpose(scale, X)(X), "Transpose rule"),
    }
    words = {"vmap": "Batching", "jvp": "Differentiation", "transpose": "Transpose"}
    expected = {name: f"NotImplementedError: {word} rule" for name, word in words.items()}
    jit = {"jit": "NotImplementedError: translation rule"}
    return Observed(observed, {"eager": "ran", **jit, **expected})


def make_composite():
    """Return tanh as a composite with an attribute."""
    return lax.composite(lambda x, *, scale: scale * jnp.tanh(x), "my.tanh", version=2)


@probe(source="jax-ml/jax@d206cc3b5051", releases="jax>=0.5")
def composite(env):
    """A composite is one operation in StableHLO, with name and version, and runs as its body."""
    fn = make_composite()
    f = jax.jit(lambda x: fn(x, scale=np.float32(2)))
    line = next(line for line in f.lower(X).as_text().splitlines() if "composite" in line)
    words = {word: word in line for word in ('"my.tanh"', "scale = 2.0", "version = 2")}
    return Observed((f(X), words), (2 * np.tanh(X.astype(np.float64)), dict.fromkeys(words, True)))


@probe(source="jax-ml/jax@d206cc3b5051", releases="jax>=0.5")
def composite_transformed(env):
    """A composite has no batching rule and no derivative."""
    fn = make_composite()
    f = lambda x: fn(x, scale=np.float32(2))  # noqa: E731
    observed = {
        "vmap": outcome(lambda: jax.jit(jax.vmap(f))(X), "Batching rule"),
        "grad": outcome(lambda: jax.grad(lambda x: f(x).sum())(X), "custom_vjp"),
        "jvp": outcome(lambda: jax.jvp(f, (X,), (X,)), "custom_jvp"),
    }
    expected = {
        "vmap": "NotImplementedError: Batching rule",
        "grad": "ValueError",
        "jvp": "ValueError: custom_jvp",
    }
    return Observed(observed, expected)


@probe(
    source="jax-ml/jax@02b7a767683d",
    releases="jax>=0.4.36",
    records="how attributes are written is up to MLIR",
)
def metadata(env):
    """`set_xla_metadata` adds attributes to the operations of a context, or to a value."""
    set_xla_metadata = find("jax.experimental.xla_metadata:set_xla_metadata")

    def within(x):
        with set_xla_metadata(key="a", number=3):
            y = jnp.sin(x)
        return y + 1

    text = jax.jit(within).lower(X).as_text()
    lines = [line for line in text.splitlines() if "frontend_attributes" in line]
    return {
        "operations": [next(op for op in ("sine", "add") if op in line) for line in lines],
        "key": [('key = "a"' in line, 'number = "3"' in line) for line in lines],
        "value": outcome(lambda: jax.jit(lambda x: set_xla_metadata(x, key="a"))(X)),
    }


@probe(source="jax-ml/jax#29624", xla_flags=["--xla_backend_optimization_level=0"])
def taylor_series(env):
    """`jet` propagates a series: the derivatives of exp(sin(x)) and of a quotient."""
    one, zero = jnp.float32(1), jnp.float32(0)

    def derivatives(x):
        series = ((one, zero, zero),)
        return [jnp.stack([y, *terms]) for y, terms in (jet(f, (x,), series) for f in functions)]

    functions = (lambda x: jnp.exp(jnp.sin(x)), lambda x: 1 / (1 + x))
    expected = [np.array([1.0, 1, 1, 0]), np.array([1.0, -1, 2, -6])]
    return Observed(jax.jit(derivatives)(floats(0)), expected)


NO_SERIES_OF_A_COPY = deviation(
    "jax<0.4.36",
    error="KeyError",
    match="copy",
    reason="a copy had no rule for series",
    issue="jax-ml/jax@6e8a35f08ca9",
)


@probe(source="jax-ml/jax@6e8a35f08ca9", deviations=[NO_SERIES_OF_A_COPY])
def taylor_series_of_a_copy(env):
    """`jet` differentiates a function that copies its argument, from 0.4.36."""
    series = ((jnp.float32(1), jnp.float32(0)),)
    _, terms = jet(lambda x: jnp.array(x, copy=True) * x, (jnp.float32(3),), series)
    return Observed(jnp.round(jnp.stack(terms), 3), floats(6, 2))


FUNCTIONS_WITH_RULES = {"relu": jax.nn.relu, "softplus": jax.nn.softplus}
RULE_OF_AN_ENDED_TRACE = deviation(
    "jax>=0.4.36",
    error="UnexpectedTracerError|AttributeError",
    reason="the rule of a function with its own derivative runs outside of the trace of the series",
    issue="jax-ml/jax@c36e1f7c1ad4",
)


@probe(
    source="jax-ml/jax@c36e1f7c1ad4",
    params=[*FUNCTIONS_WITH_RULES],
    deviations=[RULE_OF_AN_ENDED_TRACE],
)
def taylor_series_of_a_function_with_a_rule(env, name):
    """`jet` fails from 0.4.36 on for functions with a `custom_jvp` rule, such as `jax.nn.relu`."""
    series = ((jnp.float32(1), jnp.float32(0)),)
    _, terms = jet(FUNCTIONS_WITH_RULES[name], (jnp.float32(2),), series)
    slope = 1 / (1 + np.exp(-2.0))
    expected = {"relu": [1.0, 0], "softplus": [slope, slope * (1 - slope)]}
    return Observed(jnp.stack(terms), np.array(expected[name]))


@probe(source="jax-ml/jax#11930")
def profiled(env):
    """Profiler annotations change no result, within a trace or not."""
    f = jax.profiler.annotate_function(jax.jit(lambda x: x * 2), name="double")
    with jax.profiler.StepTraceAnnotation("train", step_num=1), jax.profiler.TraceAnnotation("a"):
        y = f(X)
    with jax.named_scope("scope"):
        z = f(X)
    return Observed((y, z), (2 * X, 2 * X))


def descend(optimizer, steps=3):
    """Return x after steps down the gradient of x**2, from 1."""
    init, update, get = optimizer

    def step(state, i):
        return update(i, 2 * get(state), state), None

    return get(lax.scan(step, init(jnp.float32(1)), jnp.arange(steps))[0])


def exact_descent(name, steps=3):
    """Return the same in NumPy, in float64."""
    x, m, v = 1.0, 0.0, 0.0
    for i in range(steps):
        g = 2 * x
        if name == "momentum":
            m = 0.9 * m + g
            x -= 0.1 * m
        else:
            m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
            x -= 0.1 * (m / (1 - 0.9 ** (i + 1))) / (np.sqrt(v / (1 - 0.999 ** (i + 1))) + 1e-8)
    return x


@probe(source="jax-ml/jax@b1f55fd64ac9", params=["momentum", "adam"])
def example_optimizer(env, name):
    """An optimiser of `jax.example_libraries` takes the steps that its formula prescribes."""
    options = {"mass": 0.9} if name == "momentum" else {}
    value = jax.jit(lambda: descend(getattr(optimizers, name)(0.1, **options)))()
    return Observed(value, np.float64(exact_descent(name)))


NEVER_EQUAL = deviation(
    "jax<0.10",
    outcome="ok",
    reason="the dtypes were compared by identity",
    issue="jax-ml/jax@71480ae5809c",
)


@probe(source="jax-ml/jax@71480ae5809c", releases="jax>=0.4.35", deviations=[NEVER_EQUAL])
def dtype_made_twice(env):
    """Two dtypes that `primal_tangent_dtype` makes of the same dtypes are equal, from 0.10.0."""
    make = find("jax.experimental:primal_tangent_dtype")
    return Observed(make(jnp.int8, jnp.bfloat16) == make(jnp.int8, jnp.bfloat16), True)


RULES_OF_JAX = {
    "membership": lambda rules: lax.neg_p in rules,
    "lookup": lambda rules: rules[lax.neg_p]((X,), (0,)),
}
MEMBERSHIP_BY_POSITION = deviation(
    "jax>=0.8.2,<0.9",
    params=["membership"],
    error="KeyError",
    reason="an object without `__contains__` took the place of the dictionary",
    issue="jax-ml/jax@019335652dc5",
)
RULES_ARE_HIDDEN = deviation(
    "jax>=0.9",
    params=["membership"],
    error="TypeError",
    match="PrimitiveBatchersProxy",
    reason="the object in place of the dictionary only accepts new rules",
    issue="jax-ml/jax@019335652dc5",
)
RULES_TAKE_OTHER_ARGUMENTS = deviation(
    "jax>=0.8.2",
    params=["lookup"],
    error="TypeError",
    reason="the rules take other arguments, and from 0.9.0 on there is no look-up",
    issue="jax-ml/jax@019335652dc5",
)


@probe(
    source="jax-ml/jax@019335652dc5",
    params=[*RULES_OF_JAX],
    deviations=[MEMBERSHIP_BY_POSITION, RULES_ARE_HIDDEN, RULES_TAKE_OTHER_ARGUMENTS],
)
def batching_rule_of_a_primitive_of_jax(env, name):
    """A library looks up the batching rule of `neg` in `batching.primitive_batchers`."""
    expected = {"membership": True, "lookup": (-X, 0)}
    return Observed(RULES_OF_JAX[name](batching.primitive_batchers), expected[name])


ANY_SHAPE_WAS_TAKEN = deviation(
    "jax<0.8.2",
    outcome="ok",
    reason="the shape of a cotangent was not compared with the argument",
    issue="jax-ml/jax@6ea96b54c08e",
)


@probe(source="jax-ml/jax@6ea96b54c08e", deviations=[ANY_SHAPE_WAS_TAKEN])
def transpose_rule_of_a_wrong_shape(env):
    """The transpose rule of a primitive returns three numbers for an argument that is a scalar."""
    twice_p = new_primitive("twice")
    twice_p.def_impl(lambda x: 2 * x)
    twice_p.def_abstract_eval(lambda x: x)
    mlir.register_lowering(twice_p, mlir.lower_fun(lambda x: 2 * x, multiple_results=False))
    ad.deflinear2(twice_p, lambda ct, _: [2 * ct * np.ones(3, np.float32)])
    observed = outcome(lambda: jax.grad(twice_p.bind)(np.float32(1)), "cotangent type")
    return Observed(observed, "ValueError: cotangent type")
