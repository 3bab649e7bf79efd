"""What is said of an upgrade, to be read and to be pasted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.model.outcome import Verdict
from conformance.model.run import Exclusion
from conformance.report.upgrade.result import UpgradeCaseStep, group_changes
from conformance.report.upgrade.text import (
    render_upgrade,
    render_upgrade_markdown,
    summarize_upgrade,
)
from conformance.triage.upgrade.comparison import ComparedCase
from conformance.triage.upgrade.effect import Effect
from tests.builders import case, deviation
from tests.report.raising import LINES
from tests.report.raising import RAISED as TRACED
from tests.report.upgrades import AXIS, OK, OTHER, RAISED, WRONG, Tried, compared, file_of, told

if TYPE_CHECKING:
    from pathlib import Path


def test_a_paragraph_for_a_team(tmp_path: Path) -> None:
    """Counts, the first release of what breaks, and how much of it no error tells of."""
    upgraded = told(
        compared(tmp_path, "f/a", OK, RAISED, RAISED, RAISED),
        compared(tmp_path, "f/b", OK, OK, OK, RAISED),
        compared(tmp_path, "f/c", OK, OK, WRONG, WRONG),
        compared(tmp_path, "f/d", RAISED, OK, OK, OK),
        compared(tmp_path, "f/e", OK, OK, OK, OK),
        ComparedCase(case=case("f/f"), axis=AXIS, flaky="0.6.0: attempts disagree"),
    )
    assert summarize_upgrade(upgraded) == (
        "From jax 0.5.3 to 0.6.2 on cpu8, of 5 cases 2 break (the first in 0.6.0), 1 becomes "
        "silently wrong (in 0.6.1), 1 is fixed and 1 is unchanged. 1 of these changes raises "
        "no error. 1 case gave different results in two attempts and is not compared."
    )
    assert upgraded.breaks


def test_nothing_breaks(tmp_path: Path) -> None:
    """What is fixed breaks nothing."""
    upgraded = told(compared(tmp_path, "f/a", RAISED, OK, OK, OK))
    assert summarize_upgrade(upgraded) == (
        "From jax 0.5.3 to 0.6.2 on cpu8, of 1 case 1 is fixed. Nothing breaks."
    )
    assert not upgraded.breaks


def test_cases_that_fail_at_both_ends_do_not_read_as_success(tmp_path: Path) -> None:
    """A missing package makes every case fail at both ends, and the headline must show that."""
    fails = compared(tmp_path, "f/a", RAISED, RAISED, RAISED, RAISED)
    works = compared(tmp_path, "f/b", OK, OK, OK, OK)
    head = "From jax 0.5.3 to 0.6.2 on cpu8, of"
    assert summarize_upgrade(told(fails)) == (
        f"{head} 1 case 1 is unchanged. All fail at both ends: nothing can break."
    )
    assert summarize_upgrade(told(fails, works)) == (
        f"{head} 2 cases 2 are unchanged. Nothing breaks, but 1 case fails at both ends."
    )


def test_a_break_between_the_ends_is_in_the_headline(tmp_path: Path) -> None:
    """In text, Markdown and JSON; nothing then claims that nothing breaks."""
    upgraded = told(
        compared(tmp_path, "f/a", OK, OK, RAISED, OK),
        compared(tmp_path, "f/b", OK, RAISED, RAISED, OK),
    )
    assert summarize_upgrade(upgraded) == (
        "From jax 0.5.3 to 0.6.2 on cpu8, of 2 cases 2 are unchanged. 2 of 2 cases break "
        "only between the ends (the first in 0.6.0), not in 0.6.2."
    )
    assert summarize_upgrade(upgraded) in render_upgrade_markdown(upgraded)
    found = file_of(upgraded)
    assert found.verdict == summarize_upgrade(upgraded)
    assert [(one.case, one.changed_in) for one in found.between] == [
        ("f/a", "0.6.1"),
        ("f/b", "0.6.0"),
    ]
    assert not upgraded.breaks


def test_the_summary_counts_untried_cases(tmp_path: Path) -> None:
    """A case of both ends alone may break between them."""
    upgraded = Tried(tmp_path).case("f/a", OK, None, None, OK).upgraded()
    assert summarize_upgrade(upgraded) == (
        "From jax 0.5.3 to 0.6.2 on cpu8, of 1 case 1 is unchanged. Nothing breaks. 1 case was "
        "tried on some of the releases only: --thorough tries all."
    )
    assert [one.releases for one in file_of(upgraded).untried] == [2]


def test_equal_changes_are_one_group(tmp_path: Path) -> None:
    """By release and error; what else changed on the way stands beside it."""
    first = compared(tmp_path, "f/a", OK, RAISED, RAISED, RAISED)
    second = compared(tmp_path, "f/b", OK, RAISED, RAISED, RAISED)
    third = compared(tmp_path, "f/c", OK, RAISED, RAISED, OTHER)
    later = compared(tmp_path, "f/d", OK, OK, OK, RAISED)
    made = group_changes(told(first, second, later))
    names = [[one.compared.case.id for one in group.members] for group in made]
    assert names == [["f/a", "f/b"], ["f/d"]]
    lines = [*render_upgrade(told(first, second))]
    assert "broken: 2" in lines
    assert "  in 0.6.0 (2 cases): ok -> ValueError: bad shape" in lines
    assert "    f/a, f/b" in lines
    assert "    also another error in 0.6.2" in [*render_upgrade(told(third))]


def test_the_thread_of_a_declared_deviation(tmp_path: Path) -> None:
    """Of the release that shows it."""
    declared = (deviation(">=0.6"),)
    one = compared(tmp_path, "f/a", OK, RAISED, RAISED, RAISED, deviations=declared)
    assert "    upstream jax-ml/jax#1" in [*render_upgrade(told(one))]
    declared = (deviation("<0.6"),)
    fixed = compared(tmp_path, "f/b", RAISED, OK, OK, OK, deviations=declared)
    assert "    upstream jax-ml/jax#1" in [*render_upgrade(told(fixed))]


def test_a_known_failure_of_a_suite(tmp_path: Path) -> None:
    """One that begins is told with its reason, apart from what is not known; one that ends, too."""
    shown = {**RAISED, "verdict": Verdict.KNOWN, "reasons": ("deviation jax>=0.6: why",)}
    begins = compared(tmp_path, "t/a", OK, shown, shown, shown, kind="test")
    breaks = compared(tmp_path, "t/b", OK, RAISED, RAISED, RAISED, kind="test")
    ends = compared(tmp_path, "t/c", shown, OK, OK, OK, kind="test")
    upgraded = told(begins, breaks, ends)
    effects = [
        (group.effect, [one.compared.case.id for one in group.members])
        for group in group_changes(upgraded)
    ]
    assert effects == [
        (Effect.BROKEN, ["t/a"]), (Effect.BROKEN, ["t/b"]), (Effect.FIXED, ["t/c"]),
    ]  # fmt: skip
    lines = [*render_upgrade(upgraded)]
    assert lines.count("    known: deviation jax>=0.6: why") == 2
    said = {one.case: one.known for one in file_of(upgraded).transitions}
    why = "deviation jax>=0.6: why"
    assert said == {"t/a": why, "t/b": "", "t/c": why}
    assert upgraded.breaks


def test_suspected_packages_are_named(tmp_path: Path) -> None:
    """A package that changed with jax is a suspect where the case imports it."""
    plain = compared(tmp_path, "f/a", OK, RAISED, RAISED, RAISED)
    assert UpgradeCaseStep(plain, plain.steps[0]).culprit == "jax"
    later = compared(tmp_path, "f/b", OK, OK, RAISED, RAISED)
    assert UpgradeCaseStep(later, later.steps[0]).culprit == ""
    assert UpgradeCaseStep(later, later.steps[0]).other_suspects == {"numpy": ("2.2.0", "2.3.0")}
    with_flax = compared(tmp_path, "f/c", OK, OK, RAISED, RAISED, requires=("flax>=0.2",))
    assert UpgradeCaseStep(with_flax, with_flax.steps[0]).suspects.keys() == {
        "jax",
        "jaxlib",
        "numpy",
        "flax",
    }


def test_flaky_and_uncompared_cases_are_listed(tmp_path: Path) -> None:
    """Why, how often, and what it took."""
    upgraded = told(
        compared(tmp_path, "f/a", OK, OK, OK, OK),
        ComparedCase(case=case("f/b"), axis=AXIS, refusal="0.5.3: unsupported: no such thing"),
        ComparedCase(case=case("f/c"), axis=AXIS, refusal="0.5.3: unsupported: no such thing"),
        left_out=(Exclusion(case="", cell="jax0.6.1-py311-cpu8", reason="no wheels"),),
    )
    assert [*render_upgrade(upgraded)][-3:] == [
        "not compared: 2 cases: 0.5.3: unsupported: no such thing",
        "left out jax0.6.1-py311-cpu8: no wheels",
        "8 jobs tried, of 4 on all 4 releases",
    ]


def test_cases_that_fail_at_both_ends_are_listed(tmp_path: Path) -> None:
    """It is unchanged, and yet says nothing; unless it is declared."""
    one = compared(tmp_path, "f/a", RAISED, RAISED, RAISED, RAISED)
    declared = compared(
        tmp_path, "f/b", RAISED, RAISED, RAISED, RAISED, deviations=(deviation(""),)
    )
    lines = [*render_upgrade(told(one, declared))]
    assert lines[-2] == "fails at both ends alike: 1 case: ValueError: bad shape"


def test_hostile_text_does_not_break_the_markdown(tmp_path: Path) -> None:
    """A stroke in a message does not divide the row."""
    text = render_upgrade_markdown(told(compared(tmp_path, "f/a", OK, OTHER, OTHER, OTHER)))
    assert "| 0.6.0 | `f/a` | `ok` | `ValueError: bad \\| shape` | jax |  |" in text
    assert text.startswith("# jax 0.5.3 to 0.6.2\n\nFrom jax 0.5.3")


def test_broken_cases_have_a_traceback(tmp_path: Path) -> None:
    """Of the first release that breaks it, in the terminal and folded in Markdown."""
    upgraded = told(compared(tmp_path, "f/a", OK, OK, TRACED, TRACED), root="/home/me/project")
    lines = [*render_upgrade(upgraded)]
    at = lines.index(f"    {LINES[0]}")
    assert lines[at : at + len(LINES)] == [f"    {line}" for line in LINES]
    pasted = render_upgrade_markdown(upgraded)
    text = "\n".join(LINES)
    assert f"<summary>Traceback of f/a</summary>\n\n```text\n{text}\n```" in pasted


def test_fixed_cases_have_a_traceback_with_verbose(tmp_path: Path) -> None:
    """It no longer matters much."""
    upgraded = told(compared(tmp_path, "f/a", TRACED, OK, OK, OK))
    for every in (False, True):
        assert (f"    {LINES[0]}" in render_upgrade(upgraded, every=every)) is every
