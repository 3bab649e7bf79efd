"""Commands that readers may want to run."""

from __future__ import annotations

import pytest

from conformance.model.run import RunCase
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
