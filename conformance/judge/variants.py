"""Variants of a program, which must give the same value as the program itself."""

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
"""Prefix of a sentence about a variant, before its name."""
VMAP_OF_ONE: Final = "vmap_of_one"


class ClaimsVariants(StatesTolerance, Protocol):
    """A claim that variants of a program give the same value."""

    @property
    def same_as(self) -> tuple[str, ...]:
        """Names of the variants."""
        ...


def compare_variants(case: ClaimsVariants, observation: Observation) -> dict[str, tuple[str, ...]]:
    """Return the differences between a program and its variants, by variant.

    Values are compared as with a reference: within the case's tolerance; weak type, sharding and
    memory kind do not count, and NumPy float64, complex128 and int64 agree with any dtype.

    Args:
        case: The case, or another claim.
        observation: Observation of the program and its variants.

    Returns:
        Sentences, for the variants that were run and do not agree.
    """
    found = {
        variant: tuple(
            f"{SAME_AS} {variant}: {text}" for text in _find_differences(case, variant, observation)
        )
        for variant in find_checked_variants(case, observation)
    }
    return {variant: sentences for variant, sentences in found.items() if sentences}


def find_checked_variants(case: ClaimsVariants, observation: Observation) -> tuple[str, ...]:
    """Return the variants of a case that were run and can be compared."""
    if observation.outcome is not Outcome.OK or observation.value is None:
        return ()
    variants = observation.variants
    # Records of older versions lack newer variants.
    return tuple(
        variant for variant in case.same_as if variant in variants and variants[variant].was_run
    )


def describe_variant(seen: VariantResult) -> str:
    """Return the outcome of a variant in a few words, e.g. `raised TypeError: bad shape`."""
    words, error = seen.outcome.value, seen.error
    if error is None:
        return words
    first = error.message.strip().partition("\n")[0]
    return f"{words} {error.type}: {first[:200]}" if first else f"{words} {error.type}"


def _find_differences(
    case: ClaimsVariants, variant: str, observation: Observation
) -> Iterator[str]:
    seen = observation.variants[variant]
    if observation.value is None or seen.value is None:
        # A variant without a value failed, while the program itself did not.
        yield describe_variant(seen)
        return
    value = seen.value
    if variant == VMAP_OF_ONE:
        unmapped = [leaf for leaf in value.leaves if _is_mapped(leaf) and leaf.shape[:1] != (1,)]
        if unmapped:
            yield from (
                f"{leaf.path} has shape {leaf.shape}, expected a leading axis of 1"
                for leaf in unmapped
            )
            return
        # `vmap` over one example adds a leading axis of 1, which the program itself does not have.
        value = _drop_axis(value)
    compared = compare_reference(observation.value, value, case.rtol, case.atol, word=variant)
    yield from () if compared.agrees else compared.messages


def _is_mapped(leaf: Leaf) -> bool:
    return leaf.kind != "python"


def _drop_axis(value: Value) -> Value:
    """Return a value without the leading axis of its arrays, which has size 1."""
    leaves = (
        replace(leaf, shape=leaf.shape[1:]) if _is_mapped(leaf) else leaf for leaf in value.leaves
    )
    return replace(value, leaves=tuple(leaves))
