"""The page of campaigns: each finding once, by release."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from conformance.corpus.behaviour_changes import BehaviourChange
from conformance.fuzz.campaign_log import CampaignLog, CampaignSettings, Round
from conformance.report.fuzz.markdown import format_duration, render_fuzz_markdown
from conformance.report.fuzz.summary import summarize_campaigns
from tests.fuzz.test_script_file import make_finding
from tests.report.fuzz.test_issue import CHANGED, FIXED

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.fuzz.finding import Finding


def make_log(folder: Path, *findings: Finding, seed: int = 1) -> CampaignLog:
    """Return a campaign of three programs with these findings."""
    cells = ("jax0.11.2-py312-cpu8", "jax0.12.0-py312-cpu8")
    log = CampaignLog.create(folder, CampaignSettings(seed=seed, cells=cells, hypothesis="6"))
    log.add_round(
        Round(
            number=0, x64=False, programs=("a", "b", "c"), outcomes={"ok": 2, "raised": 1},
            divergent=1, seconds=4.0, total_seconds=90.0,
        )
    )  # fmt: skip
    for finding in findings:
        log.add_finding(finding)
    return log


def test_a_page_has_campaigns_and_findings_by_release(tmp_path: Path) -> None:
    """The newest release first, differences within a release last."""
    logs = [
        make_log(tmp_path / "one", make_finding(id="a", releases=("0.3.0",), results=CHANGED)),
        make_log(
            tmp_path / "two", make_finding(id="b", oracle="eager"),
            make_finding(id="c", kind="outcome", detail="TypeError became ok",
                         releases=("0.12.0",), results=FIXED),
            seed=2,
        ),
    ]  # fmt: skip
    text = render_fuzz_markdown(summarize_campaigns(logs))
    assert "2 campaigns, 6 programs, 3 findings: 2 new, 1 fixed since, 0 known." in text
    assert "| one | 0.11.2 to 0.12.0 (2) | 1 | 3 | 2 | 2 min | 0.5 | 1 |" in text
    headings = [line for line in text.splitlines() if line.startswith("## ")]
    assert headings == ["## 0.12.0", "## 0.3.0", "## Differences within a release", "## Programs"]
    assert "| [c](#c) | TypeError became ok | `jnp.sin` | vmap | 0 | fixed since 0.3.0 |" in text
    assert "| 0.1.0 to 0.2.0 | `float32 1.0` | yes |" in text
    assert "v1 = jnp.sin(x0)" in text


@pytest.mark.parametrize(
    "other",
    [
        {"programs": ("p2",)},
        {"id": "def", "operations": ("jnp.cos", "jnp.sin")},
        {"id": "def", "transforms": ("jit", "vmap")},
    ],
)
def test_equal_findings_of_campaigns_are_listed_once(tmp_path: Path, other: dict[str, Any]) -> None:
    """The simplest one, with the programs and the campaigns of all."""
    logs = [
        make_log(tmp_path / "one", make_finding(**({"programs": ("p2",)} | other))),
        make_log(tmp_path / "two", make_finding(programs=("p1",), results=CHANGED)),
    ]
    (one,) = summarize_campaigns(logs).differences
    assert one.finding.operations == ("jnp.sin",)
    assert one.finding.results == CHANGED
    assert (one.campaigns, one.programs) == (("one", "two"), 2)
    assert one.others == ((other["id"],) if "id" in other else ())


@pytest.mark.parametrize(
    "other",
    [{"kind": "nan"}, {"oracle": "eager"}, {"releases": ("0.11.0",)}, {"operations": ("jnp.cos",)}],
)
def test_other_findings_are_listed_apart(tmp_path: Path, other: dict[str, Any]) -> None:
    """Of another kind, oracle, release or operation."""
    log = make_log(tmp_path / "one", make_finding(), make_finding(id="def", **other))
    assert len(summarize_campaigns([log]).differences) == 2


def test_a_finding_that_the_history_learned_of_is_known(tmp_path: Path) -> None:
    """Also if it was new when it was found."""
    change = BehaviourChange(
        release="0.12.0", summary="`jnp.sin` is slow", source="jax-ml/jax#1", case="f/c",
        shown_by="value",
    )  # fmt: skip
    log = make_log(tmp_path / "one", make_finding())
    (one,) = summarize_campaigns([log], [change]).differences
    assert (one.state, one.finding.status) == ("known", "known: f/c")


def test_durations_are_in_hours_and_minutes() -> None:
    """Rounded to minutes."""
    assert [format_duration(one) for one in (20, 90, 3600, 3900)] == [
        "0 min", "2 min", "1 h 0 min", "1 h 5 min",
    ]  # fmt: skip
