"""What stands on top of a file of its own."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from conformance.cells.cell import Cell
from conformance.engine.job import Job, PlannedCell
from conformance.triage.repro.embedded_modules import EmbeddedModules
from conformance.triage.repro.header import describe_nightlies, list_requirements
from tests.builders import case

NIGHT = "0.8.3.dev20251120"


@pytest.mark.parametrize(
    ("versions", "begins"),
    [
        ({"jax": NIGHT, "jaxlib": NIGHT, "numpy": "2.0.0"}, "jax and jaxlib are nightlies: name"),
        ({"jax": NIGHT, "jaxlib": "0.8.2"}, "jax is a nightly: name an index that has these"),
    ],
)
def test_nightlies_are_in_no_usual_index(versions: dict[str, str], begins: str) -> None:
    """So that whoever runs the file is told."""
    assert describe_nightlies(versions).startswith(begins)


def test_of_releases_nothing_is_said() -> None:
    """They are where they always are."""
    assert describe_nightlies({"jax": "0.8.3", "jaxlib": "0.8.2"}) == ""


def test_a_package_of_the_users_own_is_required_by_its_url() -> None:
    """The index has none of that name, and the module behind a listed function is in it."""
    cell = Cell(release="0.6.2", python="3.11", devices=1)
    versions = {"jax": "0.6.2", "jaxlib": "0.6.2", "mine": "1.0", "optax": "0.2"}
    planned = PlannedCell(cell=cell, versions=versions, lock_hash="l", cell_hash="h")
    job = Job(case=case("f/a"), planned=planned)
    source = SimpleNamespace(modules=frozenset({"importlib", "numpy"}))
    url = "mine @ file:///wheels/mine-1.0-py3-none-any.whl"
    pins = ["jax==0.6.2", "jaxlib==0.6.2"]
    assert list_requirements(job, source, EmbeddedModules()) == pins  # type: ignore[arg-type]
    found = list_requirements(job, source, EmbeddedModules(wanted=(url, "optax>=0.1")))  # type: ignore[arg-type]
    assert found == [*pins, url, "optax==0.2"]
