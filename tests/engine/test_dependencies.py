"""Packages that a program imports and its cell lacks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.engine.plan import find_missing_dependency
from conformance.model.record import ErrorInfo

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("type_", "message", "missing"),
    [
        ("ModuleNotFoundError", "No module named 'chex'", True),
        ("ModuleNotFoundError", "No module named 'jax'", False),
        ("ModuleNotFoundError", "No module named 'jax.experimental.maps'", False),
        ("ModuleNotFoundError", "No module named 'distutils'", False),
        ("ModuleNotFoundError", "No module named 'helpers'", False),
        ("ModuleNotFoundError", "No module named 'support'", False),
        ("ModuleNotFoundError", "No module named 'clone'", True),
        ("ImportError", "cannot import name 'a' from 'chex'", False),
    ],
)
def test_a_missing_dependency_is_no_regression(
    tmp_path: Path, type_: str, message: str, missing: bool
) -> None:
    """Modules that jax, the standard library or the suite itself lack are different."""
    (tmp_path / "tests").mkdir()
    (tmp_path / "clone" / "clone").mkdir(parents=True)
    (tmp_path / "support").mkdir()
    for name in ("tests/helpers.py", "support/__init__.py", "clone/setup.py"):
        (tmp_path / name).write_text("")
    file = tmp_path / "tests" / "unit" / "test_a.py"
    error = ErrorInfo(type=type_, message=message)
    told = find_missing_dependency(error, {"jax", "numpy"}, file, "the suite")
    assert bool(told) is missing
    assert (", and the cell has no package of that name: " in told) is missing
