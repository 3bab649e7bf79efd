"""Calls of `snapshot` in a script become cases, without running it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.corpus.discovery import discover
from conformance.corpus.snapshot_cases import family_of, find_snapshots, render_snapshot_cases

if TYPE_CHECKING:
    from pathlib import Path

SCRIPT = """\
import conformance
from conformance import snapshot


def loss(x):
    return snapshot(len, x)


conformance.snapshot(loss, 3)
conformance.snapshot(
    loss,
    4,
)
if __name__ == "__main__":
    print(snapshot(model.apply, params, x=1))
for n in range(3):
    snapshot(lambda x: x * "n", n)
other.snapshot(loss, 5)
snapshot()
"""


def test_calls_that_the_script_itself_makes() -> None:
    """With a name, and the lines they stand in; not those of its functions, nor of others."""
    assert [(one.name, one.first, one.last) for one in find_snapshots(SCRIPT)] == [
        ("loss", 9, 9),
        ("loss_2", 10, 13),
        ("model_apply", 15, 15),
        ("lambda_x_x_n", 17, 17),
    ]


@pytest.mark.parametrize("text", ["", "print(1)\n", "snapshot(\n", "def f(): snapshot(g)\n"])
def test_a_script_without(text: str) -> None:
    """Or what is no Python."""
    assert find_snapshots(text) == []


def test_each_is_a_case(tmp_path: Path) -> None:
    """Other ones where what they depend on has changed."""
    script = tmp_path / "my-report.py"
    file = tmp_path / family_of(script) / "functions.py"
    file.parent.mkdir()
    read = []
    for digest in ("a", "b"):
        file.write_text(render_snapshot_cases(script, find_snapshots(SCRIPT), digest))
        read.append(discover([file]))
    assert read[0][0].content_hash != read[1][0].content_hash
    assert [case.id for case in read[0]] == [
        "my_report/loss", "my_report/loss_2", "my_report/model_apply", "my_report/lambda_x_x_n",
    ]  # fmt: skip
    assert read[0][0].doc == "my-report.py, line 9: loss"
