"""Mutated modules: noise is not reported, a change of meaning always is.

A fast part of `benchmarks/ir_mutations.py`: each mutator on a few modules, the same ones each time.
"""

from __future__ import annotations

import itertools
from functools import cache
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest

from conformance.ir.difference import diff
from tests.ir.mutators import EQUAL, MEANING, NEUTRAL, NOISE
from tests.ir.mutators.referee import signature
from tests.ir.mutators.text import read

if TYPE_CHECKING:
    from collections.abc import Iterator


SAMPLES = Path(__file__).parent / "samples"
ENDINGS = {"hlo": "hlo", "stablehlo": "generic"}
MODULES, LARGEST = 3, 16_000
"""How many modules each mutator is tried on, and how large those are that are tried first."""

every_noise = pytest.mark.parametrize("name", sorted(NOISE))
every_meaning = pytest.mark.parametrize("name", sorted(MEANING))
every_edit = pytest.mark.parametrize("name", sorted(NOISE))


@cache
def modules(kind: str) -> tuple[tuple[str, str], ...]:
    """Return the samples of a kind: small ones of all platforms mixed, then the large ones."""
    files = sorted(SAMPLES.rglob(f"*.{ENDINGS[kind]}"))
    Random(7).shuffle(files)  # noqa: S311 - reproducible
    files.sort(key=lambda file: file.stat().st_size > LARGEST)
    return tuple((str(f.relative_to(SAMPLES)), f.read_text(encoding="utf-8")) for f in files)


def mutants(name: str) -> Iterator[tuple[str, str, str]]:
    """Yield modules before and after a mutator, with their names, beginning at a small one."""
    mutator = NOISE.get(name) or MEANING[name]
    known = modules(mutator.kind)
    small = sum(len(text) <= LARGEST for _, text in known)
    start = Random(name).randrange(small)  # noqa: S311 - reproducible
    for where, text in itertools.chain(known[start:small], known[:start], known[small:]):
        made = mutator.run(text, Random(f"{name} {where}"))  # noqa: S311 - reproducible
        if made is not None:
            yield (where, text, made) if isinstance(made, str) else (where, *made)


def some(name: str) -> list[tuple[str, str, str]]:
    """Return the first few mutants."""
    found = list(itertools.islice(mutants(name), MODULES))
    assert found, "the mutator applies to none of the samples"
    return found


@every_noise
def test_noise_is_not_reported(name: str) -> None:
    """Up to the level that the mutator promises."""
    mutator = NOISE[name]
    for where, before, after in some(name):
        found = diff(before, after, kind=mutator.kind)
        assert found.neutral_equal, where
        assert mutator.level == NEUTRAL or (found.equal and not found.changes), where
        assert all(change.severity != "semantic" for change in found.changes), where


@pytest.mark.long(keep=42)
@every_meaning
def test_a_mutation_of_meaning_is_reported(name: str) -> None:
    """And the report names it."""
    for where, before, after in some(name):
        found = diff(before, after, kind=MEANING[name].kind)
        assert not found.equal, where
        assert found.changes, where


@every_edit
def test_noise_mutators_change_only_the_text(name: str) -> None:
    """Checked by an independent referee, which detects a wrong mutator."""
    for where, before, after in some(name):
        assert after != before, where
        assert not NOISE[name].judged or signature(after) == signature(before), where


@pytest.mark.parametrize("where", [where for where, _ in modules("hlo")][:40])
def test_the_mutators_text_model_round_trips(where: str) -> None:
    """Byte for byte."""
    text = dict(modules("hlo"))[where]
    assert str(read(text)) == text


def test_levels_are_known() -> None:
    """A mutator with a misspelt level would promise nothing."""
    assert {mutator.level for mutator in NOISE.values()} == {EQUAL, NEUTRAL}
