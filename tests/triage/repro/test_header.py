"""The header of a reproduction."""

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
def test_nightlies_need_an_index(versions: dict[str, str], begins: str) -> None:
    """The header names the packages."""
    assert describe_nightlies(versions).startswith(begins)


def test_releases_need_no_index() -> None:
    """PyPI has them."""
    assert describe_nightlies({"jax": "0.8.3", "jaxlib": "0.8.2"}) == ""


def test_local_package_is_required_by_its_url() -> None:
    """The index may have another package of that name."""
    cell = Cell(release="0.6.2", python="3.11", devices=1)
    versions = {"jax": "0.6.2", "jaxlib": "0.6.2", "mine": "1.0", "optax": "0.2"}
    planned = PlannedCell(cell=cell, versions=versions, lock_hash="l", cell_hash="h")
    job = Job(case=case("f/a"), planned=planned)
    source = SimpleNamespace(modules=frozenset({"importlib", "numpy"}))
    url = "mine @ file:///wheels/mine-1.0-py3-none-any.whl"
    pins = ["jax==0.6.2", "jaxlib==0.6.2"]
    assert list_requirements(job, source, EmbeddedModules()) == pins  # type: ignore[arg-type]
    found = list_requirements(job, source, EmbeddedModules(requirements=(url, "optax>=0.1")))  # type: ignore[arg-type]
    assert found == [*pins, url, "optax==0.2"]
