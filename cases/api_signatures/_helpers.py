"""Signatures of public callables as text: names, kinds and defaults of their parameters."""

from __future__ import annotations

import enum
import importlib
import inspect
import re
import types
import warnings

import numpy as np

PLAIN = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis))
ABSENT = {"(module)": "absent"}
"""Value of a case whose module a release lacks."""


def render_default(value):
    """Return the default of a parameter as text that is the same in every process.

    Args:
        value: The default; an object that is neither a plain value nor has a name becomes the name
            of its class in angle brackets.
    """
    text = f"<{type(value).__name__}>"
    if isinstance(value, enum.Enum):
        text = f"{type(value).__name__}.{value.name}"
    elif isinstance(value, PLAIN):
        text = repr(value)
    elif isinstance(value, (tuple, list)):
        items = ", ".join(map(render_default, value))
        text = f"[{items}]" if isinstance(value, list) else f"({items})"
    elif isinstance(value, (np.ndarray, np.generic)):
        text = f"{np.asarray(value).dtype.name}({np.asarray(value).tolist()})"
    elif isinstance(value, np.dtype):
        text = value.name
    elif isinstance(getattr(value, "__name__", None), str):
        text = value.__name__
    return text


def render_signature(value):
    """Return the parameters of a callable as text, `(...)` if it does not state them.

    Names of positional-only parameters do not matter to callers, and become `_`. Parameters whose
    names begin with `_` are private and left out. An enumeration shows its members.

    Args:
        value: The callable; a class stands for its constructor.
    """
    if type(value).__name__ == "ufunc":
        return f"ufunc({value.nin} to {value.nout})"
    if isinstance(value, enum.EnumMeta):
        return f"enum({', '.join(value.__members__)})"
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return "(...)"
    parts, kinds = [], []
    for parameter in signature.parameters.values():
        name, kind = parameter.name, parameter.kind
        if name.startswith("_") and kind is not kind.POSITIONAL_ONLY:
            continue
        if kind is not kind.POSITIONAL_ONLY and kinds[-1:] == [kind.POSITIONAL_ONLY]:
            parts.append("/")
        if kind is kind.KEYWORD_ONLY and not {kind, kind.VAR_POSITIONAL} & {*kinds}:
            parts.append("*")
        stars = {kind.VAR_POSITIONAL: "*", kind.VAR_KEYWORD: "**"}.get(kind, "")
        has_default = parameter.default is not parameter.empty
        default = f"={render_default(parameter.default)}" if has_default else ""
        parts.append(f"{stars}{'_' if kind is kind.POSITIONAL_ONLY else name}{default}")
        kinds.append(kind)
    end = ["/"] if kinds[-1:] == [inspect.Parameter.POSITIONAL_ONLY] else []
    return f"({', '.join([*parts, *end])})"


def load_module(name):
    """Return a module, None if the release lacks it; its warnings are ignored."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return importlib.import_module(name)
        except ImportError:
            return None


def list_public(module):
    """Return the public names of a module, with those that it deprecates."""
    deprecated = getattr(module, "_deprecations", {})
    names = {name for name, (_, value) in deprecated.items() if value is not None}
    return sorted({*names, *(name for name in dir(module) if not name.startswith("_"))})


def is_own(value, home=""):
    """Say whether a value is a callable of jax, and not of NumPy or the standard library.

    Args:
        value: The value of a public name.
        home: Module that has to define it, any module of jax by default.
    """
    if isinstance(value, types.ModuleType) or not callable(value):
        return False
    module = getattr(value, "__module__", None) or type(value).__module__
    if home:
        return module == home
    return module.split(".")[0] in ("jax", "jaxlib", "nanobind", "functools")


def describe_name(module, name, home=""):
    """Return the signature of a name of a module, None if it is no callable of jax.

    Args:
        module: The module.
        name: Name in it; if access warns of a deprecation, the text says so.
        home: Module that has to define it, any module of jax by default.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            value = getattr(module, name)
        except AttributeError:
            return None
        text = render_signature(value) if is_own(value, home) else None
    warned = any(issubclass(w.category, (DeprecationWarning, FutureWarning)) for w in caught)
    return f"{text} deprecated" if text and warned else text


def list_signatures(name, first="", last="~", *, own=False):
    """Return the signatures of a module's callables by name, `ABSENT` if the release lacks it.

    Args:
        name: Name of the module.
        first: Least name, in the order of lower-case text.
        last: Names from this one on are left out.
        own: Whether names that the module imports are left out.
    """
    module = load_module(name)
    if module is None:
        return ABSENT
    keys = [key for key in list_public(module) if first <= key.lower() < last]
    found = {key: describe_name(module, key, name if own else "") for key in keys}
    return {key: text for key, text in found.items() if text} or {"(module)": "no callables"}


def list_methods(owner):
    """Return the signatures of the public methods of a class by name, without the instance.

    Args:
        owner: The class; its properties and other attributes are named, too.
    """
    methods = {}
    for name in dir(owner):
        value = inspect.getattr_static(owner, name)
        if name.startswith("_") or name.isupper():
            continue
        if isinstance(value, (staticmethod, classmethod)):
            methods[name] = render_signature(getattr(owner, name))
        elif callable(value):
            methods[name] = re.sub(r"^\((\w+)(, /)?(, |(?=\)))", "(", render_signature(value))
        else:
            methods[name] = "attribute"
    return methods
