"""The comments on top of a reproduction: its packages, the expected and the observed result."""

from __future__ import annotations

import json
from dataclasses import dataclass
from shlex import quote
from typing import TYPE_CHECKING, Final

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from conformance.cells.releases import is_nightly
from conformance.corpus.python_source import STANDARD_LIBRARY
from conformance.judge.conformance import describe_outcome
from conformance.model.observation import ExpectedError
from conformance.model.outcome import Conformance, Outcome
from conformance.triage.repro.assertions import READINGS, is_met, summarize_value
from conformance.triage.repro.embedded_modules import is_local
from conformance.triage.repro.layout import render_comment

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from conformance.engine.job import Job
    from conformance.model.observation import Observation
    from conformance.triage.repro.case_source import CaseSource
    from conformance.triage.repro.embedded_modules import EmbeddedModules
    from conformance.triage.repro.stand_ins import CellSurroundings

CORE: Final = frozenset(
    {"jax", "jaxlib", "numpy", "scipy", "ml-dtypes", "opt-einsum", "absl-py", "flatbuffers"}
)
"""Packages that some release of jax imports."""
PLUGINS: Final = ("jax-", "libtpu", "nvidia-", "requests")
"""Prefixes of packages that an accelerator needs."""
IMPORTED: Final = frozenset({"jax", "jaxlib", "numpy", "scipy", "ml_dtypes"})


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedObservation:
    """The observation of a job, as judged by the harness.

    Attributes:
        observation: Value, reference, error.
        conformance: Conformance to the reference and the claims of the case.
        reasons: Reasons of the judgement.
        hlo: Text of the optimised HLO, empty if there is none.
        example: Example of a law as Python code: the one for which it does not hold, or the
            simplest; empty for a case without `given`.
    """

    observation: Observation
    conformance: Conformance
    reasons: tuple[str, ...] = ()
    hlo: str = ""
    example: str = ""


def is_checkable(name: str, value: object, seen: JudgedObservation) -> bool:
    """Return whether a reading checks a claim with the same result as the harness."""
    if name not in READINGS or (name == "memory_spaces" and value):
        return False
    # Nothing to compare the reading with, e.g. if the program failed.
    if not seen.hlo:
        return True
    unmet = any(reason.startswith(f"fact {name} ") for reason in seen.reasons)
    # The harness parses the HLO, a reading searches its text: only if both agree does the file
    # assert the claim.
    return is_met(name, value, seen.hlo) is not unmet


def list_unchecked(claims: Mapping[str, object], seen: JudgedObservation) -> tuple[str, ...]:
    """Return the names of the claims of a case that a reproduction cannot check."""
    return tuple(name for name, value in claims.items() if not is_checkable(name, value, seen))


def list_requirements(job: Job, source: CaseSource, embedded: EmbeddedModules) -> list[str]:
    """Return the pinned requirements of a file: jax with its imports, and those of the case.

    Args:
        job: Case and cell.
        source: Source code of the case and its helpers.
        embedded: Embedded modules, and requirements in addition to the lock. A requirement with a
            URL stays: no index has a package of the user.
    """
    versions = job.planned.versions
    others = source.modules - IMPORTED - STANDARD_LIBRARY
    names = set(versions)
    # Only packages that jax imports: a short list is easier to install, and to judge.
    if not others and not embedded.requirements:
        plugins = PLUGINS if job.planned.cell.place.packages else ()
        names = {name for name in versions if name in CORE or name.startswith(plugins)}
    first = ["jax", "jaxlib"]
    parsed = {text: Requirement(text) for text in embedded.requirements}
    urls = {canonicalize_name(r.name): text for text, r in parsed.items() if r.url}
    # jax and jaxlib first: they are what the report is about.
    ordered = [*first, *sorted({*names, *urls} - {*first} - embedded.packages)]
    # A URL names its wheel exactly; a version of it is on no index.
    return [urls.get(canonicalize_name(name)) or f"{name}=={versions[name]}" for name in ordered]


def describe_nightlies(versions: Mapping[str, str]) -> str:
    """Return how to install nightlies, which PyPI does not have; empty if there are none.

    Args:
        versions: Version by package of a cell.
    """
    names = [name for name in versions if name in {"jax", "jaxlib"} and is_nightly(versions[name])]
    if not names:
        return ""
    verb = "is a nightly" if len(names) == 1 else "are nightlies"
    return (
        f"{' and '.join(sorted(names))} {verb}: name an index that has these wheels, with "
        "`--index URL` for uv or `--extra-index-url URL` for pip."
    )


def render_metadata(python: str, pins: Iterable[str]) -> Iterator[str]:
    """Yield the metadata of a script, PEP 723: its Python and its requirements."""
    yield from ("# /// script", f'# requires-python = "=={python}.*"', "# dependencies = [")
    # TOML: JSON strings are valid there.
    yield from (f"#     {json.dumps(pin)}," for pin in pins)
    yield from ("# ]", "# ///", "#")


def describe_uv(name: str, python: str) -> str:
    """Return how to run a file by its metadata."""
    return f"Run it with `uv run {name}`, or with Python {python}:"


def render_pip(name: str, pins: Iterable[str]) -> tuple[str, str]:
    """Return the commands that run a file without uv, as comments."""
    return f"#     pip install {' '.join(map(quote, pins))}", f"#     python {name}"


def _describe_embedded(embedded: EmbeddedModules) -> Iterator[str]:
    """Yield sentences about the packages of the user, which no index has."""
    if embedded.files:
        yield f"It contains modules that no index has: {', '.join(embedded.files)}."
    for text in embedded.requirements:
        if is_local(requirement := Requirement(text)):
            yield f"{requirement.name} is a package on this machine, which others do not have."


@dataclass(frozen=True, slots=True)
class Header:
    """The comments on top of a file."""

    _job: Job
    _source: CaseSource
    _seen: JudgedObservation
    _place: CellSurroundings
    _name: str
    _unchecked_names: tuple[str, ...]
    _embedded: EmbeddedModules

    def lines(self) -> Iterator[str]:
        """Yield its lines."""
        pins = list_requirements(self._job, self._source, self._embedded)
        yield from render_metadata(self._job.planned.cell.python, pins)
        case = self._job.case
        yield from render_comment(f"{case.id} on {self._place.id}: {_title(self._seen)}.")
        yield "#"
        if case.doc:
            yield from (
                line for para in case.doc.split("\n\n") for line in (*render_comment(para), "#")
            )
        yield from self._render_results()
        yield "#"
        yield from self._render_instructions(pins)
        for sentence in _describe_embedded(self._embedded):
            yield from render_comment(sentence)
        yield from render_comment(describe_nightlies(self._job.planned.versions))

    def _render_instructions(self, pins: list[str]) -> Iterator[str]:
        """Yield how to run it; in a `path:` cell first by the interpreter of the cell."""
        cell = self._job.planned.cell
        if cell.interpreter is not None:
            yield from render_comment(
                "It was observed in an environment whose packages may differ from those of the "
                "index with the same versions. Run it in this environment:"
            )
            yield f"#     {cell.interpreter} {self._name}"
            yield from render_comment(f"With packages of the index: `uv run {self._name}`, or")
        else:
            yield from render_comment(describe_uv(self._name, cell.python))
        yield from render_pip(self._name, pins)

    def _render_results(self) -> Iterator[str]:
        """Yield the expected and the observed result, and the versions."""
        observation = self._seen.observation
        expected = observation.reference
        if isinstance(expected, ExpectedError):
            yield from render_comment(f"expected: raises {expected.type} {expected.match!r}")
        # A compile-only platform executes nothing, so that there is no value to expect.
        elif expected is not None and not self._place.topology:
            for text in summarize_value(expected):
                yield from render_comment(f"expected: {text}")
        for name, value in self._job.case.facts.items():
            yield from render_comment(f"expected: {name} is {value!r}")
        if observation.error is not None:
            # Messages of XLA may contain the whole program.
            first = observation.error.message.strip()[:600]
            yield from render_comment(f"seen: {observation.error.type}: {first}")
        elif observation.value is not None:
            for text in summarize_value(observation.value):
                yield from render_comment(f"seen: {text}")
        # The line above already shows the error.
        for reason in self._seen.reasons[:3] if observation.error is None else ():
            yield from render_comment(f"judged: {reason[:400]}")
        for name in self._unchecked_names:
            yield from render_comment(
                f"not asserted below: {name}, which only the harness can check"
            )
        versions = self._job.planned.versions
        main = [f"{n} {versions[n]}" for n in ("jax", "jaxlib", "numpy") if n in versions]
        more = self._source.modules - IMPORTED - STANDARD_LIBRARY
        main += [f"{name} {versions[name]}" for name in sorted(more) if name in versions]
        python = f"Python {self._job.planned.cell.python}"
        yield from render_comment(f"seen on: {', '.join(main)}, {python}, {self._place.platform}")


def _title(seen: JudgedObservation) -> str:
    if seen.observation.outcome is not Outcome.OK:
        title = describe_outcome(seen.observation)
    else:
        title = seen.reasons[0] if seen.reasons else "runs"
    if seen.conformance is Conformance.CONFORMS:
        title = f"conforms ({title})"
    return " ".join(title.split())[:300].rstrip(".")
