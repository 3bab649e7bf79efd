"""Behaviour changes that families of cases declare in `changes.toml`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal

import msgspec
from packaging.version import Version

from conformance.errors import UsageError
from conformance.files import MALFORMED, describe_os_error
from conformance.model.upstream import find_thread_url

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

ShownBy = Literal[
    "outcome",
    "error",
    "value",
    "facts",
    "jaxpr",
    "stablehlo",
    "hlo",
    "jaxpr-exact",
    "stablehlo-exact",
    "hlo-exact",
]
"""The part of a golden that changes: the outcome of a case, its error, value or facts, or an IR."""


CULPRIT: Final = r"^(jax@[0-9a-f]{12}|jaxlib)?$"
SOURCE_WORDS: Final = {
    "changelog": "JAX's changelog",
    "jaxlib": "(the compiler or runtime in jaxlib)",
    "unknown": "(no upstream thread or commit is known)",
}
"""Descriptions of the sources that are not an upstream thread or commit."""


class BehaviourChange(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A change of JAX's behaviour.

    Attributes:
        release: The release that introduced it according to upstream.
        summary: The change in a sentence or two, from the point of view of a user.
        source: Upstream thread `owner/repo#N`, commit `owner/repo@<hash>`, address, or a
            key of `SOURCE_WORDS`.
        case: Id of the case that shows it, or ids of several.
        shown_by: The part of their goldens that changes in that release.
        platform: Platform on which it changes, e.g. `cuda:h100:1x1x4`; empty for the first of the
            case, which is the CPU for most.
        advice: Code that works before and after the change, or empty.
        observed_in: The release in which the goldens change, if it is not `release`.
        why: The reason for the difference between the two.
        culprit: The commit of jax that made the change, `jax@<hash>`, or `jaxlib`, found by running
            the first case; empty if it was not searched for, or not found.
        layer: The layer that made the change, found by repeating its computations, or empty.
        touches: Names of code that the change is about, e.g. `jax.numpy.clip(a_min, a_max)` for
            calls with one of these keywords; empty for those that the summary quotes.
    """

    release: str
    summary: str
    source: str
    case: str | tuple[str, ...]
    shown_by: ShownBy
    platform: str = ""
    advice: str = ""
    observed_in: str = ""
    why: str = ""
    culprit: Annotated[str, msgspec.Meta(pattern=CULPRIT)] = ""
    layer: str = ""
    touches: tuple[str, ...] = ()

    @property
    def cases(self) -> tuple[str, ...]:
        """Ids of the cases that show the change."""
        return (self.case,) if isinstance(self.case, str) else self.case

    @property
    def shown_at(self) -> str:
        """The release in which the goldens change."""
        return self.observed_in or self.release


class Family(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The behaviour changes that a family declares.

    Attributes:
        about: The subject of the family, in a sentence or two.
        pairs: Names of cases whose values describe, by the release that wrote a file, the result
            of loading it in the release of the cell. JAX promises compatibility for the first.
        about_pairs: Introduction of the page of pairs, or empty.
        change: The changes that its cases show.
    """

    about: str = ""
    pairs: tuple[str, ...] = ()
    about_pairs: str = ""
    change: tuple[BehaviourChange, ...] = ()


FILE_NAME: Final = "changes.toml"


def load_families(cases: Path) -> Mapping[str, Family]:
    """Return the declarations of each family that has a `changes.toml`, by name of the family.

    Args:
        cases: Folder of the families.

    Raises:
        UsageError: If a file cannot be read or is malformed; the message names it.
    """
    return {file.parent.name: _load(file) for file in sorted(cases.glob(f"*/{FILE_NAME}"))}


def _load(file: Path) -> Family:
    try:
        family = msgspec.toml.decode(file.read_bytes(), type=Family)
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {describe_os_error(error)}") from error
    except MALFORMED as error:  # no TOML, an unknown key, a wrong type
        # msgspec begins its messages with a capital letter; messages of this program do not.
        problem = str(error)
        raise UsageError(f"{file}: {problem[:1].lower()}{problem[1:]}") from error
    for number, change in enumerate(family.change, 1):
        _check(change, f"{file}: change {number}")
    return family


def _check(change: BehaviourChange, where: str) -> None:
    """Check what the pages of the history would fail at, where the line is not known any more.

    Args:
        change: A change.
        where: Its file and number.

    Raises:
        UsageError: If a release or the source is malformed, or a reason is missing.
    """
    for release in (change.release, change.shown_at):
        try:
            Version(release)
        except ValueError:
            raise UsageError(f"{where}: release {release!r}, expected a jax release") from None
    if change.source not in SOURCE_WORDS and not find_thread_url(change.source):
        raise UsageError(
            f"{where}: source {change.source!r}, expected OWNER/REPO#NUMBER, OWNER/REPO@COMMIT, "
            f"an address, or one of {', '.join(SOURCE_WORDS)}"
        )
    # A difference from upstream's release without a reason would read as a mistake.
    if bool(change.observed_in) != bool(change.why):
        raise UsageError(f"{where}: `observed_in` and `why` belong together; give both or neither")
