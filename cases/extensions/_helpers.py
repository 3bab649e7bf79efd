"""Names that JAX moved between releases, and outcomes of calls, for the cases of this family."""

from __future__ import annotations

import contextlib
import importlib
import warnings

import jax
import jax.numpy as jnp
import numpy as np


def floats(*values):
    """Return a float32 array; for one value without axes."""
    return np.float32(values) if len(values) > 1 else np.float32(values[0])


def find(*names):
    """Return the first attribute that exists, of names as `module:attribute`.

    Args:
        names: Names in the order of preference, the newest first.

    Raises:
        NotImplementedError: If the release has none of them.
    """
    for name in names:
        module, _, attribute = name.partition(":")
        with contextlib.suppress(ImportError, AttributeError), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return getattr(importlib.import_module(module), attribute)
    raise NotImplementedError(f"none of {', '.join(names)}")


def new_primitive(name):
    """Return a primitive without rules; `jax.core` lost the class with 0.6.0."""
    return find("jax.extend.core:Primitive", "jax.core:Primitive")(name)


def new_reference(x):
    """Return a mutable array; the function had four names."""
    names = ("jax:new_ref", "jax:array_ref", "jax.experimental:mutable_array")
    return find(*names, "jax._src.core:mutable_array")(jnp.asarray(x))


def outcome(call, *words):
    """Return `ran`, or the class of the error and the words that its message contains.

    Args:
        call: Function without arguments; its result is awaited, its warnings are ignored.
        words: Words to search in the message.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            jax.block_until_ready(call())
    except Exception as error:  # noqa: BLE001 - any error is an outcome
        found = [word for word in words if word in str(error)]
        name = type(error).__name__.replace("Xla", "Jax")  # renamed in 0.8.0
        return ": ".join([name, *found])
    return "ran"
