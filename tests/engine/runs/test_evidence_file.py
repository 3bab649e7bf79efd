"""The file of evidence about root causes."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import msgspec
import pytest

from conformance.engine.runs.directory import CorruptRunError, RunDirectory
from conformance.engine.runs.loader import (
    add_evidence,
    forget_evidence,
    read_evidence,
    read_reproduction,
)
from conformance.model.run_files import Culprit, Evidence

if TYPE_CHECKING:
    from pathlib import Path

FOUND = Evidence(
    cause="c", case="f/a", cell="x", repro="repro/c.py",
    culprits=(Culprit(package="jax", before="1", after="2"),),
)  # fmt: skip


def test_evidence_round_trips(tmp_path: Path) -> None:
    """Empty without triage; no reproduction if its file is missing."""
    directory = RunDirectory(tmp_path)
    assert read_evidence(directory) == {}
    add_evidence(directory, FOUND, ["c"], print)
    assert read_evidence(directory) == {"c": FOUND}
    assert read_reproduction(directory, FOUND) == ""
    (tmp_path / "repro").mkdir()
    (tmp_path / "repro" / "c.py").write_text("print()\n")
    assert read_reproduction(directory, FOUND) == "print()\n"


@pytest.mark.parametrize("text", ["{", '[{"cause": 1}]', '{"a": 1}'])
def test_an_unreadable_file_names_a_remedy(tmp_path: Path, text: str) -> None:
    """And names the file."""
    (tmp_path / "evidence.json").write_text(text)
    with pytest.raises(CorruptRunError, match=r"evidence\.json: .*conformance triage --fresh"):
        read_evidence(RunDirectory(tmp_path))


def test_concurrent_additions_are_all_kept(tmp_path: Path) -> None:
    """In the order of the causes; evidence of other causes is dropped."""
    directory = RunDirectory(tmp_path)
    found = [msgspec.structs.replace(FOUND, cause=f"c{number}") for number in range(12)]
    causes = [one.cause for one in found[1:]]
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda one: add_evidence(directory, one, causes, print), reversed(found)))
    assert list(read_evidence(directory).values()) == found[1:]


def test_an_unreadable_file_can_be_deleted(tmp_path: Path) -> None:
    """As its message advises; a missing file is no error."""
    directory = RunDirectory(tmp_path)
    (tmp_path / "evidence.json").write_text("{")
    for _ in range(2):
        forget_evidence(directory)
        assert read_evidence(directory) == {}
