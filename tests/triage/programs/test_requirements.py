"""What a script needs beside the packages of a cell."""

from __future__ import annotations

import pytest

from conformance.errors import UsageError
from conformance.triage.programs.requirements import collect_requirements

SCRIPT = """\
# /// script
# requires-python = ">=3.11"
# dependencies = [
#   "jax==0.5.3",
#   "NumPy",
#   "einops>=0.7",
# ]
# ///
import einops
"""
CELL = ("jax", "jaxlib", "numpy")


def test_requirements_of_a_script_are_installed() -> None:
    """Except packages of the cell, which the search varies."""
    assert collect_requirements(SCRIPT, (), CELL) == ("einops>=0.7",)


def test_requirements_of_the_user_are_added() -> None:
    """Once each, sorted."""
    wanted = collect_requirements(SCRIPT, ("chex", "einops>=0.7"), CELL)
    assert wanted == ("chex", "einops>=0.7")


@pytest.mark.parametrize("script", ["import jax\n", "# /// script\n# ///\n", "# /// script\n"])
def test_a_script_without_a_header_has_no_requirements(script: str) -> None:
    """Or say nothing."""
    assert collect_requirements(script, (), CELL) == ()


@pytest.mark.parametrize(
    ("script", "wanted", "said"),
    [
        ("", ("not a name",), "requirement 'not a name': .*, expected e.g. 'optax>=0.2'"),
        ("# /// script\n# dependencies = [\n# ///\n", (), "header of the script: expected TOML: "),
    ],
)
def test_an_invalid_requirement_is_an_error(
    script: str, wanted: tuple[str, ...], said: str
) -> None:
    """In one sentence."""
    with pytest.raises(UsageError, match=f"^{said}"):
        collect_requirements(script, wanted, CELL)
