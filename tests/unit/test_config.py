import pytest

from crossgraft.config import config_hash, read_config_file, resolve, settings_model
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
