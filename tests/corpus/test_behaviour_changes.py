"""What families say of themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.corpus.behaviour_changes import load_families
from conformance.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

CHANGE = """\
about = "Loops."

[[change]]
release = "0.6.0"
summary = "Loops are typed."
source = "o/r#1"
case = "loops/one"
shown_by = "outcome"
"""


def written(cases: Path, text: str) -> Path:
    """Return a folder of cases whose one family says a text of itself."""
    (cases / "loops").mkdir()
    (cases / "loops" / "changes.toml").write_text(text)
    return cases


def test_a_family_declares_its_changes(tmp_path: Path) -> None:
    """Families without a file are left out."""
    (tmp_path / "silent").mkdir()
    found = load_families(written(tmp_path, CHANGE))
    assert found.keys() == {"loops"}
    (change,) = found["loops"].change
    assert (found["loops"].about, change.cases, change.shown_at) == (
        "Loops.",
        ("loops/one",),
        "0.6.0",
    )


def test_a_change_may_be_observed_in_a_later_release(tmp_path: Path) -> None:
    """With a reason, and by several cases."""
    text = CHANGE.replace('"loops/one"', '["loops/one", "loops/two"]')
    (change,) = load_families(written(tmp_path, f'{text}observed_in = "0.6.1"\nwhy = "w"\n'))[
        "loops"
    ].change
    assert (change.cases, change.shown_at) == (("loops/one", "loops/two"), "0.6.1")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("about = ", "invalid"),
        (CHANGE.replace("outcome", "mood"), "mood"),
        (CHANGE.replace("summary", "sumary"), "sumary"),
        (CHANGE.replace("0.6.0", "soon"), "change 1: release 'soon', expected a jax release"),
        (CHANGE.replace("0.6.0", "9" * 5000), "change 1: release '999"),
        (CHANGE.replace("o/r#1", "jax-ml/jax@"), "change 1: source 'jax-ml/jax@', expected"),
        (f'{CHANGE}observed_in = "0.6.1"\n', "change 1: `observed_in` and `why` belong together"),
    ],
)
def test_a_malformed_declaration_is_an_error(tmp_path: Path, text: str, said: str) -> None:
    """The message names the file."""
    with pytest.raises(UsageError, match=r"changes\.toml") as error:
        load_families(written(tmp_path, text))
    assert said in str(error.value)
