"""The imports of case files in a fork server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.worker.imports import read_words

if TYPE_CHECKING:
    from pathlib import Path


def test_words_of_a_case_file_are_those_of_its_helpers_too(tmp_path: Path) -> None:
    """A file that was written after another one of its family has its own words."""
    family = tmp_path / "family"
    (family / "_package").mkdir(parents=True)
    (family / "_helper.py").write_text("import optax\n")
    (family / "_package" / "inner.py").write_text("import orbax\n")
    (family / "first.py").write_text("import numpy\n")
    assert read_words(family / "first.py") == {"family", "import", "numpy", "optax", "orbax"}
    (family / "second.py").write_text("def case():\n    from flax import nnx\n")
    assert {"flax", "optax", "orbax"} <= read_words(family / "second.py")
    assert "flax" not in read_words(family / "first.py")
