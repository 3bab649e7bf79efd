"""Edits give smaller Python, and the search ends."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance.triage.shrink.edits import apply_edits, measure_cost
from conformance.triage.shrink.search import REDUCTIONS, Search
from conformance.triage.shrink.syntax import find_undefined

if TYPE_CHECKING:
    from collections.abc import Sequence

CASE = """\
import jax
import numpy as np
from conformance.kit import Program, program

SIZES = (4, 8)

def helper(x, y, scale=2.0):
    total = x @ y
    return scale * total

def pair(c):
    a, b = c
    return (a + 1, b)

@program(devices=4, x64=True)
def case(env):
    kind = 'sum'
    mesh = env.mesh(4, 'x')
    with jax.numpy_rank_promotion('allow'):
        size = SIZES[0]
    if kind == 'sum':
        fold = {'sum': lambda x: x.sum(), 'max': lambda x: x.max()}[kind]
    else:
        fold = None

    def fn(x, y, unread):
        z = helper(x, y)
        for _ in range(3):
            z = pair((z, x))[0]
        return (fold(z), mesh.shape)
    return Program(fn, args=(env.rng(0).random(size), np.ones(4, np.float64), 1), reference=None)
"""
SNIPPETS = (
    "y = np.sin({0}) * 2.5",
    "def f{1}(a, b): return (a, {0})",
    "if x > {1}:\n    y = {0}\nelse:\n    y = [1, 2, {1}]",
    "with np.errstate(all='ignore'):\n    y = x[{1}:, None].sum(axis={1})",
    "y = (lambda a, b: (a + {0}, b))(x, {0})",
    "x, y = (y, {0})",
    "y = {{'a': {0}, 'b': x}}['a']",
    "for i in range({1}): y = y + i",
)


@st.composite
def texts(draw: st.DrawFn) -> str:
    """A function of several statements, each of which reads others."""
    parts = draw(st.lists(st.sampled_from(SNIPPETS), min_size=1, max_size=6))
    lines = ["import numpy as np", "def case(x):", "    y = x"]
    for part in parts:
        name, number = draw(st.sampled_from("xy")), draw(st.integers(0, 20))
        filled = part.format(name, number)
        lines += [f"    {line}" for line in filled.splitlines()]
    return "\n".join([*lines, "    return (x, y)"])


@settings(max_examples=40, deadline=None)
@given(texts())
def test_every_edit_gives_smaller_python(text: str) -> None:
    """Alone, and all edits of a reduction together; no name is left unbound."""
    for way in REDUCTIONS:
        found = way.find(text, "case")
        for group in [[one] for one in found] + ([found] if way.in_groups and found else []):
            cut = apply_edits(group)
            if cut is not None:
                assert measure_cost(cut) < measure_cost(text)
                assert not find_undefined(cut)
                assert "def case" in cut


@settings(max_examples=15, deadline=None)
@given(texts(), st.integers(0, 3))
def test_search_ends_where_no_edit_is_accepted(text: str, kept: int) -> None:
    """The kept behavior is never lost."""
    word = ("sin", "errstate", "lambda", "case")[kept]

    def shows(texts: Sequence[str]) -> int | None:
        return next((n for n, one in enumerate(texts) if (word in one) == (word in text)), None)

    search = Search(text=text, keep="case", probe=shows, width=2)
    assert search.run()
    assert (word in search.text) == (word in text)
    for way in REDUCTIONS:
        for one in way.find(search.text, "case"):
            cut = apply_edits([one])
            assert cut is None or shows([cut]) is None


@pytest.mark.parametrize(
    ("kept", "left"),
    [
        ((), "    def fn():\n        return ()\n    return Program(fn)"),
        (("@ y",), "total = x @ y"),
        (("env.mesh", "args=(np.ones"), "np.ones("),
    ],
)
def test_search_leaves_only_the_kept_code(kept: tuple[str, ...], left: str) -> None:
    """Helpers are inlined, constants replace their names."""

    def shows(texts: Sequence[str]) -> int | None:
        wanted = (*kept, "return Program(", "@program(", "def case(env)")
        return next((n for n, one in enumerate(texts) if all(w in one for w in wanted)), None)

    search = Search(text=CASE, keep="case", probe=shows)
    assert search.run()
    assert left in search.text, search.text
    assert measure_cost(search.text)[0] < measure_cost(CASE)[0] / 3


CUTS = {
    "statements before the call": (
        "helper functions",
        """
def f(a, b=2):
    c = a * b
    return c + 1
def case(x):
    c = f(x)
    return c""",
        """
    c_ = x * 2
    c = c_ + 1
    return c""",
    ),
    "an argument that is read twice": (
        "helper functions",
        """
def f(a):
    return a + a
def case(x):
    return f(x * 2)""",
        """
    a = x * 2
    return a + a""",
    ),
    "a parameter that is not read": (
        "parameters and results",
        """
def case(x):
    def f(a, b):
        return a
    return map(f, (1, 2), specs=(x, 3))""",
        """
    def f(a):
        return a
    return map(f, (1,), specs=(x,))""",
    ),
    "a part of what is carried": (
        "parameters and results",
        """
def case(x):
    def f(c):
        a, b = c
        return (a, b)
    return loop(f, (x, 1))[1]""",
        """
    def f(c):
        return c
    return loop(f, x)""",
    ),
    "a number everywhere": (
        "numbers",
        """
def case(x):
    return (x[8], mesh(8), 3)""",
        """
    return (x[1], mesh(1), 3)""",
    ),
    "random numbers": (
        "expressions",
        """
def case(x):
    return f(env.rng(1).random(8) * 2)""",
        """
    return f(np.ones(8))""",
    ),
    "a list that is made": (
        "expressions",
        """
def case(x):
    return f([(i, i + 1) for i in range(4)])""",
        """
    return f([(0, 0 + 1)])""",
    ),
    "a block": (
        "blocks",
        """
def case(x):
    with a():
        return x""",
        """
    return x""",
    ),
}


@pytest.mark.long(keep=2)
@pytest.mark.parametrize(("way", "before", "after"), CUTS.values(), ids=CUTS)
def test_reduction_gives_the_expected_edit(way: str, before: str, after: str) -> None:
    """Among its edits."""
    (chosen,) = (one for one in REDUCTIONS if one.name == way)
    free = {*find_undefined(before), "np", "f"} - ({"f"} if "def f" in before else set())
    text = ast.unparse(ast.parse(f"from m import {', '.join(sorted(free))}\n{before}"))
    cuts = {apply_edits([one]) for one in chosen.find(text, "case")}
    bodies = {cut.partition("def case(x):")[2] for cut in cuts if cut}
    expected = ast.unparse(ast.parse(f"def case(x):{after}")).partition("def case(x):")[2]
    assert expected in bodies, bodies
