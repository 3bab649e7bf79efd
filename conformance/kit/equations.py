"""Equations of jaxprs, independent of how a release names their parameters; for cases."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import jax

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


def equations(jaxpr: Any) -> Iterator[Any]:
    """Yield the equations of a jaxpr and of all jaxprs inside it.

    Args:
        jaxpr: A jaxpr, closed or not.
    """
    for eqn in getattr(jaxpr, "jaxpr", jaxpr).eqns:
        yield eqn
        for value in eqn.params.values():
            # `cond` has a tuple of jaxprs in its parameter `branches`.
            for part in value if isinstance(value, (tuple, list)) else (value,):
                # By attribute: the classes moved from `jax.core` to `jax.extend.core` in 0.6.0.
                if hasattr(part, "eqns") or hasattr(part, "jaxpr"):
                    yield from equations(part)


def counts(fn: Callable[..., Any], args: tuple[Any, ...], names: str) -> dict[str, int]:
    """Return how often each of some primitives is in the jaxpr of a function.

    Args:
        fn: Function to trace.
        args: Arguments of the function.
        names: Names of primitives, separated by blanks.
    """
    found = Counter(eqn.primitive.name for eqn in equations(jax.make_jaxpr(fn)(*args)))
    return {name: found[name] for name in names.split()}


def first(fn: Callable[..., Any], args: tuple[Any, ...], name: str) -> Any:
    """Return the first equation of a primitive in the jaxpr of a function.

    Args:
        fn: Function to trace.
        args: Arguments of the function.
        name: Name of the primitive.

    Raises:
        StopIteration: If there is none.
    """
    jaxpr = jax.make_jaxpr(fn)(*args)
    return next(eqn for eqn in equations(jaxpr) if eqn.primitive.name == name)


def size(fn: Callable[..., Any], *args: Any) -> int:
    """Return the number of equations in the jaxpr of a function, nested ones included."""
    return sum(1 for _ in equations(jax.make_jaxpr(fn)(*args)))


def types(variables: Iterable[Any]) -> list[str]:
    """Return dtype and shape of variables of a jaxpr, e.g. `float32[4]`."""
    return [f"{v.aval.dtype}[{','.join(map(str, v.aval.shape))}]" for v in variables]
