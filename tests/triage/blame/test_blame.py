"""A search in mixtures on paper, of a target whose ending is told by versions."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from conformance.cells.cell import Cell
from conformance.engine.runs.directory import Results, RunDirectory
from conformance.engine.workers.preparation import plan_cell
from conformance.errors import InfrastructureError, UsageError
from conformance.judge.tolerance import Tolerance
from conformance.model.outcome import Conformance, Outcome, Stage
from conformance.model.record import ErrorInfo, Record
from conformance.search.endpoints import EndpointsError, PredicateOptions
from conformance.search.metrics import TIME
from conformance.search.trials import CellTrials
from conformance.triage.blame.blame import Blame, StandInError
from conformance.triage.blame.mixtures import Mixtures, Original
from conformance.triage.blame.render import format_step, make_answer_json, render_answer

from .environments import end, lock_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from conformance.engine.job import PlannedCell
    from conformance.search.metrics import Metric
    from conformance.triage.blame.blame import BlameAnswer
    from conformance.triage.blame.mixtures import BlameEnd

    Versions = Mapping[str, str]
    Ends = Callable[[Versions], str]
    """How a target ends with some versions: `ok`, `infra`, or the name of an error."""

OLD = {"jax": "0.6.0", "jaxlib": "0.6.0", "numpy": "1.26.4", "scipy": "1.15"}
NEW = {"jax": "0.6.2", "jaxlib": "0.6.2", "numpy": "2.0.2", "scipy": "1.16", "rich": "14"}
REQUIRES = {"jax": ["jaxlib==0.6.0"]}, {"jax": ["jaxlib==0.6.2"]}
ENDS = (end(OLD, REQUIRES[0]), end(NEW, REQUIRES[1]))


class Target:
    """A target, and where it was tried."""

    hash = "c"

    def __init__(self, ends: Ends, seconds: Callable[[Versions], float] = lambda _: 0.1) -> None:
        self._ends, self._seconds = ends, seconds
        self.tried: list[Versions] = []

    def get_versions(self, planned: PlannedCell) -> Mapping[str, str]:
        """Return the versions of all packages in a cell."""
        return planned.versions

    def probe(self, cells: Sequence[PlannedCell], *, again: bool = False) -> Iterator[Record]:
        """Yield a record for each cell; see `conformance.search.prober.Prober`."""
        del again
        for planned in cells:
            self.tried.append(planned.versions)
            said = self._ends(planned.versions)
            outcome = {"ok": Outcome.OK, "infra": Outcome.INFRA}.get(said, Outcome.RAISED)
            error = ErrorInfo(type=said, message=said, signature=said, where="")
            yield Record(
                case="script/x", cell=planned.cell.id, case_hash="c", cell_hash=planned.cell_hash,
                outcome=outcome, stage=Stage.EXECUTE, error=None if said == "ok" else error,
                seconds={"job": self._seconds(planned.versions)},
            )  # fmt: skip


def blamed(
    folder: Path,
    target: Target,
    *,
    ends: tuple[BlameEnd, BlameEnd] = ENDS,
    provide: Callable[..., Any] = lambda planned, _: planned,
    metric: Metric | None = None,
    known: Iterable[Record] = (),
    **more: Any,
) -> BlameAnswer:
    """Search; mixtures are on paper, so nothing is made of them."""
    directory = RunDirectory(folder)
    mixtures = Mixtures(ends=ends, locks={}, provide=provide)
    with closing(Results(directory)) as log:
        trials = CellTrials(
            cell_of=mixtures.cell_of, prober=target, blobs=directory.blobs, keep=log.append,
            known=known, tolerance=Tolerance(), metric=metric,
        )  # fmt: skip
        return Blame(mixtures=mixtures, trials=trials, **more).run()


def names(found: BlameAnswer) -> set[str]:
    """Return the packages of the first guilty set."""
    return {moved.package for moved in found.culprits}


def test_a_culprit_is_found_and_confirmed(tmp_path: Path) -> None:
    """With both versions."""
    target = Target(lambda v: "KeyError" if v["numpy"] == "2.0.2" else "ok")
    found = blamed(tmp_path, target)
    assert [str(moved) for moved in found.culprits] == ["numpy 1.26.4 -> 2.0.2"]
    assert found.is_confirmed
    tried = [tuple(sorted(versions.items())) for versions in target.tried]
    twice = {versions for versions in tried if tried.count(versions) == 2}
    assert {dict(v)["numpy"] for v in twice} == {"1.26.4", "2.0.2"}
    lines = list(render_answer(found))
    assert lines[0] == "to blame: numpy 1.26.4 -> 2.0.2 (after: ends with KeyError)"
    assert "held back (numpy==1.26.4), and all other packages moved: the change is gone" in lines
    assert "confirmed: both sides gave the same result again" in lines
    (line,) = (line for line in lines if line.startswith("always together: "))
    assert line.startswith("always together: jax, jaxlib: jax 0.6.0 asks for jaxlib==0.6.0, not")


def test_packages_that_move_together_are_one_culprit(tmp_path: Path) -> None:
    """They cannot be distinguished."""
    target = Target(lambda v: "KeyError" if v["jax"] == "0.6.2" else "ok")
    assert names(blamed(tmp_path, target)) == {"jax", "jaxlib"}
    assert all(v["jax"] == v["jaxlib"] for v in target.tried)


def test_a_fix_has_a_culprit(tmp_path: Path) -> None:
    """Either end may be the good one."""
    target = Target(lambda v: "ok" if v["scipy"] == "1.16" else "KeyError")
    for when in ("", "exit"):
        found = blamed(tmp_path / (when or "any"), target, options=PredicateOptions(when))
        assert names(found) == {"scipy"}
        (line,) = (line for line in render_answer(found) if line.startswith("to blame: "))
        assert line.endswith("(before: fails, in any way)" if when else "(after: ends with ok)")


class Judged(Target):
    """A target that runs everywhere, and is right with one scipy."""

    def probe(self, cells: Sequence[PlannedCell], *, again: bool = False) -> Iterator[Record]:
        """Yield a record for each cell."""
        for planned, record in zip(cells, super().probe(cells, again=again), strict=True):
            right = planned.versions["scipy"] == "1.16"
            conformance = Conformance.CONFORMS if right else Conformance.DEVIATES
            yield replace(record, conformance=conformance)


def test_a_fix_by_the_reference_has_a_culprit(tmp_path: Path) -> None:
    """No option names the predicate or the good end."""
    found = blamed(tmp_path, Judged(lambda _: "ok"))
    assert names(found) == {"scipy"}
    assert next(render_answer(found)) == (
        "to blame: scipy 1.15 -> 1.16 (before: deviates from its own reference)"
    )


def test_another_failure_is_unresolved(tmp_path: Path) -> None:
    """Mixtures without a result are listed; units that they hide are named together."""

    def ends(versions: Versions) -> str:
        if (versions["numpy"] == "2.0.2") != (versions["scipy"] == "1.16"):
            return "ImportError"
        return "KeyError" if versions["numpy"] == "2.0.2" else "ok"

    found = blamed(tmp_path, Target(ends))
    assert names(found) == {"numpy", "scipy"}
    lines = list(render_answer(found))
    assert any(line.startswith("says nothing: ") and "ImportError" in line for line in lines)
    assert any(line.startswith("  not separated: ") for line in lines)
    told = make_answer_json(found, "x")
    assert told["not_told_apart"] == ["numpy", "scipy"]
    assert {entry["reason"] for entry in told["unresolved"]} == {"ImportError"}


def test_a_mixture_that_kills_the_worker_is_unresolved(tmp_path: Path) -> None:
    """The search continues."""

    def ends(versions: Versions) -> str:
        broken = versions["numpy"] == "2.0.2" and versions["scipy"] == "1.15"
        return "infra" if broken else "KeyError" if "rich" in versions else "ok"

    assert names(blamed(tmp_path, Target(ends))) == {"rich"}


def test_two_culprits_that_act_together_are_both_named(tmp_path: Path) -> None:
    """The answer says that it takes both."""
    ends = lambda v: "KeyError" if v["numpy"] == "2.0.2" and v["scipy"] == "1.16" else "ok"  # noqa: E731
    lines = list(render_answer(blamed(tmp_path, Target(ends))))
    both = "scipy 1.15 -> 1.16, numpy 1.26.4 -> 2.0.2"
    assert lines[0] in {
        f"to blame, together: {said} (after: ends with KeyError)"
        for said in (both, ", ".join(reversed(both.split(", "))))
    }


def test_two_sufficient_culprits_are_both_named(tmp_path: Path) -> None:
    """As separate sets."""
    ends = lambda v: "KeyError" if v["numpy"] == "2.0.2" or v["scipy"] == "1.16" else "ok"  # noqa: E731
    found = blamed(tmp_path, Target(ends))
    told = make_answer_json(found, "x")
    both = [*told["culprits"], *(one for other in told["others"] for one in other)]
    assert {one["package"] for one in both} == {"numpy", "scipy"}
    assert any(line.startswith("also sufficient alone") for line in render_answer(found))


def test_a_flaky_target_is_not_confirmed(tmp_path: Path) -> None:
    """Its states are counted."""
    seen: list[str] = []

    def ends(versions: Versions) -> str:
        if versions["numpy"] == "1.26.4":
            return "ok"
        seen.append("again" if versions == dict(ENDS[1].lock.pins) else "mixture")
        return "KeyError" if seen.count("mixture") < 3 or seen[-1] == "again" else "ok"

    found = blamed(tmp_path, Target(ends))
    assert not found.is_confirmed
    assert any(line.startswith("flaky: with ") for line in render_answer(found))
    assert make_answer_json(found, "x")["flaky"]


def test_an_interrupted_search_is_continued(tmp_path: Path) -> None:
    """Trials of the log are repeated only for confirmation."""
    target = Target(lambda v: "KeyError" if v["numpy"] == "2.0.2" else "ok")
    blamed(tmp_path, target)
    known = RunDirectory(tmp_path).read_records()
    again = Target(lambda v: "KeyError" if v["numpy"] == "2.0.2" else "ok")
    found = blamed(tmp_path, again, known=known)
    assert names(found) == {"numpy"}
    assert len(again.tried) == 2
    assert "(from the log)" in format_step(found.steps[0], 5)


def test_a_metric_is_measured_until_it_decides(tmp_path: Path) -> None:
    """Is measured as often as it takes."""
    target = Target(lambda _: "ok", lambda v: 3.0 if v["scipy"] == "1.16" else 1.0)
    found = blamed(tmp_path, target, metric=TIME)
    assert names(found) == {"scipy"}
    assert found.predicate.about.startswith("has time above")


def test_equal_ends_are_an_error(tmp_path: Path) -> None:
    """Nothing is searched."""
    with pytest.raises(EndpointsError, match="are alike: both end with ok"):
        blamed(tmp_path, Target(lambda _: "ok"))
    with pytest.raises(EndpointsError, match="was to be good, got other"):
        blamed(tmp_path, Target(lambda v: f"In{v['jax']}"), options=PredicateOptions("conformance"))
    with pytest.raises(InfrastructureError, match="infra; the same command goes on where it was"):
        blamed(tmp_path, Target(lambda v: "infra" if "rich" in v else "ok"))
    with pytest.raises(UsageError, match="no package differs"):
        blamed(tmp_path, Target(lambda _: "ok"), ends=(ENDS[0], ENDS[0]))


def test_a_mixture_that_cannot_be_created_now_ends_the_search(tmp_path: Path) -> None:
    """The reason may be temporary."""

    def refuse(*_: object) -> None:
        raise InfrastructureError("no room")

    target = Target(lambda v: "KeyError" if "rich" in v else "ok")
    with pytest.raises(InfrastructureError, match="no room; the same command goes on where"):
        blamed(tmp_path, target, provide=refuse)


def test_a_stand_in_that_behaves_differently_is_an_error(tmp_path: Path) -> None:
    """No package is the culprit then."""
    pins = {**OLD, "jax": "0.6.0", "local": "1"}
    original = Original(
        planned=plan_cell(Cell(release="path:/env/bin/python", python="3.11"), lock_of(pins)),
        stand_in="a copy",
        other="no package",
    )
    ends = (replace(ENDS[0], original=original), ENDS[1])
    target = Target(lambda v: "KeyError" if "rich" in v or "local" in v else "ok")
    with pytest.raises(StandInError, match="shows KeyError, a copy shows ok: no package"):
        blamed(tmp_path, target, ends=ends)
    same = Target(lambda v: "KeyError" if "rich" in v else "ok")
    assert names(blamed(tmp_path, same, ends=ends)) == {"rich"}
