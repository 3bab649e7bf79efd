"""Edits of scripts: everything else is unchanged."""

from __future__ import annotations

import ast

import pytest

from conformance.triage.new.script_source import (
    ScriptSource,
    render_function,
    resolve_callee,
    resolve_path,
)

TEXT = """\
# head
import jax

# why
x = f(  1 )  # how
if x:
    # inside
    y = '''a
  b'''

    z = (y,
         2)
# end
print(x)
"""


def replaced(number: int, text: str) -> str:
    """Return the text with another statement in the place of one outside of blocks."""
    source = ScriptSource.parse(TEXT)
    return source.replace({source.tree.body[number]: text}).text


def test_parsed_script_is_unchanged() -> None:
    """Also if statements span lines."""
    assert ScriptSource.parse(TEXT).text == TEXT


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = 1; b = 2  # both\n", "a = 1\nb = 2  # both\n"),
        ("if a: b; c\n", "if a:\n    b\n    c\n"),
    ],
)
def test_statements_of_a_line_are_separated(text: str, expected: str) -> None:
    """Each can be replaced by several statements."""
    assert ScriptSource.parse(text).text == expected


def test_replacing_a_statement_keeps_its_comments() -> None:
    """Those above it and after it, and those above a removed statement."""
    assert "# why\na()\nb()  # how\nif x:" in replaced(1, "a()\nb()")
    assert "\n# why\nif x:" in replaced(1, "")
    assert replaced(0, "").startswith("# head\n\n# why\nx = ")


def test_block_is_moved_out_of_its_statement() -> None:
    """With its comments and strings."""
    source = ScriptSource.parse(TEXT)
    block = source.tree.body[2]
    assert isinstance(block, ast.If)
    moved = source.render(block.body)
    assert moved == "# inside\ny = '''a\n  b'''\n\nz = (y,\n     2)\n"
    assert f"(  1 )  # how\n{moved}# end\n" in source.replace({block: moved}).text


def test_inserted_statements_follow_the_comments() -> None:
    """The comments are above the statement after them."""
    source = ScriptSource.parse(TEXT)
    assert "# why\na()\nx = f(" in source.insert(source.tree.body[1], "a()").text


def test_body_of_a_function_is_indented() -> None:
    """Except lines of strings, and empty lines."""
    text = render_function('def f():\n    """Say."""\n', "x = '''a\nb'''\n\n# last\nreturn x\n")
    assert (
        text == "def f():\n    \"\"\"Say.\"\"\"\n    x = '''a\nb'''\n\n    # last\n    return x\n"
    )


@pytest.mark.parametrize(
    ("code", "path"),
    [("jnp.ones", "jax.numpy.ones"), ("jnp.ones(3)", ""), ("1 + 1", "")],
)
def test_names_are_resolved_by_imports(code: str, path: str) -> None:
    """To the dotted path of an expression."""
    names = ScriptSource.parse("import jax.numpy as jnp\n").names
    node = ast.parse(code, mode="eval").body
    assert resolve_path(node, names) == path
    called = path or "jax.numpy.ones" * ("ones" in code)
    assert resolve_callee(node, names) == ("" if path else called)


def test_spans_are_edited() -> None:
    """At offsets in UTF-8; of nested spans the outer one counts, and insertions come first."""
    source = ScriptSource("é = f(g(x), y)\n")
    call = source.tree.body[0].value  # type: ignore[attr-defined]
    inner, argument = call.args
    start, end = source.find_span(inner)
    edits = [
        (*source.find_span(inner.args[0]), "lost"),
        (start, end, "h()"),
        (start, start, "*"),
        (*source.find_span(argument), "ü"),
    ]
    assert source.edit(edits).text == "é = f(*h(), ü)\n"
    assert source.segment(inner) == "g(x)"
