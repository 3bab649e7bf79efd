"""The pass or flag behind a difference of one computation."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from conformance.search.ddmin import SetResult
from conformance.triage.layers.passes import PassFinding, find_module_passes, render_passes
from conformance.triage.passes.settings import Setting

if TYPE_CHECKING:
    from collections.abc import Callable

FLAGS = [
    Setting(kind="flag", name="xla_cpu_enable_fast_math", value=True),
    Setting(kind="flag", name="xla_cpu_use_fusion_emitters", value=False),
]


def find(enough: Callable[[Setting], bool], *, refused: str = "") -> PassFinding:
    """Return what a search finds in a module that four passes change."""

    def classify(setting: Setting) -> SetResult:
        if refused in setting.disabled:
            return SetResult.UNRESOLVED
        return SetResult.ENOUGH if enough(setting) else SetResult.NOT_ENOUGH

    names = ["pipeline-start", "algsimp", "fusion", "dce", "cse", "pipeline-end"]
    dumps = [
        f"module_0001.jit_f.{number:04}.simplify.after_{after}.before_{before}.txt"
        for number, (after, before) in enumerate(pairwise(names))
    ]
    return find_module_passes(lambda _: dumps, classify, FLAGS, unfinished=False)


def test_pass_without_which_the_result_is_good_is_found() -> None:
    """Other passes may be disabled, too."""
    found = find(lambda setting: "fusion" in setting.disabled)
    assert (found.culprits, found.changing, found.flags) == (("fusion",), 4, ())
    assert found.name == "pass fusion"
    (line,) = render_passes(found, "0.8.3")
    assert line == (
        "the XLA of 0.8.3 gives the good result without the pass fusion "
        "(tried 4 passes that change the module and 2 flags)"
    )


def test_passes_that_only_together_are_enough_are_named_together() -> None:
    """Each of them repeats what the other one does."""
    found = find(lambda setting: {"algsimp", "cse"} <= {*setting.disabled})
    assert (found.culprits, found.name) == (("algsimp", "cse"), "passes algsimp, cse")


def test_pass_that_xla_needs_hides_no_other() -> None:
    """Without it nothing compiles."""
    found = find(lambda setting: "dce" in setting.disabled, refused="cse")
    assert found.culprits == ("dce",)


def test_flag_may_be_the_only_finding() -> None:
    """It is written as XLA takes it."""
    found = find(lambda setting: setting.name == "xla_cpu_use_fusion_emitters")
    assert (found.culprits, found.flags) == ((), (FLAGS[1],))
    assert found.name == "flag --xla_cpu_use_fusion_emitters=false"
    (line,) = render_passes(found, "0.8.3")
    assert "gives the good result with --xla_cpu_use_fusion_emitters=false (" in line


def test_result_that_is_good_by_chance_is_no_finding() -> None:
    """Uninitialised memory is like anything once."""
    seen: set[Setting] = set()

    def is_good_once(setting: Setting) -> bool:
        is_new = setting not in seen
        seen.add(setting)
        return is_new

    found = find(is_good_once)
    assert (found.culprits, found.flags, found.name) == ((), (), "")
    (line,) = render_passes(found, "0.8.3")
    assert line.startswith("no pass or flag of the XLA of 0.8.3 gives the good result (tried 4 ")
