"""Does a program give the same value in the other ways that its case names?"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, Protocol

from conformance.judge.tolerance import StatesTolerance
from conformance.judge.values import compare_reference
from conformance.model.outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.model.observation import Observation, VariantResult
    from conformance.model.value import Leaf, Value

SAME_AS: Final = "same_as"
"""How a sentence about a way begins, before its name."""
VMAP_OF_ONE: Final = "vmap_of_one"


class ClaimsVariants(StatesTolerance, Protocol):
    """A claim that a program gives the same value in other ways."""

    @property
    def same_as(self) -> tuple[str, ...]:
        """The ways."""
        ...


def compare_variants(case: ClaimsVariants, observation: Observation) -> dict[str, tuple[str, ...]]:
    """Return how a program differs in other ways, by way.

    Values are compared as with a reference: within the case's tolerance; weak type, sharding and
    memory kind do not count, and NumPy's own float64, complex128 and int64 stand for numbers.

    Args:
        case: What claims.
        observation: The program itself, and in other ways.

    Returns:
        One sentence each, for the ways that were run and do not agree.
    """
    found = {
        way: tuple(f"{SAME_AS} {way}: {text}" for text in _differs(case, way, observation))
        for way in find_checked_variants(case, observation)
    }
    return {way: sentences for way, sentences in found.items() if sentences}


def find_checked_variants(case: ClaimsVariants, observation: Observation) -> tuple[str, ...]:
    """Return the ways of a case in which its program was run, whatever came of it."""
    if observation.outcome is not Outcome.OK or observation.value is None:
        return ()
    ways = observation.ways
    return tuple(way for way in case.same_as if way in ways and ways[way].checked)


def describe_variant(seen: VariantResult) -> str:
    """Return how a way ended in a few words, e.g. `raised TypeError: bad shape`."""
    words, error = seen.outcome.value, seen.error
    if error is None:
        return words
    first = error.message.strip().partition("\n")[0]
    return f"{words} {error.type}: {first[:200]}" if first else f"{words} {error.type}"


def _differs(case: ClaimsVariants, way: str, observation: Observation) -> Iterator[str]:
    seen = observation.ways[way]
    if observation.value is None or seen.value is None:
        yield describe_variant(seen)
        return
    given = seen.value
    if way == VMAP_OF_ONE:
        odd = [leaf for leaf in given.leaves if _mapped(leaf) and leaf.shape[:1] != (1,)]
        if odd:
            yield from (
                f"{leaf.path} has shape {leaf.shape}, expected a leading axis of 1" for leaf in odd
            )
            return
        given = _without_axis(given)
    compared = compare_reference(observation.value, given, case.rtol, case.atol, word=way)
    yield from () if compared.agrees else compared.messages


def _mapped(leaf: Leaf) -> bool:
    return leaf.kind != "python"


def _without_axis(value: Value) -> Value:
    """Return a value with the leading axis of its arrays gone, which is 1."""
    leaves = (
        replace(leaf, shape=leaf.shape[1:]) if _mapped(leaf) else leaf for leaf in value.leaves
    )
    return replace(value, leaves=tuple(leaves))
