"""The layer that makes a difference between two releases, with its evidence. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from conformance.search.predicates import PointKind

if TYPE_CHECKING:
    from conformance.triage.layers.passes import PassFinding

GOOD, BAD = 0, 1
"""Numbers of the two releases."""


class Layer(StrEnum):
    """The layer that makes a difference."""

    TRACING = "front end: tracing"
    """Python code of jax up to the jaxpr, which differs, or an error before lowering."""
    LOWERING = "front end: lowering"
    """Equal jaxprs become different StableHLO."""
    PYTHON = "front end: Python code"
    """The Python code of jax, while every computation gives the same result."""
    COMPILER = "compiler"
    """The XLA of the release, for the same StableHLO."""
    INTERACTION = "both or interaction"
    """Neither the producer nor the compiler alone."""
    RUNTIME = "runtime"
    """jaxlib, while every computation gives the same result: dispatch, placement, its own API."""
    JAXLIB = "compiler or runtime"
    """jaxlib, of which a measurement of time or memory does not tell which part."""
    OUTSIDE = "outside of computations"
    """Every computation gives the same result: the Python code of jax, or the runtime."""
    NOT_SEPARABLE = "not separable"
    """Something cannot be repeated elsewhere."""
    NONE = "no difference"

    @property
    def is_front_end(self) -> bool:
        """Whether it is a part of the front end."""
        return self in {Layer.TRACING, Layer.LOWERING, Layer.PYTHON}


class Combination(NamedTuple):
    """The result of one combination for the decisive call.

    Attributes:
        producer: Number of the release that wrote the module.
        compiler: Number of the release that compiled it.
        summary: The result in words.
        kind: `good` or `bad` like that release, `other`, or `unknown` if it cannot be repeated.
    """

    producer: int
    compiler: int
    summary: str
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerAnswer:
    """The layer, with its evidence.

    Attributes:
        layer: The layer.
        reason: Why, in words.
        call: Name of the decisive computation, empty if there is none.
        number: Number of its call in the recording of the bad release, 0 without a table.
        table: Its four combinations.
        calls: Number of computations of the good and of the bad release.
        differing: Number of computations with equal arguments and different results.
        passes: What a search for a pass has found, None if there was none.
        is_failure: Whether the target fails, and no computation does.
    """

    layer: Layer
    reason: str
    call: str = ""
    number: int = 0
    table: tuple[Combination, ...] = ()
    calls: tuple[int, int] = (0, 0)
    differing: int = 0
    passes: PassFinding | None = None
    is_failure: bool = False


def judge_sources(newer: PointKind, older: PointKind) -> Layer:
    """Return the layer by what the Python code of each release does with the other jaxlib.

    Args:
        newer: State of the Python code of the bad release with the jaxlib of the good one.
        older: State of the Python code of the good release with the jaxlib of the bad one.

    Returns:
        `PYTHON`, `RUNTIME` for jaxlib, `INTERACTION`, or `OUTSIDE` if neither says anything.
    """
    # Newer Python code that is bad with the older jaxlib, or the reverse.
    python = newer is PointKind.BAD or older is PointKind.GOOD
    jaxlib = newer is PointKind.GOOD or older is PointKind.BAD
    if python and jaxlib:
        return Layer.INTERACTION
    if python:
        return Layer.PYTHON
    return Layer.RUNTIME if jaxlib else Layer.OUTSIDE


def refine_layer(answer: LayerAnswer, outside: Layer) -> LayerAnswer:
    """Return an answer with the layer of a difference outside of what could be repeated.

    Args:
        answer: An answer without a layer of its own.
        outside: The layer by trying the Python code of each release with the jaxlib of the other.
    """
    if outside is Layer.PYTHON:
        # Jax raises errors of its own before it lowers anything.
        return replace(answer, layer=Layer.TRACING if answer.is_failure else Layer.PYTHON)
    if answer.layer is Layer.NOT_SEPARABLE:
        more = "; jaxlib makes the difference" if outside is Layer.RUNTIME else ""
        return replace(answer, reason=f"{answer.reason}{more}")
    # A trial that says nothing leaves an error with the layer of its type.
    return answer if outside is Layer.OUTSIDE else replace(answer, layer=outside)
