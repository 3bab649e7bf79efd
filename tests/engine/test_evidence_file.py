"""The file of what was found out about root causes."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import msgspec
import pytest

from conformance.engine.run_directory import CorruptRunError, RunDirectory
from conformance.engine.run_loader import (
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


def test_what_is_written_is_read(tmp_path: Path) -> None:
    """Nothing where nobody looked, and no reproduction where there is none any more."""
    directory = RunDirectory(tmp_path)
    assert read_evidence(directory) == {}
    add_evidence(directory, FOUND, ["c"], print)
    assert read_evidence(directory) == {"c": FOUND}
    assert read_reproduction(directory, FOUND) == ""
    (tmp_path / "repro").mkdir()
    (tmp_path / "repro" / "c.py").write_text("print()\n")
    assert read_reproduction(directory, FOUND) == "print()\n"


@pytest.mark.parametrize("text", ["{", '[{"cause": 1}]', '{"a": 1}'])
def test_what_cannot_be_read_says_how_to_make_it_anew(tmp_path: Path, text: str) -> None:
    """And names the file."""
    (tmp_path / "evidence.json").write_text(text)
    with pytest.raises(CorruptRunError, match=r"evidence\.json: .*conformance triage --fresh"):
        read_evidence(RunDirectory(tmp_path))


def test_what_two_find_out_at_once_is_all_kept(tmp_path: Path) -> None:
    """In the order of the causes; what is known of other causes is dropped."""
    directory = RunDirectory(tmp_path)
    found = [msgspec.structs.replace(FOUND, cause=f"c{number}") for number in range(12)]
    causes = [one.cause for one in found[1:]]
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda one: add_evidence(directory, one, causes, print), reversed(found)))
    assert list(read_evidence(directory).values()) == found[1:]


def test_what_cannot_be_read_can_be_forgotten(tmp_path: Path) -> None:
    """As the message asks for; where there is nothing, nothing happens."""
    directory = RunDirectory(tmp_path)
    (tmp_path / "evidence.json").write_text("{")
    for _ in range(2):
        forget_evidence(directory)
        assert read_evidence(directory) == {}
