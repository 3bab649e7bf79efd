"""Reverse-mode differentiation in NumPy float64: the exact side of most cases of this family.

A `Node` records the operations applied to it. Models that use only the operations of this module
run on `jax.numpy` and on the tape alike, so that a case writes a model once: `model(jnp, ...)` is
the program, `value_and_grads(model, ...)` its reference. The tape shares no code with JAX.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

_COUNTER = itertools.count()
pi = np.pi


class Node:
    """A float64 array with the nodes that it depends on, and how cotangents reach them."""

    __array_ufunc__ = None  # so that `array * node` calls Node.__rmul__

    def __init__(self, value: Any, *parents: tuple[Node, Callable[[Any], Any]]) -> None:
        self.value = np.asarray(value, np.float64)
        self.parents = parents
        self.order = next(_COUNTER)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the value."""
        return self.value.shape

    def __add__(self, other: Any) -> Node:
        other = lift(other)
        return Node(self.value + other.value, (self, lambda g: g), (other, lambda g: g))

    def __mul__(self, other: Any) -> Node:
        a, b = self, lift(other)
        return Node(a.value * b.value, (a, lambda g: g * b.value), (b, lambda g: g * a.value))

    def __pow__(self, power: float) -> Node:
        return Node(self.value**power, (self, lambda g: g * power * self.value ** (power - 1)))

    def __matmul__(self, other: Any) -> Node:
        return einsum("...ab,bc->...ac", self, other)

    def __getitem__(self, index: Any) -> Node:
        def scatter(g: Any) -> Any:
            out = np.zeros(self.shape)
            np.add.at(out, index, g)
            return out

        return Node(self.value[index], (self, scatter))

    def reshape(self, *shape: int) -> Node:
        """Return the elements in another shape."""
        return Node(self.value.reshape(*shape), (self, lambda g: g.reshape(self.shape)))

    def __neg__(self) -> Node:
        return self * -1.0

    def __sub__(self, other: Any) -> Node:
        return self + -lift(other)

    def __rsub__(self, other: Any) -> Node:
        return lift(other) - self

    def __truediv__(self, other: Any) -> Node:
        return self * lift(other) ** -1.0

    def __rtruediv__(self, other: Any) -> Node:
        return lift(other) / self

    __radd__ = __add__
    __rmul__ = __mul__

    def sum(self, axis: Any = None, keepdims: bool = False) -> Node:
        """Return the sum over axes."""

        def spread(g: Any) -> Any:
            g = g if keepdims or axis is None else np.expand_dims(g, axis)
            return np.broadcast_to(g, self.shape)

        return Node(self.value.sum(axis=axis, keepdims=keepdims), (self, spread))

    def mean(self, axis: Any = None, keepdims: bool = False) -> Node:
        """Return the mean over axes."""
        total = self.sum(axis, keepdims)
        return total * (total.value.size / self.value.size)


def lift(x: Any) -> Node:
    """Return a node of an array or number."""
    return x if isinstance(x, Node) else Node(x)


def exp(x: Any) -> Node:
    """Return the exponential."""
    out = np.exp(lift(x).value)
    return Node(out, (x, lambda g: g * out))


def log(x: Node) -> Node:
    """Return the logarithm."""
    return Node(np.log(x.value), (x, lambda g: g / x.value))


def tanh(x: Node) -> Node:
    """Return the hyperbolic tangent."""
    out = np.tanh(x.value)
    return Node(out, (x, lambda g: g * (1 - out**2)))


def where(condition: Any, x: Any, y: Any) -> Node:
    """Return elements of `x` where the condition holds, else of `y`."""
    x, y, keep = lift(x), lift(y), np.asarray(condition)
    return Node(np.where(keep, x.value, y.value), (x, lambda g: g * keep), (y, lambda g: g * ~keep))


def einsum(spec: str, a: Any, b: Any) -> Node:
    """Return the contraction of two arrays; every index is in two of the three terms."""
    a, b = lift(a), lift(b)
    left, right, out = spec.replace("->", ",").split(",")
    return Node(
        np.einsum(spec, a.value, b.value),
        (a, lambda g: np.einsum(f"{out},{right}->{left}", g, b.value)),
        (b, lambda g: np.einsum(f"{out},{left}->{right}", g, a.value)),
    )


def stop_max(x: Node) -> Any:
    """Return the maximum over the last axis, as a constant."""
    return x.value.max(-1, keepdims=True)


def softmax(x: Node) -> Node:
    """Return the softmax over the last axis."""
    weights = exp(x - stop_max(x))
    return weights / weights.sum(-1, keepdims=True)


def log_softmax(x: Node) -> Node:
    """Return the logarithm of the softmax over the last axis."""
    shifted = x - stop_max(x)
    return shifted - log(exp(shifted).sum(-1, keepdims=True))


def _reduce_to(g: Any, shape: tuple[int, ...]) -> Any:
    """Sum a cotangent over the axes that broadcasting added."""
    g = np.asarray(g)
    g = g.sum(tuple(range(g.ndim - len(shape))))
    return g.sum(tuple(i for i, n in enumerate(shape) if n == 1 and g.shape[i] != 1), keepdims=True)


def pullback(out: Node, cotangent: Any, inputs: list[Node]) -> list[Any]:
    """Return the cotangents of inputs for one of an output."""
    cotangents = {out.order: (out, np.broadcast_to(cotangent, out.shape))}
    found: dict[int, Any] = {}
    while cotangents:
        order = max(cotangents)
        node, g = cotangents.pop(order)
        found[order] = g
        for parent, transpose in node.parents:
            part = _reduce_to(transpose(g), parent.shape)
            known = cotangents.get(parent.order)
            cotangents[parent.order] = (parent, part if known is None else known[1] + part)
    return [found.get(node.order, np.zeros(node.shape)) for node in inputs]


def vjp(fn: Callable[..., Node], *args: Any, cotangent: Any = 1.0) -> tuple[Any, tuple[Any, ...]]:
    """Return the value of a function of arrays, and its gradients for a cotangent."""
    nodes = [Node(arg) for arg in args]
    out = fn(*nodes)
    return out.value, tuple(pullback(out, cotangent, nodes))
