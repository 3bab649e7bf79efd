"""Commits as cells: why one cannot be imported."""

from __future__ import annotations

import pytest

from conformance.triage.commits.commit_cells import find_raised_line

TRACEBACK = """\
Traceback (most recent call last):
  File "jax/_src/pjit.py", line 763, in _infer
    raise TypeError(
"""


@pytest.mark.parametrize(
    ("output", "exception"),
    [
        ("ImportError: cannot import name 'x'", "ImportError: cannot import name 'x'"),
        (f"{TRACEBACK}TypeError: no array\nThis means that", "TypeError: no array"),
        (f"worker p did not start; output: {TRACEBACK}mod.FooError: no", "FooError: no"),
        ("worker p did not start; output: OSError: no", "OSError: no"),
        ("worker p did not start: ended by SIGKILL", ""),
        ("", ""),
    ],
)
def test_exception_is_the_last_line_that_names_one(output: str, exception: str) -> None:
    """Its message may go on; without one, the host is at fault, not the commit."""
    assert find_raised_line(output) == exception
