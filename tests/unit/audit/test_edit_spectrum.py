"""The spectrum of an edit at the input of a network: the mean over images of equation 5.1, each with a sum of 1."""

import jaxtyping
import numpy as np
import pytest

from crossgraft.audit import EditSpectrum, edit_spectrum, frequency_audit, normalized_psd, radial_psd
from crossgraft.audit.frequency import draw_rows
from crossgraft.data.dataset import dataset_from_arrays
from crossgraft.data.transforms import prepare_batch
from crossgraft.edit.edits import Editing, choose_edits
from crossgraft.errors import DataError, UsageError
from crossgraft.types import Preprocessing
from support.small_classifiers import small_classifier

SMALLER = Preprocessing(16, 16, mean=(0.5,) * 3, std=(0.25,) * 3, resize_policy="squash")


@pytest.fixture(scope="module")
def images():
    pixels = np.random.default_rng(0).integers(0, 256, (12, 24, 24, 1)).astype(np.uint8)
    return dataset_from_arrays(pixels, ["a", "b", "c"] * 4, name="some")


def test_it_is_the_mean_spectrum_of_the_prepared_differences(images):
    edited = images.edited(Editing(choose_edits("low_pass:0.2")))
    told = []
    found = edit_spectrum(images, edited, SMALLER, edit="low", scope="global", told=lambda: told.append(1))
    rows, squares = [], []
    for row in range(12):
        before, after = (prepare_batch([each.read(row)], SMALLER)[0].double().numpy() for each in (images, edited))
        rows.append(normalized_psd(radial_psd(np.moveaxis(after - before, 0, 2))))
        squares.append(((after - before) ** 2).mean())
    np.testing.assert_allclose(found.psd, np.mean(rows, axis=0), rtol=1e-12)
    assert found.rms == pytest.approx(np.sqrt(np.mean(squares)))
    assert (found.edit, found.scope, found.num_changed, len(told)) == ("low", "global", 12, 12)


def test_images_that_did_not_change_do_not_count(images):
    half = images.edited(Editing(choose_edits("low_pass:0.2")), np.arange(6))
    found = edit_spectrum(images, half, SMALLER, edit="low")
    alone = edit_spectrum(images.take(range(6)), half.take(range(6)), SMALLER, edit="low")
    assert found.num_changed == 6 and found.rms == pytest.approx(alone.rms / np.sqrt(2))
    np.testing.assert_allclose(found.psd, alone.psd)
    nothing = edit_spectrum(images, images, SMALLER, edit="low")
    assert (nothing.psd, nothing.num_changed, nothing.rms) == (None, 0, 0)


def test_other_images_and_tiny_inputs_are_refused(images):
    with pytest.raises(DataError, match="there are 12 and 5"):
        edit_spectrum(images, images.take(range(5)), SMALLER, edit="low")
    with pytest.raises(DataError, match="has a side of 5 pixels; frequencies can be compared from 6 on"):
        edit_spectrum(images, images, Preprocessing(5, 8), edit="low")


def test_an_edit_and_its_spectrum_are_the_same_to_an_audit(images):
    network = small_classifier("cnn")
    (edit,) = choose_edits("low_pass:0.2")
    known = edit_spectrum(images, images.edited(Editing([edit])), network.preprocessing, edit="low_pass:cutoff=0.2")
    one, other = frequency_audit(network, images, edits=[edit, known]).edits
    np.testing.assert_array_equal(one.psd, other.psd)
    assert one._replace(psd=None) == other._replace(psd=None) and one.overlap is not None


def test_a_spectrum_of_another_input_is_refused(images, monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    other = EditSpectrum("low", "global", np.full(5, 0.2), 12, 0.1)
    with pytest.raises(DataError, match="same length"):
        frequency_audit(small_classifier("cnn"), images, edits=[other])


def test_a_draw_keeps_shares_and_is_the_same_twice(images):
    np.testing.assert_array_equal(draw_rows(images, 12, seed=0), np.arange(12))
    drawn = draw_rows(images, 6, seed=3)
    np.testing.assert_array_equal(drawn, draw_rows(images, 6, seed=3))
    assert np.bincount(images.targets[drawn]).tolist() == [2, 2, 2]
    with pytest.raises(UsageError, match="at least 3"):
        draw_rows(images, 2, seed=0)
