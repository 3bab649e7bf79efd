"""Warm-up of the fork server."""

from __future__ import annotations

import os
import subprocess

import pytest

from tests.projects import ROOT
from tests.workbench import OLD, planned_cell, python_of

REFUSE = """\
import jax
from conformance.worker import scout


def refuse(fn):
    raise TypeError("this commit cannot trace")


jax.make_jaxpr = refuse
scout.warm()
print("warm")
"""


@pytest.mark.cell
def test_jax_that_cannot_trace_still_has_a_server() -> None:
    """As at some commits between releases: its jobs show what is wrong."""
    done = subprocess.run(
        [python_of(planned_cell(OLD)), "-s", "-c", REFUSE],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.stdout, done.returncode) == ("warm\n", 0), done.stderr
