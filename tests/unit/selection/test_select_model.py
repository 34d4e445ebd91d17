"""``select_model`` from images and a zoo to a model that predicts."""

import json
import shutil
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from safetensors.torch import save_file

import crossgraft
from crossgraft.errors import DataError, MissingWeightsError, UsageError
from crossgraft.records import FidelityCost
from crossgraft.selection.costs import TimedModel, Timing, TimingWork
from crossgraft.selection.planning import _planned
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
    return crossgraft.select_model("many", models="zoo.yaml", budget="100%", out=folder / "run", **FAST)


def test_one_model_is_handed_over_that_predicts(selected, folder):
    record = selected.record
    assert record.selected in ("narrow", "wide") and record.candidate(record.selected).state == "selected"
    assert record.booked_seconds <= record.plan.budget_seconds + 1e-6 and record.expected_regret >= 0
    assert record.unit == "metric" and record.metric(record.primary_metric).num_images == 32
    assert record.looks is not None and record.looks.number == 1
    by_run = crossgraft.predict(folder / "run", "many", allow_code="tiny_models.py")
    assert by_run.to_frame().equals(selected.predict("many").to_frame())
    tuned = crossgraft.predict(folder / "run" / record.training, "many", allow_code="tiny_models.py")
    assert tuned.to_frame().equals(by_run.to_frame())
    page = (folder / "run" / "report.html").read_text()
    assert f"{record.training}/report.html" in page and "What was tried" in page
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
    assert again.record.rungs == selected.record.rungs and again.record.looks.number == 1
    with pytest.raises(UsageError, match="another configuration"):
        crossgraft.select_model("many", models="zoo.yaml", budget="90%", out=folder / "run", **FAST)


def test_an_audit_takes_the_selection_as_it_is_and_asks_its_test_images(selected, folder):
    how = {"data": "many", "confounders": ["gamma:2"], "ledger": False, "allow_code": "tiny_models.py"}
    how |= {"workers": 1, "device": "cpu"}
    found = [crossgraft.audit_model(model, **how).record for model in (selected, folder / "run")]
    assert [each.num_test for each in found] == [32, 32]
    assert "Measured on the test part of the run." in found[0].notes
    assert found[0].entries[0].metrics == found[1].entries[0].metrics


def test_the_time_to_load_is_the_shortest_that_was_measured_also_where_a_size_was_not_timed():
    """The first network that a process loads waits for libraries; a size that does not fit was loaded all the same."""
    whole = TimedModel(
        model="m", kind="full", num_parameters=9, size_pixels=32, loading_seconds=8.0,
        costs=[FidelityCost(kind="full", seconds=10.0), FidelityCost(kind="curve:epoch=1", seconds=2.0)],
    )  # fmt: skip
    refused = TimingWork._refused(Timing("m", "low:size=0.5", 0.5), 9, 16, 6.0, "out of  memory")
    belief = SimpleNamespace(models=("m",), spoke=(), mean=np.zeros(1), covariance=np.eye(1))
    study = SimpleNamespace(requests={"m": SimpleNamespace(spec=SimpleNamespace(source="net"))})
    planned = _planned(study, [whole, refused], "m", belief)
    assert planned.loading_seconds == 6.0 and refused.reason == "out of memory"
    assert {cost.kind: cost.seconds for cost in planned.costs} == {"full": 16.0, "curve:epoch=1": 8.0}


def test_the_plan_shows_rungs_and_writes_nothing(folder):
    planned = crossgraft.select_model("many", models="zoo.yaml", budget="2h", plan=True, **FAST)
    text = planned.summary()
    with pytest.raises(UsageError, match="only the plan was made"):
        crossgraft.audit_model(planned, data="many")
    assert "Rungs, if nothing surprises" in text and "no results of these weights are known" in text
    assert planned.plan.timing_seconds > 0 and " beside it." in text
    for model in planned.plan.models:
        assert model.loading_seconds >= 0.5 and min(cost.seconds for cost in model.costs) > model.loading_seconds
    assert planned.plan.rungs and json.loads(planned.to_json())["kind"] == "selection-plan"
    with pytest.raises(UsageError, match="only the plan was made"):
        _ = planned.model


def test_a_training_that_diverges_is_dropped_with_its_reason(folder):
    found = crossgraft.select_model("many", models="three.yaml", budget="100%", ledger=False, **FAST)
    lost = found.record.candidate("broken")
    assert lost.state == "failed" and lost.reason and found.record.selected != "broken"
    assert found.exit_code == 6


def test_val_that_tells_nothing_apart_leaves_it_to_prior_and_cost(folder):
    found = crossgraft.select_model("images", models="zoo.yaml", budget="100%", ledger=False, **FAST)
    assert "tell no two models apart" in found.record.plan.val_too_small
    assert found.record.preferred_by == "cost" and [rung.is_finish for rung in found.record.rungs] == [True]


def test_one_model_is_fine_tuned(folder):
    found = crossgraft.select_model("many", models="zoo.yaml:wide", budget="1h", ledger=False, **FAST)
    assert found.record.selected == "wide" and found.record.next_hour is None
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
    assert (
        of_itm == ["ITM, Table 3"] and "ITM, Table 3" not in of_thesis and any("thesis" in each for each in of_thesis)
    )


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
    again = crossgraft.select_model(
        "many", models="zoo.yaml", budget="95%", overwrite=True, out=folder / "copy", **FAST
    )
    assert again.record.plan.budget == "95%" and (folder / "copy" / "model" / "model.json").is_file()
