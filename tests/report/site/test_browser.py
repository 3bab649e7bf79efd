"""The site in a real browser: opened from the disk, used with and without a mouse."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pytest

from tests.report.runs import Directory

from .browsing import DENIED, Visit
from .examples import CPU, write

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Open = Callable[..., Visit]


ALL = ["mended", "steady", "broken", "even", "killed", "unlucky"]
PHONE: dict[str, Any] = {"viewport": {"width": 360, "height": 740}}
PAGES = (
    "index.html",
    "causes.html",
    "fuzz.html",
    "history.html",
    "runs/night-1.html",
    "cases/shapes/broken.html",
)
every_page = pytest.mark.parametrize("page", PAGES)
both_themes = pytest.mark.parametrize("theme", ["light", "dark"])


def test_matrix_opens_from_the_disk(visit: Open, full_site: Path) -> None:
    """The story is on top, every case is a row, and nothing is asked of a network."""
    seen = visit(full_site)
    assert seen.page.locator("h1").inner_text().strip() == "3 of 26 jobs are unexpected"
    assert seen.cases == ALL
    assert "2 root causes" in seen.page.locator(".alarm").inner_text()


def test_equal_releases_are_one_segment(visit: Open, full_site: Path) -> None:
    """A history of five releases that changes once is two segments, the second begins with it."""
    seen = visit(full_site)
    row = seen.page.locator(".row:not(.sum)", has_text="mended")
    spans = [one.get_attribute("aria-colspan") for one in row.locator(".seg").all()]
    assert spans == ["2", "3", "4"]
    assert row.locator(".seg.e-f").count() == 1


def test_cell_tells_outcome_conformance_and_verdict(visit: Open, full_site: Path) -> None:
    """A letter, a fill and a ring; the words are in the label, and shown when pointed at."""
    seen = visit(full_site)
    cell = seen.page.locator(".seg.wrong.raised.deviates a")
    assert cell.inner_text() == "R"
    label = cell.get_attribute("aria-label") or ""
    cell.hover()
    for words in ("regressed, unexpected", "raised (ValueError), deviates", "golden gave a value"):
        assert words in label
        assert words in seen.page.locator("#tip").inner_text()


@pytest.mark.long(keep=1)
@pytest.mark.parametrize(
    ("words", "cases"),
    [("mended", ["mended"]), ("axis away", ["broken"]), ("SHAPES ev", ["even"]), ("zzz", [])],
)
def test_filter_by_text(visit: Open, full_site: Path, words: str, cases: list[str]) -> None:
    """All words must be in the name or the description; where none is left the page says so."""
    seen = visit(full_site)
    seen.keys("f")
    seen.page.keyboard.type(words)
    assert seen.cases == cases
    assert seen.page.locator("#nothing").is_visible() is not bool(cases)


def test_filter_by_verdict(visit: Open, full_site: Path) -> None:
    """Rows with any of the verdicts chosen; both pressed show both."""
    seen = visit(full_site)
    seen.page.click("[data-verdict=crashed]")
    assert seen.cases == ["killed"]
    seen.page.click("[data-verdict=known]")
    assert seen.cases == ["mended", "killed"]
    assert seen.page.locator("[data-verdict=known]").get_attribute("aria-pressed") == "true"


def test_filter_by_family_and_platform(visit: Open, full_site: Path) -> None:
    """A family's rows alone; a platform's columns, and the cases that ran there."""
    seen = visit(full_site)
    seen.page.select_option("#filter-family", "loops")
    assert seen.cases == ["mended", "steady"]
    seen.page.select_option("#filter-track", "tpu:v5e:2x2")
    assert seen.cases == ["steady"]
    assert seen.all(".column").count() == 4


def test_only_unexpected(visit: Open, full_site: Path) -> None:
    """What is unexpected, and what was planned and never ran."""
    seen = visit(full_site)
    seen.page.click("[data-only=unexpected]")
    assert seen.cases == ["broken", "even", "killed"]


def test_only_changed_folds_releases(visit: Open, full_site: Path) -> None:
    """Rows that change; releases in which none does are one column that unfolds and folds again."""
    seen = visit(full_site)
    seen.page.click("[data-only=changed]")
    assert seen.cases == ["mended", "broken"]
    heads = [text.strip() for text in seen.all(".column").all_text_contents()]
    folded = ["0.5.3-0.6.2 (2)", "0.7.0", "0.8.3-0.10.2 (2)", "0.6.2-0.10.2 (4)"]
    assert [head.replace("\N{EN DASH}", "-") for head in heads] == folded
    seen.page.locator(".folded button").first.click()
    assert seen.all(".column").count() == 5
    seen.page.locator(".opened button").first.click()
    assert seen.all(".column").count() == 4


def test_filters_are_in_the_address(visit: Open, full_site: Path) -> None:
    """An address that is sent to somebody shows what was chosen, folds and all."""
    seen = visit(full_site)
    seen.page.click("[data-only=changed]")
    seen.page.locator(".folded button").first.click()
    seen.page.fill("#filter-text", "mended")
    address = seen.address
    other = visit(full_site, address)
    assert other.cases == ["mended"]
    assert other.page.input_value("#filter-text") == "mended"
    assert other.all(".opened").count() == seen.all(".opened").count() > 0
    other.page.click("#clear")
    assert other.cases == ALL


def test_families_fold(visit: Open, full_site: Path) -> None:
    """A family alone, and all at once; its own row stays, with the worst verdict first."""
    seen = visit(full_site)
    seen.page.click(".sum button >> text=loops")
    assert seen.cases == ALL[2:]
    seen.page.click("#fold-all")
    seen.page.click("#fold-all")
    assert seen.cases == []
    labels = [one.get_attribute("aria-label") for one in seen.all(".sum .seg").all()]
    assert labels[-3] == "1 crashed, 1 regressed, 1 infra, 1 match; 0.10.2 on cpu8"


def test_segment_leads_to_its_change(visit: Open, full_site: Path) -> None:
    """The cell that begins with a change leads to the part of the page that tells of it."""
    seen = visit(full_site)
    with seen.led():
        seen.page.click(".seg.e-r a")
    assert unquote(seen.page.url).endswith("cases/shapes/broken.html#cpu8@0.8.3")
    change = seen.page.locator("[id='cpu8@0.8.3']")
    assert "no such axis" in change.inner_text()
    assert seen.ask("document.getElementById('cpu8@0.8.3').getBoundingClientRect().top") < 700


def test_every_link_of_the_matrix_leads_somewhere(visit: Open, full_site: Path) -> None:
    """Each address of a cell or case is a page of the site, and its anchor is on it."""
    seen = visit(full_site)
    links = seen.ask("[...document.querySelectorAll('#grid a')].map(a => a.getAttribute('href'))")
    for link in sorted(set(links)):
        page, _, anchor = unquote(link).partition("#")
        assert f'id="{anchor}"' in (full_site / page).read_text() or not anchor, link


def test_theme_is_kept(visit: Open, full_site: Path) -> None:
    """The other theme is shown at once, and after the page is opened again."""
    seen = visit(full_site, color_scheme="light")
    paper = "getComputedStyle(document.body).backgroundColor"
    light = seen.ask(paper)
    seen.page.click("#theme")
    dark = seen.ask(paper)
    assert dark != light
    seen.go("causes.html")
    assert seen.ask(paper) == dark
    assert seen.page.locator("#theme").get_attribute("aria-pressed") == "true"


def test_theme_without_storage(visit: Open, full_site: Path) -> None:
    """Where the browser keeps nothing the theme changes all the same, and nothing breaks."""
    seen = visit(full_site, script=DENIED, color_scheme="dark")
    seen.keys("t")
    assert seen.ask("document.documentElement.dataset.theme") == "light"


def test_search_by_keys(visit: Open, full_site: Path) -> None:
    """`/`, a few letters, an arrow and Enter lead to a case from any page."""
    seen = visit(full_site, "runs/night-1.html")
    seen.keys("/")
    seen.page.keyboard.type("shapes")
    said = seen.all("#found li").all_inner_texts()
    assert said[0].split() == ["family", "shapes", "4", "cases"]
    seen.keys("ArrowDown")
    with seen.led():
        seen.keys("Enter")
    assert seen.page.url.endswith("cases/shapes/broken.html")


@pytest.mark.parametrize(
    ("words", "cases"), [("axis", ["broken"]), ("loops", ["mended", "steady"])]
)
def test_search_finds_descriptions_and_families(
    visit: Open, full_site: Path, words: str, cases: list[str]
) -> None:
    """The first line of a docstring is searched; a family leads to its rows of the matrix."""
    seen = visit(full_site)
    seen.page.fill("#search", words)
    with seen.led():
        seen.keys("Enter")
    shown = seen.page.locator("h1").inner_text() if len(cases) == 1 else seen.cases
    assert shown in (f"shapes/{cases[0]}", cases)


def test_search_for_a_release_marks_its_columns(visit: Open, full_site: Path) -> None:
    """A release is found by its number and shown on every platform that has it."""
    seen = visit(full_site)
    seen.page.fill("#search", "0.8.3")
    with seen.led():
        seen.keys("Enter")
    assert seen.all(".column.sought").count() == 2
    seen.page.fill("#search", "nothing like it")
    assert seen.all("#found li").all_inner_texts() == ["nothing found"]


def test_grid_by_keys(visit: Open, full_site: Path) -> None:
    """Arrows go from cell to cell and keep the column; Enter opens; Tab leaves the grid at once."""
    seen = visit(full_site)
    seen.keys("m", "ArrowRight", "ArrowDown")
    assert seen.focused.startswith("known: deviates as declared")
    seen.keys("ArrowRight", "ArrowDown")
    assert "0.5.3 to 0.10.2 (5 releases) on cpu8" in seen.focused
    seen.keys("ArrowUp")
    assert "is fixed here" in seen.focused
    seen.keys("Home")
    assert seen.focused == "mended"
    seen.keys("Control+End")
    assert seen.focused.startswith("excluded")
    seen.keys("Control+Home", "ArrowDown", "Home", "Enter")
    assert seen.cases == ALL[2:]
    assert seen.ask("document.querySelectorAll('#grid [tabindex=\"0\"]').length") == 1
    seen.keys("ArrowDown", "ArrowDown")
    with seen.led():
        seen.keys("Enter")
    assert seen.page.url.endswith("cases/shapes/broken.html")


def test_keys_are_told(visit: Open, full_site: Path) -> None:
    """`?` shows the keys, Escape closes them; a letter typed in a field is a letter."""
    seen = visit(full_site)
    seen.keys("?")
    assert "from cell to cell" in seen.page.locator("#keys").inner_text()
    seen.keys("Escape")
    assert not seen.page.locator("#keys").is_visible()
    seen.keys("f", "m", "/", "?")
    assert seen.page.input_value("#filter-text") == "m/?"


def test_skip_link_leaves_filters_alone(visit: Open, full_site: Path) -> None:
    """The first stop of the page leads past its head, and the rows stay as they were chosen."""
    seen = visit(full_site, "index.html#family=loops")
    seen.keys("Tab")
    assert seen.focused == "Skip to the content"
    seen.keys("Enter")
    assert seen.cases == ["mended", "steady"]


def test_without_scripts(visit: Open, full_site: Path) -> None:
    """A table of families and platforms, and a link to each case; no dead controls."""
    seen = visit(full_site, java_script_enabled=False)
    table = seen.page.locator(".tallies")
    assert table.locator("tbody tr").count() == 2
    assert "2 regressed" in " ".join(table.inner_text().split())
    assert seen.page.locator("#search").is_hidden()
    assert seen.page.locator("#matrix").is_hidden()
    seen.page.click("noscript summary")
    with seen.led():
        seen.page.click("noscript a[href$='shapes/broken.html']")
    assert seen.page.locator("h1").inner_text() == "shapes/broken"


@pytest.mark.long(keep=2)
@every_page
def test_narrow_screen(visit: Open, full_site: Path, page: str) -> None:
    """On a phone no page is wider than its window; the matrix scrolls in its own box."""
    seen = visit(full_site, page, **PHONE)
    assert not seen.sideways


def test_many_rows(visit: Open, tmp_path: Path) -> None:
    """Rows beyond the first screen are filled a moment later, and before they are printed."""
    run = Directory(tmp_path / "many")
    for number in range(150):
        run.job(f"f/case_{number}", CPU[0])
    site = write(run.report(), tmp_path)
    seen = visit(site)
    filled = "document.querySelectorAll('.row:not(.sum) .seg').length"
    seen.page.wait_for_function(f"{filled} === 150")
    printed = f"() => {{ dispatchEvent(new Event('beforeprint')); return {filled}; }}"
    assert visit(site).ask(printed) == 150


def test_print(visit: Open, full_site: Path) -> None:
    """On paper there are all rows and no controls, and the matrix is as wide as the paper."""
    seen = visit(full_site, viewport={"width": 1000, "height": 700})
    seen.page.emulate_media(media="print")
    assert seen.cases == ALL
    assert seen.page.locator("#filters").is_hidden()
    assert seen.page.locator(".top nav").is_hidden()
    assert seen.ask("document.getElementById('grid').getBoundingClientRect().width") <= 1000
    assert len(seen.page.pdf()) > 10_000


@pytest.mark.long(keep=4)
@both_themes
@every_page
def test_accessible(visit: Open, full_site: Path, page: str, theme: str) -> None:
    """Axe finds nothing serious in either theme."""
    seen = visit(full_site, page, color_scheme=theme)
    assert seen.findings() == []


def test_suite(visit: Open, suite_site: Path) -> None:
    """Every page leads to it; a group at a release leads to the tests that fail there, and why."""
    seen = visit(suite_site, color_scheme="dark")
    with seen.led():
        seen.all("nav >> text=Suite").click()
    assert seen.findings() == []
    cell = seen.page.locator("table.shares tbody tr", has_text="0.10.2").locator("td.wrong a")
    assert cell.inner_text() == "1/2"
    with seen.led():
        cell.click()
    span = seen.page.locator("details.span[open]")
    assert span.locator("summary").first.inner_text().startswith("0.8.3 to 0.10.2: 1 of 2")
    assert "TypeError: 0.0 is not -0.0" in span.inner_text()
    with seen.led():
        span.get_by_role("link", name="test_solve.py::test_solve").click()
    assert "<img src=x" in seen.page.locator("details.code pre").inner_text()
    phone = visit(suite_site, "suites/signs.html#linear-algebra@0.8.3", **PHONE)
    assert not phone.sideways
    assert phone.findings() == []


def test_accessible_in_use(visit: Open, full_site: Path) -> None:
    """Nor with a cell in focus, columns folded, and something found."""
    seen = visit(full_site, "index.html#only=changed")
    seen.keys("m", "ArrowRight", "ArrowDown")
    assert seen.findings() == []
    seen.keys("/")
    seen.page.keyboard.type("loops")
    assert seen.findings() == []


def test_hostile_texts_stay_texts(visit: Open, hostile_site: Path) -> None:
    """On every page what others wrote is shown, and none of it acts or hides."""
    pages = sorted(file.relative_to(hostile_site) for file in hostile_site.rglob("*.html"))
    assert len(pages) >= 6
    seen = visit(hostile_site)
    for page in pages:
        seen.go(str(page).replace("%", "%25").replace("#", "%23").replace("?", "%3F"))
        assert seen.ask("window.hacked") is None
        assert seen.page.locator("img[src=x]").count() == 0
        text = str(seen.ask("document.body.textContent"))
        assert not set(text) & {"\x00", "\x1b", "\u202e", "\u202c", "\u2028"}, page
        assert not seen.sideways, page


def test_hostile_matrix_works(visit: Open, hostile_site: Path) -> None:
    """Search, filters and words of a cell do their work on such texts too."""
    seen = visit(hostile_site)
    assert len(seen.cases) == 3
    assert "<script>window.hacked=1</script>" in seen.page.locator("#problems").inner_text()
    seen.page.locator(".seg.wrong a").first.hover()
    assert "<U+202E>gnihton<U+202C>" in seen.page.locator("#tip").inner_text()
    seen.page.fill("#search", "onerror")
    assert seen.all("#found li").count() >= 2
    seen.page.fill("#filter-text", '"quoted"')
    assert len(seen.cases) == 3
    seen.page.select_option("#filter-family", "hostile")
    other = visit(hostile_site, seen.address)
    assert other.cases == seen.cases
    assert seen.ask("window.hacked") is None


def test_segment_of_a_hostile_case_leads_to_its_page(visit: Open, hostile_site: Path) -> None:
    """A name that no file could have leads to its page, and to the part of it."""
    seen = visit(hostile_site)
    with seen.led():
        seen.page.locator(".seg.wrong a").first.click()
    assert seen.page.locator("h1").inner_text().startswith("hostile/</script>")
    assert seen.ask("document.getElementById(decodeURIComponent(location.hash.slice(1))) !== null")
