"""What a killed process left half-written is removed by the next run, and nothing of a living one is."""

import os
import re
import time
from pathlib import Path

import numpy as np
import pytest

from crossgraft.data import dataset_from_arrays
from crossgraft.edit.writing import write_images
from crossgraft.errors import RunDirectoryError
from crossgraft.export.written import RECORD_FILE, refuse_existing
from crossgraft.features.store import FeatureStore
from crossgraft.rank.record import KnownResult
from crossgraft.rank.results_store import add_known_results
from crossgraft.running.run_directory import open_run
from crossgraft.storage.atomic import (
    ABANDONED_SECONDS,
    folder_beside,
    remove_leftovers,
    replace_folder,
    scratch_folder,
    temporary_beside,
    write_atomically,
)

NO_PROCESS = f"{2**22 + 12345:x}"  # above the largest process number of Linux


def name_of(path, *, pid=None, machine=None, start=None):
    """The name that a process gives what is to become ``path``; by default this very process."""
    with temporary_beside(path) as temporary:
        target, now, number, began, token = re.fullmatch(
            r"\.(.+)\.([0-9a-f]+)-([0-9a-f]+)-([0-9a-f]+)-([0-9a-f]+)\.tmp", temporary.name
        ).groups()
    return path.with_name(f".{target}.{machine or now}-{pid or number}-{start or began}-{token}.tmp")


def leftover(path, **process):
    """A file that a killed process was writing."""
    made = name_of(path, **{"pid": NO_PROCESS, **process})
    made.parent.mkdir(parents=True, exist_ok=True)
    made.write_text("half")
    return made


def leftover_folder(path, *, before=None):
    """A folder that a killed process was filling, or had just put ``before`` into."""
    made = name_of(path, pid=NO_PROCESS)
    (made / "fresh").mkdir(parents=True)
    (made / "fresh" / "weights").write_text("half")
    if before is not None:
        (made / "before").mkdir()
        (made / "before" / "weights").write_text(before)
    return made


@pytest.fixture
def opened(tmp_path):
    def enter(path=tmp_path / "run"):
        return open_run(path, command="rank", command_line="", config={}, seed=0)

    return enter


def test_a_name_says_by_whom_it_is_written(tmp_path):
    with temporary_beside(tmp_path / "a.b.safetensors") as temporary:
        assert temporary.name.startswith(".a.b.safetensors.")
        assert f"-{os.getpid():x}-" in temporary.name
        temporary.write_text("x")
    assert list(tmp_path.iterdir()) == []


def test_leftovers_of_dead_processes_go_and_those_of_living_ones_stay(tmp_path):
    alive = leftover(tmp_path / "a", pid=f"{os.getpid():x}")
    elsewhere = leftover(tmp_path / "a", machine="0a0b0c")
    reused = leftover(tmp_path / "a", pid=f"{os.getpid():x}", start="1000")  # another process had this number
    dead = leftover(tmp_path / "b")
    mine = tmp_path / ".a.notes.tmp"
    mine.write_text("of the user")
    remove_leftovers(tmp_path)
    assert {path for path in (alive, elsewhere, reused, dead, mine) if path.exists()} == {alive, elsewhere, mine}


def test_what_another_machine_left_goes_after_a_day_or_under_the_lock(tmp_path):
    elsewhere = leftover(tmp_path / "a", machine="0a0b0c")
    os.utime(elsewhere, (time.time() - ABANDONED_SECONDS - 60,) * 2)
    fresh = leftover(tmp_path / "b", machine="0a0b0c")
    remove_leftovers(tmp_path)
    assert list(tmp_path.iterdir()) == [fresh]
    remove_leftovers(tmp_path, locked=True)
    assert list(tmp_path.iterdir()) == []


def test_links_are_not_followed(tmp_path):
    inside, outside = tmp_path / "run", tmp_path / "outside"
    precious = leftover(outside / "precious")
    inside.mkdir()
    (inside / "link").symlink_to(outside)
    link = name_of(inside / "model", pid=NO_PROCESS)
    link.symlink_to(outside)
    remove_leftovers(inside, locked=True, recursive=True)
    assert precious.exists()
    assert not link.is_symlink()


def test_writing_a_file_again_removes_what_was_left_of_it(tmp_path):
    gone, other = leftover(tmp_path / "a.json"), leftover(tmp_path / "b.json")
    write_atomically(tmp_path / "a.json", "{}")
    assert not gone.exists()
    assert other.exists()


def test_many_images_are_written_after_one_look_for_what_was_left_of_them(tmp_path, monkeypatch):
    """A look reads the names of all of the folder, so that one before each image takes time that grows with their square."""
    gone = leftover(tmp_path / "images" / "3.png")
    walked, walk = [], os.walk
    monkeypatch.setattr(os, "walk", lambda folder: walked.append(folder) or walk(folder))
    dataset = dataset_from_arrays(np.zeros((4, 8, 8), np.uint8), np.array([0, 1, 0, 1]))
    paths = write_images(dataset, tmp_path, told=lambda: None)
    assert not gone.exists() and {f"images/{path.name}" for path in (tmp_path / "images").iterdir()} == {*paths}
    assert walked == [tmp_path / "images"]


def test_a_run_removes_what_its_killed_attempt_left_anywhere_in_it(tmp_path, opened):
    with opened() as run:
        run.write("a.txt", "a")
    left = [
        leftover(tmp_path / "run" / "run.json"),
        leftover(tmp_path / "run" / ".files", machine="0a0b0c"),
        leftover(tmp_path / "run" / "jobs" / "only" / "checkpoint" / "checkpoint.safetensors"),
        leftover_folder(tmp_path / "run" / "folds" / "fold-0" / "model"),
    ]
    with opened():
        pass
    assert not [path for path in left if path.exists()]


def test_a_run_that_was_killed_before_its_first_record_can_be_started_again(tmp_path, opened):
    leftover(tmp_path / "run" / ".files")
    leftover(tmp_path / "run" / "run.json")
    with opened() as run:
        assert not run.resumed
    assert {path.name for path in (tmp_path / "run").iterdir()} == {".lock", ".files", "run.json"}


def test_an_older_model_comes_back_if_nothing_took_its_place(tmp_path, opened):
    with opened():
        pass
    left = leftover_folder(tmp_path / "run" / "model", before="older")
    with opened():
        assert (tmp_path / "run" / "model" / "weights").read_text() == "older"
    assert not left.exists()


def test_a_newer_model_is_not_replaced_by_an_older_one(tmp_path):
    replace_folder(tmp_path / "model", {"weights": "newer"}, what="it", advice="")
    leftover_folder(tmp_path / "model", before="older")
    remove_leftovers(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    assert (tmp_path / "model" / "weights").read_text() == "newer"


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_what_stops_between_both_renames_leaves_the_older_model(tmp_path, monkeypatch, error):
    replace_folder(tmp_path / "model", {"weights": "older"}, what="it", advice="")
    rename = Path.rename

    def stopped(self, target):
        if self.name == "fresh":
            raise error
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", stopped)
    with pytest.raises(error), folder_beside(tmp_path / "model") as fresh:
        (fresh / "weights").write_text("newer")
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    assert (tmp_path / "model" / "weights").read_text() == "older"


def test_an_export_that_is_refused_removes_what_was_left_of_another(tmp_path):
    replace_folder(tmp_path / "onnx", {RECORD_FILE: "{}"}, what="it", advice="")
    left = leftover_folder(tmp_path / "onnx")
    with pytest.raises(RunDirectoryError, match="holds an export already"):
        refuse_existing(tmp_path / "onnx", overwrite=False)
    assert not left.exists()


def test_the_store_of_known_results_removes_its_own(tmp_path):
    fields = {"weights": "w", "source": "s", "protocol": "p", "metric": "auc", "origin": "tune"}
    left, other = leftover(tmp_path / "known.jsonl"), leftover(tmp_path / "data.csv")
    add_known_results([KnownResult(model="m", target="t", value=0.5, **fields)], tmp_path / "known.jsonl")
    assert not left.exists()
    assert other.exists()


def test_features_that_are_finished_leave_no_shards(tmp_path):
    def store():
        return FeatureStore(tmp_path / "key", 3, 2, None)

    features = np.ones((3, 2), np.float32)
    store().write_shard(0, features, None, seconds=1.0)
    shard = (tmp_path / "key" / "shard-00000.safetensors").read_bytes()
    assert store().finish() is not None
    (tmp_path / "key" / "shard-00000.safetensors").write_bytes(shard)  # killed before it was removed
    leftover(tmp_path / "key" / "manifest.json")
    store().tidy()
    assert [path.name for path in (tmp_path / "key").iterdir()] == ["features.safetensors"]
    assert store().read() is not None


def test_a_scratch_folder_goes_with_its_block_or_with_the_next_one(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    left = leftover_folder(tmp_path / "crossgraft-training")
    with scratch_folder("training") as folder:
        assert folder.stat().st_mode & 0o077 == 0
        assert not left.exists()
    assert list(tmp_path.iterdir()) == []
