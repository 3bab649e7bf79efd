"""The published schemas."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from jsonschema import Draft202012Validator, ValidationError

from conformance.model.run import Exclusion
from conformance.report.report_json import make_report_json, render_json_lines
from tests.builders import f32
from tests.report.published_schemas import schemas
from tests.report.runs import ADD, CELLS, Directory

if TYPE_CHECKING:
    from conformance.report.report import Report

PUBLISHED = Path(__file__).parents[2] / "docs" / "schema"


def validator(name: str) -> Draft202012Validator:
    """Return what checks data against a published schema."""
    return Draft202012Validator(json.loads((PUBLISHED / name).read_text()))


def plain(data: object) -> Any:
    """Return data as a reader of the JSON gets it."""
    return json.loads(msgspec.json.encode(data))


@pytest.fixture
def report(tmp_path: Path) -> Report:
    """A report of jobs that ended well, that raised, that changed, were left out or not run."""
    made = Directory(tmp_path / "r").job("f/a", CELLS[0], f32(1), texts={"hlo": ADD})
    made.job("f/a", CELLS[1], error=("TypeError", "no"))
    left_out = Exclusion(case="f/b", cell=CELLS[0], reason="why")
    plan = (("f/a", CELLS[0]), ("f/a", CELLS[1]), ("f/c", CELLS[0]))
    return made.report(exclusions=(left_out,), plan=plan)


def test_the_published_schemas_are_current() -> None:
    """The pages of `docs/schema` equal the output of `schemas()`, which writes them."""
    assert {file.name: file.read_bytes() for file in PUBLISHED.iterdir()} == schemas()


@pytest.mark.parametrize("name", schemas())
def test_a_schema_is_valid_and_describes_its_fields(name: str) -> None:
    """Of the dialect that it says; every field says what it holds."""
    found = json.loads((PUBLISHED / name).read_text())
    Draft202012Validator.check_schema(found)
    for part in found["$defs"].values():
        for field, said in part.get("properties", {}).items():
            assert said.get("description") or part["title"] == "Exclusion", field


def test_written_data_match_the_schemas(report: Report) -> None:
    """Of a report, and of each line."""
    data = plain(make_report_json(report))
    assert data["transitions"]
    assert data["not_run"]
    validator("report.schema.json").validate(data)
    for line in render_json_lines(report):
        validator("line.schema.json").validate(json.loads(line))


def test_a_missing_field_is_an_error(report: Report) -> None:
    """All of them are required."""
    data = plain(make_report_json(report))
    del data["results"][0]["verdict"]
    with pytest.raises(ValidationError, match="'verdict' is a required property"):
        validator("report.schema.json").validate(data)
