"""Where pages are: stable, safe on any file system, and right in a link."""

from __future__ import annotations

from pathlib import PurePosixPath
from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.report.site.addresses import (
    badge_file,
    case_page,
    href,
    point_anchor,
    root_of,
    run_page,
    slug,
)

IDS = st.text(min_size=1).map("family/{}".format)


@pytest.mark.parametrize(
    ("case", "page"),
    [
        ("fam/name", "cases/fam/name.html"),
        ("fam/name[a-b]", "cases/fam/name@a-b.html"),
        ("fam/name[x/../y]", "cases/fam/name@x%2F..%2Fy.html"),
        ("a b/<script>", "cases/a+b/%3Cscript%3E.html"),
        ("fam/name[x y]", "cases/fam/name@x+y.html"),
        ("fam/name[x+y]", "cases/fam/name@x%2By.html"),
    ],
)
def test_a_case_has_a_page_of_its_own(case: str, page: str) -> None:
    """Below its family's folder; odd signs are spelled out."""
    assert case_page(case) == page


@given(IDS, IDS)
def test_pages_differ_when_ids_do(one: str, other: str) -> None:
    """No page overwrites another one."""
    assert (case_page(one) == case_page(other)) == (one == other)


@given(IDS)
def test_a_page_stays_within_the_site(case: str) -> None:
    """Whatever the id, its page is a file two folders deep."""
    path = PurePosixPath(case_page(case))
    assert len(path.parts) == 3
    assert ".." not in path.parts


@given(IDS)
def test_a_link_leads_to_the_page(case: str) -> None:
    """A browser takes the percent signs out once: what remains is the file's name."""
    link = href(case_page(case), "anchor", root="../../")
    assert unquote(urlsplit(link).path) == f"../../{case_page(case)}"
    assert urlsplit(link).fragment == "anchor"


def test_ways_to_the_root() -> None:
    """As many steps up as the page is deep."""
    assert root_of("index.html") == ""
    assert root_of(case_page("f/a")) == "../../"
    assert root_of(run_page("r")) == "../"


def test_anchors_say_track_and_release() -> None:
    """They can be read, and sent to somebody."""
    assert point_anchor("tpu:v5e:2x2", "0.6.0") == "tpu-v5e-2x2@0.6.0"
    assert slug("cpu8 x64") == "cpu8-x64"


def test_no_file_name_is_percent_encoded_twice_in_a_link() -> None:
    """A space is a plus sign, so no name holds `%20`."""
    assert badge_file("my cases") == "badges/my+cases.svg"
