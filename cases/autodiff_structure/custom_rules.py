"""Derivatives that users write: `custom_jvp`, `custom_vjp`, related functions, and mistakes."""

from __future__ import annotations

import jax
import jax.experimental
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.custom_derivatives import SymbolicZero, linear_call
from jax.experimental import io_callback

from conformance.kit import Observed, Program, deviation, probe, program, raises
from conformance.kit.endings import refusal

from ._helpers import describe_error, floats, product


@probe(source="jax-ml/jax#2026")
def whose_rule(env):
    """A rule is used wherever its function is called: in jit, vmap, scan, cond, checkpoint."""
    f = product()
    callers = {
        "plain": f,
        "jit": jax.jit(f),
        "vmap": lambda x, y: jax.vmap(f, (0, None))(x[None], y)[0],
        "scan": lambda x, y: lax.scan(lambda c, _: (f(c, y), None), x, length=1)[0],
        "cond": lambda x, y: lax.cond(x > 0, f, jnp.add, x, y),
        "checkpoint": jax.checkpoint(f),
        "twice": lambda x, y: jax.grad(f)(x, y) * x / 10,
    }
    slopes = jax.jit(lambda x, y: {name: jax.grad(g)(x, y) for name, g in callers.items()})(
        2.0, 3.0
    )
    return Observed(slopes, {name: np.float64(30 if name != "twice" else 3) for name in callers})


@probe(source="jax-ml/jax#14570")
def symbolic_zeros(env):
    """With `symbolic_zeros=True`, a `custom_jvp` rule sees which tangents are known to be zero.

    Without it all of them are arrays.
    """
    records = []

    def slope(f, symbolic, by=0):
        def rule(primals, tangents):
            records.append([isinstance(t, SymbolicZero) for t in tangents])
            (x, y), (dx, dy) = primals, tangents
            return x * y, dx * y if by == 0 else dy * x

        f.defjvp(rule, symbolic_zeros=symbolic)
        return jax.grad(f, by)

    new = lambda: jax.custom_jvp(lambda x, y: x * y)  # noqa: E731 - short
    slopes = [slope(new(), True), slope(new(), True, by=1), slope(new(), False)]
    values = jax.jit(lambda x, y: [slope(x, y) for slope in slopes])(2.0, 3.0)
    return Observed(
        (records, np.float64(values)),
        ([[False, True], [True, False], [False, False]], np.array([3.0, 2, 3])),
    )


@probe(source="jax-ml/jax#14570")
def symbolic_zeros_forwards(env):
    """In forward mode, too, a `custom_jvp` rule sees known zeros if it requests them."""
    records = []

    def derivative(symbolic):
        def rule(primals, tangents):
            records.append([isinstance(t, SymbolicZero) for t in tangents])
            return primals[0] * primals[1], tangents[0] * primals[1]

        f = jax.custom_jvp(lambda x, y: x * y)
        f.defjvp(rule, symbolic_zeros=symbolic)
        return jax.jvp(lambda x: f(x, 3.0), (2.0,), (1.0,))[1]

    tangents_out = [derivative(symbolic=True), derivative(symbolic=False)]
    return Observed(
        (records, np.float64(tangents_out)), ([[False, True], [False, False]], np.full(2, 3.0))
    )


@probe(source="jax-ml/jax#15221")
def perturbed(env):
    """With `symbolic_zeros=True`, a `custom_vjp` forward rule sees the differentiated inputs.

    Its backward rule sees which cotangents are symbolically zero.
    """
    records = []
    f = jax.custom_vjp(lambda x, y: (x * y, y))

    def forward(x, y):
        records.append([x.perturbed, y.perturbed])
        return (x.value * y.value, y.value), y.value

    def backward(y, cotangents):
        records.append([isinstance(c, SymbolicZero) for c in cotangents])
        return cotangents[0] * y, None

    f.defvjp(forward, backward, symbolic_zeros=True)
    slope = jax.grad(lambda x: f(x, 3.0)[0])(2.0)
    return Observed((records, slope), ([[True, False], [False, True]], np.float64(3)))


INTERNAL_ZERO_PASSED_TO_JIT = deviation(
    "jax==0.6.0",
    error="TypeError",
    match="is not a valid JAX type",
    reason="jit received the kind of zero that jax uses internally",
    issue="jax-ml/jax#28144",
)


@probe(source="jax-ml/jax#28144", deviations=[INTERNAL_ZERO_PASSED_TO_JIT])
def zero_from_a_rule(env):
    """A rule may return `zero_from_primal(..., symbolic_zeros=True)`, in jit and vmap."""
    zero = getattr(jax.custom_derivatives, "zero_from_primal", None)
    if zero is None:
        env.unsupported("jax.custom_derivatives has no zero_from_primal here")
    f = jax.custom_jvp(lambda x: x + 1)
    f.defjvp(lambda p, _: (f(*p), zero(p[0], symbolic_zeros=True)))
    x = floats(1, 2)
    result = jax.jit(lambda x: jax.jvp(jax.vmap(jax.jit(f)), (x,), (x,)))(x)
    return Observed(result, (np.array([2.0, 3]), np.zeros(2)))


RETURNED_ZERO_NOT_CONVERTED = deviation(
    "jax>=0.10",
    error="TypeError",
    match="SymbolicZero' of type .* is not a valid JAX type",
    reason="reverse mode treats the returned zero as an array",
    issue="jax-ml/jax@5ad89659fde6",
)


@probe(source="jax-ml/jax@5ad89659fde6", deviations=[RETURNED_ZERO_NOT_CONVERTED])
def zero_from_a_rule_in_reverse(env):
    """A gradient through a rule that returns a symbolic zero is a TypeError from 0.10.0 on."""
    zero = getattr(jax.custom_derivatives, "zero_from_primal", None)
    if zero is None:
        env.unsupported("jax.custom_derivatives has no zero_from_primal here")
    f = jax.custom_jvp(lambda x: x + 1)
    f.defjvp(lambda p, _: (f(*p), zero(p[0], symbolic_zeros=True)))
    return Observed(jax.grad(lambda x: f(x) * x)(2.0), np.float64(3))


DCE_MISCOUNTED_ZEROS = deviation(
    "jax>=0.7,<0.7.2",
    error="ValueError",
    match="argument 2 is longer than argument 1",
    reason="dead-code elimination lost count of the zeros",
    issue="jax-ml/jax#31448",
)


@probe(source="jax-ml/jax#31448", deviations=[DCE_MISCOUNTED_ZEROS])
def unused_with_zeros(env):
    """Forward over reverse mode works for a rule with `symbolic_zeros=True`.

    The function takes a pair, half of it constant.
    """
    f = jax.custom_jvp(lambda x: x)
    f.defjvp(lambda p, t: (f(*p), t[0]), symbolic_zeros=True)
    fn = jax.jit(jax.jacfwd(jax.jacrev(lambda x: jax.jit(f)((x * x, 3.0))[0])))
    return Observed(fn(2.0), np.float64(2))


CALL_WITH_RULE_TRACED = deviation(
    "jax>=0.4.36,<0.8.2",
    error="ConcretizationTypeError",
    match="Abstract tracer value encountered",
    reason="a call with a rule was traced nevertheless",
    issue="jax-ml/jax#30787",
)


@probe(
    source="jax-ml/jax#30787",
    params={"custom_jvp": {"kind": "jvp"}, "custom_vjp": {"kind": "vjp"}},
    deviations=[CALL_WITH_RULE_TRACED],
)
def at_compile_time(env, kind):
    """`ensure_compile_time_eval` computes a function with a rule while tracing."""
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


LEAKED_TRACER_REPORTED = deviation(
    "jax>=0.4.36",
    outcome="ok",
    reason="jax no longer looks for this; it reports a leaked tracer",
    issue="jax-ml/jax#2520",
)


@probe(source="jax-ml/jax#2520", deviations=[LEAKED_TRACER_REPORTED])
def closed_over(env):
    """Differentiating by a value that a function with a rule closes over is an error.

    Up to 0.4.35 the message explains it. Pass the value as an argument.
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
    errors = [
        describe_error(lambda f=f: jax.grad(f)(3.0), *words) for f in (forward_rule, reverse_rule)
    ]
    return Observed(errors, [["CustomJVPException", words[0]], ["CustomVJPException", words[0]]])


NO_NONDIFF_ARGNAMES = deviation(
    "jax<0.6.2",
    error="TypeError",
    match="unexpected keyword argument 'nondiff_argnames'",
    reason="arguments could be given only by index",
    issue="jax-ml/jax@0a1ada83ec97",
)


@probe(source="jax-ml/jax@0a1ada83ec97", deviations=[NO_NONDIFF_ARGNAMES])
def static_by_name(env):
    """`nondiff_argnames` selects by name the arguments that a rule receives unchanged.

    `nondiff_argnums` selects them by index.
    """

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
    values = jax.jit(lambda x: [slope(x, 2) for slope in slopes])(3.0)
    return Observed(np.float64(values), np.full(4, 2.0))


def differentiate_with(make_cotangent):
    """Return the gradient of a function whose backward rule returns a wrong cotangent."""
    f = jax.custom_vjp(lambda x: jnp.sum(x))  # noqa: PLW0108 - of one argument
    f.defvjp(lambda x: (jnp.sum(x), x), lambda x, _: make_cotangent(x))
    return jax.grad(f)


MISMATCH_NOT_STATED = deviation(
    "jax<0.6.1",
    error="ValueError",
    match="corresponding to an input of shape/dtype float32.3.\\.$",
    reason="the message has both shapes, but does not state that they differ",
    issue="jax-ml/jax#28757",
)


@program(source="jax-ml/jax#28757", platforms=("cpu",), deviations=[MISMATCH_NOT_STATED])
def cotangent_of_another_shape(env):
    """A backward rule whose result has another shape raises a ValueError.

    From 0.6.1 the message states that the shapes differ.
    """
    refusal = raises("ValueError", match="shape")
    return Program(
        differentiate_with(lambda x: (x[:2],)), args=(floats(1, 2, 3),), reference=refusal
    )


COTANGENT_PASSED_ON = deviation(
    outcome="ok", reason="the cotangent is passed on unchanged", issue="jax-ml/jax#23779"
)


@probe(source="jax-ml/jax#23779", deviations=[COTANGENT_PASSED_ON])
def cotangent_of_another_dtype(env):
    """A backward rule that returns float16 makes the gradient of a float32 argument float16."""
    gradient = differentiate_with(lambda x: (7 * x.astype(jnp.float16),))(floats(1, 2))
    return Observed([str(gradient.dtype), np.float64(gradient)], ["float32", np.array([7.0, 14])])


@probe(source="jax-ml/jax#12611")
def mistakes_told(env):
    """Wrong structures from rules are a TypeError that names the rule and the right structure."""

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
    errors = {
        "too few": describe_error(
            gradient(good, lambda _, g: (g,)), "bwd rule", "tuple of length equal"
        ),
        "no tuple": describe_error(
            gradient(good, lambda _, g: g), "bwd rule", "tuple of length equal"
        ),
        "no residuals": describe_error(
            gradient(lambda *args: args[0], lambda _, g: (g, g)), "fwd rule", "a pair"
        ),
        "no rule": describe_error(nothing, "No VJP defined", "defvjp"),
        "no tangent": describe_error(tangent(lambda p, _: p[0]), "JVP rule", "a pair"),
        "wrong tangent": describe_error(
            tangent(lambda p, t: (p[0], (t[0], t[0]))), "JVP rule", "structure"
        ),
        "forward mode": describe_error(
            lambda: jax.jvp(forward_mode, (1.0,), (1.0,)), "forward-mode"
        ),
    }
    bwd, jvp = ["TypeError", "bwd rule", "tuple of length equal"], ["TypeError", "JVP rule"]
    expected = {
        "too few": bwd,
        "no tuple": bwd,
        "no residuals": ["TypeError", "fwd rule", "a pair"],
        "no rule": ["AttributeError", "No VJP defined", "defvjp"],
        "no tangent": [*jvp, "a pair"],
        "wrong tangent": [*jvp, "structure"],
        "forward mode": ["TypeError", "forward-mode"],
    }
    return Observed(errors, expected)


@probe(source="jax-ml/jax#12611")
def without_a_tangent(env):
    """`None` as a cotangent is zero, and a result of a rule for an integer is not used."""
    f = jax.custom_vjp(lambda x, y, i: x * y * i)
    f.defvjp(lambda x, y, i: (x * y * i, (y, i)), lambda c, g: (g * c[0] * c[1], None, 17))
    slopes = jax.jit(jax.grad(f, (0, 1)))(2.0, 3.0, 4)
    return Observed(slopes, (np.float64(12), np.float64(0)))


NO_TANGENT_RULE = deviation(
    "jax<0.6",
    error="NotImplementedError",
    match="Differentiation rule for 'linear_call' not implemented",
    reason="linear_call had a transpose rule, but no tangent rule",
    issue="jax-ml/jax#27843",
)


@probe(source="jax-ml/jax#27843", deviations=[NO_TANGENT_RULE])
def stated_transpose(env):
    """`linear_call` differentiates forward by its function, in reverse by the given transpose."""

    def fn(x):
        return linear_call(lambda r, x: r * x, lambda r, t: 100 * r * t, 2.0, x)

    tangent = jax.jvp(fn, (3.0,), (1.0,))[1]
    return Observed((tangent, jax.grad(fn)(3.0)), (np.float64(2), np.float64(200)))


ASSERTION_WITHOUT_MESSAGE = deviation(
    "jax<0.4.34",
    outcome="ok",
    reason="the call raised an AssertionError without a message",
    issue="jax-ml/jax#23588",
)


@probe(source="jax-ml/jax#23588", deviations=[ASSERTION_WITHOUT_MESSAGE])
def converted_closure(env):
    """`closure_convert` hoists differentiated values that a function closes over.

    The converted function raises a TypeError if it is called with another structure.
    """

    def fn(w):
        f, hoisted = jax.closure_convert(lambda x: x["a"] * w, {"a": 1.0})
        errors.append(describe_error(lambda: f({"b": 1.0}, *hoisted), "same Pytree structure"))
        return f({"a": 3.0}, *(2 * h for h in hoisted))

    errors = []
    slope = jax.grad(fn)(5.0)
    return Observed((slope, errors[0]), (np.float64(6), ["TypeError", "same Pytree structure"]))


CLOSURE_NOT_PASSED = deviation(
    "jax<0.4.36",
    params=["in_jit"],
    error="UnexpectedTracerError",
    match="Encountered an unexpected tracer",
    reason="the closed-over value is not passed to the derivative",
    issue="jax-ml/jax@86a47a7d4ebb",
)
CLOSURE_NOT_PASSED_FROM_0_4_36 = deviation(
    "jax>=0.4.36",
    params=["in_jit"],
    error="TypeError",
    match="Tracer'> is not a valid JAX type|No constant handler for type",
    reason="the closed-over value is not passed to the derivative",
    issue="jax-ml/jax@86a47a7d4ebb",
)


@probe(
    source="jax-ml/jax@86a47a7d4ebb",
    params={"outside": {"jit": False}, "in_jit": {"jit": True}},
    deviations=[CLOSURE_NOT_PASSED, CLOSURE_NOT_PASSED_FROM_0_4_36],
)
def gradient_of_ones_own(env, jit):
    """A `custom_gradient` function that closes over an argument of a jitted function fails.

    The gradient of the jitted function is an error on every release. Make the closed-over value an
    argument of the inner function.
    """

    def fn(x, y):
        @jax.custom_gradient
        def g(x):
            return x * y, lambda c: (100 * y * c,)

        return g(x)

    return Observed(jax.grad(jax.jit(fn) if jit else fn)(2.0, 3.0), np.float64(300))


def times_of_arrays():
    """Return a product whose second factor, an array, is given by `nondiff_argnums`."""
    f = jax.custom_jvp(lambda x, y: x * y, nondiff_argnums=(1,))
    f.defjvp(lambda y, primals, tangents: (primals[0] * y, 10 * tangents[0] * y))
    return f


ARRAYS_FOR_A_RULE = {
    "grad": lambda f, x, y: jax.grad(f)(x, y),
    "jit_of_grad": lambda f, x, y: jax.jit(jax.grad(f))(x, y),
    "vmap_of_grad": lambda f, x, y: jax.vmap(jax.grad(f))(x[None], y[None])[0],
    "grad_of_jit": lambda f, x, y: jax.grad(jax.jit(f))(x, y),
    "grad_of_checkpoint": lambda f, x, y: jax.grad(jax.checkpoint(f))(x, y),
    "grad_of_scan": lambda f, x, y: jax.grad(
        lambda x: lax.scan(lambda c, y: (c + f(x, y), None), 0.0, y[None])[0]
    )(x),
    "grad_of_map": lambda f, x, y: jax.grad(
        lambda x: lax.map(lambda z: f(*z), (x[None], y[None]))[0]
    )(x),
}


ARRAY_OF_AN_ENDED_TRACE = deviation(
    params=["grad_of_jit", "grad_of_checkpoint", "grad_of_scan", "grad_of_map"],
    outcome="raised",
    reason="the rule runs after the trace of the function, which the array belongs to",
    issue="jax-ml/jax#20889",
)


@probe(source="jax-ml/jax#20889", params=[*ARRAYS_FOR_A_RULE], deviations=[ARRAY_OF_AN_ENDED_TRACE])
def array_by_nondiff_argnums(env, name):
    """A `custom_jvp` rule that receives an array by `nondiff_argnums` works if it is not staged.

    Give an array as a differentiated argument, and ignore its tangent.
    """
    f = times_of_arrays()
    x, y = floats(3, 4), floats(1, 2)
    slopes = ARRAYS_FOR_A_RULE[name](lambda x, y: f(x, y).sum(), x, y)
    return Observed(slopes, 10 * y)


LANES_OF_THE_FUNCTION_ALONE = deviation(
    params=["jit"],
    error="TypeError",
    match="broadcast_dimensions must have length equal to operand ndim",
    reason="only the function is traced to find out which of its results have lanes",
    issue="jax-ml/jax#16374",
)


@probe(
    source="jax-ml/jax#16374",
    params={"eager": {"jit": False}, "jit": {"jit": True}},
    deviations=[LANES_OF_THE_FUNCTION_ALONE],
)
def lanes_of_a_rule(env, jit):
    """Under `vmap`, a rule may compute from its argument what its function has as a constant."""
    f = jax.custom_jvp(lambda x: jnp.zeros(x.shape))
    f.defjvp(lambda primals, tangents: (0 * primals[0], 5 * tangents[0]))
    mapped = jax.jit(jax.vmap(f)) if jit else jax.vmap(f)
    x = floats(3, 4)
    return Observed(jax.jvp(mapped, (x,), (x,)), (floats(0, 0), floats(15, 20)))


def with_forward_rule(**options):
    """Return `x * n + m` whose derivative is `first + 10 * second`, from a `custom_jvp` rule."""
    f = jax.custom_jvp(lambda n, x, m: x * n + m, **options)
    f.defjvp(lambda a, b, primals, tangents: (primals[0] * a + b, tangents[0] * (a + 10 * b)))
    return f


def with_backward_rule(**options):
    """Return `x * n + m` whose derivative is `first + 10 * second`, from a `custom_vjp` rule."""
    f = jax.custom_vjp(lambda n, x, m: x * n + m, **options)
    f.defvjp(lambda n, x, m: (x * n + m, None), lambda a, b, _, slope: (slope * (a + 10 * b),))
    return f


KINDS_OF_RULE = {"custom_jvp": with_forward_rule, "custom_vjp": with_backward_rule}
ORDER_OF_THE_NUMBERS = deviation(
    "jax<0.6.2",
    outcome="ok",
    reason="a rule received its static arguments in the order of the numbers",
)


@probe(
    source="jax-ml/jax@0a1ada83ec97",
    params=[*KINDS_OF_RULE],
    deviations=[ORDER_OF_THE_NUMBERS],
)
def unsorted_nondiff_argnums(env, name):
    """With `nondiff_argnums=(2, 0)`, a rule receives argument 0, then argument 2, from 0.6.2 on.

    Before, it received argument 2 first. Nothing warns of it: the rule silently mixes them up.
    """
    f = KINDS_OF_RULE[name](nondiff_argnums=(2, 0))
    return Observed(jax.grad(f, 1)(3.0, 1.0, 7.0), np.float64(73))


NUMBER_FOR_AN_INTEGER = deviation(
    "jax<0.4.34",
    outcome="ok",
    reason="the tangent of an integer was an integer 0",
)


@program(source="jax-ml/jax@018189491bde", deviations=[NUMBER_FOR_AN_INTEGER])
def product_with_an_integer(env):
    """A `custom_jvp` rule cannot compute with the tangent of an integer argument from 0.4.34 on.

    Its dtype is float0. Before, it was an integer 0, so that the rule of a product worked.
    """
    f = jax.custom_jvp(lambda x, n: x * n)
    f.defjvp(lambda p, t: (p[0] * p[1], t[0] * p[1] + p[0] * t[1]))
    return Program(
        jax.grad(f), (np.float32(2), np.int32(3)), reference=raises("TypeError", match="float0")
    )


TANGENTS_OF_AN_INTEGER = {
    "integer": lambda: jnp.zeros((), jnp.int32),
    "float0": lambda: np.zeros((), jax.dtypes.float0),
}
TANGENT_OF_THE_SAME_DTYPE = deviation(
    "jax<0.4.34",
    params=["float0"],
    error="TypeError",
    match="float0",
    reason="a tangent had to be of the dtype of its result",
)
TANGENT_IS_FLOAT0 = deviation(
    "jax>=0.4.34",
    params=["integer"],
    error="TypeError",
    match="float0",
    reason="the tangent of an integer must be of dtype float0",
)


@probe(
    source="jax-ml/jax@018189491bde",
    params=[*TANGENTS_OF_AN_INTEGER],
    deviations=[TANGENT_OF_THE_SAME_DTYPE, TANGENT_IS_FLOAT0],
)
def tangent_of_an_integer_result(env, name):
    """A `custom_jvp` rule returns a float0 zero as the tangent of an integer from 0.4.34 on.

    Before, it had to return an integer zero, which is refused now.
    """

    def rule(primals, tangents):
        return f(*primals), (2 * tangents[0], TANGENTS_OF_AN_INTEGER[name]())

    f = jax.custom_jvp(lambda x: (2 * x, jnp.int32(7)))
    f.defjvp(rule)
    return Observed(jax.grad(lambda x: f(x)[0])(np.float32(3)), np.float64(2))


CALLBACK_DIFFERENTIATED = deviation(
    "jax<0.4.36",
    error="ValueError",
    match="IO callbacks do not support JVP",
    reason="the callback was differentiated although no derivative passes through it",
)


@probe(source="jax-ml/jax@c36e1f7c1ad4", deviations=[CALLBACK_DIFFERENTIATED])
def callback_in_a_function_with_a_rule(env):
    """The gradient of a `custom_jvp` function that calls `io_callback` works from 0.4.36 on."""

    def square(x):
        jax.experimental.io_callback(lambda _: None, None, x)
        return x * x

    f = jax.custom_jvp(square)
    f.defjvp(lambda primals, tangents: (f(*primals), 2 * primals[0] * tangents[0]))
    return Observed(jax.grad(f)(np.float32(3)), np.float64(6))


@probe(source="jax-ml/jax@c36e1f7c1ad4", deviations=[CALLBACK_DIFFERENTIATED])
def callback_of_a_stopped_value(env):
    """From 0.4.36 on, a function that calls `io_callback` for a stopped value has a gradient."""

    def square(x):
        jax.experimental.io_callback(lambda _: None, None, lax.stop_gradient(x))
        return x * x

    return Observed(jax.grad(square)(np.float32(3)), np.float64(6))


LANES_ADDED_FOR_EACH = deviation(
    "jax<0.12",
    outcome="ok",
    reason="the cotangent of a result that the lanes share was added once for each lane",
    issue="jax-ml/jax@d557a060b956",
)


@probe(
    source="jax-ml/jax@d557a060b956",
    params={"shared": {"axis": None}, "for_each_lane": {"axis": 0}},
    deviations=[LANES_ADDED_FOR_EACH],
)
def result_shared_by_the_lanes(env, axis):
    """The gradient by `w` of a `custom_vjp` function with results `x * w` and `w * w`, over lanes.

    The rule returns one cotangent of `w` for both. From 0.12.0 on it is refused; before, it was
    silently 18 instead of 10, or 42 instead of 18.
    """
    f = jax.custom_vjp(lambda x, w: (x * w, w * w))

    def backward(saved, cotangents):
        x, w = saved
        return cotangents[0] * w, cotangents[0] * x + 2 * w * cotangents[1]

    f.defvjp(lambda x, w: ((x * w, w * w), (x, w)), backward)

    def loss(w):
        lanes = jax.vmap(lambda x: f(x, w), out_axes=(0, axis))
        products, square = lanes(np.float32([1, 2, 3]))
        return products.sum() + square.sum()

    found = []
    outcome = refusal(lambda: found.append(jax.grad(loss)(np.float32(2))), "shared across")
    return Observed(found or outcome, "ValueError: shared across")


def divide(g, y):
    """Solve a linear equation of numbers."""
    return y / g(jnp.ones_like(y))


def root_by(solve):
    """Return a function whose result is a root of x * x - a, by one step of a solver."""
    return lambda a: lax.custom_root(lambda x: x * x - a, np.float32(1), solve, divide)


TRACED_TWICE_MORE = deviation(
    "jax<0.11.2",
    outcome="ok",
    reason="the function was also traced for its linearisation, and for that of the solution",
    issue="jax-ml/jax@f740a321010c",
)


@probe(source="jax-ml/jax@f740a321010c", deviations=[TRACED_TWICE_MORE])
def traces_of_a_root(env):
    """The function whose root is wanted is traced once."""
    calls = []

    def f(x):
        calls.append(x)
        return x * x - 2

    lax.custom_root(f, np.float32(1), lambda f, x: x - f(x) / 2, divide)
    return Observed(len(calls), 1)


EFFECTS_REFUSED = deviation(
    "jax==0.11.2",
    outcome="ok",
    reason="the equation of a root had no rule for effects",
    issue="jax-ml/jax@f740a321010c",
)


@probe(source="jax-ml/jax@f740a321010c", deviations=[EFFECTS_REFUSED])
def callback_of_a_solver(env):
    """The solver may call the host by `io_callback`."""
    root = root_by(lambda _, x: io_callback(lambda x: x, x, x))
    return Observed(refusal(lambda: root(np.float32(2))), "ran")


LANES_MAPPED = deviation(
    "jax>=0.11.2",
    outcome="ok",
    reason="all results of the equation of a root are mapped",
    issue="jax-ml/jax@f740a321010c",
)


@probe(source="jax-ml/jax@f740a321010c", deviations=[LANES_MAPPED])
def solution_shared_by_the_lanes(env):
    """A solution that does not depend on the lane may be returned with `out_axes=None`."""
    lanes = jax.vmap(root_by(lambda _, x: x), out_axes=None)
    return Observed(refusal(lambda: lanes(np.float32([2, 3]))), "ran")


SOLVER_HAS_A_TYPE = deviation(
    "jax>=0.11.2",
    outcome="ok",
    reason="the function is traced once, so that it has one type",
    issue="jax-ml/jax@f740a321010c",
)
SOLVERS = {
    "vector": lambda f, x: x - f(jnp.linspace(0.0, 2.0, 3))[1] / 2,
    "integer": lambda f, x: x - f(1) / 2,
    "half_precision": lambda f, x: x - f(np.float16(1)) / 2,
    "keyword": lambda f, x: x - f(x=x) / 2,
}


@probe(source="jax-ml/jax@f740a321010c", params=[*SOLVERS], deviations=[SOLVER_HAS_A_TYPE])
def solver_that_calls_with_another_type(env, name):
    """The solver may call the function with a vector, another dtype or a keyword: up to 0.11.1."""
    return Observed(refusal(lambda: root_by(SOLVERS[name])(np.float32(2))), "ran")
