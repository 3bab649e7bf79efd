"""Accepting: what changes, what never does, and what a killed process leaves."""

from __future__ import annotations

import contextlib
import os
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conformance.errors import InfrastructureError, UsageError
from conformance.files import write_atomically
from conformance.golden import writing
from conformance.golden.accept import apply, plan_accept
from conformance.golden.accept_plan import AcceptEffect, AcceptPlan, Candidate
from conformance.golden.document import GoldenError
from conformance.golden.store import GoldenStore
from conformance.model.outcome import Outcome
from tests.builders import case, ended, f32, ok, python, raised, value
from tests.failing import CALLS, fail_each_call_once

if TYPE_CHECKING:
    from conformance.model.observation import Observation

KNOWN = ["0.4.30", "0.5.0", "0.5.3", "0.6.0", "0.8.3", "0.12.0.1"]
CASE = case()
FOLDER = "family/golden/topic/name"


def _seen(release: str, observation: Observation, **more: Any) -> Candidate:
    return Candidate(
        case=more.get("case", CASE),
        variant=more.get("variant", "cpu"),
        release=release,
        observation=observation,
    )


def _accept(root: Path, *candidates: Candidate) -> AcceptPlan:
    plan = plan_accept(GoldenStore(root), candidates, KNOWN)
    apply(plan, env={})
    return plan


def _changes(plan: AcceptPlan) -> list[AcceptEffect]:
    return [entry.change for entry in plan.entries]


def _files(root: Path) -> dict[str, bytes]:
    return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}


def test_many_releases_make_few_spans(tmp_path: Path) -> None:
    """Neighbours of one content are one span, and each content one file."""
    errors = [_seen(r, raised(message=f"at 0x7f00000{i}")) for i, r in enumerate(KNOWN[:3])]
    values = [_seen(r, ok(f32(1 + i * 1e-6))) for i, r in enumerate(KNOWN[3:])]
    _accept(tmp_path, *reversed(values), *errors)
    text = (tmp_path / FOLDER / "spans.toml").read_text()
    assert '"0.4.30..0.5.3" = "error.txt"' in text
    assert '"0.6.0..0.12.0.1" = "value.txt"' in text
    assert Counter(Path(name).suffix for name in _files(tmp_path)) == {
        ".toml": 1,
        ".txt": 2,
    }


def test_the_summary_says_what_accepting_did(tmp_path: Path) -> None:
    """Added, extended, unchanged, changed."""
    assert _changes(_accept(tmp_path, _seen("0.5.0", raised()))) == [AcceptEffect.ADDED]
    assert _changes(_accept(tmp_path, _seen("0.5.3", raised()))) == [AcceptEffect.EXTENDED]
    assert _changes(_accept(tmp_path, _seen("0.5.3", raised()))) == [AcceptEffect.UNCHANGED]
    assert _changes(_accept(tmp_path, _seen("0.5.3", ok(f32(1))))) == [AcceptEffect.CHANGED]
    assert _changes(_accept(tmp_path, _seen("0.6.0", ok(f32(2))))) == [AcceptEffect.ADDED]


def test_accepting_the_same_again_writes_nothing(tmp_path: Path) -> None:
    """Neither does drift within the tolerance."""
    _accept(tmp_path, _seen("0.6.0", ok(f32(1))))
    before = _files(tmp_path)
    plan = _accept(tmp_path, _seen("0.6.0", ok(f32(1.000001))))
    assert (plan.contents, plan.documents, plan.count(AcceptEffect.UNCHANGED)) == ({}, {}, 1)
    assert _files(tmp_path) == before


contents = st.sampled_from([raised(), raised("KeyError"), ok(f32(1)), ok(f32(2))])
steps = st.tuples(st.sampled_from(KNOWN), st.sampled_from(["cpu", "cpu x64"]), contents)


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=40
)
@given(st.lists(steps, max_size=8))
def test_the_last_accepted_observation_is_the_golden(tmp_path_factory: Any, history: Any) -> None:
    """After any history of partial accepts, each cell finds its last observation."""
    root = tmp_path_factory.mktemp("cases")
    for release, variant, observation in history:
        _accept(root, _seen(release, observation, variant=variant))
    store = GoldenStore(root)
    for (release, variant), observation in {(r, v): o for r, v, o in history}.items():
        entry = store.lookup(CASE, variant, release)
        assert entry is not None
        assert (entry.exact, entry.outcome, entry.value) == (
            True,
            observation.outcome,
            observation.value,
        )


def test_a_partial_run_deletes_no_golden(tmp_path: Path) -> None:
    """Other cases, variants, releases and topics keep their goldens."""
    other = case("family/other")
    elsewhere = case("elsewhere/name")
    _accept(
        tmp_path,
        _seen("0.5.0", raised()),
        _seen("0.6.0", ok(f32(1))),
        _seen("0.6.0", ok(f32(2)), variant="cpu x64"),
        _seen("0.6.0", ok(f32(3)), case=other),
        _seen("0.6.0", ok(f32(4)), case=elsewhere),
    )
    before = set(_files(tmp_path))
    _accept(tmp_path, _seen("0.8.3", ok(f32(5))))
    assert before < set(_files(tmp_path))
    kept = GoldenStore(tmp_path).lookup(CASE, "cpu", "0.6.0")
    assert kept is not None
    assert kept.value == f32(1)


def test_a_changed_value_keeps_its_file_name(tmp_path: Path) -> None:
    """The diff is the changed element, and the line of the digest."""
    _accept(tmp_path, _seen("0.6.0", ok(f32(1))))
    before = _files(tmp_path)
    _accept(tmp_path, _seen("0.6.0", ok(f32(2))))
    after = _files(tmp_path)
    assert before.keys() == after.keys()
    changed = {
        name.rpartition("/")[2]: set(after[name].splitlines()) - set(before[name].splitlines())
        for name in after
    }
    assert changed["value.txt"] == {b"  [0] 2.0 40000000"}
    assert len(changed["spans.toml"]) == 1


def test_a_new_release_changes_the_newest_file(tmp_path: Path) -> None:
    """The former content moves to a file named after the end of its span."""
    _accept(tmp_path, _seen("0.5.3", ok(f32(1))))
    old = _files(tmp_path)
    _accept(tmp_path, _seen("0.6.0", ok(f32(2))))
    new = _files(tmp_path)
    value = f"{FOLDER}/value.txt"
    assert new.keys() - old.keys() == {f"{FOLDER}/value.until-0.5.3.txt"}
    assert new[f"{FOLDER}/value.until-0.5.3.txt"] == old[value] != new[value]


def test_unreferenced_contents_are_removed(tmp_path: Path) -> None:
    """Other files stay, and so do contents of other cases."""
    _accept(tmp_path, _seen("0.6.0", ok(f32(1))))
    stray = tmp_path / "elsewhere/golden/topic/name/value.txt"
    stray.parent.mkdir(parents=True)
    notes = tmp_path / FOLDER / "notes.txt"
    for file in (stray, notes):
        file.write_text("x")
    _accept(tmp_path, _seen("0.6.0", raised()))
    value = tmp_path / FOLDER / "value.txt"
    assert (value.exists(), stray.exists(), notes.exists()) == (False, True, True)


def test_a_large_value_stays_while_another_case_names_it(tmp_path: Path) -> None:
    """The cases of a topic share one file for equal large values."""
    other = case("family/other")
    large = f32(*range(1000))
    _accept(tmp_path, _seen("0.6.0", ok(large)), _seen("0.6.0", ok(large), case=other))
    shared = tmp_path / "family/golden/topic/@large"
    assert len(list(shared.iterdir())) == 1
    _accept(tmp_path, _seen("0.6.0", ok(f32(2))))
    entry = GoldenStore(tmp_path).lookup(other, "cpu", "0.6.0")
    assert entry is not None
    assert entry.value == large
    _accept(tmp_path, _seen("0.6.0", ok(f32(2)), case=other))
    assert not list(shared.iterdir())


@pytest.mark.parametrize("text", ["format = ", "format = 9"])
def test_no_large_value_is_removed_next_to_an_unreadable_document(
    tmp_path: Path, text: str
) -> None:
    """The unreadable document may name it."""
    _accept(tmp_path, _seen("0.6.0", ok(f32(*range(1000)))))
    broken = tmp_path / "family/golden/topic/broken/spans.toml"
    broken.parent.mkdir()
    broken.write_text(text)
    _accept(tmp_path, _seen("0.6.0", ok(f32(2))))
    assert len(list((tmp_path / "family/golden/topic/@large").iterdir())) == 1


@pytest.mark.parametrize("writes", range(6))
def test_killed_at_any_write_the_goldens_are_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writes: int
) -> None:
    """Each case has its old or its new golden, and a second accept completes the write."""
    other = case("family/other")
    _accept(tmp_path, _seen("0.6.0", ok(f32(1))), _seen("0.6.0", ok(f32(1)), case=other))
    done = 0

    def dying(file: Path, data: bytes, *, durable: bool) -> None:
        nonlocal done
        if done == writes:
            raise KeyboardInterrupt
        done += 1
        write_atomically(file, data, durable=durable)

    monkeypatch.setattr(writing, "write_atomically", dying)
    seen = [_seen("0.6.0", ok(f32(2))), _seen("0.6.0", raised(), case=other)]
    plan = plan_accept(GoldenStore(tmp_path), seen, KNOWN)
    if writes < len(plan.contents) + len(plan.documents):
        with pytest.raises(KeyboardInterrupt):
            apply(plan, env={})
    for which, allowed in ((CASE, {f32(1), f32(2)}), (other, {f32(1), None})):
        entry = GoldenStore(tmp_path).lookup(which, "cpu", "0.6.0")
        assert entry is not None
        assert entry.value in allowed
    monkeypatch.undo()
    _accept(tmp_path, *seen)
    entry = GoldenStore(tmp_path).lookup(CASE, "cpu", "0.6.0")
    assert entry is not None
    assert entry.value == f32(2)


def test_temporaries_of_a_killed_process_are_swept_when_old(tmp_path: Path) -> None:
    """Those of a process that may still write are left."""
    _accept(tmp_path, _seen("0.6.0", ok(f32(1))))
    old, fresh = (tmp_path / FOLDER / f".writing-{n}-x" for n in (1, 2))
    for file in (old, fresh):
        file.touch()
    os.utime(old, (time.time() - 7200,) * 2)
    _accept(tmp_path, _seen("0.6.0", ok(f32(2))))
    assert (old.exists(), fresh.exists()) == (False, True)


@pytest.mark.parametrize("value", ["true", "1", "yes"])
def test_ci_writes_nothing(tmp_path: Path, value: str) -> None:
    """Goldens are written by people."""
    plan = plan_accept(GoldenStore(tmp_path), [_seen("0.6.0", ok(f32(1)))], KNOWN)
    with pytest.raises(UsageError, match="never written in CI"):
        apply(plan, env={"CI": value})
    assert _files(tmp_path) == {}


@pytest.mark.parametrize("outcome", [Outcome.INFRA, Outcome.UNSUPPORTED, Outcome.NOT_RUN])
def test_an_inconclusive_outcome_is_no_golden(tmp_path: Path, outcome: Outcome) -> None:
    """The message names case, cell and outcome."""
    with pytest.raises(UsageError, match=f"family/name on cpu with jax 0.6.0: outcome {outcome}"):
        plan_accept(GoldenStore(tmp_path), [_seen("0.6.0", ended(outcome))], KNOWN)


def test_cells_of_one_release_that_disagree_are_reported(tmp_path: Path) -> None:
    """The first is accepted; drift between cells is no disagreement."""
    seen = [_seen("0.6.0", ok(f32(n))) for n in (1, 1.000001, 2)]
    plan = _accept(tmp_path, *seen)
    (conflict,) = plan.conflicts
    assert conflict.startswith("family/name on cpu with jax 0.6.0: cells show different endings")
    assert _changes(plan) == [AcceptEffect.ADDED]


def test_what_holds_a_path_of_this_host_is_left_out(tmp_path: Path) -> None:
    """It would differ on each host."""
    file = tmp_path / "family" / "topic.py"
    elsewhere = raised(message="in /elsewhere/family/topic.py")
    plan = _accept(
        tmp_path, _seen("0.5.3", elsewhere), _seen("0.6.0", ok(value(python(f"at {file}:7"))))
    )
    (conflict,) = plan.conflicts
    assert f"with jax 0.6.0: the value has the path {file} of this host" in conflict
    assert [entry.release for entry in plan.entries] == ["0.5.3"]
    assert not any(str(file).encode() in data for data in _files(tmp_path).values())


@pytest.mark.parametrize("damage", ["edit", "remove"])
def test_accepting_repairs_a_damaged_content(tmp_path: Path, damage: str) -> None:
    """The advice of the error message works."""
    _accept(tmp_path, _seen("0.6.0", ok(f32(1))))
    content = tmp_path / FOLDER / "value.txt"
    content.unlink() if damage == "remove" else content.write_bytes(b"edited")
    _accept(tmp_path, _seen("0.6.0", ok(f32(1))))
    entry = GoldenStore(tmp_path).lookup(CASE, "cpu", "0.6.0")
    assert entry is not None
    assert entry.value == f32(1)


def test_a_damaged_content_of_another_release_stays_an_error(tmp_path: Path) -> None:
    """Accepting one release neither hides nor repairs what it did not observe."""
    _accept(tmp_path, _seen("0.5.3", raised()), _seen("0.6.0", ok(f32(1))))
    (tmp_path / FOLDER / "error.txt").write_text("edited")
    _accept(tmp_path, _seen("0.6.0", ok(f32(2))))
    with pytest.raises(GoldenError, match=r"error\.txt: content hashes to"):
        GoldenStore(tmp_path).lookup(CASE, "cpu", "0.5.3")
    assert _value(tmp_path) == f32(2)


def test_goldens_of_an_older_format_are_converted_first(tmp_path: Path) -> None:
    """Accepting over them would lose their spans."""
    old = tmp_path / "family/golden/topic/name.toml"
    old.parent.mkdir(parents=True)
    old.write_text("format = 1")
    with pytest.raises(UsageError, match="conformance accept --migrate"):
        plan_accept(GoldenStore(tmp_path), [_seen("0.6.0", ok(f32(2)))], KNOWN)


@pytest.mark.parametrize("call", CALLS)
def test_an_input_output_error_at_any_call_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """Each call fails once: one error of ours, goldens old or new, and the next accept works."""

    def prepared(nth: int) -> tuple[Path, AcceptPlan]:
        root = tmp_path / f"{call}{nth}"
        root.mkdir()
        _accept(root, _seen("0.6.0", ok(f32(1))))
        return root, plan_accept(GoldenStore(root), [_seen("0.6.0", ok(f32(2)))], KNOWN)

    for nth, failing in enumerate(fail_each_call_once(monkeypatch, os, call)):
        with failing.pause():
            root, plan = prepared(nth)
        # A call may have another way around it; any error but ours fails the test.
        with contextlib.suppress(InfrastructureError):
            apply(plan, env={})
        with failing.pause():
            assert _value(root) in {f32(1), f32(2)}
            _accept(root, _seen("0.6.0", ok(f32(2))))
            assert _value(root) == f32(2)


def _value(root: Path) -> Any:
    entry = GoldenStore(root).lookup(CASE, "cpu", "0.6.0")
    assert entry is not None
    return entry.value
