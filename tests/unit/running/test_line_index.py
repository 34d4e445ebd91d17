"""An index answers as plain reading does, whatever was done to the file or to the index."""

import contextlib
import os
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossgraft.errors import CrossgraftError
from crossgraft.records.base import Record
from crossgraft.running.json_lines import JsonLines
from crossgraft.running.line_index import LineIndex


class Word(Record):
    text: str
    number: int


LINES = JsonLines(Word, "the words", "a word", key=lambda row: row.text)
INDEX = LineIndex(LINES, ("text", "number"), lambda row: (row.text, str(row.number)), least_bytes=1)


def line(word):
    return Word(text=word[0], number=word[1]).model_dump_json() + "\n"


def answers(path):
    """What plain reading says and what the index says; errors in words."""

    def plain():
        rows = LINES.read(path)
        return [row.text for row in rows], [str(row.number) for row in rows], rows

    def indexed():
        read = INDEX.read(path)
        texts, numbers = read.columns["text"], read.columns["number"]
        return list(texts), list(numbers), [read.record(place) for place in range(len(texts))]

    def outcome(ask):
        try:
            return ask()
        except CrossgraftError as error:
            return str(error)

    return outcome(plain), outcome(indexed)


def beside(path):
    return path.with_name(f".{path.name}.index")


WORDS = st.tuples(st.text(max_size=4), st.integers(-9, 9))
CHANGES = st.one_of(
    st.tuples(st.just("append"), st.lists(WORDS, max_size=4)),
    st.tuples(st.just("add"), st.lists(WORDS, max_size=3)),
    st.tuples(st.just("cut"), st.integers(0, 200)),
    st.tuples(st.just("edit"), st.tuples(st.integers(0, 300), st.sampled_from(b' \n"1a\xff}'))),
    st.tuples(st.just("spoil the index"), st.tuples(st.integers(0, 400), st.sampled_from(b' \n"1a\xff}'))),
    st.tuples(st.just("cut the index"), st.integers(0, 400)),
    st.tuples(st.just("delete the index"), st.none()),
)


def change(path, kind, value):
    file = beside(path) if "index" in kind else path
    if kind == "append":
        with path.open("a", encoding="utf-8") as opened:
            opened.write("".join(map(line, value)))
    elif kind == "add":
        with contextlib.suppress(CrossgraftError):
            LINES.add([Word(text=text, number=number) for text, number in value], path)
    elif kind == "delete the index":
        file.unlink(missing_ok=True)
    elif file.exists():
        data = bytearray(file.read_bytes())
        if kind.startswith("cut"):
            data = data[:value]
        elif data:
            place, byte = value
            data[place % len(data)] = byte
        file.write_bytes(data)


@given(st.lists(CHANGES, min_size=1, max_size=8))
def test_the_index_answers_as_plain_reading_after_any_changes(tmp_path_factory, changes):
    path = tmp_path_factory.mktemp("index") / "words.jsonl"
    for kind, value in changes:
        change(path, kind, value)
        plain, indexed = answers(path)
        assert indexed == plain


def test_lines_that_were_added_are_read_alone_and_an_edit_of_equal_size_and_time_is_noticed(tmp_path, monkeypatch):
    path = tmp_path / "words.jsonl"
    path.write_text("".join(line(("a", number)) for number in range(5)), encoding="utf-8")
    INDEX.read(path)
    read = []
    parse = JsonLines.parse
    monkeypatch.setattr(
        JsonLines, "parse", lambda self, data, *rest, **more: read.append(data) or parse(self, data, *rest, **more)
    )
    INDEX.read(path)
    assert read == []
    with path.open("a", encoding="utf-8") as opened:
        opened.write(line(("b", 7)))
    assert INDEX.read(path).columns["text"] == ["a"] * 5 + ["b"]
    assert read == [line(("b", 7)).encode()]
    times = path.stat()
    path.write_text(path.read_text(encoding="utf-8").replace('"a"', '"c"', 1), encoding="utf-8")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert INDEX.read(path).columns["text"] == ["c"] + ["a"] * 4 + ["b"]


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
@pytest.mark.parametrize(
    "spoil", [lambda file: file.mkdir(), lambda file: file.symlink_to("/dev/zero"), lambda file: file.write_text("[" * 10**5)]
)
def test_what_lies_in_the_place_of_the_index_does_no_harm(tmp_path, spoil):
    path = tmp_path / "words.jsonl"
    path.write_text(line(("a", 1)), encoding="utf-8")
    spoil(beside(path))
    plain, indexed = answers(path)
    assert indexed == plain == (["a"], ["1"], [Word(text="a", number=1)])


def test_where_nothing_can_be_written_the_answer_is_the_same(tmp_path, monkeypatch):
    path = tmp_path / "words.jsonl"
    path.write_text(line(("a", 1)), encoding="utf-8")

    def refuse(*_, **__):
        raise PermissionError("read-only")

    monkeypatch.setattr("crossgraft.running.line_index.write_atomically", refuse)
    plain, indexed = answers(path)
    assert indexed == plain
    assert not beside(path).exists()


def test_a_small_file_has_no_index_and_a_damaged_line_is_named_by_its_number(tmp_path):
    path = tmp_path / "words.jsonl"
    path.write_text(line(("a", 1)), encoding="utf-8")
    LineIndex(LINES, INDEX.names, INDEX.texts).read(path)
    assert list(tmp_path.iterdir()) == [path]
    INDEX.read(path)
    with path.open("a", encoding="utf-8") as opened:
        opened.write("\n" + line(("b", 2)) + "{}\n")
    plain, indexed = answers(path)
    assert indexed == plain and "line 4 is not a word" in indexed


def test_two_at_once_leave_a_whole_index(tmp_path):
    path = tmp_path / "words.jsonl"
    path.write_text("".join(line((str(number), number)) for number in range(50)), encoding="utf-8")
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: list(INDEX.read(path).columns["text"]), range(16)))
    assert found == [[str(number) for number in range(50)]] * 16
    assert sorted(file.name for file in tmp_path.iterdir()) == [".words.jsonl.index", "words.jsonl"]
