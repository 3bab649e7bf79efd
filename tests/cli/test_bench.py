"""`conformance bench`, with real workers: planted slowdowns, growth and leaks are found."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
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


SLOW = """
import time

from conformance.kit import probe


@probe()
def short(env):
    return 1


@probe()
def long(env):
    time.sleep(60)
    return 1
"""


def test_an_interrupted_bench_keeps_what_it_measured(tmp_path: Path) -> None:
    """The cases before the interrupt are in the files."""
    file, out = tmp_path / "cases" / "family" / "topic.py", tmp_path / "bench.json"
    file.parent.mkdir(parents=True)
    file.write_text(SLOW)
    command = ["bench", str(file), "--json", str(out), "--overview"]
    with subprocess.Popen(
        [sys.executable, "-m", "conformance", *command, "--cell", "latest", "--cell", "latest"],
        stdout=subprocess.PIPE, text=True,
    ) as bench:  # fmt: skip
        assert bench.stdout is not None
        assert any(line.startswith("family/short") for line in bench.stdout)
        bench.send_signal(signal.SIGINT)
        printed = bench.stdout.read()
    assert bench.returncode == 130
    assert "interrupted: the cases above were measured" in printed
    assert {row["case"] for row in json.loads(out.read_text())["series"]} == {"family/short"}


def test_one_cell_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """There is nothing to compare."""
    assert main(["bench", "performance/fft", "--cell", "latest"]) == 2
    assert "1 cell, expected two or more to compare; add --cell" in capsys.readouterr().err
