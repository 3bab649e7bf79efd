"""Kill -9 at any moment; `benchmarks/attack/kills.py` does it often, and beside provisioning."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from tests.faults.killing import VICTIMS, Trials

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.cell


@pytest.fixture(scope="module")
def trials(tmp_path_factory: pytest.TempPathFactory, envs: Path) -> Trials:
    """Few cases on one release, run once undisturbed."""
    made = Trials(
        tmp_path_factory.mktemp("kills"), cells=("0.6.2",), cases=("cases/odd",), envs=envs
    )
    made.begin()
    return made


@pytest.mark.long(keep=2)
@pytest.mark.parametrize("number", range(6))
def test_a_killed_run_ends_as_an_undisturbed_one(trials: Trials, number: int) -> None:
    """The same records, artifacts and cache; no process and no file is left."""
    victim = VICTIMS[number % len(VICTIMS)]
    moment = random.Random(number).uniform(0, 0.8)  # noqa: S311 - the same moments each time
    result = trials.run_trial(number, victim, moment)
    assert result.problems == ()
    assert result.resumed == (result.killed and victim == "orchestrator")
