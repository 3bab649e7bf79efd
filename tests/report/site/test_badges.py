"""Badges: what they say, in which colour, and that they are SVG."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from lxml import etree

from conformance.model.outcome import Conformance, Verdict
from conformance.report.site.badges import (
    BAD,
    DECLARED,
    GOOD,
    LABEL_COLOUR,
    UNKNOWN,
    make_badge,
    measure_width,
    render_badges,
)
from tests.builders import f32
from tests.report.runs import CELLS, Directory

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.model.record import Record

SVG = "{http://www.w3.org/2000/svg}"
KNOWN = {"verdict": Verdict.KNOWN, "conformance": Conformance.DEVIATES}
UNVOUCHED = {"conformance": Conformance.UNKNOWN}


def records(path: Path, **more: Any) -> list[Record]:
    """Return the record of a job that conforms, and of one that is otherwise."""
    return Directory(path).job("f/a", CELLS[0], f32(1)).job("f/b", CELLS[0], f32(1), **more).records


def luminance(colour: str) -> float:
    """Return the relative luminance of a colour, as WCAG defines it."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize("colour", [GOOD, DECLARED, BAD, UNKNOWN, LABEL_COLOUR])
def test_white_text_can_be_read(colour: str) -> None:
    """At 4.5 to 1 at least."""
    assert 1.05 / (luminance(colour) + 0.05) >= 4.5


@pytest.mark.parametrize(
    ("more", "message", "colour"),
    [
        ({}, "2 of 2 conform", GOOD),
        (KNOWN, "1 of 2 conform", DECLARED),
        (UNVOUCHED, "1 of 1 conform", GOOD),
        ({**KNOWN, "verdict": Verdict.REGRESSED}, "1 of 2 conform, 1 unexpected", BAD),
        ({**UNVOUCHED, "verdict": Verdict.NEW}, "1 of 1 conform, 1 unexpected", BAD),
    ],
)
def test_a_badge_says_how_much_conforms(
    tmp_path: Path, more: dict[str, Any], message: str, colour: str
) -> None:
    """Of what has a reference; what is unexpected is never left out."""
    made = make_badge("f", records(tmp_path, **more))
    assert (made.label, made.message, made.colour) == ("f", message, colour)


def test_jobs_without_a_reference_have_their_own_message(tmp_path: Path) -> None:
    """Neither good nor bad."""
    made = make_badge("f", records(tmp_path, **UNVOUCHED)[1:])
    assert (made.message, made.colour) == ("no reference", UNKNOWN)


def test_there_is_one_for_each_family_and_release_and_for_all(tmp_path: Path) -> None:
    """Their names are addresses that stay."""
    made = Directory(tmp_path)
    made.job("f/a", CELLS[0], f32(1)).job("g/a", CELLS[1], f32(1)).job("all/a", CELLS[1], f32(1))
    found = dict(render_badges(made.report()))
    assert set(found) == {
        "badges/all.svg", "badges/f.svg", "badges/g.svg", "badges/all-family.svg",
        "badges/jax-0.5.3.svg", "badges/jax-0.6.2.svg",
    }  # fmt: skip
    titles = {path: etree.fromstring(svg).findtext(f"{SVG}title") for path, svg in found.items()}
    assert titles["badges/all.svg"] == "jax-conformance: 3 of 3 conform"
    assert titles["badges/jax-0.6.2.svg"] == "jax 0.6.2: 2 of 2 conform"
    assert titles["badges/f.svg"] == "f: 1 of 1 conform"


def test_a_badge_is_as_wide_as_its_texts(tmp_path: Path) -> None:
    """It is an image with a name, its parts side by side."""
    svg = etree.fromstring(dict(render_badges(Directory(tmp_path).job("f/a", CELLS[0], f32(1)).report()))["badges/f.svg"])  # fmt: skip  # noqa: E501
    texts = list(svg.iter(f"{SVG}text"))
    lengths = [int(str(text.get("textLength"))) for text in texts]
    assert lengths == [measure_width("f"), measure_width("1 of 1 conform")]
    assert int(str(svg.get("width"))) == sum(lengths) + 24
    assert svg.get("role") == "img"
    assert svg.get("aria-label") == svg.findtext(f"{SVG}title")
    assert measure_width("shard_map_while") < 120


def test_hostile_names_are_shown_as_text(tmp_path: Path) -> None:
    """Markup, control codes, marks that reorder, and names without end."""
    family = '"><script>&\x00\u202e' + "x" * 10_000
    found = dict(render_badges(Directory(tmp_path).job(f"{family}/a", CELLS[0], f32(1)).report()))
    svgs = [etree.fromstring(svg) for svg in found.values()]
    assert all(element.tag != f"{SVG}script" for svg in svgs for element in svg.iter())
    titles = [str(svg.findtext(f"{SVG}title")) for svg in svgs]
    assert any(title.startswith('"><script>&␀<U+202E>x') for title in titles)
    assert all(len(title) < 100 for title in titles)
