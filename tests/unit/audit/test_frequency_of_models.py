"""Frequencies of an audit: what is put together for trained and for pretrained models, and what is said where it cannot be."""

import json
import shutil

import numpy as np
import pytest
import timm
import torch
from safetensors.torch import save_file
from scipy.stats import spearmanr

import crossgraft
from crossgraft.audit import frequency_audit, subject_of
from crossgraft.audit import frequency_work as _audit_frequency
from crossgraft.audit.confounded import Confounded
from crossgraft.audit.frequency_work import FrequencySweep, frequency_frame, of_trained, rank_risks
from crossgraft.audit.options import AuditOptions
from crossgraft.audit.record import AuditRecord
from crossgraft.audit.result import AuditCall
from crossgraft.data.dataset import dataset_from_arrays
from crossgraft.edit.edits import Editing, choose_edits
from crossgraft.models import Backbone, ModelSpec, load_backbone
from crossgraft.options._option import from_mapping
from crossgraft.progress import Reporter
from crossgraft.tune.pretrained_start import pretrained_start
from crossgraft.tune.saving.saved_model import load_saved_model
from support.audit_records import audit_entry
from support.frequency_records import artefact, audit_frequencies, model_frequencies, tuned_frequencies

COMMON = {"workers": 1, "device": "cpu", "ledger": False}
EDITS = ("low_pass:0.2", "tag:0.5,xy=[0.1,0.1]")


def call(model=None, **options):
    found = from_mapping(AuditOptions, {"data": "", **options})
    return AuditCall(model, None, found, None, Reporter(quiet=True), "cpu", 1)


def confounded(images, edits=EDITS, strength=1.0):
    """Every image with each artefact."""
    found = []
    for name, edit in zip(edits, choose_edits(list(edits)), strict=True):
        how = Editing([edit], strength=strength)
        edited = images.edited(how)
        same = {"images": images, "clean": images, "edited": edited}
        found.append(Confounded(name=name, edit=edit, editing=how, **same, facts=how.facts()[0]))
    return found


@pytest.fixture(scope="module")
def images():
    random = np.random.default_rng(0)
    labels = np.arange(48) % 2
    pixels = random.integers(0, 150, (48, 32, 32, 3)) + (100 * labels)[:, None, None, None]
    return dataset_from_arrays(pixels.astype(np.uint8), ["no", "yes"] * 24, name="some")


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    """A folder with the file of one network."""
    folder = tmp_path_factory.mktemp("weights")
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = timm.create_model("test_resnet")
    save_file(network.state_dict(), folder / "first.safetensors")
    return folder


@pytest.fixture(scope="module")
def tuned(images, weights, tmp_path_factory):
    spec = ModelSpec("small", "test_resnet", weights=str(weights / "first.safetensors"))
    out = tmp_path_factory.mktemp("tuned") / "run"
    return crossgraft.fine_tune(images, model=spec, epochs=1, image_size=32, out=out, **COMMON)


def start(model, **options):
    return pretrained_start(model, subject_of(model).model, call(**options).options, Reporter(quiet=True))


def test_the_pretrained_network_is_found_by_the_record_of_the_run(tuned, weights):
    for model in (tuned, tuned.out, str(tuned.out), tuned.out / "model"):
        found = start(model, weights_dir=weights)
        assert isinstance(found, Backbone)
        assert found.weights_fingerprint == tuned.record.model.weights_fingerprint
        assert found.preprocessing == tuned.classifier.preprocessing


def test_what_keeps_the_pretrained_network_away_is_said(tuned, weights, tmp_path):
    missing = start(tuned.out, weights_dir=tmp_path)
    assert "--weights-dir" in missing and str(tmp_path) not in missing
    with torch.random.fork_rng():
        torch.manual_seed(1)
        save_file(timm.create_model("test_resnet").state_dict(), tmp_path / "first.safetensors")
    assert "are others than those that it was tuned from" in start(tuned.out, weights_dir=tmp_path)
    assert "Give the whole run directory" in start(load_saved_model(tuned.out), weights_dir=weights)
    moved = tmp_path / "moved"
    shutil.copytree(tuned.out / "model", moved)
    assert "Give the whole run directory" in start(moved, weights_dir=weights)


def test_a_record_cannot_say_where_a_file_is_nor_allow_code(tuned, weights, tmp_path):
    copy = tmp_path / "run"
    shutil.copytree(tuned.out, copy)
    record = json.loads((copy / "run.json").read_text())
    record["config"]["model"]["weights"] = str(weights / "first.safetensors")
    (copy / "run.json").write_text(json.dumps(record))
    assert "are not on this machine" in start(copy, weights_dir=tmp_path)
    record["config"]["model"] |= {"source": "os:system", "weights": None}
    (copy / "run.json").write_text(json.dumps(record))
    assert "cannot be loaded" in start(copy, weights_dir=weights)
    record["config"]["model"] |= {"source": 3}
    (copy / "run.json").write_text(json.dumps(record))
    assert "cannot be told from its record" in start(copy, weights_dir=weights)


def test_random_weights_are_no_pretrained_network(images):
    spec = ModelSpec("small", "test_resnet", weights="random")
    scratch = crossgraft.fine_tune(images, model=spec, method="scratch", epochs=1, image_size=32, **COMMON)
    assert start(scratch).startswith("It started from random weights")


def test_a_tuned_network_is_compared_with_the_one_it_came_from(tuned, images, weights):
    seen = confounded(images)
    found = of_trained(call(tuned.out, weights_dir=weights), subject_of(tuned), images, seen, "yes")
    (model,) = found.models
    expected = frequency_audit(
        tuned.model, images, edits=[each.edit for each in seen], before=start(tuned.out, weights_dir=weights)
    )
    kinds = [(each.network, each.objective) for each in model.priorities]
    assert kinds == [("tuned", "true labels"), ("pretrained", "features"), ("tuned", "features")]
    psds = (expected.priority.psd, expected.before.psd, expected.after.psd)
    for each, psd in zip(model.priorities, psds, strict=True):
        np.testing.assert_allclose(each.psd, psd, rtol=1e-4)
    for each, one in zip(model.artefacts, expected.edits, strict=True):
        assert each.overlap == pytest.approx(one.overlap.overlap)
        assert each.overlap_after == pytest.approx(np.minimum(one.psd, expected.after.psd).sum())
        assert each.overlap_before == pytest.approx(np.minimum(one.psd, expected.before.psd).sum())
        assert each.input_rms == pytest.approx(one.rms)
    assert [each.is_informative for each in model.artefacts] == [True, False]
    assert model.notes == [] and found.ranks == []
    assert len(model.bands.points) == 16 and model.bands.positive == "yes"
    edge = next(point for point in model.bands.points if point.kind == "high" and point.cutoff == 1 / 128)
    assert edge.value == model.bands.clean  # of 32 pixels, no wave is that long


def test_without_the_pretrained_weights_the_rest_is_there(tuned, images, tmp_path):
    (model,) = of_trained(call(tuned.out, weights_dir=tmp_path), subject_of(tuned), images, confounded(images), "yes").models
    assert [each.network for each in model.priorities] == ["tuned"]
    assert model.artefacts[0].overlap is not None and model.artefacts[0].overlap_before is None
    (note,) = model.notes
    assert note.startswith("Before fine-tuning: ")


def test_what_can_only_be_asked_loses_frequencies_and_has_no_spectra(images):
    def bright(several):
        return np.array([each.mean() / 255 for each in several])

    (model,) = of_trained(call(bright), subject_of(bright, class_names=["no", "yes"]), images, [], "yes").models
    assert "bright can only be asked" in model.notes[0]
    assert model.frequencies == [] and model.priorities == []
    assert model.bands.clean == 1
    lows = [point.value for point in model.bands.points if point.kind == "low"]
    assert lows == [1] * 8  # the mean is left by every low-pass


def test_a_class_that_the_model_does_not_know_is_said(images):
    def one(several):
        return np.full(len(several), 0.5)

    (model,) = of_trained(call(one), subject_of(one, class_names=["a", "b"]), images, [], "yes").models
    assert model.bands is None and "does not know the class" in model.notes[1]


def test_networks_of_one_input_share_the_spectrum_of_an_artefact(images, weights, monkeypatch):
    counted = []
    real = _audit_frequency.edit_spectrum
    monkeypatch.setattr(_audit_frequency, "edit_spectrum", lambda *a, **b: counted.append(b["edit"]) or real(*a, **b))
    backbones = [
        load_backbone(ModelSpec(name, "test_resnet", weights="random"), image_size=size, seed=seed)
        for name, size, seed in (("one", 32, 0), ("two", 32, 1), ("three", 48, 0))
    ]
    test = np.arange(8, 40)
    sweep, seen = FrequencySweep.of(images, test, call()), confounded(images)
    for each in backbones:
        sweep.of_backbone(each.name, each, seen)
    assert counted == [*EDITS, *EDITS]
    found = sweep.record([])
    assert [len(each.frequencies) for each in found.models] == [16, 16, 24]
    assert all(each.num_images == 32 for each in found.models)
    assert [each.priorities[0].objective for each in found.models] == ["features"] * 3
    expected = frequency_audit(backbones[1], images.take(test), edits=choose_edits(list(EDITS)))
    np.testing.assert_allclose(found.models[1].priorities[0].psd, expected.priority.psd, rtol=1e-4)
    assert found.models[1].artefacts[0].overlap == pytest.approx(expected.edits[0].overlap.overlap)


def test_a_strength_of_0_leaves_nothing(images):
    sweep = FrequencySweep.of(images, np.arange(48), call())
    backbone = load_backbone(ModelSpec("one", "test_resnet", weights="random"), image_size=32)
    sweep.of_backbone("one", backbone, confounded(images, strength=0.0))
    (model,) = sweep.record([]).models
    assert [each.psd for each in model.artefacts] == [None, None]
    assert all("nothing of it is left" in each.reason for each in model.artefacts)


def entries_and_models(overlaps, reliance, **changed):
    names = [f"net {place}" for place in range(len(overlaps))]
    entries = [audit_entry(name, "low_pass:0.244", index=value) for name, value in zip(names, reliance, strict=True)]
    models = [
        model_frequencies(name, artefacts=[artefact(overlap=value, **changed)])
        for name, value in zip(names, overlaps, strict=True)
    ]
    return entries, models


def test_ranks_are_spearmans_over_models_that_can_be_assessed():
    overlaps, reliance = [0.1, 0.5, 0.2, 0.4, 0.3, 0.6], [0.2, 0.3, 0.25, 0.1, 0.4, 0.5]
    entries, models = entries_and_models(overlaps, reliance)
    (rank,) = rank_risks(entries, models, seed=0)
    assert rank.spearman == pytest.approx(spearmanr(overlaps, reliance)[0]) and rank.reason is None
    assert [(point.overlap, point.reliance) for point in rank.points] == list(zip(overlaps, reliance, strict=True))
    entries[0] = entries[0].model_copy(update={"outcome": "undetectable"})
    (rank,) = rank_risks(entries, models, seed=0)
    assert rank.spearman == pytest.approx(spearmanr(overlaps[1:], reliance[1:])[0]) and len(rank.points) == 5
    entries[1] = entries[1].model_copy(update={"mitigation": "dfr"})
    (rank,) = rank_risks(entries, models, seed=0)
    assert rank.spearman is None and rank.reason == "Ranks of 4 models say nothing; 5 are needed."


def test_an_artefact_of_a_part_of_the_image_orders_nothing():
    entries, models = entries_and_models([0.1] * 6, [0.2] * 6, is_informative=False, reason="it touches a part")
    (rank,) = rank_risks(entries, models, seed=0)
    assert (rank.points, rank.spearman, rank.reason) == ([], None, "it touches a part")


def test_the_table_has_every_curve():
    both = audit_frequencies(model_frequencies("one"), tuned_frequencies())
    record = AuditRecord.model_construct(frequency=both)
    table = frequency_frame(record)
    assert list(table.columns) == ["model", "curve", "name", "cycles_per_pixel", "value", "low", "high"]
    one = table[table["model"] == "one"]
    assert one["curve"].tolist() == ["images"] * 4 + ["pretrained network"] * 4 + ["artefact"] * 4
    assert one[one["curve"] == "artefact"]["value"].tolist() == record.frequency.models[0].artefacts[0].psd
    low = table[table["curve"] == "low-pass"]
    assert low["cycles_per_pixel"].tolist() == [0.125, 0.25] and low["low"].tolist() == [0.375, 0.625]
    assert len(frequency_frame(AuditRecord.model_construct(frequency=None))) == 0
