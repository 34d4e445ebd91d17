"""``crossgraft audit``: whether models lean on an artefact, from a command to a report and an exit code."""

import json

import numpy as np
import pandas as pd
import pytest

import crossgraft as package
from crossgraft.audit.record import AuditRecord
from crossgraft.data.dataset import dataset_from_arrays
from crossgraft.errors import DataError, UnknownNameError, UsageError
from support.audit_study import OPTIONS, QUICK, TAG, numbers_of, record_of


@pytest.fixture
def quick(study, run_once):
    """The plainest audit, in the folder `out`."""
    return run_once("audit", *QUICK, *TAG, out="out")


def test_a_network_that_sees_the_letter_relies_on_it(study, quick):
    assert "tiny relies on tag:size=0.5,xy=[0.1,0.1]: SRI " in " ".join(quick.out.split())
    record = record_of(study / "out")
    (entry,) = record.entries
    assert (record.positive, record.mode, entry.mode, entry.outcome) == ("ill", "quick", "quick", "relies")
    assert entry.metric("shortcut_reliance_index").value > 0.1 and entry.detectability.value > 0.6
    assert [point.share for point in entry.points] == record.shares == [0, 0.1, 0.2, 0.5, 0.8, 1]
    assert entry.metric("ood_auc").value < entry.metric("clean_auc").value
    page = (study / "out" / "report.html").read_text(encoding="utf-8")
    assert "o.o.d." in page and "with tag:size=0.5" in page


def test_what_does_not_change_an_image_is_not_relied_on(study, audit):
    assert audit(*QUICK, *TAG, "--strength", "0", "--out", "sham").code == 0
    (entry,) = record_of(study / "sham").entries
    assert entry.metric("shortcut_reliance_index").value == 0
    assert entry.outcome != "relies"
    for point in entry.points:
        assert point.metric("iid").value == point.metric("ood").value


def test_one_look_with_and_one_without_the_artefact_serve_every_share(study, monkeypatch):
    """Exact mode: images are shown to the network once, and once more where they may carry it, however many shares there are."""
    from crossgraft.audit import sweep

    shown, extract = [], sweep.extract_features
    monkeypatch.setattr(sweep, "extract_features", lambda images, *a, **k: shown.append(len(images)) or extract(images, *a, **k))
    several = []
    for shares in ("0,0.5,1", "0,0.1,0.2,0.4,0.6,0.8,1"):
        found = package.audit_model("tiny_models:tiny", **OPTIONS, shares=shares)
        assert found.record.shares == [float(share) for share in shares.split(",")]
        several.append(shown[:])
        shown.clear()
    assert several[0] == several[1] and len(several[0]) == 2
    assert several[0][0] == 120 and 60 < several[0][1] < 120  # all positives, and the negatives of the test part


@pytest.mark.usefixtures("quick")
def test_the_tables_hold_the_numbers_of_the_record(study):
    (entry,) = record_of(study / "out").entries
    table = pd.read_csv(study / "out" / "audit.csv")
    assert table["shortcut_reliance_index"].tolist() == [entry.metric("shortcut_reliance_index").value]
    curves = pd.read_csv(study / "out" / "curves.csv")
    assert curves["ood"].tolist() == [point.metric("ood").value for point in entry.points]


@pytest.mark.usefixtures("quick")
def test_the_manifest_says_who_carries_it_and_more_carry_it_at_a_larger_share(study):
    manifest = pd.read_csv(study / "out" / "manifest.csv")
    assert list(manifest.columns) == ["row", "image", "fold", "part", "positive", "carries_from_share"]
    assert len(manifest) == 2 * 120
    carrying = manifest[manifest["carries_from_share"].notna()]
    assert carrying["positive"].all() and not (carrying["carries_from_share"] == 0).any()
    for _, fold in manifest.groupby("fold"):
        train = fold[(fold["part"] == "train") & fold["positive"]]["carries_from_share"]
        for share in (0.2, 0.5, 1):
            assert (train <= share).sum() == round(share * len(train))
    tested = [set(fold[fold["part"] == "test"]["row"]) for _, fold in manifest.groupby("fold")]
    assert tested[0] == tested[1]


@pytest.mark.usefixtures("quick")
def test_the_same_command_again_keeps_its_directory_and_another_one_needs_overwrite(study, audit):
    before = numbers_of(record_of(study / "out"))
    assert audit(*QUICK, *TAG, "--out", "out").code == 0
    assert numbers_of(record_of(study / "out")) == before
    other = audit(*QUICK, *TAG, "--seed", "7", "--out", "out")
    assert other.code != 0 and "--overwrite" in other.err
    assert numbers_of(record_of(study / "out")) == before
    assert audit(*QUICK, *TAG, "--seed", "7", "--out", "out", "--overwrite").code == 0
    assert record_of(study / "out").seed == 7


def test_two_networks_stand_beside_each_other(study, audit):
    flags = ("--shares", "0,0.5,1", "--fold-method", "shuffled", "--no-images", "--out", "both")
    done = audit("zoo.yaml", *QUICK[1:], *TAG, *flags)
    assert done.code == 0, done.err
    record = record_of(study / "both")
    (difference,) = record.differences
    index = {entry.model: entry.metric("shortcut_reliance_index").value for entry in record.entries}
    assert {difference.model, difference.reference} == set(index) and len(index) == 2
    assert difference.reliance.value == pytest.approx(max(index.values()) - min(index.values()), abs=1e-12)
    assert index[difference.reference] == min(index.values())
    table = pd.read_csv(study / "both" / "differences.csv")
    assert table["quantity"].tolist() == ["shortcut_reliance_index", *["ood"] * 3]
    assert table["difference"].tolist() == [difference.reliance.value, *(each.ood.value for each in difference.points)]
    assert table["p floor"].tolist()[1:] == [pytest.approx(1 / 3)] * 3  # two folds against two
    assert "Models beside each other" in done.out
    assert "Models beside each other" in (study / "both" / "report.html").read_text(encoding="utf-8")


def test_two_runs_find_the_same_numbers(study, audit):
    for out in ("one", "two"):
        assert audit(*QUICK, *TAG, "--negatives", "0.3", "--mitigate", "dfr:draws=2", "--out", out).code == 0
    one, two = (record_of(study / out) for out in ("one", "two"))
    assert numbers_of(one) == numbers_of(two)
    assert (study / "one" / "manifest.csv").read_bytes() == (study / "two" / "manifest.csv").read_bytes()


def test_full_mode_trains_at_every_share_and_a_stopped_run_goes_on(study, audit):
    flags = (*TAG, "--mode", "full", "--epochs", "1", "--shares", "0,0.5,1", "--no-images", "--out", "full")
    assert audit(*QUICK, *flags).code == 0
    record = record_of(study / "full")
    assert record.mode == "full" and [point.share for point in record.entries[0].points] == [0, 0.5, 1]
    (study / "full" / "report.json").unlink()
    document = json.loads((study / "full" / "run.json").read_bytes())
    (study / "full" / "run.json").write_text(json.dumps(document | {"state": "failed"}))
    again = audit(*QUICK, *flags)
    assert again.code == 0, again.err
    assert numbers_of(record_of(study / "full")) == numbers_of(record)


def test_json_is_one_document(study, audit):
    done = audit(*QUICK, *TAG, "--json", "--no-images", "--out", "out")
    assert (done.code, done.err) == (0, "")
    document = json.loads(done.out)
    assert (document["kind"], document["schema_version"]) == ("audit", 1)
    assert AuditRecord.model_validate(document).entries == record_of(study / "out").entries


def test_a_condition_that_holds_ends_with_5_and_the_report_is_there(study, audit):
    failed = audit(*QUICK, *TAG, "--fail-on", "shortcut_reliance_index>0.1", "--out", "failed")
    assert failed.code == 5
    assert [gate.state for gate in record_of(study / "failed").gates] == ["failed"]
    assert (study / "failed" / "report.html").is_file()
    assert json.loads((study / "failed" / "run.json").read_bytes())["state"] == "done"
    passed = audit(*QUICK, *TAG, "--fail-on", "shortcut_reliance_index>0.9", "--out", "passed")
    assert passed.code == 0 and [gate.state for gate in record_of(study / "passed").gates] == ["passed"]
    assert "The condition shortcut_reliance_index>0.9 of --fail-on does not hold." in " ".join(passed.out.split())


def test_what_could_not_be_assessed_is_no_pass(study, audit):
    """A cutoff of 0.49 cycles per pixel takes next to nothing away."""
    flags = ("--confounder", "low_pass:0.49", "--fail-on", "shortcut_reliance_index>0.1")
    done = audit(*QUICK, *flags, "--out", "blind")
    record = record_of(study / "blind")
    assert [entry.outcome for entry in record.entries] == ["undetectable"]
    assert (done.code, [gate.state for gate in record.gates]) == (5, ["not assessable"])
    assert (
        "Caveat: That is no pass: nothing is known about low_pass" in " ".join(done.out.split())
        and (study / "blind" / "report.html").is_file()
    )


def test_what_resizing_takes_away_is_asked_for_in_larger_images(study, audit):
    done = audit(*QUICK, "--confounder", "jpeg:90", "--image-size", "8", "--out", "resized")
    (entry,) = record_of(study / "resized").entries
    assert (entry.outcome, entry.larger_image_size) == ("undetectable", 16)
    assert "--image-size 16" in " ".join(done.out.split()).partition("Next, to look at larger images")[2]


def test_a_mitigation_does_not_pass_where_nothing_reaches_the_network(study, audit):
    flags = ("--confounder", "low_pass:0.71", "--negatives", "0.3", "--mitigate", "dfr:draws=2,source_editing:gamma")
    assert audit(*QUICK, *flags, "--out", "mitigated_blind").code == 0
    entries = record_of(study / "mitigated_blind").entries
    assert [entry.mitigation for entry in entries] == ["erm", "dfr:draws=2", "source_editing:edit=gamma"]
    assert [entry.outcome for entry in entries] == ["undetectable"] * 3
    assert all(entry.detectability.value < 0.6 and entry.input_rms >= 0 for entry in entries)


def test_an_artefact_that_does_not_fit_is_an_entry_with_its_reason(study, audit):
    done = audit(*QUICK, *TAG, "--confounder", "tag:0.9,xy=[0.9,0.9]", "--out", "out")
    assert done.code == 0, done.err
    fits, outside = sorted(record_of(study / "out").entries, key=lambda entry: entry.outcome == "impossible")
    assert (fits.outcome, outside.outcome) == ("relies", "impossible")
    assert outside.reason and "could not be measured with" in " ".join(done.out.split())


def test_mitigations_stand_beside_plain_training(study, audit):
    several = "erm,balanced_sampling,dfr:draws=2,dfr:2"  # erm is there anyway, and nothing is done twice
    flags = ("--negatives", "0.3", "--mitigate", several, "--out", "out")
    assert audit(*QUICK, *TAG, *TAG, *flags).code == 0
    record = record_of(study / "out")
    assert record.negatives == 0.3
    assert [entry.mitigation for entry in record.entries] == ["erm", "balanced_sampling", "dfr:draws=2"]
    plain, *others = (entry.metric("shortcut_reliance_index").value for entry in record.entries)
    assert min(others) < plain
    assert record.entries[1].reason.endswith("Refused at the share 1, which is left out.")
    manifest = pd.read_csv(study / "out" / "manifest.csv")
    assert not manifest[manifest["carries_from_share"].notna()]["positive"].all()


def test_a_mitigation_without_negatives_that_carry_it_is_refused_with_a_reason(study, audit):
    assert audit(*QUICK, *TAG, "--mitigate", "dfr", "--out", "out").code == 0
    plain, refused = record_of(study / "out").entries
    assert (plain.outcome, refused.outcome) == ("relies", "impossible")
    assert "Put the artefact into images of both classes" in refused.reason


@pytest.mark.parametrize(
    ("flags", "code", "said"),
    [
        (("--confounder", "tagg"), 2, "Unknown edit: tagg. Did you mean tag?"),
        (("--positive", "il"), 2, "Unknown class: il. Did you mean ill?"),
        (("--shares", "0.1,0.5,1"), 2, "--shares must ascend from 0"),
        (("--shares", "0,1"), 2, "at least three"),
        (("--shares", "0,half,1"), 2, "--shares are numbers with commas"),
        (("--mitigate", "dfr", "--mode", "full"), 2, "--mitigate works on frozen features"),
        (("--mitigate", "dfrr"), 2, "Unknown mitigation: dfrr. Did you mean dfr?"),
        (("--fail-on", "sri>0.1"), 2, "Unknown metric: sri"),
        (("--fail-on", "auc_drop=0.1"), 2, "is no condition"),
        (("--start", "tiny"), 2, "--start is for a model that is trained already"),
        (("--strength", "-1"), 2, "--strength must be at least 0"),
        (("--negatives", "1.5"), 2, "--negatives must be at least 0 and at most 1"),
        (("--data", "nowhere"), 3, "nowhere"),
    ],
)
def test_mistakes_have_their_exit_codes(study, audit, flags, code, said):
    done = audit(*QUICK, *flags, "--out", "out")
    assert (done.code, said in " ".join(done.err.split())) == (code, True), done.err
    assert not (study / "out" / "report.json").exists()


def test_several_labels_per_image_are_refused(study):
    images = np.random.default_rng(0).integers(0, 255, (24, 16, 16), dtype=np.uint8)
    data = dataset_from_arrays(images, np.array([[1, 0], [1, 1], [0, 1]] * 8), class_names=["mass", "fluid"])
    options = {name: value for name, value in OPTIONS.items() if name not in ("data", "group_column")}
    with pytest.raises((DataError, UsageError), match="several labels"):
        package.audit_model("tiny_models:tiny", data=data, **options)


def test_patients_that_are_not_known_cannot_be_drawn(study):
    options = {**OPTIONS, "group_column": "none"}
    with pytest.raises(UsageError, match="--unit patient draws patients, and these images have none"):
        package.audit_model("tiny_models:tiny", unit="patient", **options)


def test_python_gets_the_numbers_without_a_folder(study):
    found = package.audit_model("tiny_models:tiny", **OPTIONS, fail_on="shortcut_reliance_index>0.1")
    assert found.out is None and found.exit_code == 5
    assert found.to_frame()["outcome"].tolist() == ["relies"]
    assert found.summary().startswith("tiny relies on tag")
    with pytest.raises(UnknownNameError, match="Did you mean tag"):
        package.audit_model("tiny_models:tiny", **OPTIONS | {"confounders": "tagg"})


def test_one_level_against_another_stands_beside_one_against_none(study):
    """Thesis, figure 4.4: with the numbers that --absent gives to all artefacts."""
    levels = ["intensity_shift:1.4", "intensity_shift:1.4 against intensity_shift:1.2"]
    own = {**OPTIONS, "shares": "0,0.5,1"}
    against_none, against_other = package.audit_model("tiny_models:tiny", **{**own, "confounders": levels}).record.entries
    (alone,) = package.audit_model("tiny_models:tiny", **{**own, "confounders": levels[0]}).record.entries
    (absent,) = package.audit_model(
        "tiny_models:tiny", **{**own, "confounders": levels[0]}, absent="intensity_shift:1.2"
    ).record.entries
    assert against_none == alone
    assert against_other.confounder == "intensity_shift:gain=1.4 against intensity_shift:gain=1.2"
    assert against_other.points == absent.points != alone.points
    assert against_other.input_rms == absent.input_rms < alone.input_rms


@pytest.mark.parametrize(
    ("confounder", "options", "error", "said"),
    [
        ("tag against tagg", {}, UnknownNameError, "Did you mean tag"),
        ("tag against tag:0.0625", {}, UsageError, "tag is against itself"),
        ("tag against gamma against jpeg", {}, UsageError, "A against B"),
        ("tag against gamma", {"absent": "jpeg"}, UsageError, "leave --absent out"),
    ],
)
def test_what_an_artefact_cannot_be_against(study, confounder, options, error, said):
    with pytest.raises(error, match=said):
        package.audit_model("tiny_models:tiny", **{**OPTIONS, "confounders": [confounder]}, **options)


def test_negatives_of_which_none_is_without_the_artefact_are_said(study, audit):
    flags = ("--shares", "0,0.5,1", "--no-images")
    for share, is_said in (("1", True), ("0.9", False)):
        assert audit(*QUICK, *TAG, *flags, "--negatives", share, "--out", f"out{share}").code == 0
        notes = record_of(study / f"out{share}").notes
        assert any("no model has seen a negative without it" in note for note in notes) == is_said


def test_artefacts_are_put_in_after_resizing_where_that_is_asked_for(study, audit):
    """Native images of 16 pixels; the network gets 32, where a cutoff in cycles per pixel means half as fine a detail."""
    flags = ("--confounder", "low_pass:0.25", "--image-size", "32", "--shares", "0,0.5,1")
    for stage in ("native", "input"):
        assert audit(*QUICK, *flags, "--stage", stage, "--out", stage).code == 0
    (native,), (at_input,) = (record_of(study / stage).entries for stage in ("native", "input"))
    assert native.input_rms > at_input.input_rms > 0
    function = {"class_names": ["healthy", "ill"], "data": "study.csv", "stage": "input"}
    with pytest.raises(UsageError, match="can only be asked"):
        package.audit_model(lambda images: np.full(len(images), 0.5), **function)


def test_areas_of_published_curves_are_added_where_they_are_asked_for(study, audit):
    assert audit(*QUICK, *TAG, "--micro-auc", "--out", "micro").code == 0
    (entry,) = record_of(study / "micro").entries
    assert all(0 <= point.metric("ood_micro_auc").value <= 1 for point in entry.points)
    assert "ood_micro_auc" in pd.read_csv(study / "micro" / "curves.csv").columns
