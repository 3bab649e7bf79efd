"""Names of golden files: safe, readable, different for different cases."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.golden.layout import (
    assign_file_names,
    compute_content_id,
    get_content_file,
    get_golden_folder,
    is_file_name,
    is_large,
    make_case_stem,
    make_variant_name,
)
from conformance.golden.spans import Span
from tests.builders import case

ids = st.from_regex(r"[a-z_]{1,9}(\[[^\n]{1,60}\])?", fullmatch=True).map("family/{}".format)


@pytest.mark.parametrize(
    ("case_id", "name"),
    [
        ("family/fixed_point", "fixed_point"),
        ("family/fixed_point[check=True,n=4]", "fixed_point@check=True,n=4"),
        ("family/f[a/b c]", "f@a%2Fb%20c"),
        ("family/f[..]", "f@.."),
    ],
)
def test_names_are_readable(case_id: str, name: str) -> None:
    """Function and parameters are in the name."""
    assert make_case_stem(case_id) == name


@given(ids)
def test_names_are_safe_on_any_file_system(case_id: str) -> None:
    """No separators, no spaces, no leading dot, and short enough."""
    name = make_case_stem(case_id)
    assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.~%@=,+-]*", name)
    assert len(name) <= 130


@given(ids, ids)
def test_different_cases_have_different_folders(one: str, other: str) -> None:
    """No two ids share a name."""
    assert (make_case_stem(one) == make_case_stem(other)) == (one == other)


def test_long_names_end_in_a_hash() -> None:
    """A file system's limit is not met, and two long ids keep apart."""
    one, other = (make_case_stem(f"family/f[{'é' * 60}{end}]") for end in "ab")
    assert one != other
    assert len(one) == len(other) == 129


def test_each_case_has_a_folder() -> None:
    """`<family>/golden/<topic>/<case>`."""
    assert get_golden_folder(Path("cases"), case()) == Path("cases/family/golden/topic/name")


def test_a_content_id_is_a_hash_of_the_bytes() -> None:
    """Equal bytes have equal ids; the StableHLO of every platform is one kind."""
    assert (
        compute_content_id("error", b"a")
        == compute_content_id("error", b"a")
        != compute_content_id("error", b"b")
    )
    assert compute_content_id("stablehlo-tpu", b"a") == compute_content_id("stablehlo", b"a")
    assert is_large(compute_content_id("value", b"a", large=True))
    assert not is_large(compute_content_id("value", b"a"))


def test_the_newest_content_has_the_plainest_name() -> None:
    """When a release changes the HLO, `hlo.txt` changes, and the older text gets a new file."""
    old = {"cpu": {"hlo": (Span("0.5.0", "0.6.0", "hlo-a"),)}}
    new = {"cpu": {"hlo": (Span("0.5.0", "0.6.0", "hlo-a"), Span("0.7.0", "0.7.0", "hlo-b"))}}
    assert assign_file_names(old, {}) == {"hlo-a": "hlo.txt"}
    assert assign_file_names(new, {}) == {"hlo-b": "hlo.txt", "hlo-a": "hlo.until-0.6.0.txt"}


def test_positions_of_endings_are_counted_by_artifact() -> None:
    """The newest value has the plain name although the newest ending is an error."""
    spans = (
        Span("0.4.0", "0.4.0", "value-a"),
        Span("0.5.0", "0.5.0", "value-b"),
        Span("0.6.0", "0.6.0", "error-a"),
        Span("0.7.0", "0.7.0", "ok"),
    )
    assert assign_file_names({"cpu": {"ending": spans}}, {}) == {
        "value-a": "value.until-0.4.0.txt",
        "value-b": "value.txt",
        "error-a": "error.txt",
    }


def test_platforms_share_the_files_of_equal_contents() -> None:
    """A content that only one platform has is named after it."""
    variants: dict[str, dict[str, tuple[Span[str], ...]]] = {
        "cpu": {"hlo": (Span("0.5.0", "0.5.0", "hlo-a"),)},
        "tpu:v5e:2x2": {
            "hlo": (Span("0.5.0", "0.5.0", "hlo-a"), Span("0.6.0", "0.6.0", "hlo-b")),
            "hlo-exact": (Span("0.5.0", "0.6.0", "1:abc"),),
            "stablehlo-cuda": (Span("0.5.0", "0.5.0", "stablehlo"),),
        },
    }
    assert assign_file_names(variants, {}) == {
        "hlo-a": "hlo.txt",
        "hlo-b": "hlo.tpu.v5e.2x2.txt",
    }


def test_a_large_value_is_shared_by_the_topic() -> None:
    """Its name is its hash."""
    large = compute_content_id("value", b"a", large=True)
    variants = {"cpu": {"ending": (Span("0.5.0", "0.5.0", large),)}}
    (name,) = assign_file_names(variants, {}).values()
    folder = Path("cases/family/golden/topic")
    assert get_content_file(folder / "name", name) == folder / "@large" / large


def test_a_taken_name_is_not_assigned_again() -> None:
    """A damaged file keeps its name, for the error that it causes."""
    variants = {"cpu": {"hlo": (Span("0.5.0", "0.5.0", "hlo-a"), Span("0.6.0", "0.6.0", "hlo-b"))}}
    found = assign_file_names(variants, {"hlo-a": "hlo.txt"})
    assert found == {"hlo-a": "hlo.txt", "hlo-b": "hlo~.txt"}
    assert all(is_file_name(name) for name in found.values())


@pytest.mark.parametrize("name", ["../value.txt", "notes.txt", "value.txt.new", "a/value.txt", ""])
def test_other_names_are_no_content_files(name: str) -> None:
    """A document names files of its own folder, and cleaning up touches no others."""
    assert not is_file_name(name)


def test_variants_do_not_clash_with_the_plain_cell() -> None:
    """The order of labels is irrelevant."""
    assert make_variant_name("cpu") == "cpu"
    assert (
        make_variant_name("cpu", ["x64", "a=1"])
        == make_variant_name("cpu", ["a=1", "x64"])
        == "cpu a=1 x64"
    )
