"""Names of JAX since 0.4.30, and which of them each release lacks.

`_names/public.txt` lists the public names, module by module, `_names/private.txt` those below
`jax._src` that libraries use. A name that JAX adds is not a finding, a name that it removes is.
There is no right answer to compare with, only dates. The replacements are in `names`.
"""

from __future__ import annotations

import warnings
from pathlib import Path

from conformance.kit import probe

from ._helpers import resolve_name

FILES = [Path(__file__).parent / "_names" / f"{name}.txt" for name in ("public", "private")]

AREAS = {
    "core": ("jax.core", "jax.custom", "jax.extend", "jax.ref", "jax.util"),
    "pallas": ("jax.experimental.pallas",),
    "experimental": ("jax.experimental",),
    "interpreters": ("jax.interpreters", "jax.lib"),
    "numpy_and_lax": ("jax.image", "jax.lax", "jax.nn", "jax.numpy", "jax.ops", "jax.random"),
    "private": ("jax._src",),
    "scipy": ("jax.scipy",),
}
"""Prefixes of the module names of each area, the first that fits; others are in the area `top`."""


def find_area(module):
    """Return the area of a module."""
    return next((area for area, prefixes in AREAS.items() if module.startswith(prefixes)), "top")


def list_names(area):
    """Return the listed names of an area, by module."""
    blocks = [one for file in FILES for one in file.read_text(encoding="utf-8").split("\n\n")[1:]]
    listed = {module: names for module, *names in map(str.split, blocks)}
    return {module: names for module, names in listed.items() if find_area(module) == area}


def look_up(path):
    """Return the object with a dotted name, also in a module that only its package names.

    Up to 0.4.31, `jax.lib.xla_client` is an attribute of `jax.lib`, and cannot be imported.
    """
    try:
        return resolve_name(path)
    except ModuleNotFoundError:
        module, _, name = path.partition(":")
        package, _, last = module.rpartition(".")
        return resolve_name(f"{package}:{last}.{name}")


def find_state(path):
    """Return the state of a dotted name: `present`, `warns`, or the class name of the error."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            look_up(path)
        except (ImportError, AttributeError) as error:
            return type(error).__name__
    categories = (DeprecationWarning, FutureWarning)
    warned = any(issubclass(warning.category, categories) for warning in caught)
    return "warns" if warned else "present"


def find_missing(module, names):
    """Return the names of a module that warn or are absent; `absent` if the module is absent."""
    if find_state(module) in {"ModuleNotFoundError", "AttributeError"}:
        return "absent"
    states = {name: find_state(f"{module}:{name}") for name in names}
    return {
        name: state if state == "warns" else "absent"
        for name, state in states.items()
        if state != "present"
    }


@probe(
    source="jax-ml/jax#27446",
    records="jax decides which names are public",
    platforms=("cpu",),
    params={
        "core": {"area": "core"},
        "experimental": {"area": "experimental"},
        "interpreters": {"area": "interpreters"},
        "numpy_and_lax": {"area": "numpy_and_lax"},
        "pallas": {"area": "pallas"},
        "private": {"area": "private"},
        "scipy": {"area": "scipy"},
        "top": {"area": "top"},
    },
)
def names_that_are_not_there(env, area):
    """Of the listed names since 0.4.30: those that a release lacks, and those that warn."""
    missing = {m: find_missing(m, names) for m, names in list_names(area).items()}
    return {module: states for module, states in missing.items() if states}
