"""``select_model`` from images and a zoo to a model that predicts."""

import io
import json
import shutil
import sys

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file

import crossgraft
from crossgraft.errors import DataError, MissingWeightsError, RunDirectoryError, UsageError
from crossgraft.progress import Reporter
from crossgraft.rank.record import KnownResult
from crossgraft.rank.results_store import add_known_results
from crossgraft.running.unattended import unattended
from crossgraft.select import planning
from support.studies import Here
from support.tiny import make_images, make_workspace, tiny_weights

FAST = {"workers": 1, "device": "cpu", "epochs": 3, "store": False, "no_images": True, "allow_code": "tiny_models.py"}
ZOO = """
- {name: narrow, source: "tiny_models:tiny", weights: narrow.safetensors, family: tiny}
- {name: wide, source: "tiny_models:tiny", weights: wide.safetensors, kwargs: {width: 12}, family: tiny}
- {name: broken, source: "tiny_models:broken", weights: narrow_nan.safetensors, family: tiny}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("selection")
    make_workspace(folder)
    make_images(folder / "many", {"benign": 80, "malignant": 80})
    broken = tiny_weights(8)
    broken["body.2.bias"] = broken["body.2.bias"] * float("nan")
    save_file(broken, folder / "narrow_nan.safetensors")
    (folder / "three.yaml").write_text(ZOO)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CROSSGRAFT_CACHE", str(folder / "cache"))
        patch.chdir(folder)
        patch.syspath_prepend(str(folder))
        patch.delitem(sys.modules, "tiny_models", raising=False)
        yield folder
    sys.modules.pop("tiny_models", None)


@pytest.fixture(scope="module")
def selected(folder):
    """Made where torch would take two threads, which round sums otherwise, while the selection has one."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield crossgraft.select_model("many", models="zoo.yaml", budget="100%", out=folder / "run", **FAST)
    torch.set_num_threads(before)


def test_what_a_budget_covers_is_said_before_any_training(folder):
    said = io.StringIO()
    reporter = Reporter(stream=said)
    found = crossgraft.select_model("many", models="zoo.yaml", budget="100%", out=folder / "told", reporter=reporter, **FAST)
    names = [name for some in found.record.plan.rounds for name in some]
    covered = f"of the budget are left for trainings, enough for 2 models of 2, the most promising first: {', '.join(names)}."
    assert covered in said.getvalue() and len(names) == 2
    assert said.getvalue().index(covered) < said.getvalue().index(" on val, ")


def test_a_budget_that_timing_uses_up_is_refused_after_the_first_model(folder, monkeypatch):
    timed, do = [], planning.TimingWork.do
    monkeypatch.setattr(planning.TimingWork, "do", lambda self, job: timed.append(job.spec) or do(self, job))
    with pytest.raises(UsageError, match="was gone before all trainings were timed: the least that works is about"):
        crossgraft.select_model("many", models="zoo.yaml", budget="0.01s", **FAST)
    assert len(timed) == 1
    with pytest.raises(UsageError, match="is below one training: the least that works is"):  # known once all are timed
        crossgraft.select_model("many", models="zoo.yaml:wide", budget="0.01s", **FAST)


def test_one_model_is_handed_over_that_predicts(selected, folder):
    record = selected.record
    assert record.selected in ("narrow", "wide") and record.candidate(record.selected).state == "selected"
    assert record.booked_seconds <= record.plan.budget_seconds + 1e-6 and record.ending in ("all trained", "limit of val")
    assert 0 <= record.expected_regret <= 1 - record.candidate(record.selected).val
    assert record.metric(record.primary_metric).num_images == 32
    assert record.looks is not None and record.looks.number == 1
    by_run = crossgraft.predict(folder / "run", "many", allow_code="tiny_models.py")
    assert by_run.to_frame().equals(selected.predict("many").to_frame())
    tuned = crossgraft.predict(folder / "run" / record.training, "many", allow_code="tiny_models.py")
    assert tuned.to_frame().equals(by_run.to_frame())
    page = (folder / "run" / "report.html").read_text()
    assert f"{record.training}/report.html" in page and "What was trained" in page
    assert sorted(path.name for path in (folder / "run").iterdir() if path.is_dir()) == ["model", "trainings"]
    assert str(folder) not in (folder / "run" / "report.json").read_text()


def test_it_is_the_model_that_tune_would_have_made(selected, folder):
    options = {name: value for name, value in FAST.items() if name != "allow_code"}
    name = selected.record.selected
    tuned = crossgraft.fine_tune(
        "many", model=f"zoo.yaml:{name}", out=folder / "tuned", ledger=False, allow_code="tiny_models.py", **options
    )
    first, other = ((folder / run / "model" / "weights.safetensors").read_bytes() for run in ("run", "tuned"))
    assert first == other
    assert tuned.record.metric("auc").value == selected.record.metric("auc").value


def test_the_same_call_reads_back_and_another_budget_is_another_run(selected, folder):
    again = crossgraft.select_model("many", models="zoo.yaml", budget="100%", out=folder / "run", **FAST)
    assert again.record.candidates == selected.record.candidates and again.record.looks.number == 1
    with pytest.raises(UsageError, match="another configuration"):
        crossgraft.select_model("many", models="zoo.yaml", budget="90%", out=folder / "run", **FAST)


def test_models_are_compared_under_an_objective_over_domains(folder):
    names = sorted(path.relative_to(folder).as_posix() for path in (folder / "many").rglob("*.png"))
    rows = "".join(f"{name},{name.split('/')[1]},{'AB'[place % 2]}\n" for place, name in enumerate(names))
    (folder / "hospitals.csv").write_text(f"path,label,hospital\n{rows}")
    how = {**FAST, "models": "zoo.yaml", "budget": "100%", "objective": "group_dro"}
    with pytest.raises(DataError, match=r"--domains COLUMN \(of tune and select\), or leave --objective group_dro out"):
        crossgraft.select_model("hospitals.csv", **how)
    record = crossgraft.select_model("hospitals.csv", domains="hospital", plan=True, **how).plan
    assert [each.reason for each in record.models] == [None, None]


def test_an_audit_takes_the_selection_as_it_is_and_asks_its_test_images(selected, folder):
    how = {"data": "many", "confounders": ["gamma:2"], "ledger": False, "allow_code": "tiny_models.py"}
    how |= {"workers": 1, "device": "cpu"}
    found = [crossgraft.audit_model(model, **how).record for model in (selected, folder / "run")]
    assert [each.num_test for each in found] == [32, 32]
    assert "Measured on the test part of the run." in found[0].notes
    assert found[0].entries[0].metrics == found[1].entries[0].metrics


def test_three_equal_networks_cost_the_same_and_the_same_one_is_handed_over_cold(folder, monkeypatch):
    """The noise of measured costs decides nothing: ties go to fewer parameters, then to the name."""
    network = '- {{name: {0}, source: "tiny_models:tiny", weights: narrow.safetensors, family: tiny}}'
    (folder / "equal.yaml").write_text("\n".join(network.format(name) for name in ("c", "a", "b")))
    genuine, factors = planning.TimingWork.do, iter((1.2, 1.0, 1.1, 1.0, 1.15, 1.2))

    def noisy(work, job):
        found = genuine(work, job)
        return found.model_copy(update={"seconds": 100.0 * next(factors), "loading_seconds": 0.0})

    monkeypatch.setattr(planning.TimingWork, "do", noisy)
    found = [crossgraft.select_model("many", models="equal.yaml", budget="70%", ledger=False, **FAST).record for _ in range(2)]
    for record in found:
        assert record.plan.rounds == [["a"], ["b"]]
        assert len({model.seconds for model in record.plan.models}) == 1 and record.selected == "a"
    assert found[0].metrics == found[1].metrics


def test_where_all_are_at_the_ceiling_the_search_ends_and_the_smallest_is_handed_over(folder):
    rng = np.random.default_rng(0)
    for name, level in {"dark": 40, "light": 200}.items():
        (folder / "easy" / name).mkdir(parents=True, exist_ok=True)
        for number in range(100):
            pixels = rng.integers(level, level + 16, size=(16, 16, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(folder / "easy" / name / f"{number}.png")
    found = crossgraft.select_model(
        "easy", models="zoo.yaml", budget="100%", ledger=False, select_by="auc", **{**FAST, "epochs": 20}
    )
    record = found.record
    assert record.ending == "limit of val" and record.selected == "narrow", found.summary()
    assert record.expected_regret in (None, 0.0) and record.next_models == []
    said = found.as_text()
    assert "at its limit, where nothing can be better" in said and "may be better" not in said
    assert "does not tell" not in said and "Another hour" not in said


def test_a_selection_of_an_earlier_version_is_refused_with_the_reason(selected, folder):
    old = folder / "old"
    shutil.copytree(folder / "run", old)
    plan = json.loads((old / "plan.json").read_text())
    plan["models"][0]["costs"] = []
    (old / "plan.json").write_text(json.dumps(plan))
    report = json.loads((old / "report.json").read_text())
    (old / "report.json").write_text(json.dumps({**report, "schema_version": 1}))
    with pytest.raises(DataError, match="earlier version of crossgraft, which decided by another rule"):
        crossgraft.write_report(old)
    with pytest.raises(RunDirectoryError, match="begun by a version that decided by another rule"):
        crossgraft.select_model("many", models="zoo.yaml", budget="100%", out=old, **FAST)
    assert (old / "model" / "model.json").is_file()


def test_the_plan_shows_the_order_and_writes_nothing(folder):
    planned = crossgraft.select_model("many", models="zoo.yaml", budget="2h", plan=True, **FAST)
    text = planned.summary()
    with pytest.raises(UsageError, match="only the plan was made"):
        crossgraft.audit_model(planned, data="many")
    assert "Trained within the budget, in this order: narrow and wide." in text
    plan = planned.plan
    assert 0 < plan.timing_seconds < plan.budget_seconds - plan.training_seconds <= plan.seconds_beside
    assert "; the budget covers that, too, and leaves " in text
    of_share = crossgraft.select_model("many", models="zoo.yaml", budget="100%", plan=True, **FAST)
    assert of_share.plan.training_seconds is None and " beside it." in of_share.summary()
    assert all(model.seconds > 0.5 for model in planned.plan.models)
    assert planned.plan.rounds and json.loads(planned.to_json())["kind"] == "selection-plan"
    with pytest.raises(UsageError, match="only the plan was made"):
        _ = planned.model


def test_a_training_that_diverges_is_dropped_with_its_reason(folder):
    found = crossgraft.select_model("many", models="three.yaml", budget="100%", ledger=False, **FAST)
    lost = found.record.candidate("broken")
    assert lost.state == "failed" and lost.reason and found.record.selected != "broken"
    assert found.exit_code == 6


def test_val_that_tells_nothing_apart_leaves_it_to_the_order(folder):
    found = crossgraft.select_model("images", models="zoo.yaml", budget="100%", ledger=False, **FAST)
    assert "tell no two models apart" in found.record.plan.val_too_small
    assert found.record.ending == "val tells nothing" and len(found.record.trained) == 1
    assert found.record.selected == "narrow"  # nothing is known of either, and it is the smaller one


def test_one_model_is_fine_tuned(folder):
    found = crossgraft.select_model("many", models="zoo.yaml:wide", budget="1h", ledger=False, **FAST)
    assert found.record.selected == "wide" and found.record.expected_regret is None
    assert "only model" in found.summary()


def test_a_name_that_tables_disagree_on_is_refused_and_one_table_speaks_for_what_it_means(folder):
    """ITM leaves open which weights its ``ResNet-18`` has, others do not; the identity in one table is not ambiguous."""

    def planned(*names):
        network = '- {{source: "tiny_models:tiny", family: tiny, name: {0}, weights: {0}.safetensors, '
        network += 'kwargs: {{width: {1}}}, known_as: "{2}"}}'
        text = "\n".join(network.format(*each) for each in zip(("narrow", "wide"), (8, 12), names, strict=True))
        (folder / "names.yaml").write_text(text)
        plan = crossgraft.select_model("many", models="names.yaml", plan=True, **FAST).plan
        return [model.known_from for model in plan.models]

    with pytest.raises(DataError, match=r"ResNet-18 is ambiguous: .*medmnistplus.* and .*itm"):
        planned("ResNet-18", "resnet/imagenet")
    of_itm, of_thesis = planned("ResNet-18/as published", "resnet/imagenet")
    assert of_itm == ["ITM"] and "ITM" not in of_thesis and "thesis" in of_thesis


def test_in_a_study_no_order_depends_on_what_was_tuned_before(folder):
    """Jobs of one study add to the known results while others run."""
    names, protocol = ("narrow", "wide"), {"source": "mine", "protocol": "full", "metric": "auc", "origin": "tune"}
    network = '- {{name: {0}, source: "tiny_models:tiny", weights: {0}.safetensors, kwargs: {{width: {1}}}, known_as: {0}/mine}}'
    (folder / "mine.yaml").write_text("\n".join(map(network.format, names, (8, 12))))
    add_known_results(KnownResult(model=name, weights="w", target="other", value=0.9, **protocol) for name in names)

    def known_from():
        plan = crossgraft.select_model("many", models="mine.yaml", plan=True, **FAST).plan
        return [model.known_from for model in plan.models]

    assert known_from() == [["tune"], ["tune"]]
    with unattended():
        assert known_from() == [[], []]


def test_a_study_of_selections_times_its_trainings_although_nobody_waits(folder):
    fixed = {"data": "many", "models": "zoo.yaml", "budget": "100%", **FAST}
    del fixed["workers"], fixed["allow_code"]
    study = crossgraft.run_study(
        {"command": "select", "fixed": fixed, "seeds": 2}, out=folder / "study", executor=Here(), allow_code="tiny_models.py"
    )
    assert (study.record.num_done, study.record.num_failed) == (2, 0)


def test_missing_weights_are_named_before_anything_is_trained(folder):
    zoo = folder / "missing.yaml"
    zoo.write_text(ZOO.replace("wide.safetensors", "lost.safetensors"))
    with pytest.raises(MissingWeightsError, match="lost"):
        crossgraft.select_model("many", models="missing.yaml", out=folder / "missing", **FAST)
    assert not (folder / "missing" / "trainings").exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"budget": "0.001s"}, "the least that works is"),
        ({"budget": "soon"}, "--budget soon"),
        ({"grid": "learning_rate=1e-3,1e-4"}, "--grid does not go with select"),
        ({"folds": 3}, "--folds does not go with select"),
        ({"val_fraction": 0.0}, "needs val images"),
    ],
)
def test_what_cannot_work_is_refused(folder, options, said):
    with pytest.raises(UsageError, match=said):
        crossgraft.select_model("many", models="zoo.yaml", **{**FAST, **options})


def test_overwrite_starts_anew(selected, folder):
    shutil.copytree(folder / "run", folder / "copy")
    again = crossgraft.select_model("many", models="zoo.yaml", budget="95%", overwrite=True, out=folder / "copy", **FAST)
    assert again.record.plan.budget == "95%" and (folder / "copy" / "model" / "model.json").is_file()
