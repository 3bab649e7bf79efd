"""Reading `changes.toml`: the behaviour changes that a family of cases declares."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
from packaging.version import Version

from conformance.errors import UsageError
from conformance.files import MALFORMED, describe_os_error
from conformance.model.behaviour_change import Family

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

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
        said = str(error)
        raise UsageError(f"{file}: {said[:1].lower()}{said[1:]}") from error
    for number, change in enumerate(family.change, 1):
        for release in (change.release, change.shown_at):
            try:
                Version(release)
            except ValueError:
                raise UsageError(
                    f"{file}: change {number}: release {release!r}, expected a jax release"
                ) from None
        if bool(change.observed_in) != bool(change.why):
            raise UsageError(
                f"{file}: change {number}: `observed_in` and `why` belong together; give both "
                "or neither"
            )
    return family
