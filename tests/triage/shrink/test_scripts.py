"""Scripts while they are cut: the form they have then, and what a candidate must show."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import pytest

from conformance.engine.blobs import BlobStore
from conformance.engine.job_comparison import StoredJob
from conformance.model.outcome import Outcome, Stage
from conformance.model.record import ErrorInfo, Record
from conformance.search.predicates import OUTPUT
from conformance.triage.shrink.edits import apply
from conformance.triage.shrink.scripts import (
    BODY,
    DiffersAlike,
    FailsAlike,
    unwrapped,
    wrapped,
)
from conformance.triage.shrink.sites import statements

if TYPE_CHECKING:
    from pathlib import Path

SCRIPT = """\
import os
os.environ['XLA_FLAGS'] = '--xla_force_host_platform_device_count=4'
import jax

def double(x):
    return 2 * x
for n in range(2):
    print(double(n))
"""


def test_a_script_is_the_same_after_all() -> None:
    """What comes first stays first: a flag is set before jax is imported."""
    assert ast.dump(ast.parse(unwrapped(wrapped(SCRIPT)))) == ast.dump(ast.parse(SCRIPT))


@pytest.mark.parametrize("line", ["from __future__ import annotations", "from jax.numpy import *"])
def test_imports_of_the_top_of_a_module(line: str) -> None:
    """A function cannot have them, and the text can be cut all the same."""
    text = wrapped(f"{line}\n{SCRIPT}")
    compile(text, "script", "exec")
    assert unwrapped(text).count("import *") == line.count("import *")
    assert "print" not in str(apply(text, statements(text, BODY), BODY))


def test_no_python() -> None:
    """The caller says where."""
    with pytest.raises(SyntaxError):
        wrapped("def f(:")


@pytest.fixture
def blobs(tmp_path: Path) -> BlobStore:
    """Where outputs are."""
    return BlobStore(tmp_path)


def ended(blobs: BlobStore, printed: str = "", error: str = "") -> StoredJob:
    """Return a script that printed something, or raised."""
    type_, _, message = error.partition(": ")
    record = Record(
        case="script/one.py", cell="one", case_hash="1", cell_hash="2", stage=Stage.EXECUTE,
        outcome=Outcome.RAISED if error else Outcome.OK,
        error=ErrorInfo(type=type_, message=message, signature=error) if error else None,
        artifacts={OUTPUT: blobs.put(printed.encode())},
    )  # fmt: skip
    return StoredJob(record, blobs)


def test_a_failure_stays_the_same(blobs: BlobStore) -> None:
    """The same error here, and none in the other cell."""
    kept = FailsAlike(ended(blobs, error="ValueError: shapes (3,) and (4,) do not fit"))
    same = ended(blobs, error="ValueError: shapes (1,) and (2,) do not fit")
    assert kept.holds(same, ended(blobs))
    assert kept.holds(same, None)
    assert not kept.holds(same, same)
    assert not kept.holds(ended(blobs), ended(blobs))
    assert not kept.may_hold(ended(blobs, error="TypeError: shapes (3,) and (4,) do not fit"))


def test_a_difference_stays_of_its_kind(blobs: BlobStore) -> None:
    """Numbers may become others; a word that differs stays one that does."""
    numbers = DiffersAlike(ended(blobs, "loss 1.5"), ended(blobs, "loss 2.5"))
    assert numbers.about == "prints 'loss 1.5' for 'loss 2.5'"
    assert numbers.holds(ended(blobs, "0.1"), ended(blobs, "0.2"))
    assert not numbers.holds(ended(blobs, "0.1"), ended(blobs, "0.1"))
    assert not numbers.holds(ended(blobs, "0.1"), None)
    words = DiffersAlike(ended(blobs, "a float32 of 3"), ended(blobs, "a float64 of 3"))
    assert words.holds(ended(blobs, "float32"), ended(blobs, "float64"))
    assert not words.holds(ended(blobs, "0.1"), ended(blobs, "0.2"))
    assert not words.holds(ended(blobs, error="KeyError: 'a'"), ended(blobs, "float64"))
