"""The committed gallery in a real browser: filters, links, widths, contrast, keys."""

import json
import re

import chromium
import numpy as np
import pytest
from PIL import Image

from repro.base import paths
from repro.batch.check import stored
from repro.batch.report import write_report
from repro.figures import params

ROOT = paths.PACKAGE.parent
WIDTHS = (320, 390, 768, 1280, 2560)
pytestmark = [
    pytest.mark.skipif(
        chromium.found() is None, reason=f"no browser: none of {', '.join(chromium.NAMES)} is here"
    ),
    pytest.mark.xdist_group("browser"),
]
#: the texts whose contrast with what lies behind them is too low for WCAG AA
PALE = """
(() => {
  const rgb = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((part) => part / 255)
    .map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
    .reduce((sum, part, place) => sum + part * [0.2126, 0.7152, 0.0722][place], 0);
  const behind = (one) => {
    for (; one; one = one.parentElement) {
      const found = rgb(getComputedStyle(one).backgroundColor);
      if (found.length < 4 || found[3] === 1) return found;
    }
    return [255, 255, 255];
  };
  const seen = new Set();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const one = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || one.matches("script, style, option")) continue;
    const style = getComputedStyle(one);
    const [low, high] = [light(rgb(style.color)), light(behind(one))].sort((a, b) => a - b);
    const ratio = (high + 0.05) / (low + 0.05);
    const large = parseFloat(style.fontSize) >= 24;
    if (ratio < (large ? 3 : 4.5)) seen.add(`${one.tagName} ${one.className} ${ratio.toFixed(2)}`);
  }
  return [...seen];
})()
"""
#: the elements that make the page wider than the window
WIDE = """
document.documentElement.scrollWidth <= innerWidth ? [] :
  [document.documentElement.scrollWidth, ...[...document.querySelectorAll("body *")]
    .filter((one) => one.getBoundingClientRect().right > innerWidth + 1 && !one.closest(".scroll"))
    .slice(0, 5).map((one) => `${one.tagName}.${one.className}`)]
"""
SHOWN = '[...document.querySelectorAll(".card")].filter((one) => one.offsetParent)'
CARD = "document.getElementById('gavel/fig08_las_single').closest('.card')"
#: The width of each picture by its address, pixels.
WIDTH_OF_PICTURES = """
Object.fromEntries([...document.querySelectorAll(".picture img")]
  .map((one) => [one.getAttribute("src"), one.getBoundingClientRect().width]))
"""
#: The smallest type of an SVG at a width, pixels on the screen. It is in a page of its own, since
#: the inside of a picture is not visible to scripts.
SMALLEST_TYPE = """
((svg, width) => {
  document.body.innerHTML = svg.slice(svg.indexOf("<svg"));
  const copy = document.querySelector("svg");
  copy.setAttribute("width", width);
  copy.removeAttribute("height");
  const scale = copy.getScreenCTM().a;
  return Math.min(...[...copy.querySelectorAll("text, tspan")]
    .filter((text) => [...text.childNodes].some((node) => node.nodeType === 3 && node.data.trim()))
    .map((text) => parseFloat(getComputedStyle(text).fontSize) * scale));
})(%s, %s)
"""


@pytest.fixture(scope="module")
def gallery(tmp_path_factory):
    """Write the gallery of the committed results beside links to them; return its address."""
    out = tmp_path_factory.mktemp("gallery")
    entries = params.discover(ROOT)
    for entry in entries:
        (out / entry.paper).mkdir(exist_ok=True)
        if (ROOT / "figures" / entry.id).is_dir():
            (out / entry.id).symlink_to(ROOT / "figures" / entry.id)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(paths.ENV_HOME, str(ROOT))
        return write_report(out, stored(entries, out)).as_uri()


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    found = chromium.Browser(tmp_path_factory.mktemp("profile"))
    yield found
    found.close()


@pytest.fixture
def page(browser, gallery):
    """Return the browser with the gallery open, wide and light."""
    browser.resize(1280)
    browser.scheme("light")
    browser.scripts(True)
    browser.open(gallery)
    return browser


def choose(page, name, value):
    """Set a filter as a reader would."""
    page.evaluate(
        f"(() => {{ const one = document.querySelector('[name={name}]'); one.value = {value!r};"
        "one.dispatchEvent(new Event('input', {bubbles: true})); })()"
    )


def test_nothing_is_complained_of_and_nothing_asked_of_the_network(page):
    page.evaluate("scrollTo(0, document.documentElement.scrollHeight / 2)")
    page.wait("[...document.images].some((one) => one.complete && one.naturalWidth)")
    assert page.complaints() == []
    assert {address.split(":")[0] for address in page.requests()} <= {"file", "data", "about"}
    assert page.evaluate(f"{SHOWN}.length") == len(params.discover(ROOT))
    assert page.evaluate("document.querySelectorAll('.card[open]').length") == 0


def test_filters_show_what_fits_and_say_how_many(page):
    whole = page.evaluate(f"{SHOWN}.length")
    choose(page, "verdict", "missed")
    verdicts = page.evaluate(f"{SHOWN}.map((one) => one.dataset.verdict)")
    assert 0 < len(verdicts) < whole and set(verdicts) == {"missed"}
    told = f"{len(verdicts)} of {whole} shown"
    assert page.evaluate('document.querySelector("output").value') == told
    choose(page, "paper", "gavel")
    assert set(page.evaluate(f"{SHOWN}.map((one) => one.dataset.paper)")) == {"gavel"}
    choose(page, "q", "max-min fairness")
    found = page.evaluate(f"{SHOWN}.map((one) => one.textContent)")
    assert found and all("max-min" in text and "fairness" in text for text in found)
    assert page.evaluate("location.hash") == "#?q=max-min+fairness&paper=gavel&verdict=missed"
    for name in ("q", "paper", "verdict"):
        choose(page, name, "")
    for name in ("kind", "data", "profile"):
        options = f'[...document.querySelector("[name={name}]").options].map((one) => one.value)'
        for value in page.evaluate(options)[1:]:
            choose(page, name, value)
            assert page.evaluate(f"{SHOWN}.length") > 0
        choose(page, name, "")


def test_where_nothing_is_shown_a_button_clears_the_filters_and_keeps_the_order(page, gallery):
    whole = page.evaluate(f"{SHOWN}.length")
    page.open(f"{gallery}#?q=no+such+words&sort=distance")
    assert page.evaluate(f"{SHOWN}.length") == 0
    assert page.evaluate("document.querySelector('.open-all').textContent") == "Open all"
    button = "document.querySelector('.nothing button')"
    assert page.evaluate(f"{button}.checkVisibility() && {button}.textContent") == "Clear filters"
    page.evaluate(f"{button}.focus()")
    page.press("Enter", 13, "\r")
    page.wait(f"{SHOWN}.length === {whole}")
    assert page.evaluate("location.hash") == "#?sort=distance"
    assert page.evaluate("document.activeElement.name") == "q"
    assert page.evaluate(f"{button}.checkVisibility()") is False


def test_the_order_by_distance_is_kept_in_the_address(page, gallery):
    before = page.evaluate(f"{SHOWN}.map((one) => one.querySelector('code').textContent)")
    choose(page, "sort", "distance")
    assert page.evaluate("location.hash") == "#?sort=distance"
    assert page.evaluate(f"{SHOWN}.length") == len(before)
    offs = page.evaluate(f"{SHOWN}.map((one) => parseFloat(one.dataset.off ?? -1))")
    assert offs == sorted(offs, reverse=True) and offs[0] > 1 and offs[-1] == -1
    assert page.evaluate("document.querySelectorAll('.paper:not([hidden]) h2').length") == 1
    page.open(f"{gallery}#?paper=pcs&sort=distance")
    offs = page.evaluate(f"{SHOWN}.map((one) => parseFloat(one.dataset.off ?? -1))")
    assert offs == sorted(offs, reverse=True) and len(offs) < len(before)
    choose(page, "paper", "")
    choose(page, "sort", "")
    assert page.evaluate(f"{SHOWN}.map((one) => one.querySelector('code').textContent)") == before


def test_a_card_opens_by_key_and_by_click_and_closes_again(page):
    page.evaluate(f"{CARD}.querySelector('summary').focus()")
    for is_open in (True, False):
        page.press("Enter", 13, "\r")
        page.wait(f"{CARD}.open === {'true' if is_open else 'false'}")
        assert page.evaluate(f"{CARD}.querySelector('.claims').checkVisibility()") is is_open
    page.evaluate(f"{CARD}.querySelector('summary .thumb').click()")
    page.wait(f"{CARD}.open")
    assert page.evaluate(f"{CARD}.querySelector('.thumb').checkVisibility()") is False
    assert page.evaluate(f"{CARD}.querySelector('.picture img').checkVisibility()")


def test_a_button_opens_all_shown_cards_and_closes_them(page):
    choose(page, "verdict", "partial")
    button = "document.querySelector('.open-all')"
    page.evaluate(f"{button}.click()")
    page.wait(f"{SHOWN}.every((one) => one.open)")
    assert page.evaluate(f"{button}.textContent") == "Close all"
    hidden = "document.querySelectorAll('.card[hidden][open]').length"
    assert page.evaluate(hidden) == 0
    page.evaluate(f"{button}.click()")
    page.wait(f"{SHOWN}.every((one) => !one.open)")
    assert page.evaluate(f"{button}.textContent") == "Open all"


@pytest.mark.parametrize(
    ("place", "scripts"),
    [
        ("gavel/fig08_las_single", True),
        ("gavel/fig08_las_single", False),
        # in links of earlier galleries
        ("gavel-fig08_las_single", True),
        pytest.param("gavel-fig08_las_single", False, marks=pytest.mark.nightly),
    ],
)
def test_an_address_opens_its_card_and_goes_there(page, gallery, scripts, place):
    page.scripts(scripts)
    page.open(f"{gallery}#{place}")
    page.wait(f"{CARD}.open")
    top = f"{CARD}.getBoundingClientRect().top"
    page.wait(f"{top} >= 0 && {top} < 300")
    assert page.evaluate("document.querySelectorAll('.card[open]').length") == 1
    link = f"{CARD}.querySelector('.id')"
    assert page.evaluate(f"{link}.hash") == "#gavel/fig08_las_single"
    assert page.evaluate(f"{link}.textContent") == "gavel/fig08_las_single"


def test_a_link_to_a_closed_card_on_the_same_page_opens_it(page):
    choose(page, "verdict", "partial")
    assert page.evaluate(f"{CARD}.hidden")
    page.evaluate(f"{CARD}.querySelector('.id').click()")
    page.wait(f"{CARD}.open && !{CARD}.hidden")


@pytest.mark.parametrize("scripts", [True, pytest.param(False, marks=pytest.mark.nightly)])
def test_print_shows_every_card_open(page, gallery, scripts):
    page.scripts(scripts)
    page.open(gallery)
    closed = """[...document.querySelectorAll(".card .claims, .card .provenance dl")]
      .filter((one) => !one.checkVisibility({contentVisibilityAuto: true})
        || !one.getBoundingClientRect().height).length"""
    assert page.evaluate(closed) > 100
    page.call("Emulation.setEmulatedMedia", media="print")
    page.wait(f"{closed} === 0")
    page.call("Emulation.setEmulatedMedia", media="")
    assert page.evaluate(closed) > 100


def test_an_address_keeps_the_filters_and_a_permalink_shows_its_card(page, gallery):
    page.open(f"{gallery}#?verdict=partial&paper=liquid")
    assert set(page.evaluate(f"{SHOWN}.map((one) => one.dataset.verdict)")) == {"partial"}
    card = "gavel-fig08_las_single"
    page.evaluate(f"location.hash = '{card}'")
    top = f"document.getElementById('{card}').getBoundingClientRect().top"
    page.wait(f"{top} >= 0 && {top} < 300")
    bar = page.evaluate("document.querySelector('.filters').getBoundingClientRect().bottom")
    assert page.evaluate(top) >= bar - 1
    chips = "document.querySelectorAll('[data-show]')"
    page.evaluate(f"{chips}[0].click()")
    told = page.evaluate("document.querySelector('output').value").split()[0]
    assert page.evaluate(f"{chips}[0].textContent").startswith(told)


def test_without_scripts_everything_is_shown_and_no_form(page, gallery):
    page.scripts(False)
    page.open(gallery)
    assert page.evaluate("document.querySelector('.filters').offsetParent === null")
    assert page.evaluate(f"{SHOWN}.length === document.querySelectorAll('.card').length")


@pytest.mark.parametrize("name", [pytest.param("", marks=pytest.mark.nightly), "tiresias/"])
def test_no_page_is_wider_than_its_window(page, gallery, name):
    page.open(gallery.replace("index.html", f"{name}index.html"))
    for opened in ("false", "true"):
        page.evaluate(f"document.querySelectorAll('details').forEach((one) => one.open = {opened})")
        for width in WIDTHS:
            page.resize(width)
            assert page.evaluate(WIDE) == [], f"{width} px"


def test_a_picture_has_light_type_on_a_dark_ground_in_dark_mode(page, gallery, tmp_path):
    lightness = {}
    for scheme in ("light", "dark"):
        page.scheme(scheme)
        page.open(f"{gallery}#gavel/fig08_las_single")
        picture = f"{CARD}.querySelector('.picture img')"
        page.wait(f"{picture}.complete && {picture}.naturalWidth > 0")
        box = page.evaluate(f"{picture}.getBoundingClientRect().toJSON()")
        page.screenshot(tmp_path / "window.png")
        window = Image.open(tmp_path / "window.png").convert("L")
        part = window.crop((box["left"], box["top"], box["right"], min(box["bottom"], 890)))
        lightness[scheme] = np.percentile(np.asarray(part), [0.2, 50, 99.8])
    darkest, ground, _ = lightness["light"]
    assert darkest < 60 and ground > 250
    _, ground, lightest = lightness["dark"]
    assert ground < 40 and lightest > 190


@pytest.mark.parametrize("name", [pytest.param("", marks=pytest.mark.nightly), "gavel/"])
def test_type_in_pictures_is_legible_on_a_telephone(page, gallery, name):
    page.open(gallery.replace("index.html", f"{name}index.html"))
    page.resize(390)
    page.evaluate("document.querySelectorAll('.card').forEach((one) => one.open = true)")
    widths = page.evaluate(WIDTH_OF_PICTURES)
    assert len(widths) > 10 and (name or len(widths) == len(params.discover(ROOT)))
    page.open("data:text/html,<!doctype html><title>type</title>")
    for address, width in widths.items():
        svg = json.dumps((ROOT / "figures" / name / address).read_text())
        assert page.evaluate(SMALLEST_TYPE % (svg, width)) >= 9, address


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["", "tiresias/"])
def test_texts_stand_out_from_what_is_behind_them(page, gallery, scheme, name):
    page.scheme(scheme)
    page.open(gallery.replace("index.html", f"{name}index.html"))
    assert page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches") == (scheme == "dark")
    page.evaluate("document.querySelectorAll('details').forEach((one) => one.open = true)")
    assert page.evaluate(PALE) == []


def test_pictures_that_arrive_move_nothing(page):
    top = "document.querySelectorAll('.card')[30].offsetTop"
    before = page.evaluate(top)
    page.evaluate(
        "Promise.all([...document.images].slice(0, 12)"
        ".map((one) => (one.loading = 'eager', one.decode())))"
    )
    assert page.evaluate(top) == before


def test_keys_reach_the_figures_and_show_where_they_are(page):
    page.press("Tab", 9)
    assert page.evaluate("document.activeElement.className") == "skip"
    assert page.evaluate("document.activeElement.getBoundingClientRect().left") >= 0
    for _ in range(3):
        page.press("Tab", 9)
        style = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert style == "solid"
    unnamed = """[...document.querySelectorAll("input, select, button, a[href], summary")]
      .filter((one) => !(one.labels?.length || one.textContent.trim() || one.ariaLabel
        || one.querySelector("img[alt]")?.alt)).length"""
    assert page.evaluate(unnamed) == 0


def test_a_page_of_a_paper_leads_back(page, gallery):
    page.open(gallery.replace("index.html", "muri/index.html"))
    assert page.complaints() == []
    link = page.evaluate("document.querySelector('.why a').getAttribute('href')")
    assert re.fullmatch(r"\.\./index\.html#muri/\w+", link)
    page.evaluate("document.querySelector('.why a').click()")
    page.wait("document.querySelectorAll('.card[open]').length === 1")
