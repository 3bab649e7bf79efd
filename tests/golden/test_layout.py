"""Names of golden files: safe, readable, different for different cases."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.golden.layout import (
    CONTENT_NAME,
    content_names,
    file_name,
    folder_of,
    variant_name,
)
from tests.builders import case

ids = st.from_regex(r"[a-z_]{1,9}(\[[^\n]{1,60}\])?", fullmatch=True).map("family/{}".format)


@pytest.mark.parametrize(
    ("case_id", "name"),
    [
        ("family/fixed_point", "fixed_point.toml"),
        ("family/fixed_point[check=True,n=4]", "fixed_point@check=True,n=4.toml"),
        ("family/f[a/b c]", "f@a%2Fb%20c.toml"),
        ("family/f[..]", "f@...toml"),
    ],
)
def test_names_are_readable(case_id: str, name: str) -> None:
    """Function and parameters stand in the name."""
    assert file_name(case_id) == name


@given(ids)
def test_names_are_safe_on_any_file_system(case_id: str) -> None:
    """No separators, no spaces, no leading dot, and short enough."""
    name = file_name(case_id)
    assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.~%@=,+-]*\.toml", name)
    assert len(name) <= 140


@given(ids, ids)
def test_different_cases_have_different_files(one: str, other: str) -> None:
    """No two ids share a name."""
    assert (file_name(one) == file_name(other)) == (one == other)


def test_long_names_end_in_a_hash() -> None:
    """A file system's limit is not met, and two long ids keep apart."""
    one, other = (file_name(f"family/f[{'é' * 60}{end}]") for end in "ab")
    assert one != other
    assert len(one) == len(other) == 134


def test_goldens_lie_beside_their_family() -> None:
    """`<family>/golden/<topic>`."""
    assert folder_of(Path("cases"), case()) == Path("cases/family/golden/topic")


def test_contents_are_named_after_their_bytes() -> None:
    """Same bytes same name, other bytes another."""
    assert CONTENT_NAME.fullmatch(content_names("value", b"a")[0])
    assert content_names("error", b"a")[0] == content_names("error", b"a")[0]
    assert content_names("error", b"a")[0] != content_names("error", b"b")[0]


def test_a_short_name_begins_the_long_one() -> None:
    """Earlier versions cut the same hash after 32 bits; such names are still valid."""
    name, short = content_names("value", b"a")
    assert CONTENT_NAME.fullmatch(short)
    assert name.startswith(short.removesuffix(".safetensors"))


def test_variants_do_not_clash_with_the_plain_cell() -> None:
    """The order of labels does not matter."""
    assert variant_name("cpu") == "cpu"
    assert (
        variant_name("cpu", ["x64", "a=1"]) == variant_name("cpu", ["a=1", "x64"]) == "cpu a=1 x64"
    )
