"""Derivatives that users write: `custom_jvp`, `custom_vjp`, their kin, and mistakes in them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.custom_derivatives import SymbolicZero, linear_call

from conformance.kit import Observed, Program, deviation, probe, program, raises

from ._helpers import floats, product, told


@probe(source="jax-ml/jax#2026")
def whose_rule(env):
    """The rule is used wherever its function stands: jit, vmap, a scan, a branch, checkpoint."""
    f = product()
    ways = {
        "plain": f,
        "jit": jax.jit(f),
        "vmap": lambda x, y: jax.vmap(f, (0, None))(x[None], y)[0],
        "scan": lambda x, y: lax.scan(lambda c, _: (f(c, y), None), x, length=1)[0],
        "cond": lambda x, y: lax.cond(x > 0, f, jnp.add, x, y),
        "checkpoint": jax.checkpoint(f),
        "twice": lambda x, y: jax.grad(f)(x, y) * x / 10,
    }
    seen = jax.jit(lambda x, y: {name: jax.grad(g)(x, y) for name, g in ways.items()})(2.0, 3.0)
    return Observed(seen, {name: np.float64(30 if name != "twice" else 3) for name in ways})


@probe(source="jax-ml/jax#14570")
def symbolic_zeros(env):
    """With `symbolic_zeros=True` a rule of `custom_jvp` sees which tangents are surely zero.

    Without it all of them are arrays.
    """
    seen = []

    def slope(f, symbolic, by=0):
        def rule(primals, tangents):
            seen.append([isinstance(t, SymbolicZero) for t in tangents])
            (x, y), (dx, dy) = primals, tangents
            return x * y, dx * y if by == 0 else dy * x

        f.defjvp(rule, symbolic_zeros=symbolic)
        return jax.grad(f, by)

    new = lambda: jax.custom_jvp(lambda x, y: x * y)  # noqa: E731 - short
    slopes = [slope(new(), True), slope(new(), True, by=1), slope(new(), False)]
    values = jax.jit(lambda x, y: [slope(x, y) for slope in slopes])(2.0, 3.0)
    return Observed(
        (seen, np.float64(values)),
        ([[False, True], [True, False], [False, False]], np.array([3.0, 2, 3])),
    )


@probe(source="jax-ml/jax#14570")
def symbolic_zeros_forwards(env):
    """In forward mode, too, a rule of `custom_jvp` sees sure zeros if it asks for them."""
    seen = []

    def derivative(symbolic):
        def rule(primals, tangents):
            seen.append([isinstance(t, SymbolicZero) for t in tangents])
            return primals[0] * primals[1], tangents[0] * primals[1]

        f = jax.custom_jvp(lambda x, y: x * y)
        f.defjvp(rule, symbolic_zeros=symbolic)
        return jax.jvp(lambda x: f(x, 3.0), (2.0,), (1.0,))[1]

    made = [derivative(symbolic=True), derivative(symbolic=False)]
    return Observed((seen, np.float64(made)), ([[False, True], [False, False]], np.full(2, 3.0)))


@probe(source="jax-ml/jax#15221")
def perturbed(env):
    """With `symbolic_zeros=True` a forward rule of `custom_vjp` sees what is differentiated."""
    seen = []
    f = jax.custom_vjp(lambda x, y: (x * y, y))

    def forward(x, y):
        seen.append([x.perturbed, y.perturbed])
        return (x.value * y.value, y.value), y.value

    def backward(y, cotangents):
        seen.append([isinstance(c, SymbolicZero) for c in cotangents])
        return cotangents[0] * y, None

    f.defvjp(forward, backward, symbolic_zeros=True)
    slope = jax.grad(lambda x: f(x, 3.0)[0])(2.0)
    return Observed((seen, slope), ([[True, False], [False, True]], np.float64(3)))


@probe(
    source="jax-ml/jax#28144",
    deviations=[
        deviation(
            "jax==0.6.0",
            error="TypeError",
            match="is not a valid JAX type",
            reason="jit was handed the kind of zero that jax uses inside",
            issue="jax-ml/jax#28144",
        )
    ],
)
def zero_from_a_rule(env):
    """A rule whose answer is `zero_from_primal(..., symbolic_zeros=True)`, in jit and vmap."""
    zero = getattr(jax.custom_derivatives, "zero_from_primal", None)
    if zero is None:
        env.unsupported("jax.custom_derivatives has no zero_from_primal here")
    f = jax.custom_jvp(lambda x: x + 1)
    f.defjvp(lambda p, _: (f(*p), zero(p[0], symbolic_zeros=True)))
    x = floats(1, 2)
    seen = jax.jit(lambda x: jax.jvp(jax.vmap(jax.jit(f)), (x,), (x,)))(x)
    return Observed(seen, (np.array([2.0, 3]), np.zeros(2)))


@probe(
    source="jax-ml/jax#31448",
    deviations=[
        deviation(
            "jax>=0.7,<0.7.2",
            error="ValueError",
            match="argument 2 is longer than argument 1",
            reason="dropping what is not used lost count of the zeros",
            issue="jax-ml/jax#31448",
        )
    ],
)
def unused_with_zeros(env):
    """Forward over reverse mode of a rule with `symbolic_zeros=True` for a pair, half constant."""
    f = jax.custom_jvp(lambda x: x)
    f.defjvp(lambda p, t: (f(*p), t[0]), symbolic_zeros=True)
    fn = jax.jit(jax.jacfwd(jax.jacrev(lambda x: jax.jit(f)((x * x, 3.0))[0])))
    return Observed(fn(2.0), np.float64(2))


@probe(
    source="jax-ml/jax#30787",
    params={"custom_jvp": {"kind": "jvp"}, "custom_vjp": {"kind": "vjp"}},
    deviations=[
        deviation(
            "jax>=0.4.36,<0.8.2",
            error="ConcretizationTypeError",
            match="Abstract tracer value encountered",
            reason="a call with a rule was traced all the same",
            issue="jax-ml/jax#30787",
        )
    ],
)
def at_compile_time(env, kind):
    """A function with a rule under `ensure_compile_time_eval`: it is computed while tracing."""
    if kind == "jvp":
        f = jax.custom_jvp(lambda x: 2 * x)
        f.defjvps(lambda t, *_: 2 * t)
    else:
        f = jax.custom_vjp(lambda x: 2 * x)
        f.defvjp(lambda x: (2 * x, None), lambda _, g: (2 * g,))

    @jax.jit
    def fn(x):
        with jax.ensure_compile_time_eval():
            return x * float(f(np.float32(3)))

    return Observed(fn(1.0), np.float64(6))


@probe(
    source="jax-ml/jax#2520",
    deviations=[
        deviation(
            "jax>=0.4.36",
            outcome="ok",
            reason="nothing looks for it any more: the tracer is found to leak",
            issue="jax-ml/jax#2520",
        )
    ],
)
def closed_over(env):
    """To differentiate by what a function with a rule closes over: told in words up to 0.4.35.

    Hand it over as an argument.
    """

    def forward_rule(y):
        f = jax.custom_jvp(lambda x: x * y)
        f.defjvp(lambda p, t: (p[0] * y, t[0] * y))
        return f(2.0)

    def reverse_rule(y):
        f = jax.custom_vjp(lambda x: x * y)
        f.defvjp(lambda x: (x * y, None), lambda _, g: (g * y,))
        return f(2.0)

    words = ("with respect to a closed-over value", "unexpected tracer")
    seen = [told(lambda f=f: jax.grad(f)(3.0), *words) for f in (forward_rule, reverse_rule)]
    return Observed(seen, [["CustomJVPException", words[0]], ["CustomVJPException", words[0]]])


@probe(
    source="jax-ml/jax@0a1ada83ec97",
    deviations=[
        deviation(
            "jax<0.6.2",
            error="TypeError",
            match="unexpected keyword argument 'nondiff_argnames'",
            reason="by index alone",
            issue="jax-ml/jax@0a1ada83ec97",
        )
    ],
)
def static_by_name(env):
    """`nondiff_argnames` names arguments that a rule gets as they are; `nondiff_argnums` counts."""

    def rule(n, primals, tangents):
        return primals[0] ** n, n * tangents[0]

    def power(x, n):
        return x**n

    slopes = []
    for option in ({"nondiff_argnums": (1,)}, {"nondiff_argnames": ("n",)}):
        f = jax.custom_jvp(power, **option)
        f.defjvp(rule)
        g = jax.custom_vjp(power, **option)
        g.defvjp(lambda x, n: (x**n, None), lambda n, _, c: (n * c,))
        slopes += [jax.grad(f), jax.grad(g)]
    seen = jax.jit(lambda x: [slope(x, 2) for slope in slopes])(3.0)
    return Observed(np.float64(seen), np.full(4, 2.0))


def backward(wrong):
    """Return the gradient of a function whose backward rule makes something wrong."""
    f = jax.custom_vjp(lambda x: jnp.sum(x))  # noqa: PLW0108 - of one argument
    f.defvjp(lambda x: (jnp.sum(x), x), lambda x, _: wrong(x))
    return jax.grad(f)


@program(
    source="jax-ml/jax#28757",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.6.1",
            error="ValueError",
            match="corresponding to an input of shape/dtype float32.3.\\.$",
            reason="both shapes are told, but not that they differ",
            issue="jax-ml/jax#28757",
        )
    ],
)
def cotangent_of_another_shape(env):
    """A backward rule whose result has another shape: a ValueError says so, from 0.6.1 on."""
    refused = raises("ValueError", match="shape")
    return Program(backward(lambda x: (x[:2],)), args=(floats(1, 2, 3),), reference=refused)


@probe(
    source="jax-ml/jax#23779",
    deviations=[deviation(outcome="ok", reason="handed on as it is", issue="jax-ml/jax#23779")],
)
def cotangent_of_another_dtype(env):
    """A backward rule whose result is float16 makes the gradient of a float32 argument float16."""
    made = backward(lambda x: (7 * x.astype(jnp.float16),))(floats(1, 2))
    return Observed([str(made.dtype), np.float64(made)], ["float32", np.array([7.0, 14])])


@probe(source="jax-ml/jax#12611")
def mistakes_told(env):
    """Wrong structures from rules: a TypeError that names the rule and what it should produce."""

    def gradient(forward, backward):
        f = jax.custom_vjp(lambda x, y: x * y)
        f.defvjp(forward, backward)
        return lambda: jax.grad(f)(2.0, 3.0)

    def tangent(rule):
        f = jax.custom_jvp(lambda x: 2 * x)
        f.defjvp(rule)
        return lambda: jax.jvp(f, (2.0,), (1.0,))

    good = lambda x, y: (x * y, None)  # noqa: E731 - short
    nothing = lambda: jax.custom_vjp(lambda x: x)(1.0)  # noqa: E731 - short
    forward_mode = jax.custom_vjp(lambda x: x)
    forward_mode.defvjp(lambda x: (x, None), lambda _, g: (g,))
    seen = {
        "too few": told(gradient(good, lambda _, g: (g,)), "bwd rule", "tuple of length equal"),
        "no tuple": told(gradient(good, lambda _, g: g), "bwd rule", "tuple of length equal"),
        "no residuals": told(
            gradient(lambda *args: args[0], lambda _, g: (g, g)), "fwd rule", "a pair"
        ),
        "no rule": told(nothing, "No VJP defined", "defvjp"),
        "no tangent": told(tangent(lambda p, _: p[0]), "JVP rule", "a pair"),
        "wrong tangent": told(tangent(lambda p, t: (p[0], (t[0], t[0]))), "JVP rule", "structure"),
        "forward mode": told(lambda: jax.jvp(forward_mode, (1.0,), (1.0,)), "forward-mode"),
    }
    bwd, jvp = ["TypeError", "bwd rule", "tuple of length equal"], ["TypeError", "JVP rule"]
    wanted = {
        "too few": bwd,
        "no tuple": bwd,
        "no residuals": ["TypeError", "fwd rule", "a pair"],
        "no rule": ["AttributeError", "No VJP defined", "defvjp"],
        "no tangent": [*jvp, "a pair"],
        "wrong tangent": [*jvp, "structure"],
        "forward mode": ["TypeError", "forward-mode"],
    }
    return Observed(seen, wanted)


@probe(source="jax-ml/jax#12611")
def without_a_tangent(env):
    """`None` as a cotangent is zero, and whatever a rule answers for an integer is not used."""
    f = jax.custom_vjp(lambda x, y, i: x * y * i)
    f.defvjp(lambda x, y, i: (x * y * i, (y, i)), lambda c, g: (g * c[0] * c[1], None, 17))
    slopes = jax.jit(jax.grad(f, (0, 1)))(2.0, 3.0, 4)
    return Observed(slopes, (np.float64(12), np.float64(0)))


@probe(
    source="jax-ml/jax#27843",
    deviations=[
        deviation(
            "jax<0.6",
            error="NotImplementedError",
            match="Differentiation rule for 'linear_call' not implemented",
            reason="its transpose was known, its tangent was not",
            issue="jax-ml/jax#27843",
        )
    ],
)
def stated_transpose(env):
    """`linear_call` differentiates: forwards by the function, reverse by the stated transpose."""

    def fn(x):
        return linear_call(lambda r, x: r * x, lambda r, t: 100 * r * t, 2.0, x)

    tangent = jax.jvp(fn, (3.0,), (1.0,))[1]
    return Observed((tangent, jax.grad(fn)(3.0)), (np.float64(2), np.float64(200)))


@probe(
    source="jax-ml/jax#23588",
    deviations=[
        deviation(
            "jax<0.4.34",
            outcome="ok",
            reason="an assertion without a word",
            issue="jax-ml/jax#23588",
        )
    ],
)
def converted_closure(env):
    """`closure_convert` hoists what is differentiated; called with another structure it says so."""

    def fn(w):
        f, hoisted = jax.closure_convert(lambda x: x["a"] * w, {"a": 1.0})
        seen.append(told(lambda: f({"b": 1.0}, *hoisted), "same Pytree structure"))
        return f({"a": 3.0}, *(2 * h for h in hoisted))

    seen = []
    slope = jax.grad(fn)(5.0)
    return Observed((slope, seen[0]), (np.float64(6), ["TypeError", "same Pytree structure"]))


@probe(
    source="jax-ml/jax@86a47a7d4ebb",
    params={"outside": {"jit": False}, "in_jit": {"jit": True}},
    deviations=[
        deviation(
            "jax<0.4.36",
            params=["in_jit"],
            error="UnexpectedTracerError",
            match="Encountered an unexpected tracer",
            reason="what is closed over is not handed to the derivative",
            issue="jax-ml/jax@86a47a7d4ebb",
        ),
        deviation(
            "jax>=0.4.36",
            params=["in_jit"],
            error="TypeError",
            match="Tracer'> is not a valid JAX type|No constant handler for type",
            reason="what is closed over is not handed to the derivative",
            issue="jax-ml/jax@86a47a7d4ebb",
        ),
    ],
)
def gradient_of_ones_own(env, jit):
    """`custom_gradient` in a jitted function that closes over another argument of it.

    Its gradient is an error on every release. Make the other an argument of the inner function.
    """

    def fn(x, y):
        @jax.custom_gradient
        def g(x):
            return x * y, lambda c: (100 * y * c,)

        return g(x)

    return Observed(jax.grad(jax.jit(fn) if jit else fn)(2.0, 3.0), np.float64(300))
