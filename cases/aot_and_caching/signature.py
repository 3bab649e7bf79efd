"""What `jax.jit` takes, how it says no, and which names of arguments it stumbled over.

The signature changed under everybody's feet three times: all but the function by keyword (0.7.0),
a factory for decorators (0.8.1), keywords that came and went.
"""

from __future__ import annotations

import jax
import numpy as np

from conformance.kit import Observed, deviation, probe

from ._helpers import message, told


@probe(
    source="jax-ml/jax@5e2afe6e7987",
    params={"fun_by_keyword": {"way": "fun"}, "shardings_by_position": {"way": "shardings"}},
    deviations=[
        deviation("jax<0.6", outcome="ok", match="'ok'", reason="any spelling was taken"),
        deviation(
            "jax>=0.6,<0.7",
            outcome="ok",
            match="DeprecationWarning",
            reason="deprecated first",
            issue="jax-ml/jax@ceca6ec1fc5b",
        ),
    ],
)
def positions_and_keywords(env, way):
    """`jax.jit(f, ...)`: the function by position, the rest by keyword; else a TypeError."""
    calls = {
        "fun": lambda: jax.jit(fun=lambda x: x)(1.0),
        "shardings": lambda: jax.jit(lambda x: x, None)(1.0),
    }
    return Observed(told(calls[way]), "TypeError")


@probe(
    source="jax-ml/jax#10061",
    deviations=[
        deviation("jax<0.8.1", error="TypeError", match="fun", reason="a function had to be given")
    ],
)
def decorator_factory(env):
    """`@jax.jit(static_argnames=...)` without functools.partial, from 0.8.1 on."""

    @jax.jit(static_argnames="n")
    def repeated(x, n):
        return x * n if isinstance(n, int) else 0.0

    return Observed(repeated(np.float32(2), n=3), np.float32(6))


def _named(name):
    """Return a jitted product of two arguments, the second of that name."""
    namespace = {}
    exec(f"def body(x, {name}): return x * {name}", namespace)  # noqa: S102 - names vary
    return jax.jit(namespace["body"])


@probe(
    source="jax-ml/jax#25329",
    params={
        "f": {"name": "f"},
        "fun": {"name": "fun"},
        "jit_info": {"name": "jit_info"},
    },
    deviations=[
        deviation(
            "jax==0.4.36",
            params=["f"],
            error="TypeError",
            match="multiple values for argument 'f'",
            reason="a parameter of jax's own wrapper had that name",
            issue="jax-ml/jax#25329",
        ),
        deviation(
            "jax>=0.4.31,<0.9",
            params=["fun"],
            error="TypeError",
            match="multiple values for argument 'fun'",
            reason="the same, for longer, and nobody told",
            issue="jax-ml/jax@9e30079dbad9",
        ),
        deviation(
            "jax<0.9",
            params=["jit_info"],
            error="TypeError",
            match="multiple values for argument 'jit_info'",
            reason="the same",
            issue="jax-ml/jax@2150efed4429",
        ),
    ],
)
def names_of_arguments(env, name):
    """A keyword argument may have any name, also one that jax uses itself.

    `f` failed in 0.4.36 alone; `fun` from 0.4.31 to 0.8.3. By position it always works.
    """
    return Observed(_named(name)(3.0, **{name: 2.0}), 6.0)


@probe(source="jax-ml/jax#25329")
def names_that_always_worked(env):
    """Keyword arguments called `self` and `args` are no trouble on any release."""
    seen = {name: _named(name)(3.0, **{name: 2.0}) for name in ("self", "args")}
    return Observed(seen, {"self": 6.0, "args": 6.0})


@probe(
    source="jax-ml/jax@fff33f90b209",
    params={
        "known": {"where": "outer", "options": {"xla_embed_ir_in_executable": True}},
        "unknown": {"where": "outer", "options": {"xla_no_such_option": True}},
        "nested": {"where": "inner", "options": {"xla_embed_ir_in_executable": True}},
        "nested_unknown": {"where": "inner", "options": {"xla_no_such_option": True}},
    },
    deviations=[
        deviation(
            "jax<0.4.36", outcome="ok", match="TypeError", reason="jit took no compiler options"
        ),
        deviation(
            "jax>=0.4.36,<0.8",
            params=["unknown"],
            outcome="ok",
            match="XlaRuntimeError",
            reason="JaxRuntimeError had that name",
        ),
        deviation(
            "jax>=0.4.36,<0.7",
            params=["nested", "nested_unknown"],
            outcome="ok",
            match="'ok'",
            reason="options of a jit within a jit were dropped without a word",
            issue="jax-ml/jax@6f8456e9fbf7",
        ),
    ],
)
def compiler_options(env, where, options):
    """Compiler options of jit: checked by XLA, and refused within another jit since 0.7.0.

    Up to 0.6.2 those of an inner jit were ignored, even if there was no such option. Give them to
    the outermost jit.
    """

    def call():
        fn = jax.jit(lambda x: x + 1, compiler_options=options)
        return (jax.jit(lambda x: fn(x) + 0) if where == "inner" else fn)(1.0)

    known = "xla_no_such_option" not in options
    outer = "ok" if known else "JaxRuntimeError"
    return Observed(told(call), "ValueError" if where == "inner" else outer)


@probe(
    source="jax-ml/jax@75697ef8680b",
    params={"jit": {"api": "jit"}, "make_jaxpr": {"api": "make_jaxpr"}},
    deviations=[
        deviation("jax<0.8.2", outcome="ok", reason="dynamic shapes were still tried there"),
    ],
)
def abstracted_axes(env, api):
    """`abstracted_axes` went with the experiment on dynamic shapes in 0.8.2; use jax.export's."""
    call = getattr(jax, api)
    return Observed(told(lambda: call(lambda x: x + 1, abstracted_axes=None)(1.0)), "TypeError")


@probe(source="jax-ml/jax#10603")
def checked_against_the_function(env):
    """Positions and names that the function does not have are refused when it is jitted.

    So is an argument both static and donated. A negative position counts from the end.
    """
    given = {
        "static_too_many": {"static_argnums": 3},
        "static_too_few": {"static_argnums": -3},
        "static_name": {"static_argnames": "z"},
        "donated_too_many": {"donate_argnums": 3},
        "donated_name": {"donate_argnames": "z"},
        "both": {"static_argnums": 0, "donate_argnums": 0},
        "last": {"static_argnums": -1},
    }
    seen = {
        name: told(lambda keywords=keywords: jax.jit(lambda x, y: x * y, **keywords)(2, 3))
        for name, keywords in given.items()
    }
    return Observed(seen, {**dict.fromkeys(given, "ValueError"), "last": "ok"})


class Incomparable:
    """A static argument whose equality raises."""

    def __hash__(self):
        return 1

    def __eq__(self, other):
        raise RuntimeError("no")


@probe(source="jax-ml/jax#10603")
def bad_static_values(env):
    """A static value that cannot be hashed or compared is a ValueError that says so."""
    fn = jax.jit(lambda x, _: x, static_argnums=1)
    fn(1.0, Incomparable())
    seen = {
        "list": message(lambda: fn(1.0, [1]))[:58],
        "incomparable": message(lambda: fn(1.0, Incomparable()))[:60],
    }
    expected = {
        "list": "ValueError: Non-hashable static arguments are not supported",
        "incomparable": "ValueError: static arguments should be comparable using __eq__",
    }
    return Observed(seen, {key: text[: len(seen[key])] for key, text in expected.items()})


@probe(
    source="jax-ml/jax@a44e129ae791",
    params={"string": {"value": "a"}, "in_a_tree": {"value": {"mode": "a"}}},
    deviations=[
        deviation("jax<0.4.34", outcome="ok", reason="the type was named, not the argument")
    ],
)
def not_an_array(env, value):
    """A string as an argument: since 0.4.34 the error names its path and the static keywords."""
    text = message(lambda: jax.jit(lambda options: options)(value))
    path = "options['mode']" if isinstance(value, dict) else "options"
    seen = [text.split(":")[0], f"at path {path}." in text, "static_argnames" in text]
    return Observed(seen, ["TypeError", True, True])


@probe(
    source="jax-ml/jax@ba64c02fb3ba",
    deviations=[
        deviation("jax<0.6.2", outcome="ok", reason="it read as if an argument were at fault")
    ],
)
def not_an_array_returned(env):
    """A string as a result: since 0.6.2 the error says that it was returned, and by whom."""

    def describe(x):
        return {"value": x, "unit": "m"}

    text = message(lambda: jax.jit(describe)(1.0))
    seen = [text.split(":")[0], "returned a value of type" in text, "describe" in text]
    return Observed(seen, ["TypeError", True, True])


@probe(
    source="jax-ml/jax#6584",
    deviations=[
        deviation(
            "jax>=0.11.2",
            params=["true"],
            outcome="ok",
            match="'jit'",
            reason="inline=True now means jax.Inline.JAX_LATE: at lowering, not in the jaxpr",
        )
    ],
    params={
        "false": {"inline": False},
        "true": {"inline": True},
        "jax_early": {"inline": "JAX_EARLY"},
        "auto": {"inline": "AUTO"},
    },
)
def inlined(env, inline):
    """A jit within a jit is one call in the jaxpr, or its equations with `inline=True`.

    Since 0.11.2 True leaves the call in the jaxpr and inlines when lowering: `jax.Inline.JAX_EARLY`
    (from 0.11.0) is what True was.
    """
    if isinstance(inline, str):
        if not hasattr(jax, "Inline"):
            env.unsupported("no jax.Inline here")
        inline = jax.Inline[inline]
    fn = jax.jit(lambda y: y + 1, inline=inline)
    names = [str(eqn.primitive) for eqn in jax.make_jaxpr(lambda x: fn(x) * 2)(1.0).eqns]
    return Observed(
        [name.replace("pjit", "jit") for name in names],
        ["add" if inline is True or "JAX_EARLY" in str(inline) else "jit", "mul"],
    )


@probe(
    source="jax-ml/jax@d585aecc0ed4",
    deviations=[
        deviation("jax<0.7", outcome="ok", reason="the primitive was called pjit"),
    ],
)
def name_of_the_primitive(env):
    """The equation of a nested jit is called `jit` since 0.7.0, and was `pjit` before."""
    jaxpr = jax.make_jaxpr(jax.jit(lambda y: y + 1))(1.0)
    return Observed(jaxpr.eqns[0].primitive.name, "jit")
