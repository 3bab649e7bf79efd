"""What a jaxpr holds, whatever a release calls the parts of its equations; what a call refuses."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def equations(jaxpr: Any) -> Iterator[Any]:
    """Yield the equations of a jaxpr and of all jaxprs inside it.

    Args:
        jaxpr: A jaxpr, closed or not.
    """
    for eqn in getattr(jaxpr, "jaxpr", jaxpr).eqns:
        yield eqn
        for value in eqn.params.values():
            for part in value if isinstance(value, (tuple, list)) else (value,):
                if hasattr(part, "eqns") or hasattr(part, "jaxpr"):
                    yield from equations(part)


def counts(fn: Callable[..., Any], args: tuple[Any, ...], names: str) -> dict[str, int]:
    """Return how often each of some primitives is in the jaxpr of a function.

    Args:
        fn: The function.
        args: Its arguments.
        names: Names of primitives, with blanks between.
    """
    found = Counter(eqn.primitive.name for eqn in equations(jax.make_jaxpr(fn)(*args)))
    return {name: found[name] for name in names.split()}


def size(fn: Callable[..., Any], *args: Any) -> int:
    """Return how many equations the jaxpr of a function has, those inside of others included."""
    return sum(1 for _ in equations(jax.make_jaxpr(fn)(*args)))


def types(variables: Any) -> list[str]:
    """Return dtype and shape of variables of a jaxpr, e.g. `float32[4]`."""
    return [f"{v.aval.dtype}[{','.join(map(str, v.aval.shape))}]" for v in variables]


def floats(*values: float) -> np.ndarray:
    """Return a fresh float32 array."""
    return np.array(values, np.float32)


def slopes(fn: Callable[..., Any], *points: float) -> np.ndarray:
    """Return the derivatives of a scalar function at some points, compiled once."""
    return np.asarray(jax.jit(jax.vmap(jax.grad(fn)))(floats(*points)))


def told(call: Callable[[], Any], *words: str) -> list[str]:
    """Return the type of the error that a call raises and which of some words its message has.

    Args:
        call: What to call, without arguments.
        words: What to look for in the message.
    """
    try:
        call()
    except Exception as error:  # noqa: BLE001 - what is asked for
        return [type(error).__name__, *[word for word in words if word in str(error)]]
    return ["ok"]


def product() -> Any:
    """Return a `custom_vjp` product, with its slopes ten times too large on purpose."""
    f = jax.custom_vjp(lambda x, y: x * y)
    f.defvjp(lambda x, y: (x * y, (x, y)), lambda c, g: (10 * g * c[1], 10 * g * c[0]))
    return f
