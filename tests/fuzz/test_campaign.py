"""Campaigns: their log, and one that finds a real change."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING

import msgspec
import pytest

from conformance.app.context import ProjectContext, load_context
from conformance.app.fuzz.run import FuzzOptions, make_json, plan_campaign, run_campaign
from conformance.cells.cell import Cell
from conformance.errors import InfrastructureError, UsageError
from conformance.fuzz import campaign, findings
from conformance.fuzz.campaign_log import CampaignLog, CampaignSettings, Round
from conformance.fuzz.finding import Finding, ReleaseResult, has_same_root

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SETTINGS = CampaignSettings(seed=1, cells=("jax0.11.2", "jax0.12.0"), hypothesis="6.0")
FINDING = Finding(
    id="abc", oracle="release", kind="value", detail="float32", example="1.0 -> 2.0",
    operations=("jnp.cumsum",), transforms=("vmap",), releases=("0.12.0",), script="x = 1\n",
    choices="00", programs=("p1",),
)  # fmt: skip


def make_round(number: int, *programs: str) -> Round:
    """Return a round of these programs."""
    return Round(
        number=number, x64=False, programs=programs, outcomes={"ok": len(programs)}, divergent=0,
        seconds=2.0, total_seconds=3.0,
    )  # fmt: skip


@pytest.fixture
def log(tmp_path: Path) -> CampaignLog:
    """A log with one round and one finding."""
    made = CampaignLog.create(tmp_path / "campaign", SETTINGS)
    made.add_round(make_round(0, "p1", "p2"))
    made.add_finding(FINDING)
    return made


def test_a_campaign_goes_on_where_it_ended(log: CampaignLog) -> None:
    """Its settings, rounds and findings are those of its log, findings in their last state."""
    log.add_finding(msgspec.structs.replace(FINDING, programs=("p1", "p2")))
    loaded = CampaignLog.load(log.folder)
    assert loaded.settings == SETTINGS
    assert loaded.rounds == log.rounds
    assert loaded.findings["abc"].programs == ("p1", "p2")
    assert loaded.tried == {"p1", "p2"}


@pytest.mark.parametrize("name", ["rounds.jsonl", "findings.jsonl"])
def test_half_a_line_of_a_killed_process_is_dropped(log: CampaignLog, name: str) -> None:
    """The next line begins a line of its own."""
    with (log.folder / name).open("ab") as stream:
        stream.write(b'{"number":1,"x6')
    loaded = CampaignLog.load(log.folder)
    assert (len(loaded.rounds), len(loaded.findings)) == (1, 1)
    loaded.add_round(make_round(1, "p3"))
    assert [done.number for done in CampaignLog.load(log.folder).rounds] == [0, 1]


@pytest.mark.parametrize("name", ["rounds.jsonl", "findings.jsonl"])
def test_a_full_disk_is_one_clear_error(tmp_path: Path, name: str) -> None:
    """The log stays as it was: a resumed campaign runs the round again."""
    log = CampaignLog.create(tmp_path / "campaign", SETTINGS)
    (log.folder / name).symlink_to("/dev/full")
    add = {
        "rounds.jsonl": partial(log.add_round, make_round(0, "p1")),
        "findings.jsonl": partial(log.add_finding, FINDING),
    }[name]
    with pytest.raises(InfrastructureError, match=f"{name}: cannot be written: no space left"):
        add()
    assert (log.rounds, log.findings) == ([], {})
    (log.folder / name).unlink()
    assert CampaignLog.load(log.folder).rounds == []


def test_a_folder_has_one_campaign(log: CampaignLog) -> None:
    """Another one needs another folder."""
    with pytest.raises(UsageError, match="has a campaign: add --resume, or name another folder"):
        CampaignLog.create(log.folder, SETTINGS)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ({"campaign.json": None}, "has no campaign: expected campaign.json"),
        ({"campaign.json": "{}"}, "campaign.json: .*expected a campaign"),
        ({"rounds.jsonl": "garbage\n"}, "rounds.jsonl:1: expected a Round: .*delete the line"),
    ],
)
def test_a_damaged_log_is_one_clear_error(
    log: CampaignLog, damage: dict[str, str | None], message: str
) -> None:
    """With the file and its line."""
    for name, text in damage.items():
        if text is None:
            (log.folder / name).unlink()
        else:
            (log.folder / name).write_text(text)
    with pytest.raises(UsageError, match=message):
        CampaignLog.load(log.folder)


SHARDING = {"kind": "sharding"}
LONG_ERROR = {
    "kind": "error",
    "detail": "ValueError: pad on axes where dim 3 is not divisble by the mesh became "
    "ValueError: pad on axes where dim 3 is not divisible by the mesh",
}
ERROR = {"kind": "error", "detail": "TypeError: a became TypeError: b"}
CRASH = {"kind": "crash", "detail": "SIGSEGV became ok", "transforms": ("shard_map",)}

CHANGED = {
    "kind": "value",
    "oracle": "release",
    "releases": ("0.12.0",),
    "results": tuple(
        ReleaseResult(release=release, outcome="ok", text="", differs=release != "0.11.2")
        for release in ("0.11.2", "0.12.0", "0.12.0.1")
    ),
}


@pytest.mark.parametrize(
    ("first", "change", "same"),
    [
        (SHARDING, {"operations": ("jnp.sin",)}, True),
        (SHARDING, {"transforms": ("vmap", "jit")}, True),
        (SHARDING, {"transforms": ("shard_map",)}, False),
        (SHARDING | {"transforms": ("shard_map",)}, {"transforms": ("scan", "shard_map")}, True),
        (SHARDING, {"releases": ("0.11.0",)}, False),
        (SHARDING, {"kind": "value"}, False),
        (ERROR, {"operations": ("jnp.sin",), "transforms": ()}, True),
        (ERROR, {"detail": "TypeError: c became TypeError: d"}, False),
        (LONG_ERROR, {"detail": LONG_ERROR["detail"].replace("pad", "slice")}, True),
        (LONG_ERROR, {"detail": LONG_ERROR["detail"].replace("3", "70")}, True),
        (CRASH, {"operations": ("jnp.sin",), "transforms": ("jit", "shard_map")}, True),
        (CRASH, {"operations": ("jnp.sin",), "detail": "SIGABRT became ok"}, False),
        (CRASH | {"transforms": ()}, {"operations": ("jnp.sin",)}, False),
        ({}, {"operations": ("jnp.sin",)}, False),
        ({}, {"operations": ("jnp.cumsum", "jnp.sin"), "transforms": ("vmap", "jit")}, True),
        ({}, {"operations": ("jnp.cumsum", "jnp.sin"), "transforms": ()}, False),
        ({"kind": "denormal"}, {"operations": ("jnp.sin",)}, True),
        (CHANGED, {"oracle": "numpy", "releases": ("0.12.0", "0.12.0.1")}, True),
        (CHANGED, {"oracle": "numpy", "operations": ("jnp.sin",)}, False),
        (CHANGED, {"oracle": "numpy", "kind": "nan"}, False),
    ],
)
def test_changes_with_one_cause_are_one_finding(
    first: dict[str, object], change: dict[str, object], same: bool
) -> None:
    """Shardings and crashes under the same transforms, equal messages, larger programs.

    A change that made a result wrong is seen by comparison with NumPy, too.
    """
    one = msgspec.structs.replace(FINDING, **first)
    assert has_same_root(one, msgspec.structs.replace(one, **change)) is same


def run(options: FuzzOptions, report: Callable[[str], None]) -> CampaignLog:
    """Run a campaign."""
    context = load_context()
    return run_campaign(context, plan_campaign(context, options), report)


def make_options(folder: Path, *, resume: bool = False, operations: str = "") -> FuzzOptions:
    """Return the options of a short campaign over a change of 0.12.0."""
    return FuzzOptions(
        older="0.11.2", newer="0.12.0", minutes=0.001, seed=0,
        operations=(operations or "jax.scipy.stats.cauchy.ppf",), folder=folder, resume=resume,
        jobs=2,
    )  # fmt: skip


@pytest.mark.long
def test_a_real_change_is_found_shrunk_and_dated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Since 0.12.0, `cauchy.ppf` outside of [0, 1] is NaN; a resumed campaign tries others."""
    monkeypatch.setattr(campaign, "PROGRAMS", 10)
    monkeypatch.setattr(findings, "SHRINKING", 30.0)  # on a slow machine
    lines: list[str] = []
    log = run(make_options(tmp_path / "c"), lines.append)
    finding = next(each for each in log.findings.values() if each.kind == "nan")
    assert finding.releases == ("0.12.0",)
    assert finding.operations == ("jax.scipy.stats.cauchy.ppf",)
    assert finding.transforms == ()
    assert [one.release for one in finding.results] == ["0.11.2", "0.12.0"]
    assert "nan" in finding.results[1].text
    assert "nan" not in finding.results[0].text
    assert "jax.scipy.stats.cauchy.ppf" in finding.script
    assert any(finding.id in line for line in lines)
    assert json.loads(json.dumps(make_json(log)))["programs"] == len(log.rounds[0].programs)
    resumed = run(make_options(tmp_path / "c", resume=True), lines.append)
    first, second = resumed.rounds
    assert not {*first.programs} & {*second.programs}
    with pytest.raises(UsageError, match="name another folder with --run"):
        run(make_options(tmp_path / "c", resume=True, operations="jnp.sin"), print)


def test_an_unknown_operation_is_one_clear_error(tmp_path: Path) -> None:
    """It names the pattern."""
    with pytest.raises(UsageError, match=r"--ops jnp.unknown: matches none of \d+ operations"):
        run(make_options(tmp_path, operations="jnp.unknown"), print)


def test_a_campaign_is_named_by_its_releases_and_its_seed(tmp_path: Path) -> None:
    """A resumed one has the cells, the operations and the seed of its log."""
    context = load_context()
    options = FuzzOptions(older="0.12.0", newer="0.12.0.1", minutes=1, jobs=2)
    plan = plan_campaign(context, options)
    assert plan.folder == context.campaigns / "0.12.0-0.12.0.1-0"
    stored = CampaignSettings(
        seed=7, cells=("jax0.6.0-py311-cpu8", "jax0.6.1-py311-cpu8"), operations=("jnp.sin",),
        hypothesis="6",
    )  # fmt: skip
    CampaignLog.create(tmp_path / "c", stored)
    resumed = plan_campaign(
        context, FuzzOptions(minutes=1, jobs=2, folder=tmp_path / "c", resume=True)
    )
    assert tuple(cell.id for cell in resumed.cells) == stored.cells
    assert (resumed.seed, resumed.operations) == (7, ("jnp.sin",))


def test_the_seed_of_a_nightly_is_its_day(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each night tries other programs."""
    cells = [
        Cell(release=f"0.13.0.dev202611{day}", python="3.12", platform="cpu", devices=8)
        for day in (25, 26)
    ]
    monkeypatch.setattr(ProjectContext, "select_cells", lambda *_: (cells, ()))
    options = FuzzOptions(cells=("nightly-1", "nightly"), minutes=1, jobs=2)
    plan = plan_campaign(load_context(), options)
    assert plan.seed == 20261126
    assert plan.folder.name == "0.13.0.dev20261125-0.13.0.dev20261126-20261126"
