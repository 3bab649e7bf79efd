"""The signature of `jax.jit`: accepted arguments, errors, and names that clashed with its own.

The signature changed three times: everything except the function by keyword (0.7.0), a decorator
factory (0.8.1), and keywords that were added and removed.
"""

from __future__ import annotations

import warnings

import jax
import jax.numpy as jnp
import numpy as np

from conformance.kit import Observed, deviation, probe
from conformance.kit.endings import refusal

from ._helpers import classify_outcome, format_error

BOTH_SPELLINGS_ACCEPTED = deviation(
    "jax<0.6",
    outcome="ok",
    match="'ok'",
    reason="jit accepted the function by keyword and options by position",
)
SPELLINGS_DEPRECATED = deviation(
    "jax>=0.6,<0.7",
    outcome="ok",
    match="DeprecationWarning",
    reason="jit deprecated these spellings before it refused them",
    issue="jax-ml/jax@ceca6ec1fc5b",
)


@probe(
    source="jax-ml/jax@5e2afe6e7987",
    params={"fun_by_keyword": {"way": "fun"}, "shardings_by_position": {"way": "shardings"}},
    deviations=[BOTH_SPELLINGS_ACCEPTED, SPELLINGS_DEPRECATED],
)
def positions_and_keywords(env, way):
    """`jax.jit` takes the function by position and the rest by keyword, else it is a TypeError."""
    calls = {
        "fun": lambda: jax.jit(fun=lambda x: x)(1.0),
        "shardings": lambda: jax.jit(lambda x: x, None)(1.0),
    }
    return Observed(classify_outcome(calls[way]), "TypeError")


FUNCTION_REQUIRED = deviation(
    "jax<0.8.1", error="TypeError", match="fun", reason="jit required a function"
)


@probe(source="jax-ml/jax#10061", deviations=[FUNCTION_REQUIRED])
def decorator_factory(env):
    """`@jax.jit(static_argnames=...)` works without functools.partial from 0.8.1."""

    @jax.jit(static_argnames="n")
    def repeated(x, n):
        return x * n if isinstance(n, int) else 0.0

    return Observed(repeated(np.float32(2), n=3), np.float32(6))


def _make_product(name):
    """Return a jitted product of two arguments, the second of the given name."""
    namespace = {}
    exec(f"def body(x, {name}): return x * {name}", namespace)  # noqa: S102 - names vary
    return jax.jit(namespace["body"])


F_IS_A_WRAPPER_PARAMETER = deviation(
    "jax==0.4.36",
    params=["f"],
    error="TypeError",
    match="multiple values for argument 'f'",
    reason="a parameter of JAX's own wrapper was called f",
    issue="jax-ml/jax#25329",
)
FUN_IS_A_WRAPPER_PARAMETER = deviation(
    "jax>=0.4.31,<0.9",
    params=["fun"],
    error="TypeError",
    match="multiple values for argument 'fun'",
    reason="a parameter of JAX's own wrapper was called fun, which was not reported",
    issue="jax-ml/jax@9e30079dbad9",
)
JIT_INFO_IS_A_WRAPPER_PARAMETER = deviation(
    "jax<0.9",
    params=["jit_info"],
    error="TypeError",
    match="multiple values for argument 'jit_info'",
    reason="a parameter of JAX's own wrapper was called jit_info",
    issue="jax-ml/jax@2150efed4429",
)


@probe(
    source="jax-ml/jax#25329",
    params={
        "f": {"name": "f"},
        "fun": {"name": "fun"},
        "jit_info": {"name": "jit_info"},
    },
    deviations=[
        F_IS_A_WRAPPER_PARAMETER,
        FUN_IS_A_WRAPPER_PARAMETER,
        JIT_INFO_IS_A_WRAPPER_PARAMETER,
    ],
)
def names_of_arguments(env, name):
    """A keyword argument may have any name, including a name that JAX uses itself.

    `f` failed in 0.4.36 only, `fun` from 0.4.31 to 0.8.3. By position, every name works.
    """
    return Observed(_make_product(name)(3.0, **{name: 2.0}), 6.0)


@probe(source="jax-ml/jax#25329")
def names_that_always_worked(env):
    """Keyword arguments called `self` and `args` work on every release."""
    result = {name: _make_product(name)(3.0, **{name: 2.0}) for name in ("self", "args")}
    return Observed(result, {"self": 6.0, "args": 6.0})


COMPILER_OPTIONS_REFUSED = deviation(
    "jax<0.4.36", outcome="ok", match="TypeError", reason="jit did not accept compiler options"
)
OLD_NAME_OF_RUNTIME_ERROR = deviation(
    "jax>=0.4.36,<0.8",
    params=["unknown"],
    outcome="ok",
    match="XlaRuntimeError",
    reason="JaxRuntimeError was called XlaRuntimeError",
)
NESTED_OPTIONS_IGNORED = deviation(
    "jax>=0.4.36,<0.7",
    params=["nested", "nested_unknown"],
    outcome="ok",
    match="'ok'",
    reason="jit silently dropped the options of a jit within a jit",
    issue="jax-ml/jax@6f8456e9fbf7",
)


@probe(
    source="jax-ml/jax@fff33f90b209",
    params={
        "known": {"where": "outer", "options": {"xla_embed_ir_in_executable": True}},
        "unknown": {"where": "outer", "options": {"xla_no_such_option": True}},
        "nested": {"where": "inner", "options": {"xla_embed_ir_in_executable": True}},
        "nested_unknown": {"where": "inner", "options": {"xla_no_such_option": True}},
    },
    deviations=[COMPILER_OPTIONS_REFUSED, OLD_NAME_OF_RUNTIME_ERROR, NESTED_OPTIONS_IGNORED],
)
def compiler_options(env, where, options):
    """XLA checks the compiler options of jit; within another jit they are refused from 0.7.0.

    Up to 0.6.2 the options of an inner jit were ignored, even options that do not exist. Give them
    to the outermost jit.
    """

    def call():
        fn = jax.jit(lambda x: x + 1, compiler_options=options)
        return (jax.jit(lambda x: fn(x) + 0) if where == "inner" else fn)(1.0)

    known = "xla_no_such_option" not in options
    outer = "ok" if known else "JaxRuntimeError"
    return Observed(classify_outcome(call), "ValueError" if where == "inner" else outer)


DYNAMIC_SHAPES_EXPERIMENT = deviation(
    "jax<0.8.2", outcome="ok", reason="the experiment on dynamic shapes had not been removed yet"
)


@probe(
    source="jax-ml/jax@75697ef8680b",
    params={"jit": {"api": "jit"}, "make_jaxpr": {"api": "make_jaxpr"}},
    deviations=[DYNAMIC_SHAPES_EXPERIMENT],
)
def abstracted_axes(env, api):
    """`abstracted_axes` was removed with the experiment on dynamic shapes in 0.8.2.

    Use the symbolic shapes of `jax.export` instead.
    """
    call = getattr(jax, api)
    return Observed(
        classify_outcome(lambda: call(lambda x: x + 1, abstracted_axes=None)(1.0)), "TypeError"
    )


@probe(source="jax-ml/jax#10603")
def checked_against_the_function(env):
    """Positions and names that the function does not have are refused when it is jitted.

    So is an argument that is both static and donated. A negative position counts from the end.
    """
    options = {
        "static_too_many": {"static_argnums": 3},
        "static_too_few": {"static_argnums": -3},
        "static_name": {"static_argnames": "z"},
        "donated_too_many": {"donate_argnums": 3},
        "donated_name": {"donate_argnames": "z"},
        "both": {"static_argnums": 0, "donate_argnums": 0},
        "last": {"static_argnums": -1},
    }
    result = {
        name: classify_outcome(
            lambda keywords=keywords: jax.jit(lambda x, y: x * y, **keywords)(2, 3)
        )
        for name, keywords in options.items()
    }
    return Observed(result, {**dict.fromkeys(options, "ValueError"), "last": "ok"})


class Incomparable:
    """A static argument whose equality raises."""

    def __hash__(self):
        return 1

    def __eq__(self, other):
        raise RuntimeError("no")


@probe(source="jax-ml/jax#10603")
def bad_static_values(env):
    """A static value that cannot be hashed or compared is a ValueError with the reason."""
    fn = jax.jit(lambda x, _: x, static_argnums=1)
    fn(1.0, Incomparable())
    result = {
        "list": format_error(lambda: fn(1.0, [1]))[:58],
        "incomparable": format_error(lambda: fn(1.0, Incomparable()))[:60],
    }
    expected = {
        "list": "ValueError: Non-hashable static arguments are not supported",
        "incomparable": "ValueError: static arguments should be comparable using __eq__",
    }
    return Observed(result, {key: text[: len(result[key])] for key, text in expected.items()})


ERROR_NAMED_THE_TYPE = deviation(
    "jax<0.4.34", outcome="ok", reason="the error named the type, not the argument"
)


@probe(
    source="jax-ml/jax@a44e129ae791",
    params={"string": {"value": "a"}, "in_a_tree": {"value": {"mode": "a"}}},
    deviations=[ERROR_NAMED_THE_TYPE],
)
def not_an_array(env, value):
    """The error for a string as an argument names its path and `static_argnames` from 0.4.34."""
    text = format_error(lambda: jax.jit(lambda options: options)(value))
    path = "options['mode']" if isinstance(value, dict) else "options"
    result = [text.split(":")[0], f"at path {path}." in text, "static_argnames" in text]
    return Observed(result, ["TypeError", True, True])


ERROR_BLAMED_AN_ARGUMENT = deviation(
    "jax<0.6.2", outcome="ok", reason="the error read as if an argument were wrong"
)


@probe(source="jax-ml/jax@ba64c02fb3ba", deviations=[ERROR_BLAMED_AN_ARGUMENT])
def not_an_array_returned(env):
    """The error for a string as a result names the function that returned it, from 0.6.2."""

    def describe(x):
        return {"value": x, "unit": "m"}

    text = format_error(lambda: jax.jit(describe)(1.0))
    result = [text.split(":")[0], "returned a value of type" in text, "describe" in text]
    return Observed(result, ["TypeError", True, True])


PLACE_NOT_NAMED = deviation(
    "jax<0.6.2", outcome="ok", reason="the error named neither the function nor the place"
)
FUNCTION_FOR_THE_PLACE = deviation(
    "jax>=0.7,<0.10.2",
    outcome="ok",
    reason="the error gave the function where it should have given the place",
    issue="jax-ml/jax@63364b0f42ef",
)


@probe(source="jax-ml/jax@63364b0f42ef", deviations=[PLACE_NOT_NAMED, FUNCTION_FOR_THE_PLACE])
def place_of_what_is_not_an_array(env):
    """The error for a string among the results names its place in them."""
    observed = {}
    for place, value in {"['unit']": {"value": 1.0, "unit": "m"}, "[1][0]": (1.0, ["m"])}.items():
        text = format_error(lambda value=value: jax.jit(lambda: value)())
        observed[place] = f"at output component {place}," in text
    return Observed(observed, dict.fromkeys(observed, True))


NUMBER_OF_PYTHON = deviation(
    "jax<0.6.1",
    error="AttributeError",
    match="'int' object has no attribute 'astype'",
    reason="an inlined function returned a constant as a number of Python",
    issue="jax-ml/jax#27545",
)


@probe(source="jax-ml/jax#27545", deviations=[NUMBER_OF_PYTHON])
def inlined_constant(env):
    """Under jit, a `jit(inline=True)` that returns `jnp.array(1)` returns an array."""

    @jax.jit
    def f(x):
        one = jax.jit(lambda: jnp.array(1), inline=True)()
        return x + one.astype(np.float32)

    return Observed(f(np.float32(2)), np.float32(3))


INLINED_AT_LOWERING = deviation(
    "jax>=0.11.2",
    params=["true"],
    outcome="ok",
    match="'jit'",
    reason="inline=True means jax.Inline.JAX_LATE: inlined at lowering, not in the jaxpr",
)


@probe(
    source="jax-ml/jax#6584",
    deviations=[INLINED_AT_LOWERING],
    params={
        "false": {"inline": False},
        "true": {"inline": True},
        "jax_early": {"inline": "JAX_EARLY"},
        "auto": {"inline": "AUTO"},
    },
)
def inlined(env, inline):
    """A jit within a jit is one call in the jaxpr, or its equations with `inline=True`.

    From 0.11.2 True leaves the call in the jaxpr and inlines it when lowering.
    `jax.Inline.JAX_EARLY` (from 0.11.0) does what True did before.
    """
    if isinstance(inline, str):
        if not hasattr(jax, "Inline"):
            env.unsupported("this release has no jax.Inline")
        inline = jax.Inline[inline]
    fn = jax.jit(lambda y: y + 1, inline=inline)
    names = [str(eqn.primitive) for eqn in jax.make_jaxpr(lambda x: fn(x) * 2)(1.0).eqns]
    return Observed(
        [name.replace("pjit", "jit") for name in names],
        ["add" if inline is True or "JAX_EARLY" in str(inline) else "jit", "mul"],
    )


PRIMITIVE_WAS_PJIT = deviation("jax<0.7", outcome="ok", reason="the primitive was called pjit")


@probe(source="jax-ml/jax@d585aecc0ed4", deviations=[PRIMITIVE_WAS_PJIT])
def name_of_the_primitive(env):
    """The equation of a nested jit is called `jit` from 0.7.0; before, it was called `pjit`."""
    jaxpr = jax.make_jaxpr(jax.jit(lambda y: y + 1))(1.0)
    return Observed(jaxpr.eqns[0].primitive.name, "jit")


NARROWED_SILENTLY = deviation(
    "jax<0.11.1",
    outcome="ok",
    reason="64-bit dtypes of descriptions were narrowed without a warning",
    issue="jax-ml/jax@5a1619fbde73",
)


@probe(source="jax-ml/jax@5a1619fbde73", deviations=[NARROWED_SILENTLY])
def description_of_64_bits(env):
    """In 32-bit mode, tracing for a `ShapeDtypeStruct` of float64 warns, from 0.11.1."""
    described = jax.ShapeDtypeStruct((2,), np.float64)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        dtype = jax.eval_shape(lambda x: x, described).dtype
    return Observed(
        (dtype.name, sorted({w.category.__name__ for w in caught})), ("float32", ["UserWarning"])
    )


OTHER_ARGUMENT_NAMED = deviation(
    "jax<0.6",
    outcome="ok",
    match="TypeError",
    reason="the names were in the order of the signature, the arguments in alphabetical order",
    issue="jax-ml/jax@076d02105772",
)


@probe(source="jax-ml/jax@076d02105772", deviations=[OTHER_ARGUMENT_NAMED])
def keyword_that_is_no_array(env):
    """The TypeError for `f(1.0, b=2.0, a="text")` names the argument a from 0.6.0 on.

    From 0.4.34 to 0.5.3, it named b, whose value is accepted.
    """

    def f(x, b, a):
        return x

    outcome = refusal(lambda: jax.jit(f)(1.0, b=2.0, a="text"), "path a", "path b")
    return Observed(outcome, reference="TypeError: path a")
