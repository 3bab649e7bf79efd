"""Strategies for the keyword `given` of a case: descriptions of how Hypothesis draws examples.

Each function of `hypothesis.strategies` and `hypothesis.extra.numpy` is a function of this module,
too: `from conformance.kit import strategies as st`, then `st.integers(0, 3) | st.none()`. It
returns a description. Hypothesis is not installed in cells: it runs in a process of the harness,
which receives the descriptions and sends examples back. So the arguments of a strategy are data,
dtypes and other strategies, not functions.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


@dataclass(frozen=True)
class Strategy:
    """The description of a strategy.

    Attributes:
        name: Name of a function of `hypothesis.strategies` or `hypothesis.extra.numpy`.
        args: Its positional arguments.
        kwargs: Its keyword arguments.
    """

    name: str
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)

    def __or__(self, other: Strategy) -> Strategy:
        """Return a strategy that draws from one of two strategies."""
        return Strategy("one_of", (self, other))


def arrays(dtype: Any, shape: Any, **kwargs: Any) -> Strategy:
    """Describe arrays as `hypothesis.extra.numpy.arrays` does, with tame elements by default.

    Args:
        dtype: A dtype or its name; those of `ml_dtypes` too, whose elements are drawn as float16
            and rounded. 64-bit dtypes need `x64=True` of the case.
        shape: A shape, or a strategy of shapes.
        kwargs: `elements`, `fill` and `unique` as in Hypothesis. By default floating elements are
            between -8 and 8, complex ones within a radius of 8, and none is subnormal. Integers
            are drawn from the whole range of the dtype.

    Returns:
        The strategy of such arrays. The simplest array has zeros, if the elements may be zero.
    """
    return Strategy("arrays", (dtype, shape), kwargs)


def __getattr__(name: str) -> Callable[..., Strategy]:
    # Functions are not listed here: Hypothesis has about eighty, and adds some each year. A name
    # that it does not have is reported when the case runs.
    if name.startswith("_"):
        raise AttributeError(name)
    return partial(_describe, name)


def _describe(name: str, /, *args: Any, **kwargs: Any) -> Strategy:
    return Strategy(name, args, kwargs)
