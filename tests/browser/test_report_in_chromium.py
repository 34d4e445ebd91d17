"""The report as a reader meets it: opened from a file, in a real browser."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass, field

import pytest

pytestmark = pytest.mark.browser

CONTRAST_OF_TEXT = 4.5  # WCAG 2.2, success criterion 1.4.3
CONTRASTS = """
() => {
  const channel = (c) => { c /= 255; return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; };
  const parse = (text) => text.match(/[\\d.]+/g).map(Number);
  const luminance = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const backdrop = (element) => {
    if (!element) return [255, 255, 255];
    const [red, green, blue, alpha = 1] = parse(getComputedStyle(element).backgroundColor);
    if (alpha === 1) return [red, green, blue];
    const below = backdrop(element.parentElement);
    return [red, green, blue].map((c, i) => alpha * c + (1 - alpha) * below[i]);
  };
  const found = [];
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!own || ["SCRIPT", "STYLE"].includes(element.tagName)) continue;
    const style = getComputedStyle(element);
    const svg = element.tagName.toLowerCase() === "text";
    const back = backdrop(element);
    const alpha = svg ? Number(style.opacity) * Number(style.fillOpacity) : 1;
    const ink = parse(svg ? style.fill : style.color).slice(0, 3).map((c, i) => alpha * c + (1 - alpha) * back[i]);
    const [dark, light] = [luminance(ink), luminance(back)].sort((a, b) => a - b);
    found.push([(light + 0.05) / (dark + 0.05), element.tagName, element.textContent.trim().slice(0, 40)]);
  }
  return found;
}
"""


@dataclass
class Visit:
    """What happened while a page was open."""

    page: object
    requests: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)


@pytest.fixture
def visit(browser, pages):
    """Open a page and record its requests, errors and dialogs."""
    contexts = []

    def open_page(name="rank", *, width=1280, scheme="light", scripts=True, media=None, unfolded=False) -> Visit:
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, java_script_enabled=scripts)
        context.set_default_timeout(5000)
        contexts.append(context)
        page = context.new_page()
        visit = Visit(page)
        page.on("request", lambda request: visit.requests.append(request.url))
        page.on("console", lambda message: visit.errors.append(message.text))
        page.on("pageerror", lambda error: visit.errors.append(str(error)))
        page.on("dialog", lambda dialog: (visit.dialogs.append(dialog.message), dialog.dismiss()))
        if media:
            page.emulate_media(media=media)
        page.goto(pages[name].as_uri())
        if unfolded:
            page.evaluate("() => document.querySelectorAll('details').forEach((d) => { d.open = true; })")
        return visit

    yield open_page
    for context in contexts:
        context.close()


@pytest.fixture(scope="module")
def look(browser, pages):
    """One unfolded page of each name, for tests that change nothing of it; opening it takes longer than looking at it."""
    context, opened = browser.new_context(), {}

    def at(name="rank", *, width=1280, scheme="light"):
        if name not in opened:
            opened[name] = context.new_page()
            opened[name].goto(pages[name].as_uri())
            opened[name].evaluate("() => document.querySelectorAll('details').forEach((d) => { d.open = true; })")
        opened[name].set_viewport_size({"width": width, "height": 900})
        opened[name].emulate_media(color_scheme=scheme)
        return opened[name]

    yield at
    context.close()


def column(page, caption: str, heading: str) -> list[str]:
    """The cells of one column of the table with this caption, from top to bottom."""
    return page.evaluate(
        """([caption, heading]) => {
          const table = [...document.querySelectorAll("table")].find((t) => t.caption.textContent === caption);
          const index = [...table.tHead.rows[0].cells].findIndex((c) => c.textContent === heading);
          return [...table.tBodies[0].rows].map((row) => row.cells[index].textContent);
        }""",
        [caption, heading],
    )


def numbers(cells: list[str]) -> list[float]:
    return [float(cell.replace("−", "-")) for cell in cells if cell != "—"]


@pytest.mark.parametrize("name", ["rank", "check", "demo", "both", "tune", "predict"])
def test_opens_from_a_file_quietly_and_fetches_nothing(visit, pages, name):
    opened = visit(name)
    opened.page.mouse.wheel(0, 20_000)
    opened.page.wait_for_timeout(100)
    assert opened.errors == []
    assert [url for url in opened.requests if not url.startswith(("data:", pages[name].as_uri()))] == []


def test_a_class_named_like_a_script_is_text(visit, examples):
    opened = visit(unfolded=True)
    assert opened.page.locator("svg text", has_text=examples.EVIL).first.is_visible()
    assert opened.page.locator("dt", has_text=examples.EVIL).first.is_visible()
    opened.page.wait_for_timeout(100)
    assert opened.dialogs == []


def test_a_check_shows_pictures_side_by_side_and_names_like_scripts_as_text(visit, examples):
    opened = visit("check", unfolded=True)
    pair = opened.page.locator("dl.gallery > div", has_text="4 (train) and 700 (test)").locator("img")
    first, second = (pair.nth(index).bounding_box() for index in (0, 1))
    assert first["y"] == second["y"] and first["x"] < second["x"]
    assert opened.page.locator("tbody th", has_text="<script>").first.is_visible()
    assert opened.page.locator("dt", has_text=examples.EVIL).first.is_visible()
    opened.page.wait_for_timeout(100)
    assert opened.dialogs == []


def test_the_foot_speaks_of_replicates_only_where_there_are_some(look):
    feet = {name: look(name).locator("footer").text_content() for name in ("rank", "check", "both")}
    assert {name: "jackknife" in text for name, text in feet.items()} == {"rank": True, "check": False, "both": True}


def test_a_foreign_script_would_not_run(visit):
    opened = visit()
    opened.page.evaluate(
        "() => { const s = document.createElement('script'); s.textContent = 'alert(1)'; document.body.append(s); }"
    )
    opened.page.wait_for_timeout(100)
    assert opened.dialogs == []
    assert any("Content Security Policy" in error for error in opened.errors)


def test_sorting_by_click_puts_numbers_in_order_and_missing_ones_last(visit):
    page = visit(unfolded=True).page
    caption = "Value of each score for each model; larger is better in every column"
    table = page.get_by_role("table", name=caption)
    heading = table.get_by_role("columnheader", name="LEEP", exact=True)
    assert heading.get_attribute("aria-sort") is None
    heading.get_by_role("button").click()
    assert heading.get_attribute("aria-sort") == "ascending"
    rising = column(page, caption, "LEEP")
    assert numbers(rising) == sorted(numbers(rising))
    assert rising[-1] == "—"
    heading.get_by_role("button").click()
    assert heading.get_attribute("aria-sort") == "descending"
    falling = column(page, caption, "LEEP")
    assert numbers(falling) == sorted(numbers(falling), reverse=True)
    assert falling[-1] == "—"


@pytest.mark.parametrize("key", ["Enter", "Space"])
def test_sorting_by_keyboard(visit, key):
    page = visit().page
    caption = "Ranking by LogME"
    table = page.get_by_role("table", name=caption)
    table.get_by_role("button", name="Model").focus()
    page.keyboard.press(key)
    names = column(page, caption, "Model")
    assert names == page.evaluate("names => [...names].sort((a, b) => a.localeCompare(b, 'en', {numeric: true}))", names)
    page.keyboard.press("Tab")  # on to the next heading
    page.keyboard.press(key)
    values = numbers(column(page, caption, "LogME"))
    assert values == sorted(values)
    sorted_by = table.locator("th[aria-sort]")
    assert sorted_by.count() == 1
    assert sorted_by.text_content() == "LogME"


def test_ranks_sort_as_numbers_not_as_words(visit):
    page = visit().page
    page.get_by_role("table", name="Ranking by LogME").get_by_role("button", name="Rank").click()
    assert column(page, "Ranking by LogME", "Rank") == [*map(str, range(1, 13)), "—", "—", "—"]


def test_without_scripts_everything_is_there_to_read(visit):
    page = visit(scripts=False).page
    assert page.get_by_role("table", name="Ranking by LogME").is_visible()
    assert page.locator("table button").count() == 0  # no button that does nothing
    summary = page.locator("summary", has_text="Ranking by LEEP")
    summary.click()
    assert page.get_by_role("table", name="Ranking by LEEP").is_visible()


@pytest.mark.parametrize("name", ["rank", "check", "demo", "both", "tune", "predict"])
@pytest.mark.parametrize("width", [360, 768, 1024, 1280, 1600])
def test_the_page_never_scrolls_sideways(look, name, width):
    page = look(name, width=width)
    assert page.evaluate("() => document.documentElement.scrollWidth") == width


def test_contents_stand_on_the_left_of_wide_screens_only(visit):
    wide = visit(width=1280).page
    contents = wide.get_by_role("navigation", name="Contents")
    assert contents.bounding_box()["x"] < wide.locator("main").bounding_box()["x"]
    contents.get_by_role("link", name="Models").click()
    assert wide.url.endswith("#models")
    assert wide.get_by_role("table", name="Models").is_visible()  # the fold that the link leads into is open
    assert not visit(width=768).page.get_by_role("navigation", name="Contents").is_visible()


@pytest.mark.parametrize(("width", "rows"), [(360, [2, 2]), (390, [2, 2]), (884, [4])])
def test_four_pictures_of_a_class_stand_in_one_row_or_in_two_equal_ones(look, width, rows):
    tops = look(width=width).evaluate(
        """() => [...document.querySelector(".gallery dd").querySelectorAll("img")].map(
               (picture) => picture.getBoundingClientRect().top)"""
    )
    assert [tops.count(top) for top in sorted(set(tops))] == rows


def test_phones_get_a_ranking_figure_of_their_own(visit):
    for width, shown, hidden in ((360, "#ranking-narrow", "#ranking"), (1280, "#ranking", "#ranking-narrow")):
        page = visit(width=width).page
        assert page.locator(f"{shown}-figure_1").is_visible()
        assert not page.locator(f"{hidden}-figure_1").is_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("name", "least"), [("rank", 500), ("check", 50), ("tune", 200), ("predict", 100)])
def test_all_text_has_contrast(look, name, least, scheme):
    page = look(name, scheme=scheme)
    found = page.evaluate(CONTRASTS)
    assert len(found) > least
    assert [entry for entry in found if entry[0] < CONTRAST_OF_TEXT] == []


def test_dark_mode_is_dark_and_figures_follow(look):
    def colours(scheme):
        page = look(scheme=scheme)
        return page.evaluate(
            """() => [getComputedStyle(document.body).backgroundColor,
                      getComputedStyle(document.querySelector("#ranking-figure_1 text")).fill]"""
        )

    light, dark = colours("light"), colours("dark")
    assert light[0] == "rgb(255, 255, 255)"
    brightness = [sum(map(int, re.findall(r"\d+", colour)[:3])) for colour in dark]
    assert brightness[0] < 100 and brightness[1] > 600


def test_print_is_black_on_white_and_unfolded(visit):
    page = visit(scheme="dark", media="print").page
    assert page.evaluate("() => getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate("() => getComputedStyle(document.body).color") == "rgb(0, 0, 0)"
    assert not page.get_by_role("navigation", name="Contents").is_visible()
    page.evaluate("() => window.dispatchEvent(new Event('beforeprint'))")
    assert page.locator("details:not([open])").count() == 0


def test_numbers_line_up(look):
    page = look()
    cell = page.get_by_role("table", name="Ranking by LogME").locator("td.number").first
    style = cell.evaluate("e => [getComputedStyle(e).textAlign, getComputedStyle(e).fontVariantNumeric]")
    assert style[0] == "right"
    assert "tabular-nums" in style[1]


def test_a_csv_link_saves_the_table(visit, ranking_values):
    page = visit().page
    with page.expect_download() as download:
        page.locator("a.csv[download='ranking-logme.csv']").click()
    with download.value.path().open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert download.value.suggested_filename == "ranking-logme.csv"
    assert [row["LogME"] for row in rows[:12]] == ranking_values


@pytest.fixture
def ranking_values(examples) -> list[str]:
    record = examples.ranking_record()
    return [repr(record.cell(row.model, "logme").value) for row in record.ranking("logme").rows if row.rank]


@pytest.mark.parametrize("name", ["rank", "check", "demo", "tune", "predict"])
def test_what_a_table_hides_without_an_edge_is_no_text(look, name):
    """The covers of the edges are wider than the edges, and no wider than the air at the end of a row."""
    page = look(name, width=390)
    found = page.evaluate(
        """() => [...document.querySelectorAll(".table:not(.crossed .table)")].flatMap((region) => {
          const sizes = getComputedStyle(region).backgroundSize.split(", ").map(parseFloat);
          const air = [...region.querySelectorAll("tr > :last-child")].map((e) => parseFloat(getComputedStyle(e).paddingRight));
          return [[sizes[1], sizes[3], Math.min(...air)]];
        })"""
    )
    assert found
    assert all(edge < cover <= air for cover, edge, air in found)


@pytest.mark.parametrize("name", ["rank", "demo", "tune"])
def test_listings_are_not_cut(look, name):
    page = look(name, width=390)
    hidden = page.evaluate("() => [...document.querySelectorAll('pre')].map((e) => e.scrollWidth - e.clientWidth)")
    assert hidden and max(hidden) == 0


@pytest.mark.parametrize("name", ["rank", "check", "demo", "tune", "predict", "published"])
def test_figures_can_be_read_on_a_phone(look, name):
    page = look(name, width=390)
    smallest = page.evaluate(
        """() => [...document.querySelectorAll("svg.plot")].filter((e) => e.getBoundingClientRect().width).map((e) => {
          const shrunk = e.getBoundingClientRect().width / e.viewBox.baseVal.width;
          return Math.min(...[...e.querySelectorAll("text")].map((t) => shrunk * parseFloat(getComputedStyle(t).fontSize)));
        })"""
    )
    assert smallest and min(smallest) > 9.0


def test_flags_and_percentages_stay_on_one_line(look):
    page = look("rank", width=390)
    lines = page.evaluate("() => [...document.querySelectorAll('main .whole')].map((e) => e.getClientRects().length)")
    assert len(lines) > 2 and set(lines) == {1}
