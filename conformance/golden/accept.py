"""Accepting observations as goldens: plan the new spans, then write each case at once."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from conformance.errors import UsageError
from conformance.golden.accept_plan import AcceptEffect, AcceptEntry, AcceptPlan
from conformance.golden.contents import (
    Content,
    encode,
    encode_facts,
    find_host_path,
    is_same_ending,
    make_content,
)
from conformance.golden.document import GoldenDocument, GoldenError, dumps
from conformance.golden.layout import (
    AS_OWN,
    DOCUMENT,
    ENDING,
    EXACT,
    OK,
    PENDING,
    assign_file_names,
    compute_content_id,
    get_content_file,
    get_golden_folder,
)
from conformance.golden.spans import find_span, insert_release, is_release, parse_version
from conformance.golden.writing import refuse_in_ci, write_goldens
from conformance.ir.graph import CROSS_LOWERED, FACTS_IR
from conformance.ir.normal.text import VERSION, read_head
from conformance.judge.tolerance import Tolerance
from conformance.model.outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from conformance.golden.accept_plan import Candidate
    from conformance.golden.document import Spans, Tracks
    from conformance.golden.store import GoldenStore
    from conformance.model.case import Case


@dataclass(slots=True)
class _Draft:
    """The goldens of one case while candidates are added to them.

    Attributes:
        case: The case that the goldens belong to.
        store: The goldens before.
        document: The document before; None for a case without goldens.
        variants: Spans of content ids by cell variant and track.
        endings: Endings read so far by content id; None for those that cannot be read.
        texts: Fingerprint of the canonical form by content id, for the IRs read so far.
        fresh: Bytes of the contents that are new, by content id.
        changes: The effect of each candidate.
        left_out: Contents that hold a path of this host, one sentence each.
    """

    case: Case
    store: GoldenStore
    document: GoldenDocument | None
    variants: dict[str, dict[str, Spans]]
    endings: dict[str, Content | None] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    fresh: dict[str, bytes] = field(default_factory=dict)
    changes: list[AcceptEntry] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    def add(self, candidate: Candidate, ending: Content, known_releases: Sequence[str]) -> None:
        """Record the observation of a candidate."""
        release = candidate.release
        tracks = self.variants.setdefault(candidate.variant, {})
        content = self._find_ending(tracks, release, ending)
        if content is None:
            content = OK if ending.artifact == OK else self._add(ending.artifact, *encode(ending))
            self.endings[content] = ending
        contents = {ENDING: content, **self._add_facts(candidate), **self._add_irs(candidate)}
        found = {track: find_span(tracks.get(track, ()), release) for track in contents}
        same = all(at is not None and at.span.content == contents[t] for t, at in found.items())
        exact = all(at is not None and at.exact for at in found.values())
        # Artifacts that this outcome lacks (an IR of a program that raises) keep their goldens.
        # Sorted, so that accepting the same run twice writes the same bytes.
        for track in sorted(contents):
            tracks[track] = insert_release(
                tracks.get(track, ()), release, contents[track], known_releases
            )
        change = {
            (True, True): AcceptEffect.UNCHANGED,
            (True, False): AcceptEffect.CHANGED,
            (False, True): AcceptEffect.EXTENDED,
            (False, False): AcceptEffect.ADDED,
        }[exact, same]
        entry = AcceptEntry(
            case=self.case.id, variant=candidate.variant, release=release, change=change
        )
        self.changes.append(entry)

    def holds_host_path(self, candidate: Candidate, artifact: str, data: bytes) -> bool:
        """Return whether a content holds a path of this host; note that it is left out if so."""
        path = find_host_path(data, self.store.root)
        if path:
            self.left_out.append(
                f"{self.case.id} on {candidate.variant} with jax {candidate.release}: the "
                f"{artifact} has the path {path} of this host, expected none; it is left out"
            )
        return bool(path)

    def make_document(self) -> tuple[GoldenDocument, dict[Path, bytes]]:
        """Return the document after all candidates, and the content files to write."""
        before = self.document.files if self.document is not None else {}
        draft = GoldenDocument(case=self.case.id, variants=self.variants)
        wanted = draft.contents()
        data: dict[str, bytes] = {}
        unreadable: dict[str, str] = {}
        for content in wanted:
            try:
                data[content] = self.fresh.get(content) or self.store.load_data(self.case, content)
            except GoldenError:
                # Keep the name and the hash: the next reader gets the error, not a wrong golden.
                unreadable[content] = before[content]
        # All names follow from the spans: a new release makes `hlo.txt` an older text,
        # `hlo.until-0.5.3.txt`.
        files = assign_file_names(self.variants, unreadable)
        folder = get_golden_folder(self.store.root, self.case)
        moved = {
            get_content_file(folder, files[content]): data[content]
            for content in data
            if content in self.fresh or before.get(content) != files[content]
        }
        document = GoldenDocument(case=self.case.id, variants=self.variants, files=files)
        return document, moved

    def _add(self, artifact: str, data: bytes, large: bool = False) -> str:
        """Return the id of a content, which is written if a span names it in the end."""
        content = compute_content_id(artifact, data, large=large)
        self.fresh[content] = data
        return content

    def _add_facts(self, candidate: Candidate) -> dict[str, str]:
        """Return the content of the facts of a job that ended well, if its HLO was understood."""
        observation = candidate.observation
        stated = observation.ir.get(FACTS_IR)
        # An HLO that was not understood has no facts, and a golden without facts gates nothing.
        if observation.outcome is not Outcome.OK or stated is None or not stated.canonical:
            return {}
        return {"facts": self._add("facts", encode_facts(observation.facts))}

    def _add_irs(self, candidate: Candidate) -> dict[str, str]:
        """Return the contents and the fingerprints of the IRs that were understood.

        For cross-lowered StableHLO no exact fingerprints are recorded: they would repeat those of
        the cell's own StableHLO in two lines for each case and platform.
        """
        tracks = self.variants[candidate.variant]
        contents: dict[str, str] = {}
        irs = candidate.observation.ir
        own = irs.get(AS_OWN)
        for ir, status in irs.items():
            # Recorded runs may be older than this program, and their fingerprints of another
            # normal form.
            if not status.canonical or status.version != VERSION:
                continue
            crossed = ir in CROSS_LOWERED
            # Many programs lower to the same StableHLO for every platform; one text serves all of
            # them.
            if crossed and own is not None and status.canonical == own.canonical:
                contents[ir] = AS_OWN
                continue
            content = self._find_text(tracks.get(ir, ()), status.canonical)
            if content is None and candidate.text is not None:
                text = candidate.text(ir).encode()
                if self.holds_host_path(candidate, ir, text):
                    continue
                content = self._add(ir, text)
                self.texts[content] = status.canonical
            if content is not None:
                contents[ir] = content
                if not crossed:
                    contents[f"{ir}{EXACT}"] = f"{VERSION}:{status.exact}"
        return contents

    def _find_text(self, spans: Spans, fingerprint: str) -> str | None:
        """Return the recorded text whose canonical form has a fingerprint."""
        # Any span, not only the nearest: if jax reverts a change, the former text is used again.
        for span in spans:
            content = span.content
            if content == AS_OWN:
                continue
            if content not in self.texts:
                try:
                    head = read_head(self.store.load_text(self.case, content))
                    self.texts[content] = head.fingerprint if head.version == VERSION else ""
                except GoldenError:
                    self.texts[content] = ""
            if self.texts[content] == fingerprint:
                return content
        return None

    def _find_ending(self, tracks: Tracks, release: str, ending: Content) -> str | None:
        """Return the recorded content of the same ending, searching the nearest older span first.

        So noise in the last bits neither splits a span nor makes a new file.
        """
        spans = tracks.get(ENDING, ())
        found = find_span(spans, release)
        # The nearest first: of two values within tolerance of each other, it extends a span.
        nearest = [found.span] if found else []
        for span in (*nearest, *reversed(spans)):
            content = span.content
            if content not in self.endings:
                try:
                    self.endings[content] = self.store.load_ending(self.case, content)
                except GoldenError:
                    # A missing or edited file is the same as nothing: accepting repairs it.
                    self.endings[content] = None
            recorded = self.endings[content]
            if recorded is not None and is_same_ending(ending, recorded, Tolerance.of(self.case)):
                return content
        return None


def plan_accept(
    store: GoldenStore, candidates: Iterable[Candidate], known_releases: Sequence[str]
) -> AcceptPlan:
    """Add observations to the spans of their cases, without writing anything.

    Args:
        store: The present goldens; a store that has not been read yet.
        candidates: Observations to accept; of several for the same case, variant and release
            the first counts.
        known_releases: Every jax release, in any order.

    Returns:
        The files to write. Cases, variants and releases without a candidate stay unchanged.

    Raises:
        UsageError: If an outcome is not about JAX (infra, unsupported, not run), was not observed
            on a release (goldens are for spans of releases), or a case has goldens of an older
            format.
        GoldenError: If a document is corrupt; missing or edited contents are replaced instead.
    """
    drafts: dict[str, _Draft] = {}
    conflicts: list[str] = []
    seen: dict[tuple[str, str, str], Content] = {}
    for candidate in sorted(
        candidates, key=lambda c: (c.case.id, c.variant, parse_version(c.release))
    ):
        content = _make_ending(candidate)
        key = (candidate.case.id, candidate.variant, candidate.release)
        # Several cells of one variant and release, e.g. of two Pythons, share one golden.
        if key in seen:
            if not is_same_ending(content, seen[key], Tolerance.of(candidate.case)):
                conflicts.append(
                    f"{candidate.case.id} on {candidate.variant} with jax {candidate.release}: "
                    "cells show different endings, the first is taken; accept one cell alone"
                )
            continue
        seen[key] = content
        draft = drafts.get(candidate.case.id) or _make_draft(store, candidate.case)
        drafts[candidate.case.id] = draft
        if content.artifact != OK and draft.holds_host_path(
            candidate, content.artifact, encode(content)[0]
        ):
            continue
        draft.add(candidate, content, known_releases)
    return _collect(drafts.values(), tuple(conflicts))


def apply(plan: AcceptPlan, env: Mapping[str, str] = os.environ) -> None:
    """Write a plan, unless the environment is that of CI.

    The caller holds the lock under which the plan was made, see `conformance.locking`.

    Args:
        plan: The files to write.
        env: Environment variables.

    Raises:
        UsageError: If the variable CI is set: goldens are written by people.
        InfrastructureError: If the disk refuses.
    """
    refuse_in_ci(env)
    write_goldens(plan.contents, plan.documents)


def _make_ending(candidate: Candidate) -> Content:
    observation = candidate.observation
    if not observation.outcome.observed:
        raise UsageError(
            f"{candidate.case.id} on {candidate.variant} with jax {candidate.release}: outcome "
            f"{observation.outcome} says nothing about jax, expected one that was observed; "
            "run the cell again before accepting"
        )
    if not is_release(candidate.release):
        raise UsageError(
            f"{candidate.case.id} on {candidate.variant}: jax {candidate.release} is not a "
            "release; only observations of releases become goldens"
        )
    return make_content(observation)


def _make_draft(store: GoldenStore, case: Case) -> _Draft:
    document = store.load_document(case)
    if document is not None and document.tainted:
        raise UsageError(
            f"{get_golden_folder(store.root, case)}: goldens of an older format; "
            "convert them first: conformance accept --migrate"
        )
    # A copy, because the store hands the same document to each of its readers.
    recorded = document.variants if document is not None else {}
    return _Draft(
        case=case,
        store=store,
        document=document,
        variants={name: dict(tracks) for name, tracks in recorded.items()},
    )


def _collect(drafts: Iterable[_Draft], conflicts: tuple[str, ...]) -> AcceptPlan:
    entries: list[AcceptEntry] = []
    contents: dict[Path, bytes] = {}
    documents: dict[Path, str] = {}
    left_out = list(conflicts)
    for draft in drafts:
        entries += draft.changes
        left_out += draft.left_out
        document, files = draft.make_document()
        contents |= files
        folder = get_golden_folder(draft.store.root, draft.case)
        before = draft.document.variants if draft.document is not None else {}
        # Pending files are left by an interrupted write, which this one completes.
        if files or document.variants != before or any(folder.glob(f"*{PENDING}")):
            documents[folder / DOCUMENT] = dumps(document)
    return AcceptPlan(
        entries=tuple(entries),
        contents=contents,
        documents=documents,
        conflicts=tuple(left_out),
    )
