"""Ranges of releases: the specifier of a deviation, and spans for reports. Pure."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Final

from packaging.version import Version

from conformance.golden.spans import parse_version
from conformance.model.ranges import in_range

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

_DOTS: Final = ".."


def find_tightest_range(
    seen: Collection[str], unseen: Collection[str], known: Iterable[str]
) -> str:
    """Return the tightest specifier that covers some releases and none of others.

    A bound without a release beyond it is omitted, so the behaviour of the newest release is also
    declared for future releases. Releases within the bounds that were not run are covered.

    Args:
        seen: Releases to cover, at least one; may include nightlies.
        unseen: Releases not to cover, unless they are in `seen`.
        known: Every published release.

    Returns:
        A PEP 440 specifier; empty for every release.
    """
    first, last = (one(seen, key=parse_version) for one in (min, max))
    without = {release for release in unseen if release not in seen}
    order = sorted({*known, *seen, *without}, key=parse_version)
    newer = [release for release in order if parse_version(release) > parse_version(last)]
    parts: list[str] = []
    if any(parse_version(release) < parse_version(first) for release in order):
        older = [r for r in without if parse_version(r) < parse_version(first)]
        parts.append(_make_bound(">=", first, seen, older))
    # The next release does not show the behaviour: the bound excludes it and all later releases.
    if newer and newer[0] in without:
        beyond = [r for r in without if parse_version(r) > parse_version(last)]
        parts.append(_make_bound("<", newer[0], seen, beyond))
    elif newer:
        parts.append(f"<={_format_public(last)}")
    # Exclusions last: a release between the bounds may already be outside, e.g. a nightly.
    within = (
        r
        for r in order
        if r in without and parse_version(first) < parse_version(r) < parse_version(last)
    )
    parts += [
        f"!={_format_public(release)}" for release in within if in_range(release, ",".join(parts))
    ]
    return ",".join(parts)


def _make_bound(sign: str, release: str, seen: Iterable[str], unseen: Iterable[str]) -> str:
    """Return a bound, at the release after a nightly if that separates all releases."""
    # A deviation since a nightly also holds for its release, whose bound is more readable.
    short = f"{sign}{_shorten_release(parse_version(release).base_version)}"
    is_exact = all(in_range(r, short) for r in seen) and not any(in_range(r, short) for r in unseen)
    return short if is_exact else f"{sign}{_format_public(release)}"


def _shorten_release(release: str) -> str:
    """Return `0.6.0` as `0.6`, which is the same bound."""
    return release.removesuffix(".0") if release.count(".") > 1 else release


def _format_public(release: str) -> str:
    return Version(release).public


def format_spans(releases: Collection[str], known: Iterable[str]) -> str:
    """Return releases as spans, joined where no known release between them is missing.

    Args:
        releases: The releases.
        known: Every release that a span may contain.

    Returns:
        E.g. `0.5.0..0.6.2, 0.7.0`.
    """
    order = sorted({*known, *releases}, key=parse_version)
    runs = [list(run) for among, run in groupby(order, lambda r: r in releases) if among]
    return ", ".join(run[0] if len(run) == 1 else f"{run[0]}{_DOTS}{run[-1]}" for run in runs)


def narrow_range(
    specifier: str, gone: Collection[str], seen: Collection[str], known: Iterable[str]
) -> str | None:
    """Return a specifier without the releases that no longer show a behaviour.

    A release that was not run is treated as the nearest older release that was; without one, it
    stays in the range.

    Args:
        specifier: The current range.
        gone: Releases that no longer show the declared behaviour.
        seen: Releases that still do.
        known: Every release there is.

    Returns:
        The narrower range; None if it has no release.
    """
    everything = sorted({*known, *gone, *seen}, key=parse_version)
    remaining: list[str] = []
    # Releases older than all runs keep their declaration, since nothing contradicts it.
    shows = True
    for release in everything:
        if release in gone or release in seen:
            shows = release in seen
        if shows and in_range(release, specifier):
            remaining.append(release)
    return (
        find_tightest_range(remaining, [r for r in everything if r not in remaining], everything)
        if remaining
        else None
    )
