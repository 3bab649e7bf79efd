"""What JAX changed, family by family."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from conformance.corpus.behaviour_changes import BehaviourChange, Family
from conformance.engine.runs.golden_history import GoldenChange
from conformance.golden.contents import Content
from conformance.model.golden import RecordedError
from conformance.model.outcome import Outcome
from conformance.report.behaviour.history import FamilyHistory, collect_histories
from conformance.report.behaviour.markdown import describe_golden_change, render_behaviour_pages
from tests.builders import case, f32, python, value

if TYPE_CHECKING:
    from conformance.model.case import Case

DATES = {"0.5.3": "2025-03-19", "0.6.0": "2025-04-17", "0.6.1": "2025-05-21"}
WORKS = Content(value=f32(1, 2))


def named(name: str) -> Case:
    """Return a case whose function is called as its id says."""
    return case(name, name=name.partition("/")[2].partition("[")[0])


def raised(type_: str = "TypeError", message: str = "no") -> Content:
    """Return an ending by an exception."""
    error = RecordedError(outcome=Outcome.RAISED, stage="trace", type=type_, message=message)
    return Content(error=error)


def turn(before: Content, after: Content, name: str = "loops/one", **more: Any) -> GoldenChange:
    """Return a change of an ending at 0.6.0."""
    given = {"release": "0.6.0", "last": "0.5.3", "shown_by": "outcome", **more}
    return GoldenChange(case=named(name), endings=(before, after), **given)


def change(**more: Any) -> BehaviourChange:
    """Return a declared change at 0.6.0."""
    given = {
        "release": "0.6.0",
        "summary": "Loops are typed.",
        "source": "o/r#1",
        "case": "loops/one",
        "shown_by": "outcome",
        **more,
    }
    return BehaviourChange(**given)


def history(*turned: GoldenChange, changes: tuple[BehaviourChange, ...] = ()) -> FamilyHistory:
    """Return the history of the family `loops`."""
    cases = [named(name) for name in dict.fromkeys(["loops/one", *(t.case.id for t in turned)])]
    family = Family(about="Loops.", change=changes)
    (found,) = collect_histories(cases, {"loops": family}, turned)
    return found


def page(*turned: GoldenChange, changes: tuple[BehaviourChange, ...] = ()) -> str:
    """Return the page of the family `loops`."""
    pages = dict(render_behaviour_pages([history(*turned, changes=changes)], DATES, Path()))
    return pages["loops.md"]


class TestHistories:
    """Declared changes with their evidence; what else gates stands beside them."""

    def test_a_change_has_what_the_goldens_show_where_it_is_declared(self) -> None:
        """By case, release and what of the golden changes."""
        turned = [turn(WORKS, raised()), turn(WORKS, raised(), release="0.6.1", last="0.6.0")]
        found = history(*turned, changes=(change(),))
        assert [one.evidence for one in found.declared] == [(turned[0],)]
        assert [one.undeclared for one in found.releases] == [(turned[1],), ()]

    def test_undeclared_changes_that_gate_are_listed(self) -> None:
        """Another jaxpr alone is none."""
        jaxpr = GoldenChange(
            case=case("loops/one"), release="0.6.0", last="0.5.3", shown_by="jaxpr"
        )
        assert history(jaxpr).releases == ()
        assert history(turn(WORKS, raised()), jaxpr).releases[0].undeclared[0].shown_by == "outcome"

    def test_pairs_have_a_page_of_their_own(self) -> None:
        """What they show is told where a change is declared, and nowhere else."""
        one, other = turn(WORKS, raised()), turn(WORKS, raised(), "loops/two")
        family = Family(pairs=("one",))
        (found,) = collect_histories([named("loops/one")], {"loops": family}, [one, other])
        assert [each.undeclared for each in found.releases] == [(other,)]
        declared = Family(pairs=("one",), change=(change(),))
        (found,) = collect_histories([named("loops/one")], {"loops": declared}, [one])
        assert [each.evidence for each in found.declared] == [(one,)]

    def test_a_change_is_listed_at_the_release_that_shows_it(self) -> None:
        """With what upstream says."""
        late = change(observed_in="0.6.1", why="a regression hid it")
        found = history(turn(WORKS, raised(), release="0.6.1"), changes=(late,))
        assert [(one.release, len(one.declared)) for one in found.releases] == [("0.6.1", 1)]

    def test_the_newest_release_comes_first(self) -> None:
        """By version, not by text."""
        turned = [turn(WORKS, raised(), release=name) for name in ("0.9.0", "0.10.0", "0.4.38")]
        assert [one.release for one in history(*turned).releases] == ["0.10.0", "0.9.0", "0.4.38"]


class TestWords:
    """What was before, what is since."""

    def test_both_outcomes_of_a_change_are_described(self) -> None:
        """Its error is told in a line, a short value in numbers."""
        said = describe_golden_change(turn(WORKS, raised(message="not\nhere")))
        assert said == "gives `out float32 [1.0, 2.0]` → raises `TypeError: not here`"

    def test_long_messages_are_shown_from_their_first_difference(self) -> None:
        """With a few words before."""
        one = raised(message="a b c d e f old g")
        other = raised(message="a b c d e f new g")
        said = describe_golden_change(turn(one, other, shown_by="error"))
        assert said == "the `TypeError` says `... c d e f old g` → `... c d e f new g`"

    def test_another_type_of_error_is_described_in_full(self) -> None:
        """Both are told."""
        said = describe_golden_change(
            turn(raised("KeyError"), raised("NameError"), shown_by="error")
        )
        assert said == "raises `KeyError: no` → raises `NameError: no`"

    def test_small_values_are_compared_by_leaf(self) -> None:
        """Only those that differ."""
        before = Content(value=value(python(1, "out['a']"), python(2, "out['b']")))
        after = Content(value=value(python(1, "out['a']"), python(3, "out['b']")))
        said = describe_golden_change(turn(before, after, shown_by="value"))
        assert said == "`out['b'] 2 → 3`"

    def test_members_that_a_list_lost_or_gained_are_listed(self) -> None:
        """Wherever in it they stand; a leaf that has become something else comes first."""
        two, one = (python("a", "out[0]"), python("b", "out[1]")), (python("b", "out[0]"),)
        before, after = Content(value=value(*two)), Content(value=value(*one))
        said = describe_golden_change(turn(before, after, shown_by="value"))
        assert said == "`out no longer contains 'a'`"
        said = describe_golden_change(turn(after, before, shown_by="value"))
        assert said == "`out now contains 'a'`"
        before = Content(value=value(*two, python("no", "out['x']")))
        after = Content(value=value(*one, python("yes", "out['x']")))
        said = describe_golden_change(turn(before, after, shown_by="value"))
        assert said == "`out['x'] 'no' → 'yes'`; `out no longer contains 'a'`"

    def test_a_text_that_becomes_an_array_is_described_beside_it(self) -> None:
        """The array by its type, as it has no numbers to compare with."""
        before, after = Content(value=value(python("no"))), Content(value=f32(*range(30)))
        said = describe_golden_change(turn(before, after, shown_by="value"))
        assert said == "`out 'no' → float32[30]`"

    def test_large_values_by_how_far_they_are_apart(self) -> None:
        """As a comparison says it."""
        before, after = (Content(value=f32(*range(9), last)) for last in (9, 10))
        said = describe_golden_change(turn(before, after, shown_by="value"))
        assert "1 of 10 elements differ" in said

    def test_facts_that_gate_are_compared(self) -> None:
        """What, how much before, how much since."""
        facts = ({"collectives": {"all-reduce": 1}}, {"collectives": {"all-reduce": 2}})
        one = GoldenChange(
            case=case(), release="0.6.0", last="0.5.3", shown_by="facts", facts=facts
        )  # fmt: skip
        assert describe_golden_change(one) == "`collectives all-reduce 1 → 2`"

    def test_a_changed_ir_is_named(self) -> None:
        """That it is another; `conformance diff` shows it."""
        names = ("hlo", "hlo-exact")
        turns = [
            GoldenChange(case=case(), release="0.6.0", last="0.5.3", shown_by=name)  # type: ignore[arg-type]
            for name in names
        ]
        assert [describe_golden_change(one) for one in turns] == [
            "another hlo",
            "another hlo (in its structure alone)",
        ]


class TestPages:
    """Markdown that can be looked things up in."""

    def test_origin_that_was_found_by_running_follows(self) -> None:
        """A commit of jax is a link; jaxlib is a name."""
        commit = change(culprit="jax@0123456789ab", layer="front end: tracing")
        text = page(turn(WORKS, raised()), changes=(commit,))
        link = "https://github.com/jax-ml/jax/commit/0123456789ab"
        thread = f"[jax-ml/jax@0123456789ab]({link})"
        assert f"  - found by running: {thread}, front end: tracing" in text.splitlines()
        text = page(turn(WORKS, raised()), changes=(change(culprit="jaxlib"),))
        assert "  - found by running: jaxlib" in text.splitlines()

    def test_a_change_with_its_source_and_evidence(self) -> None:
        """Under the release with its day."""
        text = page(turn(WORKS, raised()), changes=(change(advice="write `pvary`."),))
        assert "## 0.6.0 (2025-04-17)" in text
        lines = text.splitlines()
        at = lines.index("- **Loops are typed.** [o/r#1](https://github.com/o/r/issues/1)")
        assert lines[at + 1].startswith("  - [`one`](../../cases/family/topic.py): gives")
        assert lines[at + 2] == "  - advice: write `pvary`."

    @pytest.mark.parametrize(
        ("source", "words"),
        [
            ("changelog", "JAX's changelog"),
            ("jaxlib", "(the compiler or runtime in jaxlib)"),
            ("unknown", "(no upstream thread or commit is known)"),
        ],
    )
    def test_a_source_that_is_no_thread_is_in_words(self, source: str, words: str) -> None:
        """A change that no thread or commit of jax is known for says so."""
        text = page(turn(WORKS, raised()), changes=(change(source=source),))
        assert f"- **Loops are typed.** {words}\n" in text

    def test_equal_changes_share_a_line(self) -> None:
        """Parameters of one function behind its name."""
        names = ("loops/one[a]", "loops/one[b]", "loops/two")
        text = page(*(turn(raised(), WORKS, name) for name in names))
        assert "<summary>3 cases differ from the release before</summary>" in text
        link = "../../cases/family/topic.py"
        assert f"- [`one`]({link}) (`a`, `b`), [`two`]({link}): raises" in text

    def test_releases_without_a_golden_are_noted(self) -> None:
        """Where releases between were not recorded the change may be of any of them."""
        text = page(turn(WORKS, raised(), release="0.6.1"))
        assert "(nothing is recorded between 0.5.3 and 0.6.1)" in text
        assert "nothing is recorded" not in page(turn(WORKS, raised()))

    def test_the_index_lists_changes_by_release(self) -> None:
        """And leads to the family's page."""
        found = history(turn(WORKS, raised()), changes=(change(),))
        index = dict(render_behaviour_pages([found], DATES, Path()))["README.md"]
        assert "| [loops](loops.md) | Loops. | 1 | 1 |" in index
        assert "- Loops are typed. ([loops](loops.md#060-2025-04-17))" in index
