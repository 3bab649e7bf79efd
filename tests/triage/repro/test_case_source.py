"""The source code of a case, read from its file."""

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
    """Return the source code of the case `case` of a file."""
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


def test_source_has_only_used_statements_in_order() -> None:
    """Helpers come first; the text is unchanged except for the decorator."""
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
def test_used_attributes_of_env_are_found(body: str, uses: set[str]) -> None:
    """Also by other names of `env`; an unknown use counts as all."""
    inner = "def inner(place):\n    return place.rng(0)\n\n\n"
    assert read(f"{inner}@probe()\ndef case(env):\n    {body}\n").env == uses


def test_base_class_is_extracted() -> None:
    """And decorators that are not of the kit."""
    text = (
        "class Base:\n    pass\n\n\n@math.cached\nclass Inner(Base):\n    pass\n\n\n"
        "@probe()\ndef case(env):\n    return Inner()\n"
    )
    base, inner, _ = read(text).definitions
    assert base.startswith("class Base")
    assert inner.startswith("@math.cached\nclass Inner(Base)")


@pytest.mark.parametrize(
    ("body", "expected_text"),
    [
        ("return missing(1)", "topic.py:12: missing cannot be found by reading topic.py"),
        ("return open(__file__)", "topic.py:12: uses __file__, but a reproduction is"),
    ],
)
def test_unresolved_name_is_refused(body: str, expected_text: str) -> None:
    """The message has the line."""
    with pytest.raises(NotStaticError, match=expected_text):
        read(f"@probe()\ndef case(env):\n    {body}\n", head=HEAD.removesuffix("\n"))


@pytest.mark.parametrize(
    ("line", "expected_text"),
    [
        ("from conformance.kit.env import thing", "conformance.kit.env.thing has no stand-in"),
        ("from conformance.kit import raises as thing", "has no stand-in outside the harness"),
        ("from ..far import thing", "thing cannot be resolved; import helpers"),
        ("from . import thing", "thing cannot be resolved; import helpers"),
        ("from ._helpers import thing", "thing cannot be found by reading _helpers.py"),
    ],
)
def test_unresolvable_import_is_refused(line: str, expected_text: str) -> None:
    """The message shows a valid import."""
    with pytest.raises(NotStaticError, match=expected_text):
        read("@probe()\ndef case(env):\n    return thing\n", head=f"{line}\n\n\n")


def test_functions_of_the_kit_are_extracted() -> None:
    """They need nothing of the kit themselves."""
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


def test_name_of_two_files_is_refused() -> None:
    """The reproduction is one file."""
    text = "SCALE = 5\n\n\n@probe()\ndef case(env):\n    return scaled(env, SCALE)\n"
    with pytest.raises(NotStaticError, match="both define SCALE"):
        read(text)


def test_metadata_is_left_out() -> None:
    """Defaults of the file and named deviations, like the decorator."""
    head = HEAD.replace("import Observed", "import defaults, Observed")
    named = 'defaults(devices=2)\nOLD = deviation("jax<1")\n\n\n'
    case = CASE.replace('[deviation("jax<1")]', "[OLD]")
    assert read(named + case, head=head) == read(CASE)
