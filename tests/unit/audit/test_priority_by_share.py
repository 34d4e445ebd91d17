"""What networks look at after fine-tunings with more and more images with an artefact."""

import numpy as np
import pytest

from crossgraft.audit.frequency_work import TunedPriority, frequency_frame, priority_by_share
from crossgraft.audit.page_frequency import frequency_section
from crossgraft.audit.record import AuditRecord, AuditTrainingRecord
from crossgraft.data.dataset import dataset_from_arrays
from crossgraft.models import ModelSpec
from crossgraft.report.blocks import Figure
from crossgraft.report.source import Source
from crossgraft.report.tables import Table
from support.audit_records import audit_record
from support.frequency_records import audit_frequencies, model_frequencies

BEFORE = [0, 0.5, 0.25, 0.25]
ARTEFACT = [0, 0.0, 0.5, 0.5]
SPECTRA = {
    (0.0, 0): [0, 0.5, 0.25, 0.25],
    (0.0, 1): [0, 0.4, 0.3, 0.3],
    (1.0, 0): [0, 0.2, 0.4, 0.4],
    (1.0, 1): [0, 0.0, 0.5, 0.5],
}
NETWORKS = [TunedPriority(share, fold, {"features": psd}) for (share, fold), psd in SPECTRA.items()]


def literal_overlap(one, other):
    return sum(min(a, b) for a, b in zip(one, other, strict=True))


def test_means_over_folds_and_overlaps_of_each_network():
    found = priority_by_share("gamma", NETWORKS, "features", before=BEFORE, artefact=ARTEFACT)
    assert [row.share for row in found.rows] == [0, 1] and [row.num_networks for row in found.rows] == [2, 2]
    for row in found.rows:
        of_share = [psd for (share, _), psd in SPECTRA.items() if share == row.share]
        np.testing.assert_allclose(row.psd, np.mean(of_share, axis=0), rtol=1e-4)
        assert row.kept.value == pytest.approx(np.mean([literal_overlap(psd, BEFORE) for psd in of_share]))
        assert row.overlap.value == pytest.approx(np.mean([literal_overlap(psd, ARTEFACT) for psd in of_share]))
    assert found.overlap_before == pytest.approx(0.5)
    assert found.rows[1].overlap.value > found.rows[0].overlap.value
    nothing = priority_by_share("gamma", NETWORKS, "true labels", before=None, artefact=ARTEFACT)
    assert nothing is None
    alone = priority_by_share("gamma", NETWORKS, "features", before=None, artefact=None)
    assert alone.before is None and alone.rows[0].kept is None and alone.rows[0].overlap is None


@pytest.fixture(scope="module")
def images():
    random = np.random.default_rng(0)
    labels = np.arange(24) % 2
    pixels = random.integers(0, 150, (24, 32, 32, 1)) + (100 * labels)[:, None, None, None]
    return dataset_from_arrays(pixels.astype(np.uint8), ["no", "yes"] * 12, name="some")


@pytest.mark.slow
def test_full_mode_looks_at_every_network_it_trains(images, tmp_path):
    import crossgraft

    asked = {"epochs": 1, "image_size": 16, "shares": "0,0.5,1", "audit_folds": 1, "holdout": 0.34, "frequency": True}
    how = {"confounders": ["gamma:1.5"], "mode": "full", "workers": 1, "device": "cpu", "ledger": False, "seed": 1}
    spec = ModelSpec("small", "test_resnet", weights="random")
    record = crossgraft.audit_model(spec, data=images, **asked, **how, out=tmp_path / "run").record
    (model,) = record.frequency.models
    assert [each.objective for each in model.by_share] == ["features", "true labels"]
    features, labels = model.by_share
    assert features.before == model.priority("pretrained", "features").psd and labels.before is None
    assert [(row.share, row.num_networks) for row in labels.rows] == [(0, 1), (0.5, 1), (1, 1)]
    assert all(0 < row.kept.value <= 1 for row in features.rows)
    (kept,) = (tmp_path / "run" / "trainings").glob("*share0.json")
    assert AuditTrainingRecord.model_validate_json(kept.read_bytes()).priorities["true labels"] == labels.rows[0].psd


def test_the_page_has_a_map_and_numbers_and_old_records_open(examples):
    by_share = [
        priority_by_share("low_pass:0.244", NETWORKS, "features", before=BEFORE, artefact=ARTEFACT),
        priority_by_share(
            "low_pass:0.244",
            [TunedPriority(each.share, each.fold, {"true labels": each.spectra["features"]}) for each in NETWORKS],
            "true labels",
            before=None,
            artefact=ARTEFACT,
        ),
    ]
    ranking = examples.ranking_record()
    frequency = audit_frequencies(model_frequencies(by_share=by_share))
    record = audit_record(ranking.dataset, ranking.models[0], frequency=frequency)
    blocks = frequency_section(Source(record)).blocks
    maps = next(block for block in blocks if isinstance(block, Figure) and "heat map" in block.caption)
    assert "before, share 0, share 1" in maps.drawings[0] and "frequency: share 0, share 1" in maps.drawings[1]
    table = next(block for block in blocks if isinstance(block, Table) and block.file_name == "priority_by_share")
    assert len(table.rows) == 4
    assert [cell.text for cell in table.rows[0]][2:5] == ["½‖features‖²", "0.0", "0.950"]
    frame = frequency_frame(record)
    assert len(frame[frame["curve"] == "tuned at share 1"]) == 2 * 4
    old = record.model_dump()
    for model in old["frequency"]["models"]:
        del model["by_share"]
    assert AuditRecord.model_validate(old).frequency.models[0].by_share == []
