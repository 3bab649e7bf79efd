"""The Atom feed, read back and held against RFC 4287."""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING

import pytest
from lxml import etree

from conformance.model.outcome import Verdict
from conformance.report.history import make_history
from conformance.report.site.addresses import FEED
from conformance.report.site.history_page import FEED_ENTRIES, render_feed
from tests.report.nights import FINE, A, B, night, nights, state

if TYPE_CHECKING:
    from conformance.engine.runs.digests import Digest

ATOM = "{http://www.w3.org/2005/Atom}"
RFC3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
BAD = state(Verdict.REGRESSED, "out 3 of 8 elements differ")


def atom(runs: list[Digest], base: str = "") -> etree._Element:
    """Return the feed of some runs."""
    ((path, content),) = render_feed(make_history(runs), base)
    assert path == FEED
    return etree.fromstring(content)


def texts(feed: etree._Element, name: str) -> list[str]:
    """Return what an element of every entry holds."""
    return [entry.findtext(f"{ATOM}{name}") or "" for entry in feed.iter(f"{ATOM}entry")]


def assert_valid(feed: etree._Element) -> None:
    """Hold a feed against what RFC 4287 requires of a feed and of its entries."""
    assert feed.tag == f"{ATOM}feed"
    entries = list(feed.iter(f"{ATOM}entry"))
    for element in (feed, *entries):
        for name in ("id", "title", "updated"):
            (found,) = element.findall(f"{ATOM}{name}")
            assert found.text
        identifier, updated = (element.findtext(f"{ATOM}{name}") for name in ("id", "updated"))
        assert re.fullmatch(r"(tag:[^\s,]+,\d{4}:|https?://)[!-~]+", str(identifier))
        assert RFC3339.fullmatch(str(updated))
        datetime.fromisoformat(str(updated))
        alternate = [
            link.get("href") for link in element.findall(f"{ATOM}link")
            if link.get("rel") == "alternate"
        ]  # fmt: skip
        assert len(alternate) == 1
        assert alternate[0]
    assert feed.find(f"{ATOM}author/{ATOM}name") is not None
    assert [link.get("rel") for link in feed.findall(f"{ATOM}link")].count("self") == 1
    assert len(set(texts(feed, "id"))) == len(entries)


def test_opened_fixed_and_reopened_regressions_have_entries() -> None:
    """The newest first, each at the time its run ended."""
    made = atom(nights(FINE, BAD, FINE, BAD))
    assert_valid(made)
    assert texts(made, "title") == [
        "reopened: f/a regressed on 1 cell",
        "fixed: f/a regressed on 1 cell",
        "opened: f/a regressed on 1 cell",
    ]
    assert texts(made, "updated")[0] == "2026-05-04T04:00:00Z" == made.findtext(f"{ATOM}updated")
    summary = texts(made, "summary")[2]
    assert summary == f"out 3 of 8 elements differ (seen in run-01: {A})"


def test_links_are_relative_or_below_the_address_given() -> None:
    """The ids of entries are the same in both."""
    runs = nights(BAD)
    relative, absolute = atom(runs), atom(runs, "https://example.org/jax")
    (link,) = relative.findall(f"{ATOM}entry/{ATOM}link")
    assert str(link.get("href")).startswith("history.html#r-")
    (link,) = absolute.findall(f"{ATOM}entry/{ATOM}link")
    assert str(link.get("href")).startswith("https://example.org/jax/history.html#r-")
    assert texts(relative, "id") == texts(absolute, "id")
    assert absolute.findtext(f"{ATOM}id") == "https://example.org/jax/feed.xml"
    assert_valid(absolute)


def test_entries_stay_as_they_are_when_runs_are_added() -> None:
    """A reader has seen them: neither their ids nor what they say may change."""
    runs = [
        night(0, {("f/a", A): BAD}),
        night(1, {("f/a", A): BAD, ("f/a", B): BAD}),
        night(2, {("f/a", A): FINE, ("f/a", B): FINE}),
        night(3, {("f/a", A): BAD}),
    ]
    for length in range(1, len(runs)):
        before = [etree.tostring(entry) for entry in atom(runs[:length]).iter(f"{ATOM}entry")]
        after = [etree.tostring(entry) for entry in atom(runs).iter(f"{ATOM}entry")]
        assert after[len(after) - len(before) :] == before


def test_only_the_newest_events_have_entries() -> None:
    """A feed is no archive."""
    runs = [
        night(n % 28, {("f/a", A): BAD if n % 2 else FINE}, run=f"{n:03d}", started=f"2026-{n // 28 + 1:02d}-{n % 28 + 1:02d}T00:00:00+00:00")  # noqa: E501
        for n in range(FEED_ENTRIES + 20)
    ]  # fmt: skip
    made = atom(runs)
    assert_valid(made)
    assert len(texts(made, "id")) == FEED_ENTRIES
    assert f"/{FEED_ENTRIES + 19:03d}" in texts(made, "id")[0]


@pytest.mark.parametrize("runs", [[], nights(FINE), nights(FINE, FINE)])
def test_a_feed_without_entries_is_valid(runs: list[Digest]) -> None:
    """No runs at all, or nothing unexpected in them."""
    made = atom(runs)
    assert_valid(made)
    assert texts(made, "id") == []


def test_times_that_are_none_do_not_break_it() -> None:
    """A run that did not end counts from when it began; one that says nothing is of old."""
    killed = atom([night(0, {("f/a", A): BAD}, finished="")])
    assert texts(killed, "updated") == ["2026-05-01T03:00:00Z"]
    silent = atom([night(0, {("f/a", A): BAD}, started="soon", finished="later")])
    assert_valid(silent)
    assert texts(silent, "updated") == ["1970-01-01T00:00:00Z"]
    early = atom([night(0, {("f/a", A): BAD}, finished="0001-01-02T00:00:00+00:00")])
    assert_valid(early)


def test_hostile_text_is_shown_as_text() -> None:
    """Markup, nulls, marks that reorder, a message of 10 MB; also in names."""
    evil = "<script>alert(1)</script>]]>&amp;\x00\x1b[31m\u202e\ud800 \ufffe"
    reason = state(Verdict.REGRESSED, evil + "x" * 10_000_000)
    case = 'f/"><script>[\x00\u202e]'
    made = atom([night(0, {(case, A): reason}, run="run \"<&>'\u202e")])
    assert_valid(made)
    (summary,) = texts(made, "summary")
    assert summary.startswith("<script>alert(1)</script>]]>&amp;␀␛[31m<U+202E><U+D800>")
    assert len(summary) < 30_000
    (title,) = texts(made, "title")
    assert title == 'opened: f/"><script>[␀<U+202E>] regressed on 1 cell'
