"""Badges for a README: the share of jobs that conform, by family, by release, and of all."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from conformance.ecosystem.outcome import LibraryOutcome
from conformance.model.outcome import Conformance
from conformance.report.site.addresses import badge_file
from conformance.report.site.rendering import render
from conformance.report.text import flatten

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from conformance.model.record import Record
    from conformance.report.ecosystem.summary import EcosystemSummary
    from conformance.report.report import Report

ALL: Final = "all"
LABEL: Final = "jax-conformance"
LONGEST: Final = 60
"""Characters of a label."""
LABEL_COLOUR: Final = "#4a4f57"
GOOD: Final = "#1a7033"
DECLARED: Final = "#7a5300"
BAD: Final = "#b3261e"
UNKNOWN: Final = "#5a6068"
_PADDING: Final = 12
"""Pixels around a text, both sides together."""
_WIDTHS: Final = {
    **dict.fromkeys("ijl|!'.,:;I ", 4.0),
    **dict.fromkeys('frt()[]{}/\\-"`', 4.9),
    **dict.fromkeys("abcdeghknopqsuvxyzJL_?$*^", 6.8),
    **dict.fromkeys("0123456789+=<>~#", 7.6),
    **dict.fromkeys("ABCDEFGHKNOPQRSTUVXYZ&", 8.1),
    **dict.fromkeys("mwMW@%", 10.8),
}
"""Width of characters at 11 px in pixels, rounded up.

An SVG cannot measure its text, and fonts differ between hosts.
"""
_WIDEST: Final = 11.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Badge:
    """A label and a message on a colour.

    Attributes:
        label: Subject, on the left.
        message: Result, on the right.
        colour: Background of the message, whose text is white.
    """

    label: str
    message: str
    colour: str

    @property
    def widths(self) -> tuple[int, int]:
        """Widths of the texts of label and message, in pixels."""
        return measure_width(self.label), measure_width(self.message)


def render_badges(report: Report) -> Iterator[tuple[str, bytes]]:
    """Yield the badges of all families, all releases, and of everything.

    Args:
        report: The runs to report.

    Yields:
        Path below the site's root, and content.
    """
    yield _render_file(ALL, make_badge(LABEL, report.records))
    release = {cell.id: cell.release for track in report.tracks for cell in track.cells}
    families: dict[str, list[Record]] = defaultdict(list)
    releases: dict[str, list[Record]] = defaultdict(list)
    for record in report.records:
        families[record.case.partition("/")[0]].append(record)
        # A cell of an unknown release counts in the other badges.
        if release.get(record.cell):
            releases[release[record.cell]].append(record)
    for name, records in families.items():
        # A family may be named `all`, which is the name of the badge of all jobs.
        yield _render_file(f"{name}-family" if name == ALL else name, make_badge(name, records))
    for name, records in releases.items():
        yield _render_file(f"jax-{name}", make_badge(f"jax {name}", records))


def make_badge(label: str, records: Sequence[Record]) -> Badge:
    """Return the badge of jobs: the share that conforms, and the number of unexpected jobs.

    Jobs without a reference or claim count only as unexpected.

    Args:
        label: Name of the jobs.
        records: The jobs.
    """
    conforming = sum(record.conformance is Conformance.CONFORMS for record in records)
    known = sum(record.conformance is not Conformance.UNKNOWN for record in records)
    surprises = sum(record.unexpected for record in records)
    message = f"{conforming:,} of {known:,} conform" if known else "no reference"
    if surprises:
        message = f"{message}, {surprises:,} unexpected"
    return Badge(
        label=flatten(label)[:LONGEST],
        message=message,
        colour=_choose_colour(conforming, known, surprises),
    )


def _choose_colour(conforming: int, known: int, surprises: int) -> str:
    if surprises:
        return BAD
    if not known:
        return UNKNOWN
    # Nothing is unexpected, so jobs that do not conform are declared deviations.
    return GOOD if conforming == known else DECLARED


def measure_width(text: str) -> int:
    """Return an upper bound for the width of a text at 11 px, in pixels."""
    return round(sum(_WIDTHS.get(character, _WIDEST) for character in text))


def _render_file(name: str, badge: Badge) -> tuple[str, bytes]:
    return render_badge(badge_file(name), badge)


def render_badge(path: str, badge: Badge) -> tuple[str, bytes]:
    """Return the file of a badge.

    Args:
        path: Path of the file below the site's root.
        badge: The badge.
    """
    left, right = (width + _PADDING for width in badge.widths)
    data = {"badge": badge, "left": left, "right": right, "label_colour": LABEL_COLOUR}
    return path, render("badge.svg", path, data)


COLOURS: Final = {
    LibraryOutcome.OK: GOOD,
    LibraryOutcome.TESTS_FAIL: BAD,
    LibraryOutcome.IMPORT_FAILS: BAD,
    LibraryOutcome.NOT_INSTALLABLE: DECLARED,
}
"""Colours of outcomes of libraries; that of others says that nothing is known."""


def render_library_badges(summary: EcosystemSummary) -> Iterator[tuple[str, bytes]]:
    """Yield a badge for each library: its outcome on the newest release of JAX.

    Args:
        summary: The outcomes.

    Yields:
        Path below the site's root, and content.
    """
    for name in summary.names:
        record = summary.find_newest(name)
        if record is not None:
            badge = Badge(
                label=name, message=f"jax {record.jax}: {record.summary}",
                colour=COLOURS.get(record.outcome, UNKNOWN),
            )  # fmt: skip
            yield render_badge(badge_file(f"library-{name}"), badge)
