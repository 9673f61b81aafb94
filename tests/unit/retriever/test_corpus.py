"""The cache keeps the pages used last, within its bytes, while pages grow and threads come and go."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from services.retriever.corpus import Key, PageCache, SearchablePage
from services.retriever.pages import PageOptions, process_page

OPTIONS = PageOptions()


def page(name: str, sentences: int = 20) -> SearchablePage:
    body = "".join(f"<p>Sentence {n} of the page {name} says nothing much.</p>" for n in range(sentences))
    return SearchablePage(process_page(f"<html><body><main>{body}</main></body></html>", OPTIONS), 384)


def key(name: str) -> Key:
    return (name, OPTIONS, "")


def test_a_page_comes_back_as_it_was_put() -> None:
    cache = PageCache(10**7)
    first = page("a")
    cache.put(key("a"), first)
    assert cache.get(key("a")) is first
    assert cache.get(key("b")) is None
    assert len(cache) == 1
    assert cache.nbytes == first.nbytes


def test_options_and_names_are_part_of_the_key() -> None:
    cache = PageCache(10**7)
    cache.put(key("a"), page("a"))
    assert cache.get(("a", PageOptions(parent_chars=600), "")) is None
    assert cache.get(("a", OPTIONS, "A name")) is None


def test_the_page_unused_for_longest_goes_first() -> None:
    pages = {name: page(name) for name in "abc"}
    cache = PageCache(pages["a"].nbytes + pages["b"].nbytes + pages["c"].nbytes // 2)
    cache.put(key("a"), pages["a"])
    cache.put(key("b"), pages["b"])
    cache.get(key("a"))
    cache.put(key("c"), pages["c"])
    assert cache.get(key("b")) is None
    assert cache.get(key("a")) is pages["a"]
    assert cache.get(key("c")) is pages["c"]


def test_a_page_larger_than_the_cache_is_not_kept() -> None:
    cache = PageCache(100)
    cache.put(key("a"), page("a"))
    assert len(cache) == 0
    assert cache.nbytes == 0


def test_a_page_put_again_is_counted_anew() -> None:
    cache = PageCache(10**7)
    grown = page("a")
    cache.put(key("a"), grown)
    before = cache.nbytes
    grown.states[0] = np.zeros((50, 384), np.float16), np.zeros(50, np.int64)
    cache.put(key("a"), grown)
    assert cache.nbytes == before + 50 * 384 * 2 + 50 * 8
    assert len(cache) == 1


def test_a_page_that_grew_too_large_is_let_go_with_all_its_bytes() -> None:
    grown = page("a")
    cache = PageCache(grown.nbytes + 1_000)
    cache.put(key("a"), grown)
    grown.states[0] = np.zeros((50, 384), np.float16), np.zeros(50, np.int64)
    cache.put(key("a"), grown)
    assert len(cache) == 0
    assert cache.nbytes == 0


def test_threads_leave_the_count_right() -> None:
    pages = {f"p{n}": page(f"p{n}", 3) for n in range(12)}
    cache = PageCache(5 * pages["p0"].nbytes)

    def use(turn: int) -> None:
        name = f"p{turn * 7 % 12}"
        if cache.get(key(name)) is None:
            cache.put(key(name), pages[name])

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(use, range(2_000)))
    cached = [entry for name in pages if (entry := cache.get(key(name)))]
    assert cache.nbytes == sum(entry.nbytes for entry in cached) <= 5 * pages["p0"].nbytes
    assert len(cache) == len(cached)


def test_the_estimate_covers_vectors_and_text() -> None:
    one = page("a")
    assert one.nbytes > one.vectors.nbytes + sum(len(chunk.text) for chunk in one.children)


def test_a_child_is_shown_as_its_parent() -> None:
    one = page("a")
    assert one.children[0].text in one.passage(0).text
    assert len(one.passage(0).text) > len(one.children[0].text)
