"""The packages of an environment, and their requirements on each other."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from importlib.metadata import distributions
from itertools import chain
from typing import TYPE_CHECKING, Final

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from importlib.metadata import Distribution
    from pathlib import Path

    from conformance.cells.lock import Lock

    Wants = Mapping[str, tuple[Requirement, ...]]


_FROM_ELSEWHERE: Final = "direct_url.json"
"""The file that records the origin of a package that is not from an index (PEP 610)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """The packages that are installed in an environment.

    Attributes:
        requires: The requirements of each package, of all extras, by normalised name.
        modules: Packages that provide a top-level module, by name of the module.
        local: Packages that came from no index: from a folder, a file, a repository.
    """

    requires: Wants = field(default_factory=dict)
    modules: Mapping[str, frozenset[str]] = field(default_factory=dict)
    local: frozenset[str] = frozenset()


def read_installed(python: Path) -> Installed:
    """Return the packages of a provisioned environment.

    Args:
        python: Interpreter of the environment.
    """
    folders = python.parent.parent.glob("lib/python*/site-packages")
    requires: dict[str, tuple[Requirement, ...]] = {}
    modules: dict[str, set[str]] = defaultdict(set)
    local: set[str] = set()
    for found in distributions(path=[str(folder) for folder in folders]):
        name = canonicalize_name(found.metadata["Name"])
        requires[name] = tuple(_parse_requirements(found.requires or ()))
        for module in _list_modules(found):
            modules[module].add(name)
        if found.read_text(_FROM_ELSEWHERE):
            local.add(name)
    return Installed(
        requires=requires,
        modules={name: frozenset(of) for name, of in modules.items()},
        local=frozenset(local),
    )


def _parse_requirements(texts: Iterable[str]) -> Iterator[Requirement]:
    for text in texts:
        try:
            requirement = Requirement(text)
        except (
            InvalidRequirement
        ):  # of an old package: a requirement that cannot be read is ignored
            continue
        requirement.name = canonicalize_name(requirement.name)
        yield requirement


def _list_modules(found: Distribution) -> set[str]:
    """Return the top-level modules of a package."""
    # By files, since few packages have the optional top_level.txt.
    parts = (file.parts[0] for file in found.files or () if file.suffix in {".py", ".so"})
    return {part.partition(".")[0] for part in parts if part != ".."}


def find_wants(installed: Installed, lock: Lock) -> Wants:
    """Return the requirements of each package that its environment meets.

    Requirements that the environment does not meet, e.g. on left-out packages, are ignored.

    Args:
        installed: The installed packages.
        lock: The lock of the environment.
    """
    extras: dict[str, set[str]] = defaultdict(set)
    for requirement in _parse_requirements(lock.headers.get("requires", "").split()):
        extras[requirement.name] |= requirement.extras
    python = lock.headers.get("python", "")
    while True:
        # An extra adds requirements that may add extras: repeat until nothing is new.
        known = sum(map(len, extras.values()))
        wants = {
            name: tuple(_find_requirements(installed, name, extras, python)) for name in lock.pins
        }
        for requirement in chain.from_iterable(wants.values()):
            extras[requirement.name] |= requirement.extras
        if sum(map(len, extras.values())) == known:
            break
    return {
        name: tuple(wanted for wanted in requirements if is_met(wanted, lock.pins))
        for name, requirements in wants.items()
    }


def _find_requirements(
    installed: Installed, name: str, extras: Mapping[str, set[str]], python: str
) -> Iterator[Requirement]:
    """Yield the requirements of a package and of its wanted extras."""
    minor = ".".join(python.split(".")[:2])
    # The markers are those of the cell's Python, not of the Python that runs this program.
    world = {"python_version": minor, "python_full_version": f"{minor}.0"}
    for requirement in installed.requires.get(name, ()):
        # A marker without an extra must hold as well.
        wanted = ("", *extras.get(name, ()))
        if requirement.marker is None or any(
            requirement.marker.evaluate({**world, "extra": e}) for e in wanted
        ):
            yield requirement


def is_met(requirement: Requirement, versions: Mapping[str, str]) -> bool:
    """Say whether a requirement is met.

    Args:
        requirement: A requirement with a normalised name.
        versions: Version by package.
    """
    version = versions.get(requirement.name)
    # Nightlies are prereleases, which a specifier excludes by default.
    return version is not None and requirement.specifier.contains(version, prereleases=True)


def find_closure(names: Iterable[str], needs: Callable[[str], Iterable[str]]) -> set[str]:
    """Return packages with their direct and indirect requirements.

    Args:
        names: The packages.
        needs: Function that returns the direct requirements of a package.
    """
    found: set[str] = set()
    pending = list(names)
    while pending:
        if (name := pending.pop()) not in found:
            found.add(name)
            pending += needs(name)
    return found


def list_needed(name: str, *environments: Wants) -> list[str]:
    """Return the packages that a package requires in any of some environments."""
    return [wanted.name for wants in environments for wanted in wants.get(name, ())]


def count_users(wants: Wants) -> dict[str, int]:
    """Return the number of direct and indirect users of each package."""
    counts: dict[str, int] = defaultdict(int)
    for name in wants:
        for used in find_closure([name], lambda user: list_needed(user, wants)) - {name}:
            counts[used] += 1
    return dict(counts)
