import pytest

from crossgraft.config import config_hash, parse_yaml, read_config_file, resolve, settings_model
from crossgraft.errors import UnknownNameError, UsageError
from crossgraft.options._option import Options, option, options


@options
class SomeOptions(Options):
    """Options of a verb."""

    seed: int = option("Random seed.", default=0)
    group_column: str | None = option("Column of patients.", default=None)
    reporter: object = option("Receiver of progress.", default=None, is_typed=False)


MODEL = settings_model(SomeOptions)


def test_flags_win_over_the_file_and_the_file_over_defaults(tmp_path):
    file = tmp_path / "a.yaml"
    file.write_text("seed: 3\ngroup-column: patient\n")
    assert resolve(MODEL, file=None, given={}) == {"seed": 0, "group_column": None}
    assert resolve(MODEL, file=file, given={}) == {"seed": 3, "group_column": "patient"}
    assert resolve(MODEL, file=file, given={"seed": 5}) == {"seed": 5, "group_column": "patient"}


def test_an_unknown_key_is_answered_with_the_nearest(tmp_path):
    file = tmp_path / "a.yaml"
    file.write_text("group_colum: patient\n")
    with pytest.raises(UnknownNameError, match=r"Unknown key: group_colum\. Did you mean group_column\?"):
        resolve(MODEL, file=file, given={})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("- 1\n- 2\n", "must hold a mapping"),
        ("a: [", r"not a YAML file: expected [^\n]* \(line 1, column 5\)\.$"),
        (None, "No such"),
        ("# seed: 1\n", "is empty. Write one option"),
        ("label-column: a\nlabel_column: b\n", "the key label_column is given twice"),
    ],
)
def test_a_bad_file_is_named(tmp_path, content, message):
    file = tmp_path / "a.yaml"
    if content is not None:
        file.write_text(content)
    with pytest.raises(UsageError, match=message):
        read_config_file(file, ["seed"])


def test_a_wrong_type_in_a_file_names_the_file(tmp_path):
    file = tmp_path / "a.yaml"
    file.write_text("seed: many\n")
    with pytest.raises(UsageError, match=r"a\.yaml: seed must be a whole number, not 'many'\."):
        resolve(MODEL, file=file, given={})


def test_a_wrong_type_names_the_key():
    with pytest.raises(UsageError, match=r"^seed must be a whole number, not 'many'\."):
        resolve(MODEL, file=None, given={"seed": "many"})


def test_the_hash_sees_values_and_not_their_order():
    assert config_hash({"a": 1, "b": 2}) == config_hash({"b": 2, "a": 1}) != config_hash({"a": 1, "b": 3})


@pytest.mark.parametrize("flag", ["quiet", "json"])
def test_flags_of_the_terminal_do_not_belong_into_a_file(tmp_path, flag):
    (tmp_path / "c.yaml").write_text(f"{flag}: true\n")
    with pytest.raises(UsageError, match=f"sets {flag}, which is a flag of the terminal only.*type --{flag}"):
        read_config_file(tmp_path / "c.yaml", ["seed"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb: 2\na: 3\n", "the key a is given twice"),
        ("- {name: x, epochs: 1, epochs: 2}", "the key epochs is given twice"),
        ("a: 1:2", "1:2 would be a number to the base of 60"),
        ("a: [12:30:45]", "12:30:45 would be a number to the base of 60"),
        ("a: 1:30.5", "1:30.5 would be a number to the base of 60"),
        ("a: 010", "010 would be a number to the base of 8"),
        ("a: -1" + "0" * 400, "a number has 401 digits"),
    ],
)
def test_yaml_that_another_reader_would_read_otherwise_is_refused(text, message):
    with pytest.raises(ValueError, match=message):
        parse_yaml(text)


def test_yaml_that_reads_as_it_looks_is_read():
    text = "base: &b {a: 1, c: 0.5}\nmore: {<<: *b, a: 2}\nh: 0x10\nz: 0\nq: '1:2'\nn: -7\nbig: 1_000"
    assert parse_yaml(text) == {
        "base": {"a": 1, "c": 0.5},
        "more": {"a": 2, "c": 0.5},
        "h": 16,
        "z": 0,
        "q": "1:2",
        "n": -7,
        "big": 1000,
    }


def test_a_name_of_yaml_is_the_text_that_is_written():
    text = "more: &m {01: a}\nclasses: {yes: b, no: c, null: d, 1.50: e, 1.5: f, 7: g, <<: *m}"
    assert parse_yaml(text) == {
        "more": {"01": "a"},
        "classes": {"yes": "b", "no": "c", "null": "d", "1.50": "e", "1.5": "f", "7": "g", "01": "a"},
    }
    # What is a name in one place and a value in another is each of them there.
    assert parse_yaml("a: &n 1.50\nb: {*n : 1}\n? &k no\n: *k") == {"a": 1.5, "b": {"1.50": 1}, "no": False}


def test_true_is_no_number_and_a_number_is_no_truth(tmp_path):
    file = tmp_path / "a.yaml"
    file.write_text("seed: true\n")
    with pytest.raises(UsageError, match="seed must be a whole number, not True"):
        resolve(MODEL, file=file, given={})
