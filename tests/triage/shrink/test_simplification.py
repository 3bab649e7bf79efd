"""Conditions and names that are known without running the code."""

from __future__ import annotations

import ast

import pytest

from conformance.triage.shrink.simplification import simplify

FOLDED = {
    "a condition": ("kind = 'a'\nif kind == 'a':\n    run(1)\nelse:\n    run(2)", "run(1)"),
    "a membership": ("if 3 not in (1, 2):\n    run(1)", "run(1)"),
    "a choice": ("run(1 if None is None and not False else 2)", "run(1)"),
    "a table": ("kind = 'b'\nrun({'a': f, 'b': g}[kind])", "run(g)"),
    "a tuple": ("run((f, g)[1])", "run(g)"),
    "an attribute": ("run(getattr(f, 'name'))", "run(f.name)"),
    "arguments": ("run(*(f, g))", "run(f, g)"),
    "a call of a function without a name": ("run((lambda: f)())", "run(f)"),
    "a formatted text": ("run(f'{1} of {\"a\"}')", "run('1 of a')"),
    "another name": ("x = f\nrun(x)", "run(f)"),
    "a name that is bound twice": ("x = 1\nx = 2\nrun(x)", "x = 1\nx = 2\nrun(x)"),
    "a name that a function binds": (
        "x = 1\nrun(lambda x: x, lambda y: x + y)",
        "x = 1\nrun(lambda x: x, lambda y: 1 + y)",
    ),
}


@pytest.mark.parametrize(("before", "after"), FOLDED.values(), ids=FOLDED)
def test_known_conditions_and_names_are_folded(before: str, after: str) -> None:
    """Then unused names are removed."""
    head = "from m import f, g, run\n"
    used = {node.id for node in ast.walk(ast.parse(after)) if isinstance(node, ast.Name)}
    imported = f"from m import {', '.join(sorted(used & {'f', 'g', 'run'}))}"
    assert ast.unparse(simplify(ast.parse(head + before), "case")) == f"{imported}\n{after}"
