"""What one public function returns is what the next one takes: from labelled images to a report, without a file by hand."""

import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import timm
from PIL import Image
from safetensors.torch import save_file

import crossgraft
from crossgraft.errors import DataError, MissingWeightsError, NotApplicable, UnknownNameError, UntrustedCodeError, UsageError
from crossgraft.models import load_backbone, read_zoo
from crossgraft.rank import Ranking
from crossgraft.scores import logme, score
from support.tiny import make_workspace

FAST = {"workers": 1, "device": "cpu"}
TUNED = {**FAST, "epochs": 1, "store": False}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Images, a zoo file and its functions, which nothing imports before it is asked for."""
    folder = tmp_path_factory.mktemp("hand-offs")
    make_workspace(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CROSSGRAFT_CACHE", str(folder / "cache"))
        patch.chdir(folder)
        patch.syspath_prepend(str(folder))
        patch.delitem(sys.modules, "tiny_models", raising=False)
        yield folder
    sys.modules.pop("tiny_models", None)


@pytest.fixture(scope="module")
def data(folder):
    return crossgraft.open_dataset(folder / "images")


@pytest.fixture(scope="module")
def ranking(data):
    """Networks with random weights, so no advice speaks for one; here somebody has looked, and takes the first."""
    found = crossgraft.rank_models(
        data, models="zoo.yaml", allow_code="tiny_models.py", scores=[logme, "h_score"], seed=3, **FAST
    )
    assert found.record.advised == []
    return replace(found, found=found.record.model_copy(update={"advised": ["narrow"]}))


@pytest.fixture(scope="module")
def tuned(data, ranking):
    return crossgraft.fine_tune(data, model=ranking.best, **TUNED)


def logits_of(predictions):
    return np.asarray([row.logits for row in predictions.record.rows])


def test_every_public_name_takes_what_another_one_gives(data, ranking, tuned, folder):
    assert crossgraft.check_data(data).record.dataset.num_images == len(data)
    assert ranking.record.scores[0].name == "logme"  # given as an object
    assert crossgraft.predict(tuned, data).to_frame().equals(tuned.predict(data).to_frame())
    full = crossgraft.fine_tune(data, model=ranking.best, out=folder / "full", **TUNED)
    assert crossgraft.write_report(full.out).is_file()
    assert crossgraft.export_model(full, out=folder / "exported").out == folder / "exported"
    between = crossgraft.interpolate(full.out, data, model=ranking.best, alphas=[0, 1], out=folder / "between", **FAST)
    assert (folder / "between" / "points.csv").is_file() and between.record.points[1].alpha == 1
    compared = crossgraft.compare_fine_tunings(data, model=ranking.best, compare="full,linear", **TUNED)
    assert isinstance(compared, crossgraft.FineTuningComparison)
    assert "<table" in crossgraft.evaluate_published("itm")._repr_html_()
    classifier = crossgraft.FineTunedClassifier(ranking.best, epochs=1, **FAST)
    images = [data.read(row) for row in range(len(data))]
    assert classifier.fit(images, data.targets).predict(images[:2]).shape == (2,)
    used = {"open_dataset", "check_data", "rank_models", "fine_tune", "predict", "write_report", "export_model", "interpolate"}
    episodes = crossgraft.run_episodes(
        data,
        model=ranking.best,
        heads="ncc,ridge",
        sampler="n_way_k_shot:ways=2,shots=2,queries=1",
        episodes=2,
        out=folder / "episodes",
        **FAST,
    )
    assert {*crossgraft.average_runs(episodes.out).to_frame()["head"]} == {"ncc", "ridge"}
    assert len(crossgraft.compare_centre([ranking.best, full]).to_frame()) == 2
    assert list(episodes.to_frame()["head"]) and episodes.record.model.name == "narrow"
    one_task = crossgraft.predict_from_support(support=data, query=data, model=ranking.best, head="ncc", **FAST)
    assert one_task.record.class_names == list(data.class_names)
    both = crossgraft.distil(
        [full.out, full.out], data=[data, data], names="a,b", model=ranking.best, steps=2, batch_size=4, **FAST
    )
    assert [domain.name for domain in both.record.domains] == ["a", "b"]
    edited = crossgraft.edit_data(data, edits="low_pass:0.1")
    assert crossgraft.check_data(edited.dataset, holdout=0).record.dataset.fingerprint == edited.record.fingerprint
    edits = {"confounders": ["tag:0.4"], "audit_folds": 2, "shares": "0,0.5,1", "ledger": False}
    swept = crossgraft.audit_model(ranking.best, data=data, **edits, **FAST)
    assert swept.record.models[0].name == "narrow" and swept.record.mode == "quick"
    asked = crossgraft.audit_model(full, data=data, confounders=["tag:0.4"], ledger=False, **FAST)
    assert asked.record.mode == "trained" and len(asked.to_frame()) == 1
    beside = crossgraft.compare_models(ranking.best, full, data=data, ledger=False, **FAST)
    assert beside.record.pairs[0].of == "change" and len(beside.to_frame()) == 10
    assert crossgraft.replay_selection("dart").record.name == "dart"
    selected = crossgraft.select_model(data, models=list(ranking.specs.values()), budget="100%", ledger=False, **TUNED)
    assert crossgraft.predict(selected, data).to_frame().equals(selected.predict(data).to_frame())
    of_selected = crossgraft.audit_model(selected, data=data, confounders=["tag:0.4"], ledger=False, **FAST)
    test = crossgraft.split_data(data).record.splits[-1]
    assert of_selected.record.mode == "trained" and of_selected.record.num_test == test.num_images
    shown = crossgraft.show_confounders(data=data, num_images=2)
    assert {row.edit for row in shown.record.sheets} >= {"tag", "low_pass"}
    assert [row.name for row in crossgraft.split_data(data).record.splits] == ["train", "val", "test"]
    job = {"command": "predict", "grid": {"run": [str(full.out)]}, "fixed": {"images": str(folder / "images")}}
    with ThreadPoolExecutor(1) as pool:
        study = crossgraft.run_study(job, out=folder / "study", executor=pool, allow_code="tiny_models.py")
    assert study.record.num_done == 1, study.record.failures
    used |= {
        "run_study",
        "run_episodes",
        "predict_from_support",
        "split_data",
        "distil",
        "edit_data",
        "audit_model",
        "select_model",
        "replay_selection",
        "show_confounders",
        "average_runs",
        "compare_centre",
        "compare_models",
        "compare_fine_tunings",
        "FineTuningComparison",
        "evaluate_published",
        "FineTunedClassifier",
        "__version__",
    }
    assert used == set(crossgraft.__all__) - {"interpolate_runs"}  # which goes with the next release


def test_the_best_model_knows_its_weights_and_its_code(ranking, data, folder, monkeypatch, tmp_path):
    assert ranking.best is ranking.specs["narrow"]
    monkeypatch.chdir(tmp_path)  # neither zoo file nor weights lie here
    assert "Trained: 426 parameters" in crossgraft.fine_tune(data, model=ranking.best, plan=True, **TUNED).summary()
    with pytest.raises(UntrustedCodeError):
        crossgraft.rank_models(data, models=folder / "zoo.yaml", **FAST)


def test_weights_of_a_library_are_found_again_without_their_folder(data, tmp_path):
    network = timm.create_model("test_resnet", pretrained=False)
    save_file(network.state_dict(), tmp_path / "test_resnet.safetensors")
    (spec,) = read_zoo("test_resnet", weights_dir=tmp_path)
    assert spec.weights == "pretrained"
    assert (
        load_backbone(spec, image_size=32).weights_fingerprint
        == load_backbone("test_resnet", weights_dir=tmp_path, image_size=32).weights_fingerprint
    )
    (lost,) = read_zoo("test_resnet")
    with pytest.raises(MissingWeightsError):
        load_backbone(lost)


def test_a_model_that_no_control_speaks_for_is_not_the_best(data, ranking):
    unlucky = crossgraft.rank_models(data, models="zoo.yaml", allow_code="tiny_models.py", scores=logme, by=logme, **FAST)
    said = r"There is no best model. LogME does not show that any of these 2 .* ranking.specs has all models"
    with pytest.raises(NotApplicable, match=said):
        unlucky.best  # noqa: B018
    record = ranking.record
    with pytest.raises(UsageError, match="does not know how narrow is built"):
        Ranking(record).best  # noqa: B018


def test_images_may_come_in_any_form(data, tuned, folder):
    expected = logits_of(tuned.predict("images"))
    names = [data.image_name(row) for row in range(len(data))]
    files = [folder / "images" / name for name in names]
    pixels = [np.asarray(Image.open(file)) for file in files]
    frame = pd.DataFrame({"path": names, "age": [40.0] * len(files)})
    named = {
        "a list of files": files,
        "an iterator of files": iter(files),
        "a table": (frame, {"image_root": "images"}),
        "opened pictures": [Image.open(file) for file in files],
        "arrays of 8 bits": np.stack(pixels),
        "arrays of 16 bits": np.stack(pixels).astype(np.uint16) * 257,
        "floats": np.stack(pixels) / 255,
    }
    for form, images in named.items():
        given, options = images if isinstance(images, tuple) else (images, {})
        found = tuned.predict(given, **options)
        np.testing.assert_allclose(logits_of(found), expected, rtol=0, atol=1e-6, err_msg=form)
        said = ["Float samples of arrays are read with 0 as black and 1 as white."] if form == "floats" else []
        assert found.record.notes == said, form
    labelled = tuned.predict(frame.assign(label=data.labels), image_root="images")
    assert labelled.record.metrics and labelled.record.rows[0].target == "benign"


def test_a_list_of_files_is_refused_where_labels_are_needed(data, folder):
    files = [folder / "images" / data.image_name(row) for row in range(len(data))]
    with pytest.raises(DataError, match=r"A list of files has no labels\. Give .* a DataFrame with the columns path and label"):
        crossgraft.check_data(files)
    assert crossgraft.check_data(pd.DataFrame({"path": files, "label": data.labels}), allow_outside=True).record.dataset


def test_a_table_of_a_program_is_taken_wherever_data_are(data, ranking, tuned, folder):
    names = [data.image_name(row) for row in range(len(data))]
    frame = pd.DataFrame({"path": names, "label": np.asarray(data.class_names)[data.targets]})
    rows = {"image_root": folder / "images", **FAST}
    assert crossgraft.check_data(frame, image_root=folder / "images").record.dataset.num_images == len(data)
    swept = crossgraft.audit_model(tuned, data=frame, confounders=["tag:0.4"], ledger=False, **rows)
    assert swept.record.dataset.fingerprint == data.fingerprint
    beside = crossgraft.compare_models(ranking.best, tuned, data=frame, ledger=False, **rows)
    assert beside.record.dataset.num_images == len(data)
    one_task = crossgraft.predict_from_support(support=frame, query=frame, model=ranking.best, head="ncc", **rows)
    assert len(one_task.record.rows) == len(data)
    sheets = crossgraft.show_confounders(data=frame, image_root=folder / "images", num_images=2).record.sheets
    assert {row.edit for row in sheets} >= {"tag"}


def test_images_that_are_none_are_refused_by_name(tuned, data, folder):
    pixels = np.zeros((2, 16, 16))
    with pytest.raises(DataError, match=r"has float samples from 255 to 255, where 0 must be black and 1 white"):
        tuned.predict(pixels + np.array([0.0, 255.0])[:, None, None])
    with pytest.raises(DataError, match="One image alone is a list of one"):
        tuned.predict(pixels[0])
    with pytest.raises(UsageError, match="Data cannot be an int"):
        tuned.predict(3)
    with pytest.raises(DataError, match=r"lost.png in row 0 of the list of files"):
        tuned.predict(["lost.png"])
    with pytest.raises(DataError, match="The DataFrame has no rows"):
        tuned.predict(pd.DataFrame({"path": []}))
    with pytest.raises(DataError, match=r"No column of DataFrame holds the image files"):
        tuned.predict(pd.DataFrame({"where": ["a.png"]}))
    with pytest.raises(DataError, match=r"must be: .* in row 0 of the DataFrame"):  # a table may come from anywhere
        tuned.predict(pd.DataFrame({"path": [str(folder.parent / "a.png")]}))


def test_a_result_without_a_model_says_why(data, ranking):
    planned = crossgraft.fine_tune(data, model=ranking.best, plan=True, **TUNED)
    with pytest.raises(UsageError, match="only the plan was made"):
        planned.predict(data)
    folds = crossgraft.fine_tune(data, model=ranking.best, folds=2, **TUNED)
    with pytest.raises(UsageError, match="with folds there is one model a fold"):
        crossgraft.predict(folds, data)


def test_what_is_no_registered_score_is_refused(data):
    @score(title="Own", reference="none")
    def own(labels):
        return float(len(labels))

    @score(title="Other", reference="none")
    def nce(labels):
        return float(len(labels))

    for given, error, match in (
        (len, UsageError, "scores must be text"),
        ([logme, 3], UsageError, "scores must be text"),
        (own, UnknownNameError, r"SCORES.add\('own', own\)"),
        (nce, UsageError, "Another score is registered as nce, from crossgraft"),
    ):
        with pytest.raises(error, match=match):
            crossgraft.rank_models(data, scores=given)


def test_the_old_name_still_interpolates(data, ranking, folder):
    says = pytest.warns(DeprecationWarning, match=r"write crossgraft.interpolate\(run, data, linear=…\)")
    with says, pytest.raises(UsageError, match="alphas are numbers"):
        crossgraft.interpolate_runs(folder / "nothing", data=data, alphas="a")


def test_an_input_that_is_none_is_refused_by_name():
    for call in (
        lambda: crossgraft.predict(None, None),
        lambda: crossgraft.check_data(None),
        lambda: crossgraft.fine_tune(None, model="x"),
        lambda: crossgraft.compare_models("a", None),
    ):
        with pytest.raises(UsageError, match="and it is None"):
            call()
