"""The whole way on a tiny network: same rows for all, rows with reasons, resume, files."""

import inspect
import json

import pandas as pd
import pytest

import crossgraft
from crossgraft import compare_fine_tunings, fine_tune
from crossgraft.errors import DataError, UnknownNameError, UsageError
from crossgraft.records.base import RunRecord
from crossgraft.running.verb import PAGE, Run
from crossgraft.tune.record import TuningRecord
from crossgraft.variants import study as module
from crossgraft.variants.record import FineTuningComparisonRecord
from crossgraft.words.formatting import duration

pytestmark = pytest.mark.usefixtures("tiny_models")
FAST = {"model": "tiny_models:tiny", "epochs": 2, "workers": 1, "device": "cpu", "store": False, "no_images": True}


def without_time(record):
    return json.loads(record.model_dump_json(exclude={"seconds": True}), parse_float=lambda text: round(float(text), 12)) | {
        "trainings": [row.model_dump(exclude={"seconds"}) for row in record.trainings],
        "variants": [row.model_dump(exclude={"seconds", "time_ratio"}) for row in record.variants],
        "interpolation": [row.model_dump(exclude={"seconds"}) for row in record.interpolation],
    }


def test_every_number_is_in_every_file_and_each_training_is_that_of_fine_tune(squares, tmp_path):
    shown = {**FAST, "no_images": False}
    found = compare_fine_tunings(squares, compare="full,linear,l2_sp:10,1", **shown, out=tmp_path / "run")
    record = FineTuningComparisonRecord.model_validate_json((tmp_path / "run" / "report.json").read_bytes())
    assert record == found.record
    assert {path.name for path in (tmp_path / "run").iterdir()} >= {
        "run.json", "comparison.csv", "trainings.csv", "split.json", "plan.json", "trainings",
    }  # fmt: skip
    frame = pd.read_csv(tmp_path / "run" / "comparison.csv")
    assert frame.variant.tolist() == [row.variant for row in record.variants]
    assert frame.metric.tolist() == pytest.approx([row.metric.value for row in record.variants])
    assert frame.metric.is_monotonic_decreasing
    alone = fine_tune(squares, regularizer="l2_sp:10", **FAST).record
    row = next(row for row in record.trainings if row.variant == "l2_sp:10")
    assert row.metrics == [each for each in alone.metrics if each.class_name is None and each.split == "test"]
    assert row.similarity == alone.similarity
    own = TuningRecord.model_validate_json((tmp_path / "run" / row.folder / "report.json").read_bytes())
    assert (tmp_path / "run" / row.folder / "model" / "model.json").is_file()
    assert [split.num_images for split in own.splits] == [split.num_images for split in alone.splits]
    images = json.loads((tmp_path / "run" / "thumbnails.json").read_text())
    answers = {each["row"]: each["answers"] for each in images if "answers" in each}
    for place, variant in enumerate(row.variant for row in record.variants):
        folder = next(row.folder for row in record.trainings if row.variant == variant)
        said = pd.read_csv(tmp_path / "run" / folder / "predictions.csv", dtype={"decision": str}).set_index("row").decision
        of_it = {row: each[place]["decision"] for row, each in answers.items()}
        assert {each[place]["model"] for each in answers.values()} == {variant} and of_it == said.to_dict()


def test_similarity_time_differences_and_curve_are_about_full_and_linear(squares):
    record = compare_fine_tunings(squares, compare="full,linear,scratch", **FAST, learning_rate=0.01).record
    full, linear = record.full, record.variant("linear")
    assert linear.cka.value == pytest.approx(1)
    assert full.cka.value < 1
    assert full.time_ratio == 1
    assert full.difference is None
    assert linear.difference.value == pytest.approx(linear.metric.value - full.metric.value)
    points = record.interpolation[0].points
    ends = [points[0].metric(record.primary_metric).value, points[-1].metric(record.primary_metric).value]
    assert ends == pytest.approx([linear.metric.value, full.metric.value])
    assert linear.above_curve is None
    assert record.variant("scratch").above_curve is not None
    assert "linear probe" in record.interpolation[0].start


def test_without_full_there_is_no_curve_and_a_reason(squares):
    record = compare_fine_tunings(squares, compare="linear,partial:1", **FAST).record
    assert record.interpolation == []
    assert "full is not among" in record.interpolation_reason
    assert all(row.difference is None and row.time_ratio is None for row in record.variants)


def test_all_seeds_see_one_split_and_three_give_intervals_of_seeds(squares, tmp_path):
    found = compare_fine_tunings(squares, compare="full,linear", seeds=3, seed=5, **FAST, out=tmp_path / "run")
    record = found.record
    assert record.seeds == [5, 6, 7]
    splits = {path.read_text() for path in (tmp_path / "run").rglob("split.json")}
    assert len(splits) == 1
    assert {row.metric.interval_of for row in record.variants} == {"seeds"}
    assert len(record.interpolation) == 3
    of_linear = [row.metric(record.primary_metric).value for row in record.trainings if row.variant == "linear"]
    assert len(set(of_linear)) > 1, "seeds change nothing"
    assert record.variant("linear").metric.value == pytest.approx(sum(of_linear) / 3)
    assert record.variant("full").cka_debiased.low is not None
    kept = record.variant("linear").cka_debiased  # 1 in each of them, to the last digit on some processors only
    assert kept.value == pytest.approx(1)
    assert "all values are equal" in kept.no_interval_reason if kept.low is None else kept.low == pytest.approx(1, abs=1e-4)


def test_what_fails_becomes_a_row_with_a_reason_and_names_are_escaped(squares, tmp_path, page):
    variants = ["full", {"name": "far <too> big", "optimizer": "sgd", "learning_rate": 1e6}]
    found = compare_fine_tunings(squares, compare=variants, **FAST, out=tmp_path / "run")
    failed = found.record.variant("far <too> big")
    assert (failed.num_done, failed.num_failed, failed.metric.value) == (0, 1, None)
    assert found.record.variants[-1] == failed
    reason = next(row.reason for row in found.record.trainings if row.variant == failed.variant)
    assert reason in found.record.warnings[0]
    for html in (found.report.read_text(encoding="utf-8"), found._repr_html_()):
        assert "far <too>" not in html
        assert "far &lt;too&gt; big" in html
    assert FineTuningComparisonRecord.model_validate_json(found.to_json()) == found.record
    assert repr(found) == f"FineTuningComparison({found.summary().splitlines()[0]!r})"
    with pytest.raises(DataError, match="None of 2 trainings"):
        compare_fine_tunings(squares, compare=[variants[1], {**variants[1], "name": "b", "momentum": 0.5}], **FAST)


def test_contradictions_of_the_last_variant_come_before_the_first_training(squares, monkeypatch):
    monkeypatch.setattr(module, "train_all", lambda *_: pytest.fail("something was trained"))
    with pytest.raises(UsageError, match=r"variant linear\+l2_sp"):
        compare_fine_tunings(squares, compare="full,linear+l2_sp", **FAST)
    with pytest.raises(UnknownNameError, match="learning_rate"):
        compare_fine_tunings(squares, compare="full,linear", **FAST, learning_rat=0.1)
    for name, value in {"folds": 3, "fold": 1, "method": "linear", "regularizer": "l2_sp"}.items():
        with pytest.raises(UsageError, match=f"--{name} does not go with --compare"):
            compare_fine_tunings(squares, compare="full,linear", **FAST, **{name: value})


@pytest.mark.usefixtures("normed_models")
@pytest.mark.parametrize(
    ("compare", "option", "with_it", "said"),
    [
        ("full,linear,repsim", {"keep": 0.9}, {"repsim"}, "--keep 0.9 is for repsim. Trained without it: full and linear"),
        ("full,scratch", {"batch_norm": "frozen"}, {"full"}, "--batch-norm frozen is for full. Trained without it: scratch"),
    ],
    ids=["keep", "batch norm"],
)  # fmt: skip
def test_an_option_is_for_the_variants_that_it_means_something_to(squares, compare, option, with_it, said):
    found = compare_fine_tunings(squares, compare=compare, **{**FAST, "model": "normed_models:normed"}, **option, plan=True)
    (name,) = option
    settings = {each.variant: each.plan.settings for each in found.plan.variants}
    if name == "keep":
        assert {variant for variant, chosen in settings.items() if "keep" in chosen} == with_it
    else:
        assert {variant: chosen["batch norm"] for variant, chosen in settings.items()} == {"full": "frozen", "scratch": "train"}
    assert found.summary().count(said) == 1


def test_an_option_that_means_nothing_to_any_variant_is_refused_with_what_to_add(squares):
    with pytest.raises(UsageError, match=r"full and linear, each of which has no reg.*example --compare full,linear,repsim"):
        compare_fine_tunings(squares, compare="full,linear", **FAST, keep=0.9, plan=True)
    own = [{"name": "kept", "regularizer": "repsim", "keep": 0.8}, "full"]
    with pytest.raises(UsageError, match="that it is given for: full, which has no regulariser"):
        compare_fine_tunings(squares, compare=own, **FAST, keep=0.9, plan=True)
    plan = compare_fine_tunings(squares, compare=own, **FAST, plan=True).plan
    assert [each.plan.seeks_factor for each in plan.variants] == [True, False]


def test_a_plan_trains_and_writes_nothing(squares, tmp_path, monkeypatch):
    monkeypatch.setattr(Run, "seconds_beside", 1000.0)  # what came before the plan takes longer on a busy machine
    found = compare_fine_tunings(squares, compare="full,linear", seeds=2, **FAST, plan=True, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()
    assert found.plan.num_trainings == 4
    times = [each.plan.expected_seconds for each in found.plan.variants]
    assert found.plan.expected_seconds == pytest.approx(2 * sum(times))
    assert found.plan.seconds_beside > 1000 + 4 * PAGE.seconds  # pages alone; looks, metrics and curves come beside them
    whole = duration(found.plan.expected_seconds + found.plan.seconds_beside)
    assert (
        f"on this machine: about {whole} at most; training takes {duration(found.plan.expected_seconds)} of it."
        in found.summary()
    )
    kept = found.plan.model_copy(update={"seconds_beside": None})
    assert "seconds_beside" not in kept.model_dump()  # a run keeps its plan as it did before
    assert "4 trainings: 2 variants × 2 seeds." in found.summary()
    assert "only the head is trained" in found.summary()
    assert found.summary().count("optimizer") == 1  # what all share stands once
    assert found.summary().count("learning rate") in (1, 2)
    assert found.summary().count("  method  ") == 2
    with pytest.raises(UsageError, match="Only the plan"):
        found.record  # noqa: B018 - raises


def test_a_stopped_comparison_goes_on_with_what_is_missing(squares, tmp_path, monkeypatch):
    """To the numbers of one that was not stopped: the same call gives the same."""
    whole = compare_fine_tunings(squares, compare="full,linear,l2_sp", **FAST, out=tmp_path / "whole").record
    trained = []
    train = module.train_and_evaluate

    def stops_at_the_third(prepared, plan, **others):
        options = prepared.request.options
        trained.append("l2_sp" if options.regularizer else options.method)
        if len(trained) == 3:
            raise KeyboardInterrupt
        return train(prepared, plan, **others)

    monkeypatch.setattr(module, "train_and_evaluate", stops_at_the_third)
    with pytest.raises(KeyboardInterrupt):
        compare_fine_tunings(squares, compare="full,linear,l2_sp", **FAST, out=tmp_path / "run")
    assert RunRecord.model_validate_json((tmp_path / "run" / "run.json").read_bytes()).state == "interrupted"
    record = compare_fine_tunings(squares, compare="full,linear,l2_sp", **FAST, out=tmp_path / "run").record
    assert trained == ["full", "linear", "l2_sp", "l2_sp"]
    assert without_time(record) == without_time(whole)


def test_a_grid_is_tried_in_every_variant(squares):
    record = compare_fine_tunings(squares, compare="full,linear", **FAST, grid="learning_rate=0.01,0.001").record
    assert all(set(row.picked) == {"learning_rate"} for row in record.trainings)


def test_the_command_line_of_a_run_gives_it_again(squares, tmp_path):
    (tmp_path / "a.yaml").write_text("- {name: small, batch_size: 4}\n")
    compare_fine_tunings(squares, compare=["full", tmp_path / "a.yaml"], seeds=2, **FAST, out=tmp_path / "run")
    run = RunRecord.model_validate_json((tmp_path / "run" / "run.json").read_bytes())
    assert run.command_line.startswith("crossgraft.compare_fine_tunings(dataset, model='tiny_models:tiny', compare=['full', '")
    assert "a.yaml'], seeds=2, epochs=2" in run.command_line
    assert run.config["compare"][1] == {"name": "small", "batch_size": 4}
    assert not any(str(tmp_path) in path.read_text(errors="ignore") for path in (tmp_path / "run").rglob("*.json"))


def test_the_arguments_of_fine_tune_are_shown_by_name():
    theirs, own = (inspect.signature(each).parameters for each in (fine_tune, compare_fine_tunings))
    assert set(theirs) <= set(own)
    assert set(own) - set(theirs) == {"compare", "layer_pca", "seeds"}
    assert crossgraft.compare_fine_tunings is compare_fine_tunings


@pytest.mark.usefixtures("normed_models")
def test_a_network_with_batch_norm_has_its_modes_and_the_adapted_similarity(squares):
    options = {**FAST, "model": "normed_models:normed", "epochs": 1}
    found = compare_fine_tunings(
        squares, compare=["full,linear", {"name": "hcs", "regularizer": "hcs", "batch_norm": "frozen"}], **options
    )
    modes = {row.variant: row.batch_norm for row in found.record.variants}
    assert modes == {"full": "train", "hcs": "frozen", "linear": "frozen"}
    full = next(row for row in found.record.trainings if row.variant == "full")
    assert found.record.full.cka_debiased_adapted.value == full.similarity["cka_debiased_adapted"]
    assert found.record.variant("linear").cka_debiased_adapted is None  # its features did not move
    frame, trainings = found.to_frame(), found.trainings()
    assert frame.set_index("variant").loc["full", "cka_debiased_adapted"] == full.similarity["cka_debiased_adapted"]
    assert frame.batch_norm.tolist() == [modes[name] for name in frame.variant]
    assert "cka_debiased_untouched" in trainings.columns


def test_a_network_without_batch_norm_has_no_columns_for_it(squares):
    found = compare_fine_tunings(squares, compare="full,linear", **{**FAST, "epochs": 1})
    assert not any("adapted" in name or "batch_norm" in name for name in (*found.to_frame(), *found.trainings()))
