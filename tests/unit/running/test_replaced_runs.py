"""An earlier run leaves when the one that replaces it has its result, and not before."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crossgraft.errors import OtherRunError
from crossgraft.running.run_directory import open_run
from crossgraft.running.written_files import BEFORE, UNFINISHED

KINDS = (ValueError, KeyboardInterrupt)


def opened(path, seed=0, **more):
    return open_run(path, command="rank", command_line="", config={}, seed=seed, **more)


def content(path):
    return {
        str(file.relative_to(path)): file.read_bytes()
        for file in sorted(path.rglob("*"))
        if file.is_file() and file.name != ".lock" and UNFINISHED not in file.parts
    }


@pytest.fixture
def done(tmp_path):
    path = tmp_path / "run"
    with opened(path) as run:
        run.write("scores.csv", "old")
        run.own("jobs/")
        (path / "jobs" / "a").mkdir(parents=True)
        (path / "jobs" / "a" / "weights").write_text("old")
        run.write("jobs/a/result.json", "old")
    (path / "notes.txt").write_text("mine")
    return path


def begin(path, kind=None):
    with opened(path, seed=1, overwrite=True) as run:
        run.own("jobs/", "new/")
        assert run.resumed or not (path / "jobs").exists()
        for folder in ("jobs", "new"):
            (path / folder).mkdir(exist_ok=True)
            (path / folder / "b").write_text("new")
        run.write("scores.csv", "new")
        assert (path / BEFORE).is_dir()
        if kind is not None:
            raise kind


def fail(kind, *arguments, **more):
    with opened(*arguments, overwrite=True, **more) as run:
        run.write("scores.csv", "new")
        run.write("more.json", "new")
        raise kind


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("steps", [0, 1])
def test_what_fails_leaves_the_earlier_run_as_it_was(done, kind, steps):
    before = content(done)
    with pytest.raises(kind):
        begin(done, kind) if steps else fail(kind, done, seed=1)
    assert content(done) == before
    with opened(done) as run:
        assert run.resumed


def test_what_ends_well_takes_its_place_and_leaves_nothing_of_it(done):
    begin(done)
    assert {name for name in content(done) if not name.startswith(".")} == {
        "run.json",
        "scores.csv",
        "notes.txt",
        "jobs/b",
        "new/b",
    }
    assert not (done / BEFORE).exists() and not (done / UNFINISHED).exists()


def test_the_same_command_goes_on_where_it_was_interrupted(done):
    with pytest.raises(KeyboardInterrupt):
        begin(done, KeyboardInterrupt)
    with opened(done, seed=1, overwrite=True) as run:
        assert run.resumed
        assert (done / "jobs" / "b").read_text() == (done / "new" / "b").read_text() == "new"
        assert not (done / "jobs" / "a").exists()
    assert not (done / UNFINISHED).exists()


def test_another_command_does_not_go_on_with_it(done):
    with pytest.raises(KeyboardInterrupt):
        begin(done, KeyboardInterrupt)
    with opened(done, seed=2, overwrite=True) as run:
        assert not run.resumed
        assert not (done / "new").exists()


def test_an_attempt_that_fails_again_is_begun_anew(done):
    for attempt in range(2):
        assert (done / UNFINISHED).exists() == bool(attempt)
        with pytest.raises(ValueError, match="damaged"):
            fail(ValueError("damaged"), done, seed=1)
    with opened(done, seed=1, overwrite=True) as run:
        assert not run.resumed


def test_a_finished_run_that_is_asked_again_and_fails_stays_finished(done):
    before = content(done)
    with pytest.raises(ValueError, match="gone"), opened(done):
        raise ValueError("gone")
    assert content(done) == before


@settings(max_examples=60, deadline=None)
@given(stop=st.integers(0, 30), again=st.integers(0, 30))
def test_a_kill_between_any_two_renames_loses_nothing(tmp_path_factory, stop, again):
    """What a killed process left is settled by the next one, which may be killed too."""
    path = tmp_path_factory.mktemp("kill") / "run"
    with opened(path) as run:
        run.write("scores.csv", "old")
        run.write("models/a.json", "old")
    before = content(path)
    replace = Path.replace

    class Killed(BaseException):
        pass

    for left in (stop, again):
        moves = iter(range(left))

        def move(self, target, moves=moves):
            if self.name.endswith(".tmp") or next(moves, None) is not None:
                return replace(self, target)
            raise Killed

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Path, "replace", move)
            with pytest.raises((Killed, ValueError)):
                fail(ValueError, path, seed=1)
    with pytest.raises(ValueError, match="typo"), opened(path, seed=2, overwrite=True):
        raise ValueError("typo")
    assert content(path) == before


RECORD = '{\n "schema_version": 1,\n "kind": "ranking"\n}'
PAGE = '<!doctype html>\n<meta name="generator" content="crossgraft 0.1.0">'
OURS = {"report.html": PAGE, "report.json": RECORD, "split.json": RECORD}


@settings(max_examples=30)
@given(name=st.sampled_from(sorted(OURS)), theirs=st.binary(min_size=1), overwrite=st.booleans())
def test_a_file_of_somebody_in_the_place_of_one_of_the_run_stays_and_so_does_the_run(name, theirs, overwrite, tmp_path_factory):
    path = tmp_path_factory.mktemp("theirs") / "run"
    with opened(path) as run:
        for each, text in OURS.items():
            run.write(each, text)
    (path / name).write_bytes(theirs)
    before = content(path)
    with (
        pytest.raises(OtherRunError, match=rf"{name} is not .* of crossgraft, .* Move it, or choose another --out"),
        opened(path, overwrite=overwrite),
    ):
        pass
    assert content(path) == before
    (path / name).rename(path / "moved")  # as the message says
    with opened(path, overwrite=overwrite) as run:
        for each, text in OURS.items():
            run.write(each, text)
    assert (path / "moved").read_bytes() == theirs


@pytest.mark.parametrize("name", OURS)
def test_a_folder_or_a_broken_link_is_no_file_of_the_run_and_an_empty_file_has_nothing_to_lose(done, name, tmp_path):
    with opened(done, overwrite=True) as run:
        run.write("report.html", PAGE)
    (done / name).unlink(missing_ok=True)
    (done / name).mkdir()
    with pytest.raises(OtherRunError, match=name), opened(done, overwrite=True):
        pass
    (done / name).rmdir()
    (done / name).symlink_to(tmp_path / "gone")
    with pytest.raises(OtherRunError, match=name), opened(done, overwrite=True):
        pass
    (done / name).unlink()
    (done / name).touch()
    with opened(done, overwrite=True):
        pass
