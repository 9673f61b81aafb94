import pytest

from services.kg.definition.yaml_lines import MAX_NODES, BrokenYaml, load


def test_words_that_other_readers_take_for_something_else_stay_words() -> None:
    data, _ = load("a: [on, no, yes, Off, 2003-04-21, 12:30:00, 0x1f, 1_000]\nb: [true, false, ~, null, 3, -2.5, 3e9]")
    assert data["a"] == ["on", "no", "yes", "Off", "2003-04-21", "12:30:00", "0x1f", "1_000"]
    assert data["b"] == [True, False, None, None, 3, -2.5, 3e9]


def test_every_key_has_its_line() -> None:
    _, lines = load("# a comment\na:\n  b: 1\n  c:\n    - x\n    - {d: 2}\n")
    assert [lines.of(path) for path in (("a",), ("a", "b"), ("a", "c", 1), ("a", "c", 1, "d"))] == [2, 3, 6, 6]


def test_a_place_that_is_not_there_is_that_of_what_is_around_it() -> None:
    _, lines = load("a:\n  b:\n    c: 1\n")
    assert lines.of(("a", "b", "missing", "deeper")) == 2
    # Steps of a validator that the file does not have are left out.
    assert lines.nearest(("a", "function-after", "b", "c")) == ("a", "b", "c")


def test_what_is_taken_over_stands_where_it_is_named() -> None:
    data, lines = load("base: &base {x: 1, y: 2}\none:\n  first: 0\n  <<: *base\n  y: 3\n  last: 4\n")
    assert list(data["one"].items()) == [("first", 0), ("x", 1), ("y", 3), ("last", 4)]
    assert lines.of(("one", "x")) == 1
    assert lines.of(("one", "y")) == 5


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("a: 1\nb: 2\na: 3", 3, "a stands here twice"),
        ("a: 1\nb: [1, 2", 3, "expected"),
        ("a: 1\nb: !!python/object/apply:os.system ['true']", 2, "tag"),
        ("a: 1\nb: !secret x", 2, "no tag of such a file"),
        ("a:\n  ? [1, 2]\n  : 3", 2, "a key must be a word"),
        ("a: 1\n---\nb: 2", 2, "another document"),
        ("a: &a\n  b: *a", 2, "anchor within itself"),
        ("a: 1\nb:\n  <<: [1]", 3, "<< takes a mapping"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_line(text: str, line: int, reason: str) -> None:
    with pytest.raises(BrokenYaml, match=reason) as caught:
        load(text)
    assert caught.value.line == line


def test_anchors_do_not_multiply_without_end() -> None:
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    with pytest.raises(BrokenYaml, match="too much"):
        load("\n".join(levels))
    assert MAX_NODES < 10**8
