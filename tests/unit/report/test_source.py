"""Records that a page could not be true to are refused, with the name of the file."""

from __future__ import annotations

import json

import pytest

from crossgraft.errors import DataError, RunDirectoryError
from crossgraft.report.kinds import read_run


@pytest.fixture
def directory(tmp_path, examples, ranking):
    return examples.write_run(tmp_path / "run", ranking, images=examples.thumbnails(["a", "b"]))


def change(path, **fields):
    document = json.loads(path.read_text(encoding="utf-8")) | fields
    path.write_text(json.dumps(document), encoding="utf-8")


def test_everything_is_read(directory, ranking, examples):
    source = read_run(directory, prefix="run-1-")
    assert source.record == ranking
    assert source.run == examples.run_record()
    assert len(source.thumbnails) == 8
    assert source.prefix == "run-1-"


def test_thumbnails_are_optional(directory):
    (directory / "thumbnails.json").unlink()
    assert read_run(directory).thumbnails == ()


def test_missing_directory(tmp_path):
    with pytest.raises(RunDirectoryError, match=r"No such run directory: .*nowhere"):
        read_run(tmp_path / "nowhere")


@pytest.mark.parametrize("name", ["run.json", "report.json"])
def test_missing_file(directory, name):
    (directory / name).unlink()
    with pytest.raises(RunDirectoryError, match=rf"{name} is missing"):
        read_run(directory)


@pytest.mark.parametrize("name", ["run.json", "report.json", "thumbnails.json"])
@pytest.mark.parametrize("content", ["{", "[1]", "{}"])
def test_damaged_file(directory, name, content):
    (directory / name).write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=name):
        read_run(directory)


def test_a_file_that_is_no_text(directory):
    (directory / "report.json").write_bytes(b"\xff\xfe\x00\x81")
    with pytest.raises(DataError, match=r"Cannot read .*report\.json"):
        read_run(directory)


def test_a_wrong_field_is_named(directory):
    change(directory / "report.json", advice=3)
    with pytest.raises(DataError, match=r"report\.json is damaged: .* at advice"):
        read_run(directory)


def test_unknown_kind(directory):
    change(directory / "report.json", kind="horoscope")
    with pytest.raises(DataError, match=r"'horoscope'; known kinds: audit, .*ranking"):
        read_run(directory)


def test_newer_schema(directory):
    change(directory / "report.json", schema_version=999)
    with pytest.raises(DataError, match=r"schema version 999.*Upgrade"):
        read_run(directory)


def test_a_ranking_without_its_primary_score(directory):
    change(directory / "report.json", primary_score="itm")
    with pytest.raises(DataError, match="no ranking by its primary score itm"):
        read_run(directory)


@pytest.mark.parametrize("lost", ["models", "scores", "cells"])
def test_a_record_that_contradicts_itself(directory, lost):
    document = json.loads((directory / "report.json").read_text(encoding="utf-8"))
    change(directory / "report.json", **{lost: document[lost][1:]})
    with pytest.raises(DataError, match=r"mentions .* but lacks"):
        read_run(directory)


def test_the_ranking_inside_a_demo_is_checked_too(tmp_path, examples):
    directory = examples.write_run(tmp_path / "demo", examples.demo_record())
    document = json.loads((directory / "report.json").read_text(encoding="utf-8"))
    document["ranking"]["models"].pop()
    (directory / "report.json").write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(DataError, match=r"mentions .* but lacks"):
        read_run(directory)


def test_large_images_of_patients_are_refused(directory, examples, ranking):
    examples.write_run(directory, ranking, images=examples.thumbnails(["a"], side=97))
    with pytest.raises(DataError, match=r"image 0: 97 × 97 pixels; .* at most 96"):
        read_run(directory)


@pytest.mark.parametrize("content", ["bm8gcG5n", "not base64!", "iVBORw0KGgo="])
def test_thumbnails_that_are_no_png(directory, content):
    images = [{"class_name": "a", "png_base64": content}]
    (directory / "thumbnails.json").write_text(json.dumps(images), encoding="utf-8")
    with pytest.raises(DataError, match=r"thumbnails\.json, image 0: (not a PNG|damaged)"):
        read_run(directory)


@pytest.mark.parametrize("changes", [{"certainty": -0.1}, {"certainty": float("nan")}, {"model": "another"}])
def test_answers_that_no_run_writes_are_refused(directory, changes):
    images = json.loads((directory / "thumbnails.json").read_text(encoding="utf-8"))
    for image in images:
        image["answers"] = [{"decision": "a", "certainty": 0.5}]
    images[1]["answers"] = [{**images[1]["answers"][0], **changes}]
    (directory / "thumbnails.json").write_text(json.dumps(images), encoding="utf-8")
    with pytest.raises(DataError, match=r"thumbnails\.json"):
        read_run(directory)
