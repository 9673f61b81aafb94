"""The cache keeps the pages used last, within its bytes, while pages grow and threads come and go."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from services.retriever.corpus import Key, PageCache, SearchablePage
from services.retriever.pages import PageOptions, process_page

OPTIONS = PageOptions()


def page(name: str, sentences: int = 20) -> SearchablePage:
    body = "".join(f"<p>Sentence {n} of the page {name} says nothing much.</p>" for n in range(sentences))
    return SearchablePage(process_page(f"<html><body><main>{body}</main></body></html>", OPTIONS))


def key(name: str) -> Key:
    return (name, OPTIONS, "")


def cached(cache: PageCache, names: str) -> str:
    return "".join(name for name in names if cache.get(key(name)))


def grow(grown: SearchablePage) -> None:
    grown.states[0] = np.zeros((50, 384), np.float16), np.zeros(50, np.int64)


def test_a_page_comes_back_by_its_content_options_and_name() -> None:
    cache = PageCache(10**7)
    first = page("a")
    cache.put(key("a"), first)
    assert cache.get(key("a")) is first
    for other in (key("b"), ("a", PageOptions(parent_chars=600), ""), ("a", OPTIONS, "A name")):
        assert cache.get(other) is None


def test_the_page_unused_for_longest_goes_first() -> None:
    pages = {name: page(name) for name in "abc"}
    cache = PageCache(pages["a"].nbytes + pages["b"].nbytes + pages["c"].nbytes // 2)
    cache.put(key("a"), pages["a"])
    cache.put(key("b"), pages["b"])
    cache.get(key("a"))
    cache.put(key("c"), pages["c"])
    assert cached(cache, "abc") == "ac"


def test_a_page_put_again_is_counted_anew_and_makes_room() -> None:
    pages = {name: page(name) for name in "ab"}
    # Enough for both, and for the second alone once it has grown.
    cache = PageCache(pages["b"].nbytes + 40_000)
    for name in "aba":
        cache.put(key(name), pages[name])
    assert cached(cache, "ab") == "ab"
    before = pages["b"].nbytes
    grow(pages["b"])
    assert pages["b"].nbytes == before + 50 * 384 * 2 + 50 * 8
    cache.put(key("b"), pages["b"])
    assert cached(cache, "ab") == "b"


def test_a_page_larger_than_the_cache_is_let_go_with_all_its_bytes() -> None:
    grown = page("a")
    cache = PageCache(grown.nbytes + 1_000)
    cache.put(key("a"), grown)
    grow(grown)
    cache.put(key("a"), grown)
    assert cached(cache, "a") == ""
    cache.put(key("b"), page("b"))
    assert cached(cache, "b") == "b"


def test_threads_leave_the_count_right() -> None:
    pages = {name: page(name, 3) for name in "abcdefghijkl"}
    cache = PageCache(5 * pages["a"].nbytes)

    def use(turn: int) -> None:
        name = "abcdefghijkl"[turn * 7 % 12]
        if cache.get(key(name)) is None:
            cache.put(key(name), pages[name])

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(use, range(2_000)))
    assert len(cached(cache, "abcdefghijkl")) == 5
    for name in "abcde":
        cache.put(key(name), pages[name])
    assert cached(cache, "abcdefghijkl") == "abcde"


def test_the_estimate_covers_vectors_and_text() -> None:
    one = page("a")
    before = one.nbytes
    assert before > sum(len(chunk.text) for chunk in one.children)
    one.vectors[0] = np.zeros(384, np.float16)
    assert one.nbytes == before + 384 * 2


def test_a_child_is_shown_as_its_parent() -> None:
    one = page("a")
    assert one.children[0].text in one.passage(0).text
    assert len(one.passage(0).text) > len(one.children[0].text)
