"""Root causes across libraries: failures with the same name of JAX, or the same error. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from packaging.version import Version

from conformance.judge.errors import normalise_cause

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from conformance.ecosystem.outcome import LibraryRecord
    from conformance.scan.hits import Hit

    Explain = Callable[[str, str], Hit | None]

_NAME: Final = r"(jax(?:lib)?(?:\.\w+)*)"
_PATTERNS: Final = tuple(
    re.compile(pattern)
    for pattern in (
        rf"module '{_NAME}' has no attribute '(\w+)'",
        rf"cannot import name '(?P<name>\w+)' from '(?P<module>{_NAME})'",
        rf"No module named '{_NAME}'",
        rf"\b{_NAME}\b (?:is|was|has been) (?:deprecated|removed)",
    )
)
"""Errors that name what is gone from JAX."""


def find_jax_name(error: str) -> str:
    """Return the name of JAX that an error is about, empty if it names none.

    Args:
        error: Type and message of the error, e.g. `AttributeError: module 'jax.core' has no
            attribute 'Tracer'`.
    """
    for pattern in _PATTERNS:
        if (found := pattern.search(error)) is None:
            continue
        if "module" in found.groupdict():
            return f"{found['module']}.{found['name']}"
        return ".".join(filter(None, found.groups()))
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EcosystemCause:
    """Failures of libraries that have something in common.

    Attributes:
        name: Name of JAX that is gone, empty if the errors name none.
        error: An error of them.
        records: Records of the libraries, each once.
        hit: What changed for the name, None if the history and the API do not know it.
    """

    name: str
    error: str
    records: tuple[LibraryRecord, ...]
    hit: Hit | None

    @property
    def libraries(self) -> Mapping[str, tuple[str, ...]]:
        """Versions that fail, ascending, by library."""
        versions: dict[str, set[str]] = {}
        for record in self.records:
            versions.setdefault(record.library, set()).add(record.version)
        return {
            library: tuple(sorted(found, key=Version))
            for library, found in sorted(versions.items())
        }

    @property
    def releases(self) -> tuple[str, ...]:
        """Releases of JAX on which they fail, ascending."""
        return tuple(sorted({record.jax for record in self.records}, key=Version))

    @property
    def first(self) -> str:
        """The first release with the change, as far as it is known."""
        return self.hit.release if self.hit is not None else self.releases[0]


def find_ecosystem_causes(
    records: Iterable[LibraryRecord], explain: Explain
) -> tuple[EcosystemCause, ...]:
    """Return what failures of libraries have in common, the causes of most libraries first.

    Args:
        records: Records of libraries.
        explain: Returns what changed for a name of JAX up to a release.
    """
    groups: dict[str, dict[str, list[LibraryRecord]]] = {}
    for record in records:
        for failure in record.failures if record.outcome.is_failure else ():
            name = find_jax_name(failure.error)
            errors = groups.setdefault(name or normalise_cause(failure.error), {})
            own = errors.setdefault(failure.error, [])
            if record not in own:
                own.append(record)
    causes = [_make_cause(errors, explain) for errors in groups.values()]
    return tuple(
        sorted(causes, key=lambda one: (-len(one.libraries), -len(one.records), one.error))
    )


def _make_cause(errors: Mapping[str, list[LibraryRecord]], explain: Explain) -> EcosystemCause:
    error = max(errors, key=lambda text: len(errors[text]))
    records = {record.key: record for own in errors.values() for record in own}
    newest = max((record.jax for record in records.values()), key=Version)
    name = find_jax_name(error)
    return EcosystemCause(
        name=name, error=error, records=tuple(records[key] for key in sorted(records)),
        hit=explain(name, newest) if name else None,
    )  # fmt: skip
