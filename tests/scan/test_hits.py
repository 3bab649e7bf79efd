"""What changes for a use between two releases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.corpus.behaviour_changes import BehaviourChange
from conformance.scan.api import Api, NameState
from conformance.scan.hits import Hit, HitFinder, HitKind
from conformance.scan.signatures import CallShape
from conformance.scan.touches import Touch, parse_touch
from conformance.scan.uses import NameUse

if TYPE_CHECKING:
    from collections.abc import Callable

RELEASES = ("1.0", "1.1", "1.2")
ABSENT, WARNS = NameState.ABSENT, NameState.WARNS
API = Api(
    releases=RELEASES,
    names={"jax": frozenset({"f", "g", "old", "h"}), "jax.gone": frozenset({"x"})},
    missing={
        "1.0": {},
        "1.1": {"jax": {"g": WARNS, "h": ABSENT}},
        "1.2": {"jax": {"g": WARNS, "old": ABSENT}, "jax.gone": {"": ABSENT}},
    },
    signatures={
        "1.0": {"jax": {"f": "(a, b=1, c=2)", "g": "(a)"}},
        "1.1": {"jax": {"f": "(a, c=2, b=1)", "g": "(a)"}},
        "1.2": {"jax": {"f": "(a, c=3, b=1)", "g": "(a)"}},
    },
    options={"1.0": {"jax_a": "1"}, "1.1": {"jax_a": "1"}, "1.2": {}},
)


def change(summary: str, **more: Any) -> BehaviourChange:
    """Return a line of the history."""
    fields = {"release": "1.2", "source": "unknown", "case": "family/name", "shown_by": "value"}
    return BehaviourChange(summary=summary, **{**fields, **more})


def use(name: str, *keywords: str, positions: int = 1, **more: Any) -> NameUse:
    """Return a use of a name, a call unless it is said otherwise."""
    shape = CallShape(positions=positions, keywords=frozenset(keywords))
    return NameUse(names=frozenset({name}), line=1, column=1, **{"call": shape, **more})


def find(
    one: NameUse,
    *changes: tuple[BehaviourChange, Touch],
    every: bool = False,
    matters: Callable[[BehaviourChange], bool] = lambda _: True,
) -> list[Hit]:
    """Return the hits of a use from the oldest to the newest release."""
    lines = {line: [touch] for line, touch in changes}
    return HitFinder(API, lines, "1.0", "1.2", matters=matters, every=every).find(one)


def kinds(one: NameUse) -> list[tuple[HitKind, str]]:
    """Return the kinds and releases of the hits of a use."""
    return [(hit.kind, hit.release) for hit in find(one)]


def test_a_name_that_is_gone_is_a_hit_where_it_is_written() -> None:
    """As an attribute or an import; not where an imported name is used."""
    assert kinds(use("jax.old")) == [(HitKind.REMOVED, "1.2")]
    assert kinds(use("jax.old", imported=True, direct=False, call=None)) == [
        (HitKind.REMOVED, "1.2")
    ]
    assert kinds(use("jax.old", direct=False)) == []
    assert kinds(use("jax.gone.x")) == [(HitKind.REMOVED, "1.2")]
    assert kinds(use("jax.gone.not_listed", imported=True, call=None)) == [(HitKind.REMOVED, "1.2")]
    assert kinds(use("jax.not_listed")) == []


def test_what_comes_back_is_no_hit() -> None:
    """Both ends have the name."""
    assert kinds(use("jax.h", call=None)) == []


def test_a_deprecated_name_warns() -> None:
    """From the release on that deprecates it."""
    assert kinds(use("jax.g")) == [(HitKind.DEPRECATED, "1.1")]


def test_code_that_asks_for_a_name_is_read_if_both_ends_have_it() -> None:
    """Otherwise it may run on one of them alone."""
    assert kinds(use("jax.old", tested=frozenset({"jax.f", "jax.g"}))) == [(HitKind.REMOVED, "1.2")]
    assert kinds(use("jax.old", tested=frozenset({"jax.old"}))) == []
    assert kinds(use("jax.old", tested=frozenset({"jax.not_listed"}))) == []


def test_guarded_code_and_unknown_names_are_no_hits() -> None:
    """Code for several releases, private names, other packages."""
    assert kinds(use("jax.old", guarded=True)) == []
    assert kinds(use("jax._src.old")) == []
    assert kinds(use("numpy.old")) == []


def test_a_name_of_two_homes_breaks_if_both_do() -> None:
    """As after an import that falls back to another module."""
    two = NameUse(names=frozenset({"jax.old", "jax.f"}), line=1, column=1)
    assert kinds(two) == []
    both = NameUse(names=frozenset({"jax.old", "jax.gone.x"}), line=1, column=1)
    assert [kind for kind, _ in kinds(both)] == [HitKind.REMOVED]


def test_a_call_that_no_longer_fits_is_a_hit() -> None:
    """One that did not fit before is none."""
    finder = HitFinder(API, {}, "1.0", "1.2", matters=lambda _: True)
    fits = NameUse(
        names=frozenset({"jax.f"}), line=1, column=1,
        call=CallShape(positions=1, keywords=frozenset({"b"})),
    )  # fmt: skip
    assert finder.find(fits) == []
    assert kinds(use("jax.f", "unknown")) == []


def test_arguments_that_mean_something_else_are_silent() -> None:
    """A position that moved; with `every`, a default that the call uses."""
    (moved,) = find(use("jax.f", positions=3))
    assert (moved.kind, moved.release, moved.is_loud) == (HitKind.POSITION, "1.1", False)
    assert find(use("jax.f")) == []
    (default,) = find(use("jax.f"), every=True)
    assert (default.kind, default.release) == (HitKind.DEFAULT, "1.2")
    assert default.text == "`c` of `jax.f` is 3 by default; before, it was 2"


def test_an_option_that_is_gone_is_a_hit() -> None:
    """In whatever way it is set."""
    option = NameUse(names=frozenset(), line=1, column=1, option="jax_a")
    assert [hit.kind for hit in find(option)] == [HitKind.OPTION]


def test_a_hit_has_the_line_of_its_release_that_names_it() -> None:
    """With its advice; a line about something else is none."""
    line = change("`jax.old` is gone", advice="Use `jax.new`.")
    other = change("`jax.other` is gone")
    touch = Touch(name="jax.old")
    (hit,) = find(use("jax.old"), (other, touch), (line, touch))
    assert hit.change == line
    (alone,) = find(use("jax.old"), (other, touch))
    assert alone.change is None


def test_a_change_of_behaviour_is_a_hit_of_calls_with_its_parameter() -> None:
    """Of all calls if asked; words of errors only then."""
    line, touch = change("`b` of `jax.f` counts"), Touch(name="jax.f", arguments=frozenset({"b"}))

    def behaviours(one: NameUse, *lines: tuple[BehaviourChange, Touch], every: bool) -> int:
        found = find(one, *lines, every=every)
        return sum(hit.kind is HitKind.BEHAVIOUR for hit in found)

    assert behaviours(use("jax.f", "b"), (line, touch), every=False) == 1
    assert behaviours(use("jax.f"), (line, touch), every=False) == 0
    whole = Touch(name="jax.f")
    assert behaviours(use("jax.f"), (line, whole), every=False) == 0
    assert behaviours(use("jax.f"), (line, whole), every=True) == 1
    words = change("The error of `jax.f` names `b`", shown_by="error")
    assert behaviours(use("jax.f", "b"), (words, touch), every=False) == 0


def test_a_change_that_does_not_matter_is_no_hit() -> None:
    """Unless every line of the history is wanted."""
    line, touch = change("`b` of `jax.h` counts"), parse_touch("jax.h(b)")
    one = use("jax.h", "b")

    def count(*, matters: bool, every: bool = False) -> int:
        return len(find(one, (line, touch), matters=lambda _: matters, every=every))

    assert count(matters=True) == 1
    assert count(matters=False) == 0
    assert count(matters=False, every=True) == 1


def test_attributes_of_results_are_hits() -> None:
    """By the lines of the history alone: no release lists their names."""
    line, touch = change("`lower` of `jax.f` is another"), parse_touch("jax.f().lower")
    assert [hit.name for hit in find(use("jax.f().lower"), (line, touch))] == ["jax.f().lower"]
    assert find(use("jax.f().trace"), (line, touch)) == []
    assert find(use("jax.f().lower", guarded=True), (line, touch)) == []


def test_a_module_that_cannot_be_imported_any_more_is_a_loud_hit() -> None:
    """Of each import that needs it, whatever the golden of its case shows; other uses go on."""
    line, touch = change("`import jax.f` fails", shown_by="value"), parse_touch("import jax.f")
    needs = use("jax.f", imported=True, module="jax.f")
    (hit,) = find(needs, (line, touch))
    assert (hit.kind, hit.name, hit.is_loud) == (HitKind.BEHAVIOUR, "jax.f", True)
    assert find(use("jax.f", imported=True, module="jax"), (line, touch)) == []
    assert find(use("jax.f"), (line, touch)) == []


def test_a_change_of_an_option_is_a_hit() -> None:
    """Named without its mark."""
    option = NameUse(names=frozenset(), line=1, column=1, option="jax_b")
    line, touch = change("`jax_b` is on by default"), parse_touch("option:jax_b")
    assert [(hit.kind, hit.name) for hit in find(option, (line, touch))] == [
        (HitKind.BEHAVIOUR, "jax_b")
    ]
