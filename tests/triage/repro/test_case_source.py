"""What a case is made of, read from its file."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.triage.repro.case_source import (
    EVERYTHING,
    CaseSource,
    NotStaticError,
    extract_source,
)

HEAD = """\
import math
import re

import jax.numpy as jnp
from conformance.kit import Observed, Program, deviation, probe, program
from ._helpers import scaled

FACTOR = 2  # why it is two


"""
HELPERS = """\
import numpy as np

SCALE = 3


def unused():
    return SCALE


def scaled(env, x):
    # a comment that stays
    return SCALE * np.asarray(x)
"""


def read(case: str, helpers: str = HELPERS, head: str = HEAD) -> CaseSource:
    """Return what the case `case` of a file is made of."""
    texts = {"topic.py": head + case, "_helpers.py": helpers}
    return extract_source(Path("family/topic.py"), "case", lambda file: texts[file.name])


CASE = """\
def other(env):
    return env.rng(0)


@program(devices=2, deviations=[deviation("jax<1")])
def case(env, size):
    # also a comment
    return Program(lambda x: FACTOR * jnp.sin(x), args=(scaled(env, env.devices),))
"""


def test_only_what_is_used_comes_in_the_order_it_stands() -> None:
    """Helpers first; text as written, without the decorator."""
    source = read(CASE)
    assert sorted(source.imports) == ["import jax.numpy as jnp", "import numpy as np"]
    scale, scaled, factor, case = source.definitions
    assert (scale, factor) == ("SCALE = 3", "FACTOR = 2  # why it is two")
    assert "    # a comment that stays" in scaled
    assert case.startswith("def case(env, size):\n    # also a comment")
    assert source.kit == {"Program"}
    assert source.env == {"devices"}
    assert source.modules == {"jax", "numpy"}


@pytest.mark.parametrize(
    ("body", "uses"),
    [
        ("env.compat.pvary(1, 'x'); env.mesh(2, 'x')", {"compat.pvary", "mesh"}),
        ("inner(env)", {"rng"}),
        ("inner(place=env)", {"rng"}),
        ("getattr(env, 'rng')", {EVERYTHING}),
        ("compat = env.compat", {EVERYTHING}),
    ],
)
def test_the_surroundings_that_are_used_are_known(body: str, uses: set[str]) -> None:
    """Under other names too; where it cannot be told, all of them."""
    inner = "def inner(place):\n    return place.rng(0)\n\n\n"
    assert read(f"{inner}@probe()\ndef case(env):\n    {body}\n").env == uses


def test_a_class_with_a_base_of_the_file_comes_with_it() -> None:
    """And with decorators that are not the kit's."""
    text = (
        "class Base:\n    pass\n\n\n@math.cached\nclass Inner(Base):\n    pass\n\n\n"
        "@probe()\ndef case(env):\n    return Inner()\n"
    )
    base, inner, _ = read(text).definitions
    assert base.startswith("class Base")
    assert inner.startswith("@math.cached\nclass Inner(Base)")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("return missing(1)", "topic.py:12: missing cannot be found by reading topic.py"),
        ("return open(__file__)", "topic.py:12: uses __file__, but a reproduction is"),
    ],
)
def test_what_cannot_be_found_is_named(body: str, said: str) -> None:
    """With the line."""
    with pytest.raises(NotStaticError, match=said):
        read(f"@probe()\ndef case(env):\n    {body}\n", head=HEAD.removesuffix("\n"))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("from conformance.kit.env import thing", "conformance.kit.env.thing has no stand-in"),
        ("from conformance.kit import raises as thing", "has no stand-in outside the harness"),
        ("from ..far import thing", "thing cannot be resolved; import helpers"),
        ("from . import thing", "thing cannot be resolved; import helpers"),
        ("from ._helpers import thing", "thing cannot be found by reading _helpers.py"),
    ],
)
def test_imports_that_cannot_be_followed_are_refused(line: str, said: str) -> None:
    """Saying what would be."""
    with pytest.raises(NotStaticError, match=said):
        read("@probe()\ndef case(env):\n    return thing\n", head=f"{line}\n\n\n")


def test_functions_of_the_kit_for_cases_come_with_the_case() -> None:
    """They need nothing of the kit themselves, so a file of its own has them as written."""
    text = "@probe()\ndef case(env):\n    return refusal(lambda: 1 / 0), counts(f, (), 'sin')\n"
    head = (
        "from conformance.kit.endings import refusal\n"
        "from conformance.kit.equations import counts\n"
        "f = None\n"
    )
    source = extract_source(
        Path("family/topic.py"),
        "case",
        lambda file: head + text if file.name == "topic.py" else file.read_text("utf-8"),
    )
    assert {"refusal", "counts", "equations"} <= source.bound
    assert "ending" not in source.bound
    assert (source.kit, "import jax" in source.imports) == (frozenset(), True)


def test_one_name_cannot_mean_two_things() -> None:
    """Two files become one."""
    text = "SCALE = 5\n\n\n@probe()\ndef case(env):\n    return scaled(env, SCALE)\n"
    with pytest.raises(NotStaticError, match="both define SCALE"):
        read(text)


def test_defaults_and_named_deviations_are_left_out() -> None:
    """They are metadata of the case, as its decorator is."""
    head = HEAD.replace("import Observed", "import defaults, Observed")
    named = 'defaults(devices=2)\nOLD = deviation("jax<1")\n\n\n'
    case = CASE.replace('[deviation("jax<1")]', "[OLD]")
    assert read(named + case, head=head) == read(CASE)
