"""Names for differentiation that jax added and removed, and the name of a call in a jaxpr."""

from __future__ import annotations

import importlib
import warnings

import jax
import numpy as np

from conformance.kit import Observed, deviation, probe

from ._helpers import product


def has_name(home, name):
    """Return whether a module exists and has a name; its warnings are ignored."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return hasattr(importlib.import_module(home), name)
        except ModuleNotFoundError:
            # `jax.checkpoint_policies` is an attribute of jax, not a module.
            return hasattr(jax.checkpoint_policies, name) if home.endswith("policies") else False


IN_TWO_MODULES = deviation(
    "jax<0.10",
    params=["ad_checkpoint"],
    outcome="ok",
    reason="available in addition to jax.checkpoint; deprecated in 0.8.2",
    issue="jax-ml/jax#33660",
)
PUBLIC_FOR_THREE_RELEASES = deviation(
    "jax>=0.11,<0.12",
    params=["custom_remat", "policy_classes"],
    outcome="ok",
    reason="public for three releases",
    issue="jax-ml/jax@549f98493ef6",
)
EXPERIMENTAL_IN_THESE_RELEASES = deviation(
    "jax>=0.6,<0.8.2",
    params=["si_vjp"],
    outcome="ok",
    reason="an experimental name of these releases",
    issue="jax-ml/jax@b4a3e160febd",
)
NEVER_ANNOUNCED = deviation(
    "jax<0.10",
    params=["custom_transpose"],
    outcome="ok",
    reason="available, though never announced",
    issue="jax-ml/jax@4c7d2d0c1313",
)


@probe(
    source="jax-ml/jax#33660",
    params={
        "ad_checkpoint": {"home": "jax.ad_checkpoint", "name": "checkpoint"},
        "custom_remat": {"home": "jax", "name": "custom_remat"},
        "policy_classes": {"home": "jax.checkpoint_policies", "name": "SaveOnlyTheseNames"},
        "si_vjp": {"home": "jax.experimental", "name": "si_vjp"},
        "custom_transpose": {"home": "jax.custom_transpose", "name": "custom_transpose"},
    },
    deviations=[
        IN_TWO_MODULES,
        PUBLIC_FOR_THREE_RELEASES,
        EXPERIMENTAL_IN_THESE_RELEASES,
        NEVER_ANNOUNCED,
    ],
)
def gone(env, home, name):
    """Names that jax removed.

    Use `jax.checkpoint`, `jax.vjp`, `linear_call`, and functions in place of the classes of
    policies. `custom_remat` and the classes of policies were available only in 0.11.0 to 0.11.2.
    """
    return Observed(has_name(home, name), False)


TWO_PRIMITIVES = deviation(
    "jax<0.6.1",
    outcome="ok",
    reason="jax had two primitives, one of them for traced calls",
    issue="jax-ml/jax#28589",
)


@probe(source="jax-ml/jax#28589", deviations=[TWO_PRIMITIVES])
def primitive(env):
    """From 0.6.1 a call of a `custom_vjp` function is `custom_vjp_call` in a jaxpr."""
    primitives = [eqn.primitive.name for eqn in jax.make_jaxpr(product())(2.0, 3.0).eqns]
    return Observed(primitives, ["custom_vjp_call"])


NAME_OF_THE_WRAPPER = deviation(
    "jax<0.11.1",
    outcome="ok",
    reason="the name was that of a function within JAX",
    issue="jax-ml/jax@85200a90707d",
)


@probe(source="jax-ml/jax@85200a90707d", deviations=[NAME_OF_THE_WRAPPER])
def name_of_a_custom_gradient(env):
    """`jax.custom_gradient` keeps the name of the function, which jit uses in profiles."""

    @jax.custom_gradient
    def square(x):
        return x * x, lambda g: 2 * g * x

    name = getattr(square, "__name__", "none")
    return Observed((name, jax.grad(square)(3.0)), ("square", np.float64(6)))
