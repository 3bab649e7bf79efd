"""A topic to start from."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from conformance.corpus.case_selection import select_cases
from conformance.corpus.case_template import render_template
from conformance.errors import UsageError
from tests.shipped import CASES, FAMILY_NAMES, load_shipped_cases

if TYPE_CHECKING:
    from pathlib import Path

TOPIC = '''\
"""A topic."""

from __future__ import annotations

import jax
import numpy as np

from conformance.kit import Observed, Program, probe, program

from ._helpers import label, other

SCALE = 2
UNUSED = 3


def scaled(x):
    """Return more."""
    return SCALE * x  # why


@program(devices=2)
def large(env):
    """A case."""
    one = np.ones(3)
    two = jax.numpy.ones(3)
    return Program(scaled, args=(one + two,))


@probe(source="o/r#1")
def small(env):
    """Another case."""
    return Observed(scaled(label(env)), 1)
'''


def test_a_template_is_the_smallest_case_with_its_helpers(tmp_path: Path) -> None:
    """As written, with comments; unused imports are left out."""
    (tmp_path / "family").mkdir()
    (tmp_path / "family" / "topic.py").write_text(TOPIC)
    text = render_template(select_cases((), tmp_path), "family")
    assert "Generated from family/small" in text
    assert text.endswith('''
from __future__ import annotations

from conformance.kit import Observed, probe

from ._helpers import label


SCALE = 2


def scaled(x):
    """Return more."""
    return SCALE * x  # why


@probe(source="o/r#1")
def small(env):
    """Another case."""
    return Observed(scaled(label(env)), 1)
''')


@pytest.mark.long(keep=10)
@pytest.mark.parametrize("family", FAMILY_NAMES)
def test_every_family_has_a_valid_template(tmp_path: Path, family: str) -> None:
    """It is discovered like other cases of the family."""
    (tmp_path / family).mkdir()
    for helpers in (CASES / family).glob("_*.py"):
        shutil.copy(helpers, tmp_path / family)
    (tmp_path / family / "fresh.py").write_text(
        render_template([*load_shipped_cases().values()], family)
    )
    found = select_cases((), tmp_path)
    assert {case.topic for case in found} == {"fresh"}
    assert len({case.name for case in found}) == 1


def test_an_unknown_family_is_an_error() -> None:
    """The message names the families."""
    with pytest.raises(UsageError, match=r"--template nope: .* expected one of .*nnx_vmap"):
        render_template([*load_shipped_cases().values()], "nope")
