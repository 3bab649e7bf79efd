"""From observations to golden files: plan the new spans, then write them all at once."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from conformance.errors import UsageError
from conformance.files import write_atomically
from conformance.golden.contents import Content, content_of, encode, encode_facts, same
from conformance.golden.document import GoldenDocument, dumps
from conformance.golden.errors import GoldenError
from conformance.golden.layout import (
    AS_OWN,
    ENDING,
    STRUCTURE,
    content_names,
    file_name,
    folder_of,
)
from conformance.golden.spans import insert, is_release, lookup, version
from conformance.golden.sweep import remove_unreferenced
from conformance.ir.fact_table import STATED_BY
from conformance.ir.graph import CROSS_LOWERED
from conformance.ir.normal.forms import VERSION
from conformance.ir.normal.text import head_of
from conformance.judge.tolerance import Tolerance
from conformance.model.outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from conformance.golden.document import Spans, Tracks
    from conformance.golden.store import GoldenStore
    from conformance.model.case import Case
    from conformance.model.observation import Observation


class AcceptEffect(StrEnum):
    """The effect of accepting one observation on the goldens."""

    ADDED = "added"
    """Nothing was recorded for the release, and what applied to it was other or nothing."""
    CHANGED = "changed"
    """Something else was recorded for the release."""
    EXTENDED = "extended"
    """The nearest older span showed the same, and now reaches the release."""
    UNCHANGED = "unchanged"
    """The same is recorded already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One observation to become golden.

    Attributes:
        case: The case.
        variant: Key of the cell variant, see `layout.variant_name`.
        release: The cell's jax release.
        observation: What was seen.
        text: Gives an IR of the observation in the form `neutral`, as text; called for those
            that no golden holds yet.
    """

    case: Case
    variant: str
    release: str
    observation: Observation
    text: Callable[[str], str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptEntry:
    """The effect on one case, variant and release, before or after it is written."""

    case: str
    variant: str
    release: str
    change: AcceptEffect


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptPlan:
    """Files to be written, and what they change.

    Attributes:
        entries: One for each candidate.
        contents: Content files to write, by path.
        documents: TOML files to write, by path.
        conflicts: Candidates left out because another cell of the same case, variant and release
            showed something else, one sentence each.
    """

    entries: tuple[AcceptEntry, ...] = ()
    contents: Mapping[Path, bytes] = field(default_factory=dict)
    documents: Mapping[Path, str] = field(default_factory=dict)
    conflicts: tuple[str, ...] = ()

    def count(self, change: AcceptEffect) -> int:
        """Return how many entries are of a kind."""
        return sum(entry.change is change for entry in self.entries)


@dataclass(slots=True)
class _Draft:
    """The goldens of one case while candidates are worked in."""

    case: Case
    store: GoldenStore
    folder: Path
    recorded: Mapping[str, Tracks]
    variants: dict[str, dict[str, Spans]]
    contents: dict[str, Content | None] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    """Fingerprint of the form `neutral` by name of the content, for the IRs looked at."""
    fresh: dict[str, bytes] = field(default_factory=dict)
    changes: list[AcceptEntry] = field(default_factory=list)

    def work_in(
        self, candidate: Candidate, content: Content, known_releases: Sequence[str]
    ) -> None:
        """Record what a candidate shows."""
        release = candidate.release
        tracks = self.variants.setdefault(candidate.variant, {})
        name = self._recorded_name(tracks, release, content)
        if name is None:
            name = self._add(content.artifact, encode(content))
            self.contents[name] = content
        names = {ENDING: name, **self._facts(candidate), **self._irs(tracks, candidate)}
        found = {track: lookup(tracks.get(track, ()), release) for track in names}
        alike = all(at is not None and at.span.content == names[t] for t, at in found.items())
        exact = all(at is not None and at.exact for at in found.values())
        # Artifacts that this outcome lacks (an IR of a program that raises) keep their goldens.
        for track in sorted(names):
            tracks[track] = insert(tracks.get(track, ()), release, names[track], known_releases)
        change = {
            (True, True): AcceptEffect.UNCHANGED,
            (True, False): AcceptEffect.CHANGED,
            (False, True): AcceptEffect.EXTENDED,
            (False, False): AcceptEffect.ADDED,
        }[exact, alike]
        entry = AcceptEntry(
            case=self.case.id, variant=candidate.variant, release=release, change=change
        )
        self.changes.append(entry)

    def _add(self, artifact: str, data: bytes) -> str:
        """Return the name of a content, to be written unless it is recorded already."""
        name, short = content_names(artifact, data)
        try:
            if (self.folder / short).read_bytes() == data:
                return short
        except OSError:
            pass
        self.fresh[name] = data
        return name

    def _facts(self, candidate: Candidate) -> dict[str, str]:
        """Return the name of the facts of what ended well, if its HLO was understood."""
        observation = candidate.observation
        seen = observation.ir.get(STATED_BY)
        if observation.outcome is not Outcome.OK or seen is None or not seen.neutral:
            return {}
        return {"facts": self._add("facts", encode_facts(observation.facts))}

    def _irs(self, tracks: Tracks, candidate: Candidate) -> dict[str, str]:
        """Return the names of the texts and the fingerprints of the IRs that were understood.

        Of what is lowered for other platforms no structure is kept: two lines for each case and
        platform that would say what those of the cell's own StableHLO say.
        """
        names: dict[str, str] = {}
        irs = candidate.observation.ir
        own = irs.get(AS_OWN)
        for ir, seen in irs.items():
            if not seen.neutral or seen.version != VERSION:
                continue
            crossed = ir in CROSS_LOWERED
            if crossed and own is not None and seen.neutral == own.neutral:
                names[ir] = AS_OWN
                continue
            name = self._recorded_text(tracks.get(ir, ()), seen.neutral)
            if name is None and candidate.text is not None:
                name = self._add(ir, candidate.text(ir).encode())
                self.texts[name] = seen.neutral
            if name is not None:
                names[ir] = name
                if not crossed:
                    names[f"{ir}{STRUCTURE}"] = f"{VERSION}:{seen.structure}"
        return names

    def _recorded_text(self, spans: Spans, neutral: str) -> str | None:
        """Return the text already recorded that has a fingerprint."""
        for span in spans:
            name = span.content
            if name == AS_OWN:
                continue
            if name not in self.texts:
                try:
                    head = head_of(self.store.text(self.folder / name))
                    self.texts[name] = head.fingerprint if head.version == VERSION else ""
                except GoldenError:
                    self.texts[name] = ""
            if self.texts[name] == neutral:
                return name
        return None

    def _recorded_name(self, tracks: Tracks, release: str, content: Content) -> str | None:
        """Return the content already recorded that is the same, the nearest older one first.

        So noise in the last bits neither splits a span nor makes a new file.
        """
        spans = tracks.get(ENDING, ())
        found = lookup(spans, release)
        nearest = [found.span] if found else []
        for span in (*nearest, *reversed(spans)):
            name = span.content
            if name not in self.contents:
                try:
                    self.contents[name] = self.store.content(self.folder / name)
                except GoldenError:
                    # A missing or edited content is like nothing: accepting puts it right.
                    self.contents[name] = None
            recorded = self.contents[name]
            if recorded is not None and same(content, recorded, Tolerance.of(self.case)):
                return name
        return None


def plan_accept(
    store: GoldenStore, candidates: Iterable[Candidate], known_releases: Sequence[str]
) -> AcceptPlan:
    """Work observations into the span tables; nothing is written.

    Args:
        store: The goldens as they are, read anew for this plan.
        candidates: Observations to accept; of several for the same case, variant and release
            the first counts.
        known_releases: Every jax release there is.

    Returns:
        What to write. Cases, variants and releases without a candidate stay as they are.

    Raises:
        UsageError: If an outcome says nothing about JAX (infra, unsupported, not run), or was
            seen on no release: goldens are for spans of releases.
        GoldenError: If a TOML file concerned is corrupt; missing or edited contents are
            recorded anew instead.
    """
    drafts: dict[str, _Draft] = {}
    conflicts: list[str] = []
    seen: dict[tuple[str, str, str], Content] = {}
    for candidate in sorted(candidates, key=lambda c: (c.case.id, c.variant, version(c.release))):
        content = _content(candidate)
        key = (candidate.case.id, candidate.variant, candidate.release)
        if key in seen:
            if not same(content, seen[key], Tolerance.of(candidate.case)):
                conflicts.append(
                    f"{candidate.case.id} on {candidate.variant} with jax {candidate.release}: "
                    "cells show different endings, the first is taken; accept one cell alone"
                )
            continue
        seen[key] = content
        draft = drafts.get(candidate.case.id) or _draft(store, candidate.case)
        drafts[candidate.case.id] = draft
        draft.work_in(candidate, content, known_releases)
    return _collect(drafts.values(), tuple(conflicts))


def apply(plan: AcceptPlan, env: Mapping[str, str] = os.environ) -> None:
    """Write a plan: contents first, then the TOML files that name them, each atomically.

    The caller holds the lock under which the plan was made, see `conformance.locking`.
    Killed at any moment, every TOML file is either old or new and all it names is there. At the
    end contents that no TOML file of a touched folder names any more are removed.

    Args:
        plan: What to write.
        env: Environment variables.

    Raises:
        UsageError: If the variable CI is set: goldens are written by people.
        InfrastructureError: If the disk refuses.
    """
    refuse_in_ci(env)
    for file, data in plan.contents.items():
        write_atomically(file, data, durable=True)
    for file, text in plan.documents.items():
        write_atomically(file, text.encode(), durable=True)
    for folder in sorted({file.parent for file in plan.documents}):
        remove_unreferenced(folder)


def refuse_in_ci(env: Mapping[str, str] = os.environ) -> None:
    """Make sure that what is reviewed is not written in CI.

    Args:
        env: Environment variables.

    Raises:
        UsageError: If the variable CI is set.
    """
    if env.get("CI", "").lower() not in {"", "0", "false"}:
        raise UsageError("goldens are never written in CI (CI is set); accept them locally")


def _content(candidate: Candidate) -> Content:
    observation = candidate.observation
    if not observation.outcome.observed:
        raise UsageError(
            f"{candidate.case.id} on {candidate.variant} with jax {candidate.release}: outcome "
            f"{observation.outcome} says nothing about jax, expected one that was observed; "
            "run the cell again before accepting"
        )
    if not is_release(candidate.release):
        raise UsageError(
            f"{candidate.case.id} on {candidate.variant}: jax {candidate.release} is no release, "
            "expected one: what a nightly or a development build shows is never golden"
        )
    return content_of(observation)


def _draft(store: GoldenStore, case: Case) -> _Draft:
    document = store.document(case)
    recorded = document.variants if document else {}
    return _Draft(
        case=case,
        store=store,
        folder=folder_of(store.root, case),
        recorded=recorded,
        variants={name: dict(tracks) for name, tracks in recorded.items()},
    )


def _collect(drafts: Iterable[_Draft], conflicts: tuple[str, ...]) -> AcceptPlan:
    entries: list[AcceptEntry] = []
    contents: dict[Path, bytes] = {}
    documents: dict[Path, str] = {}
    for draft in drafts:
        entries += draft.changes
        document = GoldenDocument(case=draft.case.id, variants=draft.variants)
        named = document.contents()
        contents |= {
            draft.folder / name: data for name, data in draft.fresh.items() if name in named
        }
        if draft.variants != draft.recorded:
            documents[draft.folder / file_name(draft.case.id)] = dumps(document)
    return AcceptPlan(
        entries=tuple(entries), contents=contents, documents=documents, conflicts=conflicts
    )
