"""Names about differentiation that came and went, and what a call of them is called in a jaxpr."""

from __future__ import annotations

import importlib
import warnings

import jax

from conformance.kit import Observed, deviation, probe

from ._helpers import product


def there(home, name):
    """Return whether a module, if it is one, has a name; without its warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return hasattr(importlib.import_module(home), name)
        except ModuleNotFoundError:
            return hasattr(jax.checkpoint_policies, name) if home.endswith("policies") else False


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
        deviation(
            "jax<0.10",
            params=["ad_checkpoint"],
            outcome="ok",
            reason="there too, beside jax.checkpoint; deprecated in 0.8.2",
            issue="jax-ml/jax#33660",
        ),
        deviation(
            "jax>=0.11,<0.12",
            params=["custom_remat", "policy_classes"],
            outcome="ok",
            reason="public for three releases",
            issue="jax-ml/jax@549f98493ef6",
        ),
        deviation(
            "jax>=0.6,<0.8.2",
            params=["si_vjp"],
            outcome="ok",
            reason="an experiment of these releases",
            issue="jax-ml/jax@b4a3e160febd",
        ),
        deviation(
            "jax<0.10",
            params=["custom_transpose"],
            outcome="ok",
            reason="there, though never announced",
            issue="jax-ml/jax@4c7d2d0c1313",
        ),
    ],
)
def gone(env, home, name):
    """Names that are gone: what to use is `jax.checkpoint`, `jax.vjp`, `linear_call`, functions.

    `custom_remat` and the classes of policies were there in 0.11.0 to 0.11.2 alone.
    """
    return Observed(there(home, name), False)


@probe(
    source="jax-ml/jax#28589",
    deviations=[
        deviation(
            "jax<0.6.1",
            outcome="ok",
            reason="two primitives, one for traced calls",
            issue="jax-ml/jax#28589",
        )
    ],
)
def primitive(env):
    """In a jaxpr a call of a `custom_vjp` function is `custom_vjp_call`, from 0.6.1 on."""
    seen = [eqn.primitive.name for eqn in jax.make_jaxpr(product())(2.0, 3.0).eqns]
    return Observed(seen, ["custom_vjp_call"])
