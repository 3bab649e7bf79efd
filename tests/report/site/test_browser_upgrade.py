"""An upgrade's page in a real browser: read, filtered, copied from; with and without a mouse."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from conformance.model.run import Exclusion
from conformance.report.site.addresses import UPGRADE
from conformance.triage.upgrade.comparison import ComparedCase
from tests.builders import case, deviation
from tests.report.upgrades import AXIS, OK, RAISED, WRONG, Tried, file_of, told

from .examples import ATTACK, NASTY, write

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conformance.report.report import Report

    from .browsing import Visit

    Open = Callable[..., Visit]


PHONE: dict[str, Any] = {"viewport": {"width": 360, "height": 740}}
EFFECTS = ["1 broken", "1 silently wrong", "1 fixed", "2 unchanged"]


def report_of(folder: Path, *, name: str, reason: str) -> Report:
    """Return an upgrade with something of most effects, whose texts are given."""
    error = {"error": ("ValueError", reason)}
    tried = (
        Tried(folder / "run-1")
        .case(f"f/{name}", OK, OK, error, error, deviations=(deviation(">=0.6.1"),))
        .case("f/wrong", OK, WRONG, WRONG, WRONG)
        .case("f/mended", RAISED, RAISED, RAISED, OK)
        .case("f/back", OK, RAISED, OK, OK)
        .case("f/same", OK, None, None, OK)
    )
    asides = (
        ComparedCase(case=case(f"f/{name}-2"), axis=AXIS, flaky=reason),
        ComparedCase(case=case(f"f/{name}-3"), axis=AXIS, refusal=reason),
    )
    left_out = (Exclusion(case="", cell=name, reason=reason),)
    return tried.report(file_of(told(*tried.compared, *asides, left_out=left_out)))


@pytest.fixture(scope="module")
def upgrade_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of an upgrade."""
    folder = tmp_path_factory.mktemp("upgrade")
    return write(report_of(folder, name="breaks", reason="bad shape"), folder)


@pytest.fixture(scope="module")
def hostile_upgrade(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of an upgrade whose texts want to be more than text, and are long."""
    folder = tmp_path_factory.mktemp("hostile-upgrade")
    return write(report_of(folder, name=ATTACK, reason=f"{NASTY} {'y' * 2000}"), folder)


def shown(seen: Visit) -> list[str]:
    """Return the anchors of the groups that are shown."""
    return [str(one.get_attribute("id")) for one in seen.all(".group").all()]


def test_effects_filter(visit: Open, upgrade_site: Path) -> None:
    """One or several; what is chosen stands in the address, and can be given up."""
    seen = visit(upgrade_site, UPGRADE)
    assert [" ".join(one.split()) for one in seen.all(".effect").all_inner_texts()] == EFFECTS
    assert shown(seen) == ["broken-1", "wrong-1", "fixed-1", "unchanged-1"]
    seen.page.click("[data-effect=wrong]")
    assert shown(seen) == ["wrong-1"]
    seen.page.click("[data-effect=fixed]")
    assert shown(seen) == ["wrong-1", "fixed-1"]
    assert "2 of 4 changes" in seen.page.locator("#shown").inner_text()
    other = visit(upgrade_site, seen.address)
    assert shown(other) == ["wrong-1", "fixed-1"]
    assert other.page.locator("[data-effect=fixed]").get_attribute("aria-pressed") == "true"
    other.page.click("#clear")
    assert len(shown(other)) == 4


@pytest.mark.long(keep=1)
@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("breaks", ["broken-1"]),
        ("bad SHAPE 0.6.0", ["broken-1", "unchanged-1"]),
        ("f/same", []),
        ("nothing like it", []),
    ],
)
def test_words_filter(visit: Open, upgrade_site: Path, words: str, found: list[str]) -> None:
    """By the keys: cases, messages and releases; where nothing is left the page says so."""
    seen = visit(upgrade_site, UPGRADE)
    seen.keys("f")
    seen.page.keyboard.type(words)
    assert shown(seen) == found
    assert seen.page.locator("#nothing").is_visible() is (words == "nothing like it")


def test_what_is_linked_to_is_shown(visit: Open, upgrade_site: Path) -> None:
    """Also where a filter hid it."""
    seen = visit(upgrade_site, f"{UPGRADE}#effect=fixed")
    seen.ask("location.hash = 'wrong-1'")
    seen.page.wait_for_selector("#wrong-1")
    assert len(shown(seen)) == 4


@pytest.mark.parametrize("denied", [False, True])
def test_the_paragraph_is_copied(visit: Open, upgrade_site: Path, denied: bool) -> None:
    """As it stands; where the page may not, the browser's older way does it."""
    script = "Object.defineProperty(navigator, 'clipboard', {value: undefined});" if denied else ""
    seen = visit(upgrade_site, UPGRADE, script=script)
    heard = "document.addEventListener('copy', () => (window.heard = String(getSelection())))"
    spy = "navigator.clipboard.writeText = async (text) => { window.heard = text; }"
    seen.ask(heard if denied else spy)
    seen.page.click("text=Copy >> nth=0")
    seen.page.wait_for_selector("text=Copied")
    assert str(seen.ask("window.heard")).startswith("From jax 0.5.3 to 0.6.2 on cpu8, of 5 cases")


def test_the_command_is_copied(visit: Open, upgrade_site: Path) -> None:
    """Without the sign of a prompt."""
    seen = visit(upgrade_site, UPGRADE)
    seen.ask("navigator.clipboard.writeText = async (text) => { window.heard = text; }")
    seen.page.locator("#wrong-1").get_by_role("button", name="Copy the command").first.click()
    seen.page.wait_for_selector("text=Copied")
    assert str(seen.ask("window.heard")).startswith("conformance repro f/wrong --cell")


def test_what_was_not_tried_is_blank(visit: Open, upgrade_site: Path) -> None:
    """Each part of the picture is as wide as its releases, and says what it shows."""
    seen = visit(upgrade_site, UPGRADE)
    parts = seen.page.locator("#wrong-1 .part")
    assert [one.get_attribute("title") for one in parts.all()] == [
        "0.5.3: ok, conforms", "0.6.0 to 0.6.2: ok, deviates",
    ]  # fmt: skip
    widths = [one["width"] for part in parts.all() if (one := part.bounding_box()) is not None]
    assert widths[1] == pytest.approx(3 * widths[0], rel=0.02)


def test_a_case_leads_to_its_evidence(visit: Open, upgrade_site: Path) -> None:
    """The part of its page that shows both sides; and from there back."""
    seen = visit(upgrade_site, UPGRADE)
    with seen.led():
        seen.page.click("#broken-1 .who a")
    assert seen.page.url.endswith("cases/f/breaks.html#cpu8@0.6.1")
    with seen.led():
        seen.page.click("nav >> text=Upgrade")
    assert seen.page.url.endswith(UPGRADE)


def test_without_scripts(visit: Open, upgrade_site: Path) -> None:
    """All of it is there, effects lead to their part, and no control is dead."""
    seen = visit(upgrade_site, UPGRADE, java_script_enabled=False)
    assert seen.all("button").count() == 0
    assert seen.page.locator("#filter-text").is_hidden()
    with seen.led():
        seen.page.click("a[data-effect=fixed]")
    assert seen.page.url.endswith("#fixed")
    index = visit(upgrade_site, java_script_enabled=False)
    with index.led():
        index.page.click(f".upgraded a[href='{UPGRADE}']")
    assert index.page.url.endswith(UPGRADE)


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_accessible(visit: Open, upgrade_site: Path, theme: str) -> None:
    """Axe finds nothing serious, also with a filter set."""
    assert visit(upgrade_site, UPGRADE, color_scheme=theme).findings() == []
    seen = visit(upgrade_site, f"{UPGRADE}#effect=broken,unchanged", color_scheme=theme)
    assert seen.findings() == []


def test_narrow_screen_and_paper(visit: Open, upgrade_site: Path) -> None:
    """No wider than a phone; on paper without controls."""
    assert not visit(upgrade_site, UPGRADE, **PHONE).sideways
    seen = visit(upgrade_site, UPGRADE)
    seen.page.emulate_media(media="print")
    assert seen.all(".copy").count() == 0
    assert seen.page.locator("#narrow").is_hidden()
    assert seen.all(".group").count() == 4


def test_hostile_texts_stay_texts(visit: Open, hostile_upgrade: Path) -> None:
    """They are shown, none of it acts or hides, and none makes the page wide."""
    for options in ({}, PHONE):
        seen = visit(hostile_upgrade, UPGRADE, **options)
        assert seen.ask("window.hacked") is None
        assert seen.page.locator("img[src=x]").count() == 0
        text = str(seen.ask("document.body.textContent"))
        assert "<script>window.hacked=1</script>" in text
        assert not set(text) & {"\x00", "\x1b", "\u202e", "\u202c", "\u2028"}
        assert not seen.sideways
