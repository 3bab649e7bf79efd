"""All names that JAX had in public since 0.4.30, and which of them a release has not.

`_names/public.txt` holds them, module by module; what comes new is no finding, what goes is one.
There is no right answer to compare with, only dates. What took their place is in `names`.
"""

from __future__ import annotations

import warnings
from pathlib import Path

from conformance.kit import probe

from ._helpers import named

FILE = Path(__file__).parent / "_names" / "public.txt"

AREAS = {
    "core": ("jax.core", "jax.custom", "jax.extend", "jax.ref", "jax.util"),
    "experimental": ("jax.experimental",),
    "interpreters": ("jax.interpreters", "jax.lib"),
    "numpy_and_lax": ("jax.image", "jax.lax", "jax.nn", "jax.numpy", "jax.ops", "jax.random"),
    "scipy": ("jax.scipy",),
}
"""Beginnings of the names of modules; the rest is at the top."""


def area_of(module):
    """Return the area that a module belongs to."""
    return next((area for area, of in AREAS.items() if module.startswith(of)), "top")


def modules_of(area):
    """Return the names of each module of an area, by module."""
    _, *blocks = FILE.read_text(encoding="utf-8").split("\n\n")
    names = {module: of for module, *of in map(str.split, blocks)}
    return {module: of for module, of in names.items() if area_of(module) == area}


def state_of(path):
    """Return how a dotted name is met: `there`, `warns`, or the error's class name."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            named(path)
        except (ImportError, AttributeError) as error:
            return type(error).__name__
    told = (DeprecationWarning, FutureWarning)
    return "warns" if any(issubclass(warning.category, told) for warning in caught) else "there"


def missing(module, names):
    """Return what is not simply there: names that warn or are absent; `absent` if none is there."""
    if state_of(module) == "ModuleNotFoundError":
        return "absent"
    states = {name: state_of(f"{module}:{name}") for name in names}
    return {
        name: state if state == "warns" else "absent"
        for name, state in states.items()
        if state != "there"
    }


@probe(
    source="jax-ml/jax#27446",
    records="which names are public is up to jax",
    platforms=("cpu",),
    params={
        "core": {"area": "core"},
        "experimental": {"area": "experimental"},
        "interpreters": {"area": "interpreters"},
        "numpy_and_lax": {"area": "numpy_and_lax"},
        "scipy": {"area": "scipy"},
        "top": {"area": "top"},
    },
)
def names_that_are_not_there(env, area):
    """Of all public names since 0.4.30: which a release has not yet or no more, and which warn."""
    found = {module: missing(module, names) for module, names in modules_of(area).items()}
    return {module: states for module, states in found.items() if states}
