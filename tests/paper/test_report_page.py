"""The report in a browser: no network access, no errors, wide and narrow windows."""

import pytest

from headless_browser import browser_page, file_url, find_browser

pytestmark = pytest.mark.slow  # the whole paper is reproduced, if quickly


@pytest.fixture(scope="module", params=[1280, 400], ids=["1280 pixels", "400 pixels"])
def page(request, quick_report):
    program = find_browser()
    if program is None:
        pytest.skip("there is no Chromium on this machine")
    with browser_page(program) as tab:
        tab.open(file_url(quick_report), width=request.param)
        yield tab


def test_nothing_is_loaded_from_elsewhere(page, quick_report):
    loaded = [url for url in page.requests if not url.startswith("data:")]
    assert loaded == [file_url(quick_report)]


def test_the_browser_does_not_complain(page):
    assert page.complaints == []


def test_every_image_is_drawn(page):
    drawn = page.value("[...document.images].map(i => i.complete && i.naturalWidth > 0 && i.clientWidth > 250)")
    assert len(drawn) >= 16
    assert all(drawn)


def test_the_page_does_not_overflow_to_the_side(page):
    assert page.value("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    # Only what can be scrolled by itself may be wider than the window.
    outside = """[...document.querySelectorAll('body *')]
        .filter(e => !e.closest('.scroll'))
        .filter(e => e.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
        .map(e => e.outerHTML.slice(0, 99))"""
    assert page.value(outside) == []


def test_text_is_large_enough_to_read(page):
    sizes = page.value("[...document.querySelectorAll('p, td, th, figcaption')].map(e => getComputedStyle(e).fontSize)")
    assert min(float(size.removesuffix("px")) for size in sizes) >= 12.0


def test_every_verdict_can_be_seen_without_scrolling_sideways(page):
    rights = page.value("[...document.querySelectorAll('td.verdict')].map(e => e.getBoundingClientRect().right)")
    assert len(rights) > 60
    assert max(rights) <= page.value("document.documentElement.clientWidth")
