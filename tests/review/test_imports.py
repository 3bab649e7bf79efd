"""One name more, or less, of those that a case file imports."""

from __future__ import annotations

import pytest

from conformance.review.imports import importing, not_importing

KIT = "from conformance.kit import "
REST = "\n\n@probe()\ndef case(env): ...\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (f"{KIT}Program, probe\n", f"{KIT}Program, deviation, probe\n"),
        (f"{KIT}(\n    Program,\n    probe,\n)\n",
         f"{KIT}(\n    Program,\n    deviation,\n    probe,\n)\n"),
        (f"{KIT}Observed, Program, probe as p\n",
         f"{KIT}(\n    Observed,\n    Program,\n    deviation,\n    probe as p,\n)\n"),
        (f"{KIT}(\n    probe,  # a mark\n)\n",
         f"{KIT}(\n    probe,  # a mark\n)\n{KIT}deviation\n"),
        ('"""Doc."""\n\nimport numpy\n', f'"""Doc."""\n\n{KIT}deviation\nimport numpy\n'),
    ],
)  # fmt: skip
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_name_more(before: str, after: str, newline: str) -> None:
    """In its order; on a line where there is room; a comment stays where it is."""
    text = (before + REST).replace("\n", newline)
    wanted = (after + REST).replace("\n", newline)
    found = importing(text, "deviation", 60)
    assert found == wanted
    assert importing(found, "deviation", 60) == found


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (f"{KIT}Program, deviation, probe\n", f"{KIT}Program, probe\n"),
        (f"{KIT}deviation\n", ""),
        (f"{KIT}deviation, probe\nx = deviation\n", f"{KIT}deviation, probe\nx = deviation\n"),
    ],
)
def test_a_name_less(before: str, after: str) -> None:
    """Unless it is used."""
    assert not_importing(before + REST, "deviation", 88) == after + REST
