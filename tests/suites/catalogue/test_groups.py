"""The groups of a suite's tests."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from conformance.errors import UsageError
from conformance.suites.catalogue.definition import OTHER, load_grouping, load_groups
from tests.projects import ROOT
from tests.suites.trials import write

if TYPE_CHECKING:
    from pathlib import Path

REAL = ROOT / "suites" / "array-api-tests"
CHECKOUT = os.environ.get("CONFORMANCE_ARRAY_API_TESTS", "")
RULES = r"""
[[tests]]
match = 'test_\w+\[(?P<function>\w+)'

[[tests]]
match = 'shapes\.py'
group = "shapes"

[functions]
maths = ["add", "sin"]
"""


def test_first_rule_with_a_group_counts(tmp_path: Path) -> None:
    """A rule that finds an unknown function is passed over."""
    write(tmp_path, {"groups.toml": RULES})
    group = load_grouping(tmp_path)
    assert group("t/test_signs.py::test_names[sin]") == "maths"
    assert group("t/test_shapes.py::test_names[reshape]") == "shapes"
    assert group("t/test_signs.py::test_names[strange]") == OTHER


def test_suite_without_groups(tmp_path: Path) -> None:
    """Its tests have no group."""
    assert load_groups(tmp_path) is None
    assert load_grouping(tmp_path)("test_a.py::test_b") == ""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tests = 3", "Expected `array`"),
        ("[[tests]]\nmatch = '('\ngroup = 'x'", "rule 1: expected a regular expression"),
        ("[[tests]]\nmatch = 'x'", "rule 1: expected a group, or a part"),
        ("[[tests]]\nmatch = 'x'\ngruop = 'y'", "unknown field `gruop`"),
    ],
)
def test_invalid_groups_name_the_file(tmp_path: Path, text: str, said: str) -> None:
    """And the rule."""
    write(tmp_path, {"groups.toml": text})
    with pytest.raises(UsageError, match=said) as raised:
        load_grouping(tmp_path)
    assert str(raised.value).startswith(str(tmp_path / "groups.toml"))


@pytest.mark.parametrize(
    ("test", "group"),
    [
        ("test_has_names.py::test_has_names[fft-ifft]", "fft"),
        ("test_has_names.py::test_has_names[array_attribute-T]", "array object"),
        ("test_has_names.py::test_has_names[creation-from_dlpack]", "dlpack"),
        ("test_signatures.py::test_func_signature[__array_namespace_info__]", "inspection"),
        ("test_signatures.py::test_func_signature[matmul]", "linear algebra"),
        ("test_signatures.py::test_extension_func_signature[linalg.trace]", "linear algebra"),
        ("test_signatures.py::test_array_method_signature[__add__]", "array object"),
        ("test_signatures.py::test_info_func_signature[devices]", "inspection"),
        ("test_special_cases.py::test_unary[abs(x_i is NaN) -> NaN]", "elementwise"),
        ("test_special_cases.py::test_iop[__iadd__(x1_i is NaN) -> NaN]", "array object"),
        ("test_special_cases.py::test_nan_propagation[std]", "statistical"),
        ("test_operators_and_elementwise_functions.py::test_add[add(x1, x2)]", "elementwise"),
        ("test_operators_and_elementwise_functions.py::test_add[__add__(x, s)]", "array object"),
        ("test_operators_and_elementwise_functions.py::test_where_with_scalars", "searching"),
        ("test_data_type_functions.py::test_broadcast_to", "manipulation"),
        ("test_data_type_functions.py::TestResultType::test_shuffled", "data types"),
        ("test_array_object.py::test_scalar_casting[__int__(int8)]", "array object"),
        ("test_dlpack.py::test_dunder_dlpack", "dlpack"),
    ],
)
def test_array_api_tests_have_the_group_of_their_function(test: str, group: str) -> None:
    """As in the chapters of the standard."""
    assert load_grouping(REAL)(f"array_api_tests/{test}") == group


@pytest.mark.skipif(not CHECKOUT, reason="needs a checkout of array-api-tests")
def test_array_api_functions_are_those_of_the_stubs() -> None:
    """The table is the output of the script for the checkout."""
    script = ROOT / ".ci" / "array_api_groups.py"
    made = subprocess.run(
        [sys.executable, script, CHECKOUT], check=True, capture_output=True, text=True
    )
    assert (REAL / "groups.toml").read_text("utf-8").endswith(made.stdout)
