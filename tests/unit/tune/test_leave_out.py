"""Whole runs that leave a domain out, on a tiny network of the user's own."""

import json
import re
import sys
import textwrap

import numpy as np
import pandas as pd
import pytest

from crossgraft import fine_tune, predict
from crossgraft.audit.verb import _is_trained as is_trained
from crossgraft.bench.job import is_named_by, numbers_of, with_primary
from crossgraft.errors import RunDirectoryError, UsageError
from crossgraft.rank.results_store import read_known_results
from crossgraft.report.source import Source
from crossgraft.tune import jobs
from crossgraft.tune.caveats import after_tuning
from crossgraft.tune.page_domains import unseen_in_words
from crossgraft.tune.record import TuningRecord
from support.domains import HOSPITALS, four_hospitals, of_hospitals
from support.few_pages import leave_out_pages
from support.tiny import TINY_MODELS

pytestmark = pytest.mark.usefixtures("tiny_models")

FAST = {"model": "tiny_models:tiny", "epochs": 2, "workers": 1, "device": "cpu", "domains": "hospital", "ledger": False}
PER_HOSPITAL = 12


def patients():
    return np.arange(4 * PER_HOSPITAL) // 2


def scans(**more):
    return four_hospitals(PER_HOSPITAL, **more)


def weights(folder):
    return (folder / "weights.safetensors").read_bytes()


def poisoned(hospital, seed=9):
    """The same, where every image and label of one hospital is noise."""
    rng, clean = np.random.default_rng(seed), scans()
    images = np.stack([clean.read(row) for row in range(len(clean))])
    labels, here = clean.targets.copy(), clean.attributes["hospital"] == hospital
    images[here] = rng.integers(0, 255, images[here].shape)
    labels[here] = rng.integers(0, 2, here.sum())
    return of_hospitals(clean.attributes["hospital"], labels, groups=clean.groups, images=images)


@pytest.mark.parametrize(
    "options",
    [
        {"class_weights": "balanced", "grid": "learning_rate=1e-3,1e-2"},
        {"sampler": "balanced", "regularizer": "repsim", "head_first": True, "batch_transform": "mixup:0.2"},
    ],
    ids=["grid", "repsim"],
)
def test_noise_in_place_of_the_left_out_domain_leaves_every_weight_as_it_was(tmp_path, options):
    for name, data in (("clean", scans()), ("poisoned", poisoned("GENT"))):
        fine_tune(data, **FAST, **options, leave_out="GENT", out=tmp_path / name)
    clean, noise = (sorted((tmp_path / name / "jobs").glob("*/weights.safetensors")) for name in ("clean", "poisoned"))
    assert [path.parent.name for path in clean] == [path.parent.name for path in noise] != []
    assert [path.read_bytes() for path in clean] == [path.read_bytes() for path in noise]
    records = [TuningRecord.model_validate_json((tmp_path / name / "report.json").read_bytes()) for name in ("clean", "poisoned")]
    for fact in ("thresholds", "selection_metric"):
        assert getattr(records[0], fact) == getattr(records[1], fact)
    (one,), (other,) = (record.unseen_domains.domains for record in records)
    assert one.seen == other.seen
    assert one.val_metric == other.val_metric
    assert one.unseen != other.unseen
    assert records[0].calibration.temperature == records[1].calibration.temperature


def test_noise_in_one_domain_leaves_the_model_without_it_as_it_was_among_each(tmp_path):
    """Val of the others loses a class of GENT, which must not change how the model without GENT is picked."""
    clean = scans()
    here = clean.attributes["hospital"] == "GENT"
    labels = np.where(here, 1, clean.targets)
    noise = of_hospitals(clean.attributes["hospital"], labels, images=np.where(here[:, None, None, None], 7, pixels(clean)))
    for name, data in (("clean", clean), ("noise", noise)):
        fine_tune(data, **FAST, leave_out="each", out=tmp_path / name)
    same = {
        h: weights(tmp_path / "clean/jobs" / f"without {h}") == weights(tmp_path / "noise/jobs" / f"without {h}")
        for h in HOSPITALS
    }
    assert same == {"BONN": False, "GENT": True, "LYON": False, "OSLO": False}


def test_labels_of_a_domain_do_not_decide_which_metric_picks_the_model_without_it():
    """Where GENT has few images of a class, val without LYON has none of it; the training without GENT has some from LYON."""
    clean = scans()
    labels, hospital = clean.targets.copy(), clean.attributes["hospital"]
    for name in ("GENT", "LYON"):
        labels[np.flatnonzero(hospital == name)[:4]] = 2
    fewer = labels.copy()
    fewer[np.flatnonzero(hospital == "GENT")[:3]] = 1
    for of_row, picked_by in ((labels, ["auc", "auc"]), (fewer, ["auc", "loss"])):
        data = of_hospitals(hospital, of_row, images=pixels(clean))
        record = fine_tune(data, **FAST | {"epochs": 1}, leave_out="each").record
        of_domain = {row.domain: row.picked_by for row in record.unseen_domains.domains}
        assert [of_domain["GENT"], of_domain["LYON"]] == picked_by


def pixels(data):
    return np.stack([data.read(row) for row in range(len(data))])


@pytest.fixture(autouse=True)
def few_pages(request, monkeypatch):
    """Pages take half the time; they are written where a test asks."""
    if "page" not in request.fixturenames:
        leave_out_pages(monkeypatch, of_comparisons=True)


@pytest.fixture
def page():
    """Asks for the page of a run."""


@pytest.fixture(scope="module")
def each(tmp_path_factory):
    """Every hospital left out in turn, by patients."""
    folder = tmp_path_factory.mktemp("leave_out")
    (folder / "tiny_models.py").write_text(textwrap.dedent(TINY_MODELS))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CROSSGRAFT_CACHE", str(folder / "cache"))
        patch.syspath_prepend(str(folder))
        patch.delitem(sys.modules, "tiny_models", raising=False)
        tuned = fine_tune(scans(groups=patients()), **FAST, leave_out="each", out=folder / "each")
        known = read_known_results()
        sys.modules.pop("tiny_models", None)
    return tuned, folder / "each", known


def test_every_domain_is_measured_by_the_model_that_never_saw_it(each, tmp_path):
    tuned, out, (of_each,) = each
    unseen = tuned.record.unseen_domains
    assert [row.domain for row in unseen.domains] == list(HOSPITALS)
    table = pd.read_csv(out / "predictions.csv")
    assert table.row.tolist() == list(range(1, 49))
    assert (table.split == "without " + table.domain).all()
    by_hospital = {
        name: np.mean([(of.decision == of.target)[of.target == label].mean() for label in (0, 1)])
        for name, of in table.groupby("domain")
    }
    assert {row.domain: row.unseen.value for row in unseen.domains} == pytest.approx(by_hospital)
    assert unseen.mean.value == pytest.approx(np.mean(list(by_hospital.values())))
    assert unseen.worst.value == min(by_hospital.values())
    assert unseen.spread == pytest.approx(np.std(list(by_hospital.values()), ddof=1))
    assert unseen.gap.value == pytest.approx(np.mean([row.seen.value - row.unseen.value for row in unseen.domains]))
    assert tuned.primary["value"] == unseen.mean.value
    numbers, words = with_primary(numbers_of(tuned.to_frame()), tuned.primary)
    (number,) = [row for row in numbers if is_named_by(words, row)]
    assert number["value"] == unseen.mean.value
    assert {path.name for path in (out / "jobs").iterdir()} == {f"without {name}" for name in HOSPITALS}
    assert tuned.record.folds == []
    assert [point.fold for point in tuned.record.grid] == [None] * 4
    metrics = pd.read_csv(out / "metrics.csv")
    of_gent = metrics[(metrics.domain == "GENT") & (metrics.metric == unseen.metric)].set_index("split").value
    row = unseen.domains[1]
    assert of_gent.to_dict() == pytest.approx(
        {"unseen": row.unseen.value, "seen": row.seen.value, "seen - unseen": row.gap.value}
    )
    assert metrics[metrics.domain == "(mean)"].split.tolist() == ["unseen", "seen", "seen - unseen"]
    (of_worst,) = metrics[metrics.domain == "(worst)"].itertuples()
    assert (of_worst.split, of_worst.low, of_worst.high) == ("unseen", unseen.worst.low, unseen.worst.high)
    assert not metrics.duplicated(["split", "domain", "metric", "class_name"]).any()
    assert TuningRecord.model_validate_json((out / "report.json").read_bytes()) == tuned.record
    alone = fine_tune(scans(groups=patients()), **FAST, leave_out="GENT", out=tmp_path / "alone")
    assert weights(tmp_path / "alone/jobs/without GENT") == weights(out / "jobs" / "without GENT")
    (of_alone,) = alone.record.unseen_domains.domains
    assert of_alone.unseen == row.unseen
    assert alone.record.unseen_domains.mean is None
    (of_one,) = read_known_results()
    assert "48 images" not in of_each.protocol
    assert "leave_out each; 24 training images a training, test each of 4 domains by hospital, mean over them" in of_each.protocol
    assert "leave_out GENT; 24 training images, test all of hospital GENT" in of_one.protocol
    assert of_each.value == unseen.mean.value


def test_the_page_says_mean_worst_and_gap(each):
    tuned, out, _ = each
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "Domains that training never saw" in page
    assert "mean over 4 domains by hospital, each measured by a model that never saw it" in page
    assert "Intervals are about other images of these domains, not about other domains." in page
    assert f"worst: {tuned.record.unseen_domains.worst.domain}" in page
    assert "Oracle" not in page


def test_models_of_each_are_used_by_other_verbs_and_there_is_none_of_all(each):
    tuned, out, _ = each
    with pytest.raises(UsageError, match="folds/without DOMAIN/model"):
        tuned.model.predict(scans())
    with pytest.raises(RunDirectoryError, match=r"Give that of one training: '.*folds/without BONN'"):
        predict(out, scans(), allow_code="tiny_models:tiny")
    said = predict(
        out / "folds" / "without GENT", scans(groups=patients()), allow_code="tiny_models:tiny", use_split="test", ledger=False
    )
    assert said.record.num_images == PER_HOSPITAL
    table = pd.read_csv(out / "predictions.csv")
    of_gent = table[table.domain == "GENT"]
    assert [row.decision for row in said.record.rows] == of_gent.decision.astype(str).tolist()


def test_the_folder_of_a_model_without_a_domain_can_be_audited(each):
    _, out, _ = each
    assert is_trained(out / "folds" / "without GENT")
    assert not is_trained(out / "folds")


def test_the_command_for_one_model_of_all_domains_leaves_out_what_is_of_leaving_out(each):
    line = "crossgraft tune scans --model x --domains hospital --leave-out each --holdout 0"
    following = after_tuning(Source(each[0].record, command_line=line))
    assert following is not None and following.line == "crossgraft tune scans --model x --domains hospital"


def test_a_run_that_is_stopped_between_and_within_trainings_ends_like_a_whole_one(tmp_path, monkeypatch):
    from crossgraft.tune.engine import trainer

    whole = fine_tune(scans(), **FAST, leave_out="each", out=tmp_path / "whole")
    write, written = trainer.write_checkpoint, []

    def killed(*arguments):
        write(*arguments)
        written.append(1)
        if len(written) in (3, 5):  # in the second training, then in the third
            raise KeyboardInterrupt

    monkeypatch.setattr(trainer, "write_checkpoint", killed)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            fine_tune(scans(), **FAST, leave_out="each", out=tmp_path / "killed")
        known = json.loads((tmp_path / "killed" / "run.json").read_text())["weights_fingerprints"]
        assert known == {"tiny": whole.record.model.weights_fingerprint}
    trained = []
    train = jobs.train
    monkeypatch.setattr(jobs, "train", lambda *a, **k: trained.append(1) or train(*a, **k))
    resumed = fine_tune(scans(), **FAST, leave_out="each", out=tmp_path / "killed")
    assert len(trained) == 2
    assert resumed.to_frame().equals(whole.to_frame())
    assert resumed.record.unseen_domains == whole.record.unseen_domains
    for name in HOSPITALS:
        assert weights(tmp_path / "whole/folds" / f"without {name}/model") == weights(
            tmp_path / "killed/folds" / f"without {name}/model"
        )


def test_an_oracle_is_called_so_everywhere_and_is_no_known_result(tmp_path, page):
    tuned = fine_tune(scans(), **FAST, leave_out="GENT", oracle=True, out=tmp_path / "run")
    assert tuned.record.unseen_domains.is_oracle
    written = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert written.count("Oracle, an upper bound") >= 2
    assert any("oracle" in note.lower() for note in tuned.plan.record.notes)
    assert read_known_results() == []
    assert "(oracle)" in tuned.record.splits[1].origin
    assert all(split.endswith(" (oracle)") for split in pd.read_csv(tmp_path / "run" / "metrics.csv").split)
    captions = re.findall(r"<caption[^>]*>(.*?)</caption>", written, re.DOTALL)
    of_numbers = [caption for caption in captions if re.search("Metrics|never saw|true class", caption)]
    assert len(of_numbers) >= 3
    assert all("(oracle)" in caption for caption in of_numbers)


def test_a_failed_training_is_a_row_with_a_reason_and_the_mean_is_over_the_others(monkeypatch):
    from crossgraft.errors import DivergedError

    train, calls = jobs.train, iter(range(4))

    def fails_once(*arguments, **options):
        if next(calls) == 1:
            raise DivergedError("No number.")
        return train(*arguments, **options)

    monkeypatch.setattr(jobs, "train", fails_once)
    record = fine_tune(scans(), **FAST, leave_out="each").record
    unseen = record.unseen_domains
    assert [row.reason is None for row in unseen.domains] == [True, False, True, True]
    assert unseen.mean.value == pytest.approx(np.mean([row.unseen.value for row in unseen.domains if row.unseen is not None]))
    assert unseen_in_words(unseen, num_choices=2).count("mean over 3 of 4 domains by hospital") == 1
    assert read_known_results() == []


def test_numbers_of_validation_rows_that_differ_are_a_range():
    hospitals = np.repeat(HOSPITALS, [10, 10, 10, 30])
    record = fine_tune(of_hospitals(hospitals, np.arange(60) % 2), **{**FAST, "epochs": 1}, leave_out="each").record
    sizes = [row.num_val for row in record.unseen_domains.domains]
    assert min(sizes) < max(sizes)
    assert f"on {min(sizes)} to {max(sizes)} validation rows of each training" in record.selection_rule


def test_records_without_domains_are_written_as_before(tmp_path):
    tuned = fine_tune(scans(), **{**FAST, "domains": None}, out=tmp_path / "run")
    written = json.loads((tmp_path / "run" / "report.json").read_text())
    assert "unseen_domains" not in written
    assert tuned.record.unseen_domains is None
    assert "domain" not in pd.read_csv(tmp_path / "run" / "predictions.csv").columns
