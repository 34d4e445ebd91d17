"""``crossgraft audit``: whether models lean on an artefact, from a command to a report and an exit code."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import crossgraft as package
from crossgraft.audit.record import AuditRecord
from crossgraft.data.dataset import dataset_from_arrays
from crossgraft.errors import DataError, UnknownNameError, UsageError

CODE = ("--code", "tiny_models.py")
FAST = ("--workers", "1", "--device", "cpu", "--quiet")
TAG = ("--confounder", "tag:0.5,xy=[0.1,0.1]")
DATA = ("--data", "study.csv", "--group-column", "patient")
QUICK = ("tiny_models:tiny", *DATA, *CODE, *FAST, "--folds", "2")
TUNE = ("tune", "study.csv", "--group-column", "patient", "--model", "tiny_models:tiny", *FAST)
OPTIONS = {"data": "study.csv", "group_column": "patient", "allow_code": "tiny_models.py", "audit_folds": 2}
OPTIONS |= {"confounders": ["tag:0.5,xy=[0.1,0.1]"], "workers": 1, "device": "cpu"}


@pytest.fixture
def study(workspace):
    """120 squares of 60 patients in a table; ill ones are a little brighter, so that a large white letter tells more."""
    rng = np.random.default_rng(0)
    rows = ["path,label,patient"]
    (workspace / "scans").mkdir()
    for number in range(120):
        pixels = rng.integers(20, 100, (16, 16, 3)) + 12 * (number % 2) + int(rng.integers(-12, 13))
        Image.fromarray(pixels.astype(np.uint8)).save(workspace / "scans" / f"Jones{number:03d}.png")
        rows.append(f"scans/Jones{number:03d}.png,{('healthy', 'ill')[number % 2]},Smith{number // 2}")
    (workspace / "study.csv").write_text("\n".join(rows))
    return workspace


@pytest.fixture
def audit(study, crossgraft):
    return lambda *arguments: crossgraft("audit", *arguments)


@pytest.fixture
def tuned(study, run_once):
    run_once(*TUNE, "--epochs", "30", "--learning-rate", "0.05", "--no-images", out="tuned")
    return study / "tuned"


def record_of(folder):
    return AuditRecord.model_validate_json((folder / "report.json").read_bytes())


def numbers_of(record):
    """All that a second run must find again."""
    return [entry.model_dump() for entry in record.entries]


def told_by(folder):
    """All bytes of a run directory, names of files too."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return b"".join(path.read_bytes() for path in files) + " ".join(str(path.relative_to(folder)) for path in files).encode()


def test_a_network_that_sees_the_letter_relies_on_it(study, audit):
    done = audit(*QUICK, *TAG, "--out", "out")
    assert done.code == 0, done.err
    assert "tiny relies on tag:size=0.5,xy=[0.1,0.1]: SRI " in " ".join(done.out.split())
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


def test_the_tables_hold_the_numbers_of_the_record(study, audit):
    audit(*QUICK, *TAG, "--out", "out")
    (entry,) = record_of(study / "out").entries
    table = pd.read_csv(study / "out" / "audit.csv")
    assert table["shortcut_reliance_index"].tolist() == [entry.metric("shortcut_reliance_index").value]
    curves = pd.read_csv(study / "out" / "curves.csv")
    assert curves["ood"].tolist() == [point.metric("ood").value for point in entry.points]


def test_the_manifest_says_who_carries_it_and_more_carry_it_at_a_larger_share(study, audit):
    audit(*QUICK, *TAG, "--out", "out")
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


def test_a_trained_model_is_asked_on_its_test_images(tuned, audit):
    done = audit("tuned", *DATA, *CODE, *FAST, *TAG, "--out", "asked")
    assert done.code == 0, done.err
    record = record_of(tuned.parent / "asked")
    (entry,) = record.entries
    assert (record.mode, entry.mode, record.shares, record.num_folds) == ("trained", "trained", [], 1)
    assert entry.outcome in ("sensitive", "relies") and entry.metric("auc_drop").value > 0.05
    assert "heads that are fitted to 96 training images" in entry.start
    drop = entry.metric("clean_auc").value - entry.metric("ood_auc").value
    assert entry.metric("auc_drop").value == pytest.approx(drop)
    assert record.num_test == len(pd.read_csv(tuned / "predictions.csv")) == 24
    assert "Measured on the test part of the run." in record.notes
    assert "AUC drop" in done.out and "SRI" not in done.out


def test_a_condition_on_verdicts_spares_what_is_only_sensitive(study):
    def exit_code(condition):
        asked = {"data": "study.csv", "class_names": ["healthy", "ill"], "confounders": ["tag:0.5,xy=[0.1,0.1]"]}
        return package.audit_model(brightness, **asked, fail_on=condition, workers=1, device="cpu").exit_code

    assert [exit_code(each) for each in ("relies", "auc_drop>0.05")] == [0, 0]
    assert [exit_code(each) for each in ("sensitive", "sensitive:auc_drop>0.05")] == [5, 5]


@pytest.mark.parametrize("of_trained", [False, True])
def test_a_plan_says_how_many_images_a_verdict_needs_and_asks_nothing(tuned, audit, of_trained, monkeypatch):
    study = tuned.parent
    with_sex(study, in_pixels=False)
    model = ("tuned", *DATA, *CODE, *FAST) if of_trained else QUICK
    done = audit(*model, *TAG, "--attribute", "sex:F", "--plan", "--json", "--fail-on", "relies", "--out", "planned")
    assert done.code == 0, done.err
    record = AuditRecord.model_validate(json.loads(done.out))
    assert (record.entries, record.gates) == ([], []) and not (study / "planned").exists()
    of_tag, of_sex = ([each for each in record.needs if each.confounder.startswith(name)] for name in ("tag", "sex"))
    assert [each.what for each in of_tag] == ["groups of ill", "groups of other classes"]
    assert [each.needed for each in of_tag] == [72, 72] and [each.needed for each in of_sex] == [207] * 4
    assert sum(each.available for each in of_sex) == record.num_test == 24
    said = audit(*model, *TAG, "--plan")
    assert "There may be too few images for a verdict on tag" in " ".join(said.out.split()) and "72" in said.out


def test_a_run_of_pairs_is_audited_on_patients_that_it_has_not_seen(study, run_once, audit):
    """20 of 60 patients have no ill image, so that their other one is in no pair."""
    table = pd.read_csv(study / "study.csv").drop(index=range(1, 40, 2))
    extra = (
        table[table["label"] == "healthy"].tail(20).assign(path=[f"scans/Jones{number:03d}.png" for number in range(1, 40, 2)])
    )
    pd.concat([table, extra]).to_csv(study / "study.csv", index=False)
    run_once(*TUNE, "--epochs", "3", "--learning-rate", "0.05", "--no-images", "--pair-by", "patient", out="pairs")
    used = json.loads((study / "pairs" / "split.json").read_text())
    of_patient = pd.read_csv(study / "study.csv")["patient"]
    paired = {f"Smith{number}" for number in range(20, 60)}
    known, unseen = (
        {of_patient[row] for part in parts for row in used[part]} & paired for parts in (("train", "val"), ("test",))
    )
    for flags in ((), ("--pair-by", "patient")):
        done = audit("pairs", *DATA, *flags, *CODE, *FAST, *TAG, "--out", f"audit{len(flags)}")
        assert done.code == 0, done.err
        record = record_of(study / f"audit{len(flags)}")
        assert record.entries[0].points and (" of the same groups (patient)." in record.notes[0]) == (not flags)
        assert record.num_test == (2 * len(unseen) if flags else sum(~of_patient.isin(known)))


def test_no_image_that_the_model_was_made_with_counts_as_a_test_image(tuned, audit):
    """A part of the data of the run has another fingerprint, and says nothing of the parts of the run."""
    study = tuned.parent
    done = audit("tuned", *DATA, "--limit", "60", *CODE, *FAST, *TAG, "--out", "limited")
    assert done.code == 0, done.err
    record = record_of(study / "limited")
    (note,) = [note for note in record.notes if note.startswith("Measured")]
    left_out = int(re.fullmatch(r"Measured on images without (\d+) images that the model was fine-tuned with\.", note)[1])
    assert 30 < left_out < 60 and record.num_test == 60 - left_out

    table = pd.read_csv(study / "study.csv")
    is_test = table.index.isin(pd.read_csv(tuned / "predictions.csv")["row"] - 1)
    table[is_test].to_csv(study / "unseen.csv", index=False)
    table[~is_test].to_csv(study / "seen.csv", index=False)
    assert audit("tuned", "--data", "unseen.csv", *CODE, *FAST, *TAG, "--out", "unseen").code == 0
    record = record_of(study / "unseen")
    assert record.num_test == 24 and "none is, pixel by pixel, one that the model was fine-tuned with" in record.notes[0]
    refused = audit("tuned", "--data", "seen.csv", *CODE, *FAST, *TAG, "--out", "seen")
    assert refused.code != 0 and "fine-tuned with all 96 images" in " ".join(refused.err.split())


def test_the_same_command_again_keeps_its_directory_and_another_one_needs_overwrite(study, audit):
    first = audit(*QUICK, *TAG, "--out", "out")
    before = numbers_of(record_of(study / "out"))
    again = audit(*QUICK, *TAG, "--out", "out")
    assert (first.code, again.code) == (0, 0)
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


@pytest.mark.parametrize("of_trained", [False, True])
def test_nobody_is_named_in_the_run_directory(tuned, audit, of_trained):
    model = ("tuned", *DATA, *CODE, *FAST) if of_trained else QUICK
    outside = ("--confounder", "tag:0.9,xy=[0.9,0.9]")
    done = audit(*model, *TAG, *outside, "--out", "out")
    assert done.code == 0 and "Jones" in done.err  # whose image it does not fit into is for the terminal
    (refused,) = [each for each in record_of(tuned.parent / "out").entries if each.outcome == "impossible"]
    assert refused.reason.startswith("An image cannot be edited. tag: ")
    told = told_by(tuned.parent / "out")
    assert b"Smith" not in told and b"Jones" not in told
    assert str(tuned.parent).encode() not in told


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


@pytest.mark.parametrize(
    "flags",
    [
        ("--folds", "3"),
        ("--mode", "full"),
        ("--shares", "0,0.5,1"),
        ("--negatives", "0.3"),
        ("--unit", "patient"),
        ("--test-mode", "sampled"),
        ("--absent", "jpeg"),
        ("--mitigate", "dfr"),
        ("--epochs", "3"),
        ("--learning-rate", "0.1"),
        ("--image-size", "32"),
    ],
    ids=lambda flags: flags[0],
)
def test_a_trained_model_takes_no_option_of_training(tuned, audit, flags):
    done = audit("tuned", *DATA, *CODE, *FAST, *flags)
    assert done.code == 2 and f"{flags[0]} is for models that are trained for the audit" in " ".join(done.err.split())


def test_several_labels_per_image_are_refused(study):
    images = np.random.default_rng(0).integers(0, 255, (24, 16, 16), dtype=np.uint8)
    data = dataset_from_arrays(images, np.array([[1, 0], [1, 1], [0, 1]] * 8), class_names=["mass", "fluid"])
    options = {name: value for name, value in OPTIONS.items() if name not in ("data", "group_column")}
    with pytest.raises((DataError, UsageError), match="several labels"):
        package.audit_model("tiny_models:tiny", data=data, **options)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (lambda images: np.ones((len(images), 3)) / 3, "shape"),
        (lambda images: np.full(len(images), 1.5), r"must lie in \[0, 1\]"),
        (lambda images: np.array([np.nan] * len(images)), r"must lie in \[0, 1\]"),
    ],
)
def test_a_function_that_gives_no_probabilities_is_refused(study, answer, said):
    """Not an entry that says that the artefact could not be measured: nothing can be, with this function."""
    options = {**OPTIONS, "class_names": ["healthy", "ill"]}
    options = {name: value for name, value in options.items() if name not in ("allow_code", "audit_folds")}
    with pytest.raises(DataError, match=said):
        package.audit_model(answer, **options)


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


def brightness(images):
    return np.array([image.mean() / 255 for image in images])


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


def test_a_trained_model_has_no_images_with_another_level(study):
    asked = {name: value for name, value in OPTIONS.items() if name not in ("allow_code", "audit_folds", "confounders")}
    with pytest.raises(UsageError, match="Write --confounder tag"):
        package.audit_model(brightness, **asked, class_names=["healthy", "ill"], confounders=["tag against gamma"])


def test_a_function_can_be_asked_and_nobody_knows_what_it_has_seen(study):
    found = package.audit_model(
        brightness,
        data="study.csv",
        class_names=["healthy", "ill"],
        confounders=["tag:0.5,xy=[0.1,0.1]"],
        workers=1,
        device="cpu",
    )
    (entry,) = found.record.entries
    assert (found.record.mode, entry.outcome) == ("trained", "sensitive")
    assert "name it with --start" in entry.reason and entry.metric("pull_over_start") is None
    assert any("not known here" in note for note in found.record.notes)


THREE_FOLDS = (*QUICK[:-2], "--folds", "3")  # the least that gives an interval


def with_sex(study, *, in_pixels):
    """A column that has nothing to do with the class; women are much brighter, or their pictures are like those of men."""
    table = pd.read_csv(study / "study.csv")
    table["sex"] = np.where(np.arange(len(table)) // 2 % 2 == 0, "F", "M")
    for path in table["path"][(table["sex"] == "F") & in_pixels]:
        pixels = np.asarray(Image.open(study / path)).astype(np.int64) + 120
        Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8)).save(study / path)
    table.to_csv(study / "study.csv", index=False)


def test_an_attribute_is_audited_by_choosing_images(study, audit):
    with_sex(study, in_pixels=True)
    done = audit(*THREE_FOLDS, "--attribute", "sex:F", "--out", "seen", "--shares", "0,0.5,1")
    assert done.code == 0, done.err
    record = record_of(study / "seen")
    (entry,) = record.entries
    assert (entry.confounder, entry.detectability) == ("sex:F", None)
    assert record.confounders[0].title == "sex F" and "not proof of a wrong model" in record.confounders[0].said
    assert entry.metric("ood_auc").value < 0.5 < entry.metric("iid_auc").value
    page = (study / "seen" / "report.html").read_text(encoding="utf-8")
    assert "data:image/png" in page and "none were kept" not in page  # nothing was drawn, and nobody said --no-images


def test_negatives_of_which_none_is_without_the_artefact_are_said(study, audit):
    flags = ("--shares", "0,0.5,1", "--no-images")
    for share, is_said in (("1", True), ("0.9", False)):
        assert audit(*QUICK, *TAG, *flags, "--negatives", share, "--out", f"out{share}").code == 0
        notes = record_of(study / f"out{share}").notes
        assert any("no model has seen a negative without it" in note for note in notes) == is_said


def test_an_attribute_that_no_pixel_shows_is_not_relied_on(study, audit):
    with_sex(study, in_pixels=False)
    assert audit(*THREE_FOLDS, "--attribute", "sex:F", "--attribute", "height", "--out", "out", "--shares", "0,0.5,1").code == 3
    assert audit(*THREE_FOLDS, "--attribute", "sex:F", "--out", "out", "--shares", "0,0.5,1").code == 0
    (entry,) = record_of(study / "out").entries
    assert entry.outcome in ("passes", "undecided")
    assert audit(*THREE_FOLDS, "--attribute", "sexx", "--out", "typo").code == 2


def test_images_that_are_taken_for_an_attribute_are_written(study, audit):
    with_sex(study, in_pixels=True)
    assert audit(*THREE_FOLDS, "--attribute", "sex:F", "--out", "seen", "--shares", "0,0.5,1").code == 0
    assert not (study / "seen" / "manifest.csv").exists()  # no image carries anything
    taken = pd.read_csv(study / "seen" / "attribute_rows.csv")
    assert not taken[~taken["positive"]]["has_attribute"].any()
    shares = taken[taken["positive"] & (taken["part"] == "train")].groupby(["fold", "share"])["has_attribute"].mean()
    assert shares.xs(0.0, level="share").eq(0).all() and shares.xs(1.0, level="share").eq(1).all()
    for _, fold in taken.groupby("fold"):
        assert fold.groupby("share").size().nunique() == 1  # sizes do not depend on the share
    assert b"Smith" not in told_by(study / "seen")


@pytest.mark.slow
def test_networks_are_fine_tuned_on_the_images_of_an_attribute(study, audit, monkeypatch):
    with_sex(study, in_pixels=True)
    flags = ("--attribute", "sex:F", "--mode", "full", "--epochs", "2", "--shares", "0,0.5,1", "--out", "full")
    assert audit(*QUICK, *flags).code == 0
    record = record_of(study / "full")
    (entry,) = record.entries
    assert (entry.mode, entry.confounder, len(entry.points)) == ("full", "sex:F", 3)
    assert entry.points[0].metric("best_epoch").value >= 1
    assert len(list((study / "full" / "trainings").glob("*.json"))) == 2 * 3
    monkeypatch.setattr("crossgraft.audit.sweep.train_and_evaluate", None)  # a finished run trains nothing
    assert audit(*QUICK, *flags).code == 0
    assert numbers_of(record_of(study / "full")) == numbers_of(record)


@pytest.mark.parametrize("in_pixels", [True, False])
def test_a_trained_model_is_asked_about_an_attribute(study, in_pixels):
    with_sex(study, in_pixels=in_pixels)
    asked = {"data": "study.csv", "group_column": "patient", "class_names": ["healthy", "ill"], "attributes": "sex:F"}
    (entry,) = package.audit_model(brightness, **asked).record.entries
    drop = entry.metric("auc_drop")
    if in_pixels:
        assert entry.outcome == "sensitive" and drop.low > 0.3 and "positive class" in entry.reason
    else:
        assert entry.outcome in ("passes", "undecided") and drop.low < 0 < drop.high


def test_a_run_is_asked_about_an_attribute(study, audit, tuned):
    with_sex(study, in_pixels=False)
    done = audit("tuned", *DATA, *CODE, *FAST, "--attribute", "sex:F", "--out", "asked")
    assert done.code == 0, done.err
    (entry,) = record_of(study / "asked").entries
    assert entry.metric("overall_auc").value > 0.5 and len(entry.points[0].cells) == 4
    assert "--with sex" not in " ".join(done.out.split())  # an attribute cannot be painted


@pytest.mark.parametrize("in_pixels", [True, False])
def test_what_can_be_read_from_features_stands_beside_what_nobody_learned(study, audit, in_pixels):
    with_sex(study, in_pixels=in_pixels)
    done = audit(*QUICK, "--readable", "sex:F", "--holdout", "0.4", "--out", "out")
    assert done.code == 0, done.err
    record = record_of(study / "out")
    assert record.entries == [] and record.confounders == []
    read = {row.features: row for row in record.readable}
    assert list(read) == ["features", "random weights", "pixels", "class alone"]
    assert read["pixels"].auc.low > 0.7 if in_pixels else read["pixels"].auc.low < 0.5 < read["pixels"].auc.high
    assert read["random weights"].more_than_random_weights is None
    for row in record.readable:
        assert row.num_images == 48 and 0 < row.num_with < 48
    found = " ".join(done.out.split())
    assert ("sex F can be read from features of tiny at AUC" in found) == in_pixels and "--attribute sex:F" in found
    assert ("Nothing shows that sex F can be read from features of tiny" in found) != in_pixels
    assert pd.read_csv(study / "out" / "readable.csv")["features"].tolist() == list(read)
    page = (study / "out" / "report.html").read_text(encoding="utf-8")
    assert "Who is in the picture" in page and b"Smith" not in told_by(study / "out")


def test_a_run_is_read_before_fine_tuning_and_after_it(study, audit, tuned, monkeypatch):
    with_sex(study, in_pixels=False)
    monkeypatch.setattr("crossgraft.audit.readable.LEAST_IMAGES", 4)
    flags = ("--readable", "sex:F", "--readable", "patient_age", *DATA, *CODE, *FAST)
    assert audit("tuned", *flags, "--out", "typo").code == 2
    for model in ("tuned", QUICK[0]):  # before anything is trained, so that a plan tells as well
        early = audit(model, *(QUICK[1:] if model != "tuned" else (*DATA, *CODE, *FAST)), "--readable", "sexx:F", "--plan")
        assert early.code == 2 and "Did you mean sex" in early.err
    done = audit("tuned", "--readable", "sex:F", *DATA, *CODE, *FAST, "--out", "read")
    assert done.code == 0, done.err
    first = record_of(study / "read").readable[0]
    assert first.features == "features after fine-tuning"
    with pytest.raises(UsageError, match="needs the features of a network"):
        package.audit_model(brightness, data="study.csv", class_names=["healthy", "ill"], readable="sex:F")


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
