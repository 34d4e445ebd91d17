"""Looking through the answered images of a page: filter, table of answers, sorting, keys and zoom, in a real browser."""

from __future__ import annotations

import pytest

from support.read_pages import ReadPage

pytestmark = pytest.mark.browser


@pytest.fixture
def page(browser, pages):
    """The page of a fine-tuning; every request to anything but itself, and every error, is a failure."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(5000)
    opened, wrong = context.new_page(), []
    here = pages["tune"].as_uri()
    opened.on("request", lambda request: None if request.url.startswith(("data:", here)) else wrong.append(request.url))
    opened.on("console", lambda message: wrong.append(message.text))
    opened.on("pageerror", lambda error: wrong.append(str(error)))
    opened.goto(here)
    yield opened
    context.close()
    assert wrong == []


def status(page):
    return page.get_by_role("status").text_content()


def rows_shown(page):
    """Numbers of the images in sight, in their order, and of the rows of the table of the same images."""
    return page.evaluate(
        """() => {
          const shown = (all) => [...document.querySelectorAll(all)].filter((each) => !each.hidden);
          const rows = shown(".same-images tbody tr").map((row) => Number(row.cells[0].textContent));
          return [shown(".tiles li").map((each) => Number(each.dataset.row)), rows];
        }"""
    )


def cell(page, true, said):
    return page.get_by_role("button", name=f"true {true}, answer {said}: ")


def test_a_click_on_a_cell_shows_its_images_and_another_click_all_again(page):
    before = status(page)
    wanted = int(cell(page, "benign", "melanoma").text_content())
    cell(page, "benign", "melanoma").click()
    assert status(page).startswith(f"{wanted} of ")
    images, table = rows_shown(page)
    assert len(images) == wanted and sorted(images) == sorted(table)
    assert cell(page, "benign", "melanoma").get_attribute("aria-pressed") == "true"
    labels = page.locator(".tiles li:not([hidden]) img").evaluate_all("all => all.map((image) => image.alt)")
    assert all(": melanoma (" in label and label.endswith("true benign") for label in labels)
    cell(page, "benign", "melanoma").click()
    assert status(page) == before


def test_the_filter_is_one_for_images_table_and_cells(page):
    assert page.get_by_label("Part of the data").evaluate("select => select.selectedOptions[0].text") == "test"
    counts = page.locator(".crossed td button").all_text_contents()
    page.get_by_label("Part of the data").select_option(label="val")
    images, table = rows_shown(page)
    assert sorted(images) == sorted(table) and len(images) == 9  # one of each cell
    assert page.locator(".crossed td button").all_text_contents() == ["1"] * 9
    page.get_by_label("Right or wrong").select_option(label="right")
    assert len(rows_shown(page)[0]) == 3
    assert page.locator(".crossed td button:not(:disabled)").all_text_contents() == ["1"] * 3
    page.get_by_role("button", name="Reset").click()
    assert page.locator(".crossed td button").all_text_contents() == counts


def test_groups_and_certainty_filter_too(page):
    page.locator(".filter").get_by_label("Certainty").select_option(label="0.9 and above")
    few = len(rows_shown(page)[0])
    group = page.locator(".filter").get_by_label("Group")  # one of many is typed
    group.fill("3")
    group.press("Enter")
    assert 0 < len(rows_shown(page)[0]) <= 2 < few
    group.fill("nobody")
    group.press("Enter")
    assert rows_shown(page) == [[], []]
    page.get_by_role("button", name="Reset").click()
    assert group.input_value() == ""


def test_images_are_sorted(page):
    page.get_by_label("Order").select_option(label="by row")
    images, _ = rows_shown(page)
    assert images == sorted(images)
    page.get_by_label("Order").select_option(label="least sure first")
    sure = page.locator(".tiles li:not([hidden])").evaluate_all("all => all.map((e) => Number(e.dataset.c))")
    assert sure == sorted(sure)


def test_keys_move_among_images_enlarge_one_and_come_back_to_it(page):
    tiles = page.locator(".tiles li:not([hidden]) button")
    assert page.locator(".tiles [tabindex='0']").count() == 1  # one stop for Tab
    tiles.first.focus()
    page.keyboard.press("ArrowRight")
    assert tiles.nth(1).evaluate("button => button === document.activeElement")
    page.keyboard.press("Enter")
    box = page.get_by_role("dialog", name="One image")
    assert box.is_visible()
    label = tiles.nth(1).locator("img").get_attribute("alt")
    assert box.locator(".lightbox-label").text_content() == label
    width = box.locator("img").evaluate("image => image.getBoundingClientRect().width")
    page.keyboard.press("+")
    assert box.locator("img").evaluate("image => image.getBoundingClientRect().width") == pytest.approx(1.5 * width)
    page.keyboard.press("ArrowRight")
    assert box.locator(".lightbox-label").text_content() == tiles.nth(2).locator("img").get_attribute("alt")
    page.keyboard.press("Escape")
    assert not box.is_visible()
    assert tiles.nth(2).evaluate("button => button === document.activeElement")
    page.keyboard.press("Home")
    assert tiles.first.evaluate("button => button === document.activeElement")


def test_the_enlarged_image_stays_within_what_the_filter_leaves(page):
    cell(page, "melanoma", "benign").click()
    images, _ = rows_shown(page)
    page.locator(".tiles li:not([hidden]) button").first.click()
    box = page.get_by_role("dialog", name="One image")
    assert f"1 of {len(images)}" in box.text_content()
    page.keyboard.press("ArrowLeft")
    assert f"{len(images)} of {len(images)}" in box.text_content()
    box.get_by_role("button", name="Close").click()
    assert not box.is_visible()


def test_a_link_opens_the_fold_that_it_leads_into(page):
    assert not page.locator("#plan").locator("xpath=ancestor::details").evaluate("fold => fold.open")
    page.evaluate("() => { location.hash = '#plan'; }")
    page.wait_for_function("() => document.getElementById('plan').closest('details').open")


def test_confusion_and_images_are_in_the_first_screen(page):
    top = {name: page.locator(name).bounding_box()["y"] for name in (".crossed", ".tiles")}
    assert max(top.values()) < 900


def test_a_small_image_fills_its_tile(page):
    assert page.evaluate(
        """async () => {
          const tile = document.querySelector(".tiles li:not([hidden])"), image = tile.querySelector("img");
          image.src = "data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' width='8' height='8'/>";
          await image.decode();
          return image.naturalWidth === 8 && image.clientWidth > 0.9 * tile.clientWidth;
        }"""
    )


def test_the_words_that_are_seen_first_are_few(page, pages):
    seen = page.evaluate(
        """() => { document.querySelectorAll("select").forEach((e) => e.remove());
                   return document.querySelector("main").innerText.trim().split(/\\s+/).length; }"""
    )
    assert seen <= 600
    assert ReadPage(pages["tune"].read_text(encoding="utf-8")).twice == []


def test_paper_shows_few_images_and_no_filter(page):
    page.emulate_media(media="print")
    page.evaluate("() => window.dispatchEvent(new Event('beforeprint'))")
    assert not page.locator(".filter").is_visible() and not page.locator(".same-images").is_visible()
    shown = page.locator(".tiles li").evaluate_all("all => all.filter((e) => e.getBoundingClientRect().height).length")
    assert 0 < shown <= 60
    assert page.locator("details:not([open])").count() == 0
    page.evaluate("() => window.dispatchEvent(new Event('afterprint'))")
    assert page.locator("details[open]").count() == 0


def test_paper_repeats_the_headings_of_a_table(page):
    page.emulate_media(media="print")
    page.evaluate("() => window.dispatchEvent(new Event('beforeprint'))")
    style = "(element) => [getComputedStyle(element).display, getComputedStyle(element.closest('thead')).breakInside]"
    assert page.locator("thead button").first.evaluate(style) == ["contents", "avoid"]  # Chromium leaves a button out
    page.evaluate("() => window.dispatchEvent(new Event('afterprint'))")


def test_a_strip_of_a_check_is_enlarged_with_what_is_odd_about_it(browser, pages):
    context = browser.new_context()
    context.set_default_timeout(5000)
    page = context.new_page()
    page.goto(pages["check"].as_uri())
    page.locator(".strip.marked button").first.click()
    assert "18 grey levels from the mean picture, far from the others" in page.get_by_role("dialog").text_content()
    context.close()
