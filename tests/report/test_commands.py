"""Commands that readers may want to run."""

from __future__ import annotations

import pytest

from conformance.model.run import RunCase, RunCell, selector_of
from conformance.report.commands import rerun


@pytest.mark.parametrize(
    ("about", "said"),
    [
        (RunCase(), "conformance run 'f/a[x]' --cell one --cell two"),
        (RunCase(kind="test"), "conformance suite run --cell one --cell two 'f/a[x]'"),
        (
            RunCase(kind="test", arguments="suite::f/a --with p -- -k sum"),
            "conformance suite run --cell one --cell two suite::f/a --with p -- -k sum",
        ),
    ],
)
def test_what_runs_it_again(about: RunCase, said: str) -> None:
    """A test is told as its suite names it, with what it needs, arguments of pytest's own last."""
    assert rerun("f/a[x]", about, "one", "two", "one") == said


def test_a_path_cell_is_named_by_its_interpreter() -> None:
    """Its id is no selector."""
    cells = (RunCell(id="path-env-1-py311-cpu4", selector="path:/my env/python@cpu4"),)
    cell = selector_of(cells, "path-env-1-py311-cpu4")
    said = "conformance run f/a --cell 'path:/my env/python@cpu4'"
    assert rerun("f/a", RunCase(), cell) == said
    assert selector_of((), "jax0.6.2-py311-cpu4") == "jax0.6.2-py311-cpu4"
