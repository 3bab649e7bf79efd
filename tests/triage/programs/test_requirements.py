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


def test_a_script_says_what_it_needs() -> None:
    """What the cell has is what is searched, whatever the script says of it."""
    assert collect_requirements(SCRIPT, (), CELL) == ("einops>=0.7",)


def test_what_the_user_names_is_wanted_too() -> None:
    """Once each, in order."""
    wanted = collect_requirements(SCRIPT, ("chex", "einops>=0.7"), CELL)
    assert wanted == ("chex", "einops>=0.7")


@pytest.mark.parametrize("script", ["import jax\n", "# /// script\n# ///\n", "# /// script\n"])
def test_most_scripts_need_nothing_more(script: str) -> None:
    """Or say nothing."""
    assert collect_requirements(script, (), CELL) == ()


@pytest.mark.parametrize(
    ("script", "wanted", "said"),
    [
        ("", ("not a name",), "requirement 'not a name': .*, expected e.g. 'optax>=0.2'"),
        ("# /// script\n# dependencies = [\n# ///\n", (), "header of the script: expected TOML: "),
    ],
)
def test_what_is_no_requirement(script: str, wanted: tuple[str, ...], said: str) -> None:
    """It is told in a sentence."""
    with pytest.raises(UsageError, match=f"^{said}"):
        collect_requirements(script, wanted, CELL)
