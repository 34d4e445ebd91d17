"""``--overwrite`` removes what a run wrote, and the list of that is data."""

from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crossgraft.errors import CrossgraftError, DataError
from crossgraft.running.run_directory import open_run
from crossgraft.running.written_files import WRITTEN
from support.guard import guarded


def make_run(path, seed=0, **more):
    with open_run(path, command="rank", command_line="", config={"a": 1}, seed=seed, **more) as run:
        run.write("table.csv", "1")


@pytest.fixture
def run(tmp_path):
    path = tmp_path / "run"
    make_run(path)
    (tmp_path / "precious.txt").write_text("mine")
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "precious.txt").write_text("mine")
    return path


@pytest.mark.parametrize(
    "name", ["../precious.txt", "ABSOLUTE", "a/../../precious.txt", "link/precious.txt", "..", "loop/x", "a\0b", "deep/../../x"]
)
def test_a_name_that_leaves_the_folder_is_refused(run, tmp_path, name):
    if name.startswith("link"):
        (run / "link").symlink_to(tmp_path / "deep")
    if name.startswith("loop"):
        (run / "loop").symlink_to(run / "loop")
    name = str(tmp_path / "precious.txt") if name == "ABSOLUTE" else name
    (run / WRITTEN).write_text(f"table.csv\n{name}\n")
    with (
        guarded(run),
        pytest.raises(DataError, match=r"which is not in the folder of the run, so nothing was removed|is a symbolic link"),
    ):
        make_run(run, seed=1, overwrite=True)
    assert (run / "table.csv").is_file()
    assert (tmp_path / "precious.txt").read_text() == (tmp_path / "deep" / "precious.txt").read_text() == "mine"


def test_a_list_that_is_no_text_is_named(run):
    (run / WRITTEN).write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match=r"Cannot read .*\.files"):
        make_run(run, seed=1, overwrite=True)


def test_a_link_in_the_folder_is_removed_and_not_what_it_points_to(run, tmp_path):
    (run / "table.csv").unlink()
    (run / "table.csv").symlink_to(tmp_path / "precious.txt")
    make_run(run, seed=1, overwrite=True)
    assert not (run / "table.csv").is_symlink()
    assert (tmp_path / "precious.txt").read_text() == "mine"


def test_a_run_folder_that_is_a_link_itself_is_replaced(run, tmp_path):
    (tmp_path / "alias").symlink_to(run)
    make_run(tmp_path / "alias", seed=1, overwrite=True)
    assert (run / "table.csv").is_file()


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.one_of(st.binary(max_size=60), st.text("./a~\0\n\\x", max_size=30).map(str.encode)))
def test_any_list_leaves_everything_else_alone(run, tmp_path, content):
    (run / WRITTEN).write_bytes(content)
    with guarded(run), suppress(CrossgraftError):
        make_run(run, seed=1, overwrite=True)
    assert (tmp_path / "precious.txt").read_text() == "mine"
    if not (run / "run.json").exists():
        make_run(run)


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("place", ["jobs", "trainings", "deep/folds", ".lock"])
def test_a_folder_with_links_to_elsewhere_is_refused(run, tmp_path, place, overwrite):
    """Whatever the command writes or removes through the link: jobs, trainings, checkpoints."""
    (run / place).parent.mkdir(exist_ok=True)
    (run / place).unlink(missing_ok=True)
    (run / place).symlink_to(tmp_path / ("precious.txt" if place == ".lock" else "deep"))
    before = sorted(path.name for path in run.iterdir())
    with guarded(), pytest.raises(DataError, match=r"is a symbolic link\. A run writes and removes files in its folder"):
        make_run(run, overwrite=overwrite)
    assert sorted(path.name for path in run.iterdir()) == before
    assert (tmp_path / "precious.txt").read_text() == "mine"


def test_a_temporary_name_without_a_target_is_left_alone(run):
    strange = run / "...abcdef-1-1-00000000.tmp"
    strange.touch()
    make_run(run)
    assert strange.exists()
