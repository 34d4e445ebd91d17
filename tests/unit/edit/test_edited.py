"""Edits on their way into a verb: who carries them, what was done, and how it is done again."""

import hashlib

import numpy as np
import pytest

from crossgraft.data.dataset import dataset_from_arrays
from crossgraft.edit.confounders import LowPass, Tag
from crossgraft.errors import DataError, UnknownNameError, UsageError
from crossgraft.options._option import configuration
from crossgraft.progress import Reporter
from crossgraft.tune.options import TuneOptions
from crossgraft.tune.planning.edited_rows import edit_rows, edited_again, read_edits
from crossgraft.tune.planning.preparation import checks_of_rows
from crossgraft.tune.saving.record import TrainingDataRecord
from support.rows import rows_of
from support.tuning_records import tuning_record

QUIET = Reporter(quiet=True)


def images(n=40, *, dtype=np.uint8, size=(16, 20), **more):
    """Noise of two classes, the second one brighter."""
    values = np.random.default_rng(0).random((n, *size)) * 0.6 + 0.3 * (np.arange(n) % 2)[:, None, None]
    pixels = values if np.dtype(dtype).kind == "f" else values * np.iinfo(dtype).max
    return dataset_from_arrays(pixels.astype(dtype), np.array(["a", "b"])[np.arange(n) % 2], name="noise", **more)


def edited(rows, reporter=QUIET, **options):
    read, asked = read_edits(TuneOptions(model="x", **options))
    return edit_rows(rows, asked, read, reporter)


def changed(rows):
    """Which rows have other pixels."""
    pairs = zip(rows.unedited.image_digests, rows.dataset.image_digests, strict=True)
    return np.array([before != after for before, after in pairs])


def drawn(dataset, rows, share, seed=0):
    """The first of the rows in the order of a hash of seed and pixels."""
    key = {row: hashlib.sha256(f"{seed}\x1f{dataset.image_digests[row].hex()}".encode()).digest() for row in rows}
    return sorted(sorted(rows, key=key.__getitem__)[: round(share * len(rows))])


def test_each_chosen_part_has_its_share_of_a_class_and_the_rest_stays():
    rows = rows_of(images(80))
    found = edited(rows, edits="tag:0.4", edit_share=0.5, edit_among="b", edit_parts="val,train")
    parts = rows.parts[0]
    expected = []
    for part in (parts.train, parts.val):
        expected += drawn(rows.dataset, [row for row in part.tolist() if rows.dataset.targets[row] == 1], 0.5)
    assert np.flatnonzero(changed(found)).tolist() == sorted(expected)
    said = {row.name: (row.num_images, row.num_edited) for row in found.edits.parts}
    assert said == {"train": (52, 13), "val": (12, 3), "test": (16, 0)}
    assert found.edits.num_edited == len(expected) and found.edits.was_learned_from
    assert found.edits.chosen_parts == ["train", "val"] and found.edits.among == ["b"]
    np.testing.assert_array_equal(found.dataset.splits, rows.dataset.splits)
    np.testing.assert_array_equal(found.dataset.targets, rows.dataset.targets)


def test_without_more_all_images_are_edited_one_edit_after_the_other():
    rows = rows_of(images())
    found = edited(rows, edits=["low_pass:0.2", "tag:0.4"])
    assert changed(found).all()
    for row in (0, 7):
        before = rows.dataset.read(row)
        once = LowPass(0.2)(before)[0]
        np.testing.assert_array_equal(found.dataset.read(row), Tag(0.4)(once)[0])
    residuals = [LowPass(0.2)(rows.dataset.read(row))[1].residual for row in range(40)]
    assert found.edits.edits[0].rms == pytest.approx(np.sqrt(np.mean(np.square(residuals))), rel=1e-12)
    assert [row.edit for row in found.edits.edits] == ["low_pass:cutoff=0.2", "tag:size=0.4"]


def test_with_folds_there_is_one_draw_and_parts_cannot_be_chosen():
    rows = rows_of(images(), folds=4)
    found = edited(rows, edits="tag:0.4", edit_share=0.25, folds=4)
    assert np.flatnonzero(changed(found)).tolist() == drawn(rows.dataset, list(range(40)), 0.25)
    assert [(row.name, row.num_images, row.num_edited) for row in found.edits.parts] == [("all", 40, 10)]
    with pytest.raises(UsageError, match="With --folds each image is in every part once"):
        edited(rows, edits="tag:0.4", edit_parts="train", folds=4)


def test_rows_that_nothing_is_done_with_are_not_drawn():
    rows = rows_of(images(80), per_class=6)
    found = edited(rows, edits="tag:0.4", edit_share=0.5, edit_parts="train")
    here = np.flatnonzero(changed(found)).tolist()
    assert here == drawn(rows.dataset, rows.parts[0].train.tolist(), 0.5) and len(here) == 6


def test_whole_patients_are_drawn():
    rows = rows_of(images(80, groups=[f"p{number // 4:02d}" for number in range(80)]))
    found = edited(rows, edits="tag:0.4", edit_share=0.5, edit_unit="patient", edit_parts="train")
    groups = rows.dataset.groups[rows.parts[0].train]
    of_group = {group: set(changed(found)[rows.parts[0].train][groups == group].tolist()) for group in set(groups)}
    assert all(len(values) == 1 for values in of_group.values())
    assert sum(True in values for values in of_group.values()) == round(0.5 * len(of_group))


def test_it_is_done_again_from_its_record_alone():
    rows = rows_of(images(80, groups=[f"p{number // 4:02d}" for number in range(80)]))
    asked = {"edits": ["poisson_image", "tag:0.4,xy=[0.1,0.1]"], "edit_share": 0.4, "edit_among": "a", "seed": 3}
    asked |= {"edit_unit": "patient", "edit_strength": 1.5, "edit_parts": "train"}
    found = edited(rows, **asked)
    again = edited_again(rows, type(found.edits).model_validate_json(found.edits.model_dump_json()), QUIET)
    assert again.dataset.image_digests == found.dataset.image_digests != rows.dataset.image_digests
    assert again.edits == found.edits
    assert edited_again(rows, None, QUIET) is rows
    other = edited(rows, **(asked | {"seed": 4}))
    assert other.dataset.fingerprint != found.dataset.fingerprint


@pytest.mark.parametrize("dtype", [np.uint16, np.float32])
def test_16_bits_and_floats_are_edited_in_their_own_range(dtype):
    data = images(dtype=dtype)
    found = edited(rows_of(data), edits="whiten_spectrum")
    pixels = found.dataset.read(0)
    assert pixels.dtype == data.read(0).dtype and changed(found).all()
    same = edited(rows_of(images(dtype=np.float64)), edits="whiten_spectrum")
    assert found.edits.edits[0].rms == pytest.approx(same.edits.edits[0].rms, rel=1e-3)  # of 255, whatever the type


def test_copies_in_two_parts_are_found_under_the_edit_of_one():
    pixels = np.random.default_rng(0).integers(0, 255, (40, 16, 20), dtype=np.uint8)
    rows = rows_of(dataset_from_arrays(pixels, np.arange(40) % 2))
    test, train = rows.parts[0].test[0], rows.parts[0].train[rows.parts[0].train % 2 == rows.parts[0].test[0] % 2][0]
    pixels[test] = pixels[train]
    rows = rows_of(dataset_from_arrays(pixels, np.arange(40) % 2))
    found = edited(rows, edits="tag:0.4", edit_parts="train")
    assert found.dataset.image_digests[test] != found.dataset.image_digests[train]
    unsound = [check for check in checks_of_rows(found, strict=False, reporter=QUIET) if check.severity == "unsound"]
    assert [check.title for check in unsound] == ["Identical images across splits"]


def test_a_share_of_nothing_and_a_sham_are_said_for_what_they_are(capsys):
    nothing = edited(rows_of(images()), Reporter(), edits="tag:0.4", edit_share=0.01)
    assert nothing.edits.num_edited == 0 and nothing.dataset.fingerprint == nothing.edits.unedited_fingerprint
    assert "No image was edited with tag:size=0.4: the share 0.01" in " ".join(capsys.readouterr().err.split())
    edited(rows_of(images()), Reporter(), edits="tag:0.4", edit_share=0.0)  # a control that somebody asked for
    assert "No image" not in capsys.readouterr().err
    sham = edited(rows_of(images()), edits="tag:0.4", edit_strength=0)
    assert not changed(sham).any() and sham.edits.num_edited == 40 and not sham.edits.was_learned_from
    assert type(sham.edits).model_validate_json(sham.edits.model_dump_json()) == sham.edits  # its PSNR is infinite


def test_options_become_text_and_without_edits_nothing_changes():
    plain = TuneOptions(model="x")
    assert read_edits(plain) == (plain, None)
    assert not {name for name in configuration(plain) if "edit" in name}
    options, asked = read_edits(TuneOptions(model="x", edits=Tag(size=0.3), edit_among="b, a", edit_parts=["test", "val"]))
    assert (options.edits, options.edit_among, options.edit_parts) == (("tag:size=0.3",), ("b", "a"), "val,test")
    assert asked.edits == [Tag(size=0.3)]
    whole = read_edits(TuneOptions(model="x", edits="tag", edit_parts="test,train,val"))[0]
    assert {name for name in configuration(whole) if "edit" in name} == {"edits"}


def test_records_without_edits_are_written_and_read_as_before_there_were_any():
    record = tuning_record()
    assert "edits" not in record.model_dump() and "edits" not in record.model_dump_json()
    assert type(record).model_validate_json(record.model_dump_json()).edits is None
    facts = {"name": "a", "source": "b", "fingerprint": "c", "num_images": 1, "num_groups": None, "group_column": None}
    trained_on = TrainingDataRecord(**facts, split_method="d", leakage="e")
    assert "edits" not in trained_on.model_dump(mode="json") and trained_on.fingerprints == ("c",)
    edits = edited(rows_of(images()), edits="tag:0.4").edits
    changed_record = trained_on.model_copy(update={"edits": edits})
    assert TrainingDataRecord.model_validate_json(changed_record.model_dump_json()) == changed_record
    assert changed_record.fingerprints == ("c", edits.unedited_fingerprint)


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"edits": "tagg"}, UnknownNameError, "Unknown edit: tagg. Did you mean tag"),
        ({"edits": ["low_pass:cutof=3"]}, UnknownNameError, "Did you mean cutoff"),
        ({"edits": [{"name": "tag"}]}, UsageError, "An edit is a name with options, such as low_pass:0.125, not"),
        ({"edits": [3]}, UsageError, "An edit is a name with options"),
        ({"edit_share": 0.5, "edits": ()}, UsageError, "--edit-share says which images are edited, and no edit is named"),
        ({"edit_parts": "test", "edits": ()}, UsageError, "--edit-parts says which images are edited"),
        ({"edit_share": 1.5}, UsageError, "--edit-share must lie in .* got 1.5"),
        ({"edit_share": "half"}, UsageError, "--edit-share must lie in .* got 'half'"),
        ({"edit_strength": -1}, UsageError, "--edit-strength must be a number of at least 0"),
        ({"edit_unit": "person"}, UsageError, "--edit-unit must be image or patient"),
        ({"edit_unit": "patient"}, UsageError, "--edit-unit patient draws patients"),
        ({"edit_among": ", "}, UsageError, "--edit-among names no class"),
        ({"edit_among": "c"}, UnknownNameError, "Unknown class: c"),
        ({"edit_parts": "tests"}, UnknownNameError, "Did you mean test"),
        ({"edit_parts": ""}, UsageError, "--edit-parts names no part"),
        ({"edits": "tag:0.95"}, DataError, "noise row .* cannot be edited"),
    ],
)
def test_bad_input(options, error, said):
    with pytest.raises(error, match=said):
        edited(rows_of(images()), **({"edits": "low_pass:0.1"} | options))
