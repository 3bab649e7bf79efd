"""All names that JAX had in public since 0.4.30, and which of them a release has not.

`_names/public.txt` holds them, module by module; what comes new is no finding, what goes is one.
There is no right answer to compare with, only dates. What took their place is in `names`.
"""

from __future__ import annotations

from pathlib import Path

from conformance.kit import probe

from ._helpers import state_of

FILE = Path(__file__).parent / "_names" / "public.txt"

AREAS = {
    "core": ("jax.core", "jax.custom", "jax.extend", "jax.ref", "jax.util"),
    "experimental": ("jax.experimental",),
    "interpreters": ("jax.interpreters", "jax.lib"),
    "numpy_and_lax": ("jax.image", "jax.lax", "jax.nn", "jax.numpy", "jax.ops", "jax.random"),
    "scipy": ("jax.scipy",),
}
"""Beginnings of the names of modules; the rest is at the top."""


def modules_of(area):
    """Return the names of each module of an area, by module."""
    names = {}
    for line in FILE.read_text(encoding="utf-8").splitlines():
        if line.startswith("jax"):
            module = line
        elif line.startswith(" "):
            names[module] = [*names.get(module, ()), *line.split()]
    where = {m: next((a for a, of in AREAS.items() if m.startswith(of)), "top") for m in names}
    return {module: of for module, of in names.items() if where[module] == area}


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
