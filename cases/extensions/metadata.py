"""Attributes for the compiler: `set_xla_metadata` as a context and as a decorator."""

from __future__ import annotations

import importlib
import re

import jax
import jax.numpy as jnp
from jax import lax

from conformance.kit import Observed, defaults, deviation, probe

from ._helpers import floats

defaults(platforms=("cpu",), releases="jax>=0.4.36")

X = floats(1, 2)


def set_metadata(**attributes):
    """Return the context that sets attributes of all operations within it."""
    return importlib.import_module("jax.experimental.xla_metadata").set_xla_metadata(**attributes)


def count_tagged(f, *args):
    """Return the operations in the lowered program with an attribute `a`, in order."""
    lines = jax.jit(f).lower(*args).as_text().splitlines()
    tagged = [line for line in lines if "frontend_attributes = {a =" in line]
    return [re.search(r"stablehlo\.(\w+)", line).group(1) for line in tagged]


NONE_WAS_A_TEXT = deviation(
    "jax<0.6",
    outcome="ok",
    reason="None was a value as any other",
    issue="jax-ml/jax@1875c76bd294",
)


@probe(source="jax-ml/jax@1875c76bd294", releases="jax>=0.5.1", deviations=[NONE_WAS_A_TEXT])
def metadata_unset(env):
    """`set_xla_metadata(a=None)` within `set_xla_metadata(a="b")` removes the attribute."""

    def cosine(x):
        with set_metadata(a=None):
            return jnp.cos(x)

    def f(x):
        with set_metadata(a="b"):
            return lax.add(jnp.sin(x), cosine(x))

    return Observed(count_tagged(f, X), ["sine", "add"])


NO_DECORATOR = deviation(
    "jax>=0.7,<0.8",
    error="TypeError",
    match="callable",
    reason="the result was only a context",
    issue="jax-ml/jax@0fb906b36586",
)


@probe(source="jax-ml/jax@0fb906b36586", releases="jax>=0.5.1", deviations=[NO_DECORATOR])
def metadata_by_decorator(env):
    """`set_xla_metadata(a="b")` can decorate a function; from 0.7.0 to 0.7.2 it cannot."""

    @set_metadata(a="b")
    def f(x):
        return jnp.sin(x)

    return Observed(count_tagged(f, X), ["sine"])


CONSTANT_EXPECTED = deviation(
    "jax>=0.8.1,<0.10",
    error="TypeError",
    match="No constant handler",
    reason="the traced value was taken for a constant",
    issue="jax-ml/jax@d55015777390",
)


@probe(source="jax-ml/jax@d55015777390", releases="jax>=0.8", deviations=[CONSTANT_EXPECTED])
def metadata_of_a_closure(env):
    """Under jit, `xla_metadata_call` takes a function that closes over a traced value."""
    groups = importlib.import_module("jax.experimental.scheduling_groups")

    @jax.jit
    def f(x):
        y = x + 2
        return groups.xla_metadata_call(lambda x: x * y, inlineable="false")(x)

    return Observed(f(X), floats(3, 8))


SMALL_LETTERS = deviation(
    "jax<0.10.1",
    outcome="ok",
    reason="every value was written in small letters, as true and false are",
    issue="jax-ml/jax@2f9b5a40e2b6",
)


@probe(source="jax-ml/jax@2f9b5a40e2b6", deviations=[SMALL_LETTERS])
def metadata_in_capitals(env):
    """The attribute of `set_xla_metadata(a="Fast")` is `Fast`; up to 0.10.0, silently `fast`."""

    def f(x):
        with set_metadata(a="Fast"):
            return jnp.sin(x)

    return Observed(re.findall(r'a = "(\w+)"', jax.jit(f).lower(X).as_text()), ["Fast"])


LINEAR_RULE_WITHOUT_KEYWORDS = deviation(
    "jax<0.8.1",
    error="TypeError",
    match="unexpected keyword argument 'xla_metadata_kvs'",
    reason="the linear rule did not take the attributes",
    issue="jax-ml/jax@3fc289e3b9a2",
)


@probe(
    source="jax-ml/jax@3fc289e3b9a2",
    releases="jax>=0.7",
    deviations=[LINEAR_RULE_WITHOUT_KEYWORDS],
)
def gradient_of_a_tagged_value(env):
    """The gradient through `set_xla_metadata(x, a="b")`; up to 0.8.0, it is a TypeError."""
    tag = importlib.import_module("jax.experimental.xla_metadata").set_xla_metadata
    observed = jax.jit(jax.grad(lambda x: tag(x * x, a="b").sum()))(X)
    return Observed(observed, reference=2 * X)


RULE_WITHOUT_METADATA = deviation(
    "jax<0.8.1",
    params=["gradient", "vmap"],
    error="TypeError",
    match="unexpected keyword argument",
    reason="the rules were those of a plain call, which has no metadata",
    issue="jax-ml/jax@e9b772031a0d",
)
NO_PARTIAL_EVALUATION = deviation(
    "jax<0.8.1",
    params=["checkpoint"],
    error="ValueError",
    match="Linearization failed",
    reason="the rule for checkpoint was missing",
    issue="jax-ml/jax@44f71433bc18",
)
TRANSFORMED = {
    "gradient": (lambda f: jax.grad(lambda x: f(x).sum()), 2 * X),
    "vmap": (jax.vmap, X * X),
    "checkpoint": (lambda f: jax.grad(jax.checkpoint(lambda x: f(x).sum())), 2 * X),
}


@probe(
    source="jax-ml/jax@e9b772031a0d",
    releases="jax>=0.8",
    params=[*TRANSFORMED],
    deviations=[RULE_WITHOUT_METADATA, NO_PARTIAL_EVALUATION],
)
def metadata_call_transformed(env, name):
    """Gradient, vmap and checkpoint of a function in `xla_metadata_call`, under jit."""
    groups = importlib.import_module("jax.experimental.scheduling_groups")
    transform, exact = TRANSFORMED[name]
    f = groups.xla_metadata_call(lambda x: x * x, inlineable="false")
    return Observed(jax.jit(transform(f))(X), reference=exact)


NO_ATTRIBUTE_OF_NUMBERS = deviation(
    "jax<0.8.1",
    error="AttributeError",
    match="IntAttr",
    reason="MLIR has no such attribute",
    issue="jax-ml/jax@8040407c4f2e",
)
NUMBERS_NOT_HANDLED = deviation(
    "jax>=0.8.1,<0.11",
    error="NotImplementedError",
    match="mlir attr handler",
    reason="only texts became attributes",
    issue="jax-ml/jax@cbda96380183",
)


@probe(
    source="jax-ml/jax@cbda96380183",
    releases="jax>=0.8",
    deviations=[NO_ATTRIBUTE_OF_NUMBERS, NUMBERS_NOT_HANDLED],
)
def numbered_scheduling_group(env):
    """A function in `scheduling_group(1)`, under jit; up to 0.10.2, only texts name a group."""
    groups = importlib.import_module("jax.experimental.scheduling_groups")
    return Observed(jax.jit(groups.scheduling_group(1)(lambda x: x * x))(X), reference=X * X)
