"""Mutators of module texts: noise, which changes nothing, and changes of meaning."""

from tests.ir.mutators import (
    meaning,
    meaning_places,
    noise,
    noise_spelling,
    stablehlo_meaning,
    stablehlo_noise,
)
from tests.ir.mutators.registry import EQUAL, MEANING, NEUTRAL, NOISE

__all__ = [
    "EQUAL", "MEANING", "NEUTRAL", "NOISE", "meaning", "meaning_places", "noise", "noise_spelling",
    "stablehlo_meaning", "stablehlo_noise",
]  # fmt: skip
