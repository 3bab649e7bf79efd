"""An upgrade read back: all that was said, or one clear error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from conformance.model.run import Exclusion
from conformance.report.upgrade.file import CorruptUpgradeError, decode_upgrade, make_upgrade_file
from conformance.triage.upgrade.comparison import ComparedCase
from conformance.triage.upgrade.effect import Effect
from tests.builders import case
from tests.report.upgrades import AXIS, OK, OTHER, RAISED, RELEASES, Tried, file_of, told

if TYPE_CHECKING:
    from pathlib import Path


def test_an_encoded_upgrade_decodes_to_itself(tmp_path: Path) -> None:
    """Groups name the changes that made their cases what they are."""
    tried = (
        Tried(tmp_path)
        .case("f/a", OK, OTHER, RAISED, RAISED)
        .case("f/b", OK, OK, RAISED, RAISED)
        .case("f/c", RAISED, RAISED, RAISED, RAISED)
    )
    flaky = ComparedCase(case=case("f/d"), axis=AXIS, flaky="0.6.0: attempts disagree")
    refused = ComparedCase(case=case("f/e"), axis=AXIS, refusal="0.5.3: needs 16 devices")
    left_out = (Exclusion(case="", cell="jax0.6.1-py311-cpu8", reason="no wheels"),)
    read = file_of(told(*tried.compared, flaky, refused, left_out=left_out))
    assert (read.from_, read.to) == ("0.5.3", "0.6.2")
    assert [point.label for point in read.axes[0].points] == list(RELEASES)
    assert read.counts[Effect.BROKEN] == 2
    found = [[read.transitions[n] for n in group.transitions] for group in read.groups]
    assert [[(c.case, c.changed_in, c.after) for c in group] for group in found] == [
        [("f/a", "0.6.0", "ValueError: bad | shape")],
        [("f/b", "0.6.1", "ValueError: bad shape")],
    ]
    assert found[1][0].cells == ("jax0.6.0-py311-cpu8", "jax0.6.1-py311-cpu8")
    assert found[1][0].beside == {"numpy": ("2.2.0", "2.3.0")}
    assert [one.reason for one in (*read.flaky, *read.not_compared, *read.fails_alike)] == [
        "0.6.0: attempts disagree", "0.5.3: needs 16 devices", "ValueError: bad shape",
    ]  # fmt: skip
    assert (read.left_out[0].reason, read.jobs.tried, read.jobs.of) == ("no wheels", 8, 12)


def edited(tmp_path: Path, **more: Any) -> bytes:
    """Return a file in which something is something else."""
    data = msgspec.to_builtins(
        make_upgrade_file(Tried(tmp_path).case("f/a", OK, OK, RAISED, RAISED).upgraded())
    )
    return msgspec.json.encode({**data, **more})


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"format": 2}, "u.json: format 2, expected 1; run the same `conformance upgrade` again"),
        ({"format": None}, "u.json: expected the JSON of an upgrade: expected `int`"),
        ({"verdict": 3}, "u.json: expected the JSON of an upgrade: expected `str`"),
        ({"groups": [{"kind": "broken", "transitions": [1]}]}, "changes that are missing"),
        ({"groups": [{"kind": "broken", "transitions": [-1]}]}, "changes that are missing"),
        ({"groups": [{"kind": "broken", "transitions": []}]}, "changes that are missing"),
        ({"axes": [{"platform": "cpu8", "points": []}]}, "expected `array` of length >= 2"),
        ({"groups": [{"kind": "bent", "transitions": [0]}]}, "invalid enum value 'bent'"),
    ],
)
def test_json_that_is_no_upgrade_is_refused(
    tmp_path: Path, more: dict[str, Any], said: str
) -> None:
    """One sentence, with the file and what to do."""
    with pytest.raises(CorruptUpgradeError, match="again to write it") as refused:
        decode_upgrade(edited(tmp_path, **more), "u.json")
    assert said in str(refused.value)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff"])
def test_content_that_is_no_json_is_refused(content: bytes) -> None:
    """The same."""
    with pytest.raises(CorruptUpgradeError, match="expected the JSON of an upgrade"):
        decode_upgrade(content, "u.json")


def test_unknown_fields_are_ignored(tmp_path: Path) -> None:
    """It is passed over."""
    assert decode_upgrade(edited(tmp_path, more=1), "u.json").to == "0.6.2"
