"""Changes between releases that goldens record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.corpus.behaviour_changes import BehaviourChange
from conformance.engine.runs.golden_history import find_golden_changes
from conformance.golden.accept import apply, plan_accept
from conformance.golden.accept_plan import Candidate
from conformance.golden.contents import encode_facts
from conformance.golden.document import GoldenDocument, dumps
from conformance.golden.layout import DOCUMENT, compute_content_id, get_golden_folder
from conformance.golden.spans import Span
from conformance.golden.store import GoldenStore
from tests.builders import f32, ok, raised
from tests.engine.worlds import job

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.engine.runs.golden_history import GoldenChange
    from conformance.model.case import Case
    from conformance.model.observation import Observation

KNOWN = ["0.5.3", "0.6.0", "0.8.3"]
PARAMETER = {"type": "f32[2]"}


def record_golden(root: Path, variant: str, *seen: Observation) -> Case:
    """Return a case with goldens of the known releases, on one cell variant."""
    case = job(root).case
    candidates = [
        Candidate(case=case, variant=variant, release=release, observation=observation)
        for release, observation in zip(KNOWN, seen, strict=True)
    ]
    apply(plan_accept(GoldenStore(case.families), candidates, KNOWN), env={})
    return case


def find_changes(root: Path, *seen: Observation, variant: str = "cpu") -> list[GoldenChange]:
    """Return what changed of a case that showed this on the known releases."""
    return list(find_golden_changes([record_golden(root, variant, *seen)]))


def test_a_change_of_the_ending(tmp_path: Path) -> None:
    """With the releases on both sides of the change."""
    (one,) = find_changes(tmp_path, raised(), ok(f32(1)), ok(f32(1)))
    assert (one.last, one.release, one.shown_by) == ("0.5.3", "0.6.0", "outcome")
    assert one.endings is not None
    before, after = one.endings
    assert before.error is not None
    assert after.value == f32(1)


def test_a_case_without_a_cpu_golden_shows_its_own_platform(tmp_path: Path) -> None:
    """E.g. a program of two processes."""
    (one,) = find_changes(tmp_path, ok(f32(1)), ok(f32(2)), ok(f32(2)), variant="cpu-mp2")
    assert (one.release, one.shown_by) == ("0.6.0", "value")


def test_a_declared_platform_is_looked_at_in_addition(tmp_path: Path) -> None:
    """Its changes are not listed unless a line of the history names it."""
    record_golden(tmp_path, "cpu", *[ok(f32(1))] * 3)
    case = record_golden(tmp_path, "tpu:v5e:2x2", ok(f32(1)), raised(), raised())
    line = BehaviourChange(
        release="0.6.0",
        summary="It raises.",
        source="unknown",
        case=case.id,
        shown_by="outcome",
        platform="tpu:v5e:2x2",
    )
    (one,) = find_golden_changes([case], [line])
    assert (one.release, one.shown_by, one.platform) == ("0.6.0", "outcome", "tpu:v5e:2x2")
    assert list(find_golden_changes([case])) == []


def with_facts(root: Path, *facts: dict[str, Any]) -> Case:
    """Return a case with goldens of these facts, on the known releases."""
    case = job(root).case
    folder = get_golden_folder(case.families, case)
    folder.mkdir(parents=True)
    files = {}
    spans = []
    for release, data in zip(KNOWN, map(encode_facts, facts), strict=True):
        content = compute_content_id("facts", data)
        files[content] = f"facts.until-{release}.json"
        (folder / files[content]).write_bytes(data)
        spans.append(Span(release, release, content))
    variants = {"cpu": {"facts": tuple(spans)}}
    document = GoldenDocument(case=case.id, variants=variants, files=files)
    (folder / DOCUMENT).write_text(dumps(document))
    return case


def test_a_change_of_gating_facts(tmp_path: Path) -> None:
    """Facts that only one side states are no change."""
    sharded = {"collectives": {}, "parameters": [{**PARAMETER, "sharding": "replicated"}]}
    unsaid = {"collectives": {}, "parameters": [PARAMETER]}
    reduced = {**unsaid, "collectives": {"all-reduce": 1}}
    (one,) = find_golden_changes([with_facts(tmp_path, sharded, unsaid, reduced)])
    assert (one.release, one.shown_by) == ("0.8.3", "facts")
    assert one.facts is not None
    assert one.facts[1]["collectives"] == {"all-reduce": 1}


def test_a_case_without_goldens_has_no_changes(tmp_path: Path) -> None:
    """Nor is it an error."""
    assert list(find_golden_changes([job(tmp_path).case])) == []
