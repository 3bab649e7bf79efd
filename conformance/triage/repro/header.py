"""What stands on top of a file of its own: its packages, what is expected, what was seen."""

from __future__ import annotations

import json
from dataclasses import dataclass
from shlex import quote
from typing import TYPE_CHECKING, Final

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from conformance.cells.releases import is_nightly
from conformance.corpus.python_source import STANDARD_LIBRARY
from conformance.judge.conformance import describe_ending
from conformance.model.observation import ExpectedError
from conformance.model.outcome import Conformance, Outcome
from conformance.triage.repro.carried import is_local
from conformance.triage.repro.checks import shortened
from conformance.triage.repro.facts import READINGS, holds
from conformance.triage.repro.layout import comment

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from conformance.engine.job import Job
    from conformance.model.observation import Observation
    from conformance.triage.repro.carried import Carried
    from conformance.triage.repro.source import CaseSource
    from conformance.triage.repro.surroundings import CellSurroundings

CORE: Final = frozenset(
    {"jax", "jaxlib", "numpy", "scipy", "ml-dtypes", "opt-einsum", "absl-py", "flatbuffers"}
)
"""Packages that jax itself imports, now or then."""
PLUGINS: Final = ("jax-", "libtpu", "nvidia-", "requests")
"""How the names of packages begin that an accelerator needs."""
IMPORTED: Final = frozenset({"jax", "jaxlib", "numpy", "scipy", "ml_dtypes"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What the harness saw of a job.

    Attributes:
        observation: Value, reference, error.
        conformance: Whether it conforms.
        reasons: Why not.
        hlo: Text of the optimised HLO, empty where there is none.
    """

    observation: Observation
    conformance: Conformance
    reasons: tuple[str, ...] = ()
    hlo: str = ""


def readable(name: str, value: object, seen: Seen) -> bool:
    """Say whether a claim can be checked by plain means, with the answer that the harness gave."""
    if name not in READINGS or (name == "memory_spaces" and value):
        return False
    if not seen.hlo:
        return True
    unmet = any(reason.startswith(f"fact {name} ") for reason in seen.reasons)
    return holds(name, value, seen.hlo) is not unmet


def unasserted(claims: Mapping[str, object], seen: Seen) -> tuple[str, ...]:
    """Return the claims of a case that a file of its own cannot check, by name."""
    return tuple(name for name, value in claims.items() if not readable(name, value, seen))


def requirements(job: Job, source: CaseSource, own: Carried) -> list[str]:
    """Return the exact requirements of a file: jax with what it imports, and the case's own.

    Args:
        job: Case and cell.
        source: Source code of the case and its helpers.
        own: Modules that the file carries, and requirements in addition to the lock. One with a URL
            stays: no index has a package of the user's own.
    """
    versions = job.planned.versions
    others = source.modules - IMPORTED - STANDARD_LIBRARY
    names = set(versions)
    if not others and not own.wanted:
        plugins = PLUGINS if job.planned.cell.place.packages else ()
        names = {name for name in versions if name in CORE or name.startswith(plugins)}
    first = ["jax", "jaxlib"]
    parsed = {text: Requirement(text) for text in own.wanted}
    urls = {canonicalize_name(one.name): text for text, one in parsed.items() if one.url}
    ordered = [*first, *sorted({*names, *urls} - {*first} - own.packages)]
    return [urls.get(canonicalize_name(name)) or f"{name}=={versions[name]}" for name in ordered]


def of_nightlies(versions: Mapping[str, str]) -> str:
    """Return what must be said of packages that no usual index has, empty if there are none.

    Args:
        versions: Version by package of a cell.
    """
    names = [name for name in versions if name in {"jax", "jaxlib"} and is_nightly(versions[name])]
    if not names:
        return ""
    verb = "is a nightly" if len(names) == 1 else "are nightlies"
    return (
        f"{' and '.join(sorted(names))} {verb}: name the index that has such wheels, with "
        "`--index URL` for uv or `--extra-index-url URL` for pip."
    )


def metadata_lines(python: str, pins: Iterable[str]) -> Iterator[str]:
    """Yield the metadata of a script, PEP 723: its Python and its requirements."""
    yield from ("# /// script", f'# requires-python = "=={python}.*"', "# dependencies = [")
    yield from (f"#     {json.dumps(pin)}," for pin in pins)
    yield from ("# ]", "# ///", "#")


def uv_instruction(name: str, python: str) -> str:
    """Return how a file is run by its metadata."""
    return f"Run it with `uv run {name}`, or with Python {python}:"


def pip_lines(name: str, pins: Iterable[str]) -> tuple[str, str]:
    """Return the commands that run a file without uv, as comments."""
    return f"#     pip install {' '.join(map(quote, pins))}", f"#     python {name}"


def _of_own(own: Carried) -> Iterator[str]:
    """Yield what must be said of the user's own packages, which no index has."""
    if own.files:
        yield f"It carries the modules that no index has: {', '.join(own.files)}."
    for text in own.wanted:
        if is_local(one := Requirement(text)):
            yield f"{one.name} is a package of this machine, which other machines do not have."


@dataclass(frozen=True, slots=True)
class Header:
    """The comments on top of a file."""

    _job: Job
    _source: CaseSource
    _seen: Seen
    _place: CellSurroundings
    _name: str
    _unasserted: tuple[str, ...]
    _own: Carried

    def lines(self) -> Iterator[str]:
        """Yield its lines."""
        pins = requirements(self._job, self._source, self._own)
        yield from metadata_lines(self._job.planned.cell.python, pins)
        case = self._job.case
        yield from comment(f"{case.id} on {self._place.id}: {_title(self._seen)}.")
        yield "#"
        if case.doc:
            yield from (line for para in case.doc.split("\n\n") for line in (*comment(para), "#"))
        yield from self._told()
        yield "#"
        yield from self._how(pins)
        for told in _of_own(self._own):
            yield from comment(told)
        if told := of_nightlies(self._job.planned.versions):
            yield from comment(told)

    def _how(self, pins: list[str]) -> Iterator[str]:
        """Yield how it is run: where a package has code of its own, by nothing but that."""
        cell = self._job.planned.cell
        if cell.interpreter is not None:
            yield from comment(
                "It was seen in an environment whose packages may have other code than the index "
                "has under these versions. Run it there:"
            )
            yield f"#     {cell.interpreter} {self._name}"
            yield from comment(f"With what the index has: `uv run {self._name}`, or")
        else:
            yield from comment(uv_instruction(self._name, cell.python))
        yield from pip_lines(self._name, pins)

    def _told(self) -> Iterator[str]:
        """Yield expected against seen, and the versions that was seen on."""
        observation = self._seen.observation
        expected = observation.reference
        if isinstance(expected, ExpectedError):
            yield from comment(f"expected: raises {expected.type} {expected.match!r}")
        elif expected is not None and not self._place.topology:
            yield from (
                line for told in shortened(expected) for line in comment(f"expected: {told}")
            )
        for name, value in self._job.case.facts.items():
            yield from comment(f"expected: {name} is {value!r}")
        if observation.error is not None:
            first = observation.error.message.strip()[:600]
            yield from comment(f"seen: {observation.error.type}: {first}")
        elif observation.value is not None:
            yield from (
                line for told in shortened(observation.value) for line in comment(f"seen: {told}")
            )
        for reason in self._seen.reasons[:3] if observation.error is None else ():
            yield from comment(f"judged: {reason[:400]}")
        for name in self._unasserted:
            yield from comment(f"not asserted below: {name}, which takes more than a plain look")
        versions = self._job.planned.versions
        main = [f"{n} {versions[n]}" for n in ("jax", "jaxlib", "numpy") if n in versions]
        more = self._source.modules - IMPORTED - STANDARD_LIBRARY
        main += [f"{name} {versions[name]}" for name in sorted(more) if name in versions]
        yield from comment(f"seen on: {', '.join(main)}, Python {self._job.planned.cell.python}, "
                            f"{self._place.platform}")  # fmt: skip


def _title(seen: Seen) -> str:
    if seen.observation.outcome is not Outcome.OK:
        told = describe_ending(seen.observation)
    else:
        told = seen.reasons[0] if seen.reasons else "runs"
    if seen.conformance is Conformance.CONFORMS:
        told = f"conforms ({told})"
    return " ".join(told.split())[:300].rstrip(".")
