"""`conformance bench`, with real workers: planted slowdowns, growth and leaks are found."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from conformance.cli import main

if TYPE_CHECKING:
    from pathlib import Path


SOURCE = '''
import time

import numpy as np
from jax import lax
from conformance.kit import Program, program

X = np.ones(8, np.float32)


@program(sizes=(8, 16, 32, 64))
def planted(env, size):
    """On the newer release, the steps are the square of the size."""
    steps = size if env.cell.release == "0.5.3" else size * size
    return Program(lambda x: lax.fori_loop(0, 200 * steps, lambda i, x: x * 0.5 + i, x), (X,))


@program()
def equal(env):
    """The same on both."""
    return Program(lambda x: x + 1, (X,))
'''


@pytest.mark.long
def test_planted_differences_are_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In time and in growth, as text, JSON and Markdown."""
    file = tmp_path / "cases" / "family" / "topic.py"
    file.parent.mkdir(parents=True)
    file.write_text(SOURCE)
    out, page = tmp_path / "bench.json", tmp_path / "bench.md"
    cells = ["--cell", "0.5.3", "--cell", "latest", "--rounds", "3", "--precision", "30"]
    written = ["--json", str(out), "--markdown", str(page)]
    status = main(["bench", str(file), *cells, *written])
    assert status == 1
    rows = json.loads(out.read_text())["comparisons"]
    planted = next(r for r in rows if r["case"] == "family/planted" and r["phase"] == "run")
    assert planted["alarm"]
    assert planted["ratio"] > 10
    assert planted["exponent"]["b"] - planted["exponent"]["a"] > 0.5
    assert "family/planted at 64: " in capsys.readouterr().out
    assert "`family/planted` at 64: " in page.read_text()


def test_a_script_is_measured_as_a_whole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also against itself."""
    script = tmp_path / "train.py"
    script.write_text("import jax.numpy as jnp\nprint(jnp.ones(3).sum())\n")
    arguments = ["bench", str(script), "--cell", "latest", "--cell", "latest", "--rounds", "2"]
    assert main([*arguments, "--precision", "30"]) in {0, 1}
    assert "train/train: " in capsys.readouterr().out


def test_one_cell_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """There is nothing to compare."""
    assert main(["bench", "performance/fft", "--cell", "latest"]) == 2
    assert "1 cell, expected two or more to compare; add --cell" in capsys.readouterr().err
