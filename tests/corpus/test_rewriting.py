"""Sources rewritten: imports, literals, items between brackets."""

from __future__ import annotations

import libcst as cst
import pytest

from conformance.corpus.rewriting import (
    BracketedItems,
    add_import,
    parse_source,
    remove_import,
)
from conformance.errors import UsageError

PACKAGE = "conformance.kit"
KIT = "from conformance.kit import "
REST = "\n\n@probe()\ndef case(env): ...\n"


def importing(text: str, width: int) -> str:
    """Return a source that also imports `deviation`."""
    return add_import(parse_source(text.encode(), "x"), PACKAGE, "deviation", width).code


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
def test_a_name_is_added_to_an_import(before: str, after: str, newline: str) -> None:
    """In order, on the same line if it fits; comments stay."""
    text = (before + REST).replace("\n", newline)
    wanted = (after + REST).replace("\n", newline)
    found = importing(text, 60)
    assert found == wanted
    assert importing(found, 60) == found


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (f"{KIT}Program, deviation, probe\n", f"{KIT}Program, probe\n"),
        (f"{KIT}deviation\n", ""),
        (f"{KIT}deviation, probe\nx = deviation\n", f"{KIT}deviation, probe\nx = deviation\n"),
    ],
)
def test_an_unused_name_is_removed_from_an_import(before: str, after: str) -> None:
    """A used name stays."""
    module = parse_source((before + REST).encode(), "x")
    assert remove_import(module, PACKAGE, "deviation", 88).code == after + REST


def test_comments_above_a_removed_import_stay() -> None:
    """Only its own line goes."""
    module = parse_source(f"import os\n\n# about\n{KIT}deviation\nimport sys\n".encode(), "x")
    left = remove_import(module, PACKAGE, "deviation", 88).code
    assert left == "import os\n\n# about\nimport sys\n"


@pytest.mark.parametrize(
    ("before", "number", "after"),
    [
        ("[a, b, c]", 0, "[b, c]"),
        ("[a, b, c]", 1, "[a, c]"),
        ("[a, b, c]", 2, "[a, b]"),
        ("(a, b)", 1, "(a,)"),
        ("f(a, b=1)", 1, "f(a)"),
        ("f(a)", 0, "f()"),
        ("[\n    # 1\n    a,  # 2\n    # 3\n    b,\n]", 0, "[\n    # 1\n    # 3\n    b,\n]"),
        ("[\n    a,  # 1\n    # 2\n    b,  # 3\n    # 4\n]", 1,
         "[\n    a,  # 1\n    # 2\n    # 4\n]"),
        ("f(\n    a,\n    b,\n)", 1, "f(\n    a,\n)"),
    ],
)  # fmt: skip
def test_an_item_is_removed_with_its_comment(before: str, number: int, after: str) -> None:
    """Other comments stay."""
    node = cst.parse_expression(before)
    assert isinstance(node, cst.Call | cst.List | cst.Tuple)
    items = BracketedItems(node)
    items.remove(number)
    assert cst.Module([]).code_for_node(items.build()) == after


@pytest.mark.parametrize(
    "data",
    ["x = 'é'\r\n".encode(), b"\xef\xbb\xbfx = 1\n", b"# coding: latin-1\n# \xe9\n"],
    ids=["line ends", "mark", "coding"],
)
def test_encoding_and_line_ends_are_preserved(data: bytes) -> None:
    """In its encoding, with its line ends."""
    assert parse_source(data, "topic.py").bytes == data


@pytest.mark.parametrize("data", [b"# \xff\n", b"probe(\n", b"(" * 5000, b"x\0"])
def test_an_unreadable_source_is_an_error(data: bytes) -> None:
    """The message has its name."""
    with pytest.raises(UsageError, match=r"topic\.py: cannot be read: line \d+: "):
        parse_source(data, "topic.py")
