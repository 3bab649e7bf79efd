"""Damaged inputs over all readers: a small part of `benchmarks/attack/mutated_inputs.py`."""

from __future__ import annotations

import logging
import runpy
from typing import TYPE_CHECKING, Any

import pytest

from tests.projects import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

INPUTS = 25
"""Mutated inputs for each reader."""


@pytest.fixture(scope="module")
def campaign() -> dict[str, Any]:
    """The benchmark's module."""
    return runpy.run_path(str(ROOT / "benchmarks" / "attack" / "mutated_inputs.py"))


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Damaged cache entries are noted, which is not what is tested here."""
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


def test_every_reader_reads_or_refuses(
    campaign: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """No reader hangs, and none raises anything but the project's error."""
    readers = campaign["make_readers"](tmp_path_factory.mktemp("readers"))
    assert len(readers) > 15
    for reader in readers:
        row = campaign["attack_reader"](reader, INPUTS, seed=1)
        assert row.failed == [], reader.name
        assert row.read + row.refused == INPUTS


def test_a_reader_that_fails_is_found(campaign: dict[str, Any]) -> None:
    """The campaign itself can fail: by a wrong exception, and by a hang."""

    def raises(file: object) -> None:
        raise KeyError(file)

    def refuses(_: object) -> None:
        raise campaign["ConformanceError"]("no")

    def hangs(_: object) -> None:
        raise campaign["TooLongError"]

    for read, said in ((raises, "KeyError"), (refuses, "whole input: no"), (hangs, "TooLongError")):
        row = campaign["attack_reader"](campaign["Reader"]("r", [b"x"], read), 1, seed=1)
        assert said in row.failed[0]
