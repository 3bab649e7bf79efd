"""What was found out, in words."""

from __future__ import annotations

import pytest

from conformance.model.evidence import Culprit, Evidence
from conformance.triage.evidence.render import culprit_line, evidence_lines


@pytest.mark.parametrize(
    ("files", "line"),
    [
        ((), "jax 1.0 -> 1.1"),
        (("a.py",), "jax 1.1 with 1 changed file: a.py"),
        (("a.py", "b.py"), "jax 1.1 with 2 changed files: a.py, b.py"),
        (tuple("abcde"), "jax 1.1 with 5 changed files: a, b, c and 2 more"),
    ],
)
def test_a_culprit(files: tuple[str, ...], line: str) -> None:
    """By its versions, or by the files that are not as installed."""
    assert culprit_line(Culprit(package="jax", before="1.0", after="1.1", files=files)) == line


def test_what_was_found_out_and_what_not() -> None:
    """A line for each."""
    found = Evidence(
        cause="c", case="f/a", cell="x", good="1.0", last_good="1.0", first_bad="1.1",
        asked="deviates from its own reference", repro="repro/c.py", command="uv run repro/c.py",
        untold=("no culprit: no network",),
    )  # fmt: skip
    assert list(evidence_lines(found)) == [
        "f/a on x",
        "last good 1.0, first bad 1.1, not confirmed: deviates from its own reference",
        "reproduction: uv run repro/c.py",
        "no culprit: no network",
    ]
    assert list(evidence_lines(Evidence(cause="c", case="f/a", cell="x"))) == ["f/a on x"]
