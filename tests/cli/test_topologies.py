"""`conformance matrix --topologies`: known platforms, and the answers of a plugin."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.cells.platforms import TPU_GENERATIONS, load_gpus

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest import MakeProject

CASES = {"cases/fam/topic.py": ""}


@pytest.fixture
def _no_plugin(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Use an empty cache, without a provisioned plugin that could be asked."""
    monkeypatch.setenv("CONFORMANCE_CACHE", str(tmp_path / "cache"))


@pytest.mark.usefixtures("_no_plugin")
def test_topologies_json_lists_every_platform(new_project: MakeProject) -> None:
    """TPUs by topology with their devices, GPUs with their memory."""
    ending = new_project(CASES).run("matrix", "--topologies", "--json", "-")
    listed = {row["platform"]: row for row in ending.json["platforms"]}
    assert len(listed) == len(TPU_GENERATIONS) + len(load_gpus())
    assert listed["tpu:v5e:1x1"]["topologies"]["4x4"] == 16
    assert listed["cuda:a100:1x1x4"]["description"] == "NVIDIA A100-SXM4-80GB"
    assert "ROCm" in ending.json["refused"]["rocm"]
    assert ending.json["asked"] == ""


@pytest.mark.usefixtures("_no_plugin")
def test_topologies_text_has_one_line_per_platform(new_project: MakeProject) -> None:
    """And the syntax to name a platform and to ask a plugin."""
    output = new_project(CASES).run("matrix", "--topologies").out
    assert "tpu:v5e         1x1 (1)  2x2 (4)  2x4 (8)" in output
    assert "cuda:h100       NVIDIA H100 80GB HBM3, 79 GiB" in output
    assert "no plugin was asked: name a cell, e.g. --cell jax0.10.2-tpu:v5e:2x2" in output


@pytest.mark.parametrize("cell", ["jax0.10.2-cpu4", ">=0.10"])
def test_topologies_refuses_cells_without_a_plugin(new_project: MakeProject, cell: str) -> None:
    """With an example."""
    ending = new_project(CASES).run("matrix", "--topologies", "--cell", cell)
    assert ending.code == 2
    assert f"the plugin of one compile-only cell, got {cell}; expected e.g. --cell" in ending.error


@pytest.mark.long
@pytest.mark.cell
def test_topologies_shows_what_an_older_libtpu_refuses(new_project: MakeProject) -> None:
    """With the message of libtpu."""
    ending = new_project(CASES).run(
        "matrix", "--topologies", "--cell", "jax0.5.3-tpu:v5e:2x2", "--json"
    )
    answers = {row["platform"]: row.get("answer") for row in ending.json["platforms"]}
    assert answers["tpu:v5e:1x1"] == {"devices": 1, "kind": "TPU v5 lite"}
    assert "Invalid TPU external name: TPU tpu7x" in answers["tpu:tpu7x:1x1x1"]["refused"]
    assert answers["cuda:h100:1x1x4"] is None
    assert ending.json["asked"] == "jax0.5.3-py311-tpu.v5e.2x2"
