"""Touches: the names and patterns of code that a line of the history is about."""

from __future__ import annotations

import pytest

from conformance.scan.touches import Touch, is_touched, list_followed, parse_touch
from conformance.scan.uses import NameUse, find_uses

FOLLOWED = frozenset({"jax.pmap", "jax.jit", "jax.linearize"})


def find_touched(touch: Touch, source: str) -> list[int]:
    """Return the lines of a module that a touch is about."""
    module = find_uses(
        f"import jax\n{source}", "own", is_package=False, packages=["jax"], results=FOLLOWED
    )
    return [
        use.line - 1 for use in module.uses if use.names == {touch.name} and is_touched(touch, use)
    ]


@pytest.mark.parametrize(
    "text",
    [
        "jax.numpy.clip",
        "jax.f(a, b)",
        "option:jax_a",
        "import jax.a",
        "jax.numpy.take(mode='clip')",
        "jax.f(no a)",
        "jax.f(*)",
        "jax.pmap()",
        "jax.pmap().lower",
        "jax.jit().lower().as_text(dialect='mhlo')",
        "jax.lax.while_loop in jax.shard_map",
        "jax.lax.all_gather(to) in jax.shard_map",
        "jax.grad outside jax.jit",
        "jax.linear_transpose of jax.linearize",
    ],
)
def test_touches_are_read_as_they_are_written(text: str) -> None:
    """The arguments in order."""
    assert str(parse_touch(text)) == text


@pytest.mark.parametrize("text", ["", "jax f", "jax.f(", "jax.f within jax.g", "jax.f in"])
def test_other_text_is_an_error(text: str) -> None:
    """It has the text, and examples."""
    with pytest.raises(ValueError, match="expected a dotted name"):
        parse_touch(text)


@pytest.mark.parametrize(
    ("text", "specific"),
    [
        ("jax.f", False),
        ("jax.f(a)", True),
        ("jax.f(*)", True),
        ("jax.f outside jax.g", False),
        ("jax.f()", True),
        ("jax.f in jax.g", True),
        ("option:jax_a", True),
        ("import jax.a", True),
    ],
)
def test_a_name_alone_is_not_specific(text: str, specific: bool) -> None:
    """All others are about some uses."""
    assert parse_touch(text).is_specific is specific


@pytest.mark.parametrize(
    ("text", "source", "lines"),
    [
        ("jax.f(a)", "jax.f(a=1)\njax.f(1)\njax.f(b=1)\njax.f(**a)", [1]),
        ("jax.f(no a)", "jax.f(a=1)\njax.f(1)\njax.f(**a)\njax.f(*a)", [2]),
        ("jax.f(*)", "jax.f()\njax.f(1)\njax.f", [1, 2]),
        ("jax.f(mode='clip')", "jax.f(mode='clip')\njax.f(mode='fill')\njax.f(mode=clip)", [1]),
        ("jax.pmap().lower", "jax.pmap(f).lower(x)\np = jax.pmap(f)\np.lower(x)\np(x)", [1, 3]),
        ("jax.pmap()", "p = jax.pmap(f)\np(x)\njax.pmap(f)(x)", [2, 3]),
        ("jax.jit().lower", "@jax.jit\ndef f(x): ...\nf.lower(x)\ndef g(x): ...\ng.lower(x)", [3]),
        (
            "jax.linear_transpose of jax.linearize",
            "y, f = jax.linearize(g, x)\njax.linear_transpose(f, x)\njax.linear_transpose(g, x)",
            [2],
        ),
        (
            "jax.while_loop in jax.map",
            "jax.map(lambda x: jax.while_loop(x))\njax.while_loop(y)",
            [1],
        ),
        ("jax.a in jax.b", "def f():\n  jax.a()\ndef g():\n  jax.a()\njax.b(f)", [2]),
        ("jax.a in jax.b", "@jax.b\ndef f():\n  jax.a()", [3]),
        ("jax.a in jax.b", "@jax.b(x=1)\ndef f():\n  jax.a()", [3]),
        (
            "jax.a in jax.b",
            "from functools import partial\n@partial(jax.b, x=1)\ndef f():\n  jax.a()",
            [4],
        ),
        ("jax.a in jax.b", "def f():\n  jax.a()\ndef g():\n  f()\njax.b(g)", [2]),
        ("jax.a in jax.b", "@jax.b\ndef f():\n  def g():\n    jax.a()\n  return g()", [4]),
        (
            "jax.a in jax.b",
            "class C:\n  def f(self):\n    jax.a()\n  def g(self):\n    jax.b(self.f)",
            [3],
        ),
        ("jax.a outside jax.b", "def f():\n  jax.a()\njax.b(f)\njax.a()", [4]),
    ],
)
def test_uses_are_touched(text: str, source: str, lines: list[int]) -> None:
    """By arguments, by results that are followed, and by the function around them."""
    assert find_touched(parse_touch(text), source) == lines


def test_other_names_of_a_function_around_count() -> None:
    """`shard_map` was in `jax.experimental`."""
    around = frozenset({"jax.experimental.shard_map.shard_map"})
    use = NameUse(names=frozenset({"jax.f"}), line=1, column=1, within=around)
    assert is_touched(parse_touch("jax.f in jax.shard_map"), use)


def test_a_boolean_is_a_value() -> None:
    """`copy=True` is another call than `copy=False`."""
    uses = find_uses(
        "import jax\njax.f(copy=False)\njax.f(copy=True)\njax.f(copy='False')\njax.f(copy=c)",
        "own", is_package=False, packages=["jax"],
    ).uses[1:]  # fmt: skip
    touch = parse_touch("jax.f(copy=False)")
    assert [is_touched(touch, use) for use in uses] == [True, False, False, False]


def test_texts_count_by_position() -> None:
    """The signature names the parameter."""
    (use,) = find_uses("import jax\njax.f(x, 'r')", "own", is_package=False, packages=["jax"]).uses[
        1:
    ]
    assert is_touched(parse_touch("jax.f(mode='r')"), use, ["a", "mode"])
    assert not is_touched(parse_touch("jax.f(mode='r')"), use, ["mode", "a"])


def test_an_argument_by_position_is_passed() -> None:
    """The signature names its parameter."""
    (use,) = find_uses("import jax\njax.f(x)", "own", is_package=False, packages=["jax"]).uses[1:]
    assert is_touched(parse_touch("jax.f(no b)"), use, ["a", "b"])
    assert not is_touched(parse_touch("jax.f(no a)"), use, ["a", "b"])


def test_results_of_touches_are_followed() -> None:
    """Those that they name, and those of which they are attributes."""
    texts = ["jax.f", "jax.pmap().lower", "jax.linear_transpose of jax.linearize"]
    assert list_followed(map(parse_touch, texts)) == {"jax.pmap", "jax.linearize"}
