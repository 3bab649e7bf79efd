"""Programs that tests of the generator share."""

from __future__ import annotations

import pytest

from conformance.fuzz.generation import GeneratedProgram, generate
from conformance.fuzz.strategies import ProgramSpace


@pytest.fixture(scope="session")
def drawn() -> list[GeneratedProgram]:
    """Return programs of a seed; they are drawn by the first test that needs them."""
    return generate(ProgramSpace(), 1, 200)
