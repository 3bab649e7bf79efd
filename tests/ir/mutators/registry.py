"""The mutators by name, and what each promises."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, TypeAlias

from tests.ir.mutators.mlir import Program, program
from tests.ir.mutators.referee import signature
from tests.ir.mutators.text import Text, read

if TYPE_CHECKING:
    from collections.abc import Callable

Edit: TypeAlias = "Callable[[Text, Random], bool]"
"""Changes a module in place; false when there is nothing for it to change."""
Mutate: TypeAlias = "Callable[[str, Random], str | None]"
"""Returns a changed text, or None when there is nothing to change."""
Rewrite: TypeAlias = "Callable[[Program, Random], bool]"
"""The same for StableHLO."""
EQUAL, NEUTRAL = "equal", "neutral_equal"
"""Up to which level a text with noise must be the same."""
TRIES = 12


@dataclass(frozen=True)
class Noise:
    """A mutator whose result means the same, up to a level.

    Attributes:
        run: The mutator.
        level: `EQUAL` or `NEUTRAL`.
        kind: Which IR it is for.
        judged: Whether our referee knows that it changes nothing; it folds less than the diff.
    """

    run: Mutate
    level: str
    kind: str = "hlo"
    judged: bool = True


@dataclass(frozen=True)
class Meaning:
    """A mutator whose result means something else."""

    run: Callable[[str, Random], tuple[str, str] | None]
    kind: str = "hlo"


NOISE: dict[str, Noise] = {}
MEANING: dict[str, Meaning] = {}


def changed(edit: Edit, text: str, rng: Random) -> str | None:
    """Return a text after an edit, or None if that changed nothing."""
    module = read(text)
    if not edit(module, rng):
        return None
    after = str(module)
    return None if after == text else after


def noise(level: str = EQUAL, *, judged: bool = True) -> Callable[[Edit], Mutate]:
    """Register an edit of HLO that changes nothing that matters at a level."""

    def register(edit: Edit) -> Mutate:
        def run(text: str, rng: Random) -> str | None:
            return changed(edit, text, rng)

        NOISE[edit.__name__] = Noise(run, level, judged=judged)
        return run

    return register


def meaning(edit: Edit) -> Edit:
    """Register an edit of HLO that changes what it means, by our own referee."""

    def run(text: str, rng: Random) -> tuple[str, str] | None:
        before = signature(text)
        for _ in range(TRIES):
            after = changed(edit, text, Random(rng.random()))  # noqa: S311 - reproducible
            if after is None:
                return None
            if signature(after) != before:
                return text, after
        return None

    MEANING[edit.__name__] = Meaning(run)
    return edit


def meaning_pair(
    edit: Callable[[Text, Text, Random], bool],
) -> Callable[[Text, Text, Random], bool]:
    """Register an edit that prepares both texts, where the samples lack what it is about."""

    def run(text: str, rng: Random) -> tuple[str, str] | None:
        before, after = read(text), read(text)
        if not edit(before, after, rng) or signature(str(before)) == signature(str(after)):
            return None
        return str(before), str(after)

    MEANING[edit.__name__] = Meaning(run)
    return edit


def stablehlo_noise(level: str = EQUAL) -> Callable[[Rewrite], Rewrite]:
    """Register an edit of StableHLO that changes nothing that matters at a level."""

    def register(edit: Rewrite) -> Rewrite:
        NOISE[f"stablehlo_{edit.__name__}"] = Noise(after(edit), level, "stablehlo", judged=False)
        return edit

    return register


def stablehlo_meaning(edit: Rewrite) -> Rewrite:
    """Register an edit of StableHLO that changes what it means."""
    rewrite = after(edit)

    def run(text: str, rng: Random) -> tuple[str, str] | None:
        found = rewrite(text, rng)
        return None if found is None else (text, found)

    MEANING[f"stablehlo_{edit.__name__}"] = Meaning(run, "stablehlo")
    return edit


def after(edit: Rewrite) -> Mutate:
    """Return what gives the text after an edit of its lines."""

    def run(text: str, rng: Random) -> str | None:
        module = program(text)
        if not edit(module, rng):
            return None
        out = str(module)
        return None if out == text else out

    return run
