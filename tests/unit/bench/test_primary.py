"""Each result says which of its numbers stands for it, and a study compares that one where nobody names another."""

import json
from types import SimpleNamespace

import pandas as pd
import pytest

from crossgraft import run_study
from crossgraft.audit.record import AuditRecord
from crossgraft.audit.verb import Audit
from crossgraft.bench.done import read_done
from crossgraft.bench.job import is_named_by, numbers_of, with_primary
from crossgraft.bench.study import read_study
from crossgraft.bench.summary import summarise
from crossgraft.compare.record import ModelComparisonRecord
from crossgraft.compare.verb import ModelComparison
from crossgraft.distil.record import DistillationRecord
from crossgraft.distil.verb import Distilled
from crossgraft.fewshot.record import FewshotRecord
from crossgraft.fewshot.result import FewshotResult
from crossgraft.interpolate.interpolation import Interpolated
from crossgraft.metrics.record import MetricRecord
from crossgraft.models.record import ModelRecord
from crossgraft.rank import Ranking
from crossgraft.rank.record import AgreementRecord, RankingByScore, RankingRecord, RankRow, ScoreCell
from crossgraft.select.result import SelectionResult
from crossgraft.tune.result import FineTuningResult
from crossgraft.variants.comparison import FineTuningComparison
from support.audit_records import audit_entry, trained_entry
from support.comparison_records import comparison_record
from support.distillation_records import domain
from support.fewshot_records import head
from support.selection_records import selection_record
from support.toy_jobs import registered
from support.tuning_records import tuning_record


def of(kind, record):
    """A result around a record, without the model that a run hands over beside it."""
    result = object.__new__(kind)
    object.__setattr__(result, "found", record)
    return result


def ranking(agreement=()):
    cells = [
        ScoreCell(model=model, score=score, value=value)
        for model, values in (("a", (0.5, 7.0)), ("b", (0.9, 5.0)))
        for score, value in zip(("logme", "leep"), values, strict=True)
    ]
    orders = {"logme": ("b", "a"), "leep": ("a", "b")}
    rankings = [
        RankingByScore.model_construct(
            score=score,
            rows=[
                RankRow(model=model, role="candidate", rank=place + 1, not_separable_from=[])
                for place, model in enumerate(models)
            ],
        )
        for score, models in orders.items()
    ]
    models = [ModelRecord.model_construct(name=name, role="candidate") for name in "ab"]
    return Ranking(
        RankingRecord.model_construct(
            primary_score="logme", cells=cells, rankings=rankings, models=models, agreement=list(agreement)
        )
    )


def compared():
    features = [SimpleNamespace(measure=measure, value=value) for measure, value in (("cka", 0.9), ("cca", 0.3))]
    for each in features:
        each.model_dump = lambda exclude, own=each: {"measure": own.measure, "value": own.value, "untrained": 0.1}
    pair = SimpleNamespace(first="a", second="b", features=features)
    return ModelComparison(ModelComparisonRecord.model_construct(pairs=[pair]))


def interpolated():
    def metric(value, split, name="auc"):
        return MetricRecord(metric=name, title="", value=value, split=split, num_images=3)

    points = [
        SimpleNamespace(
            alpha=alpha,
            metrics=[metric(0.1, "test", "accuracy"), metric(alpha / 2 + 0.3, "test"), metric(0.2, "val")],
            similarity={},
            parameter_distance=1.0,
        )
        for alpha in (0.0, 0.5, 1.0)
    ]
    for point in points:
        point.metric = lambda name, own=point: next(row for row in own.metrics if row.metric == name)
    return Interpolated(SimpleNamespace(points=points, picked_alpha=0.5, primary_metric="auc"))


AGREEMENT = AgreementRecord(score="logme", family=None, num_models=2, weighted_kendall=0.7, p_value=None, low=0.1, high=0.9)
RESULTS = {
    "tune": (lambda: of(FineTuningResult, tuning_record()), "balanced_accuracy", None),
    "select": (lambda: of(SelectionResult, selection_record()), None, None),
    "variants": (lambda: of(FineTuningComparison, comparison_record()), "metric", None),
    "distil, several": (
        lambda: Distilled(DistillationRecord.model_construct(domains=[domain("skin", 0.8, 0.8), domain("fundus", 0.9, 0.7)])),
        None,
        0.75,
    ),
    "distil, one": (lambda: Distilled(DistillationRecord.model_construct(domains=[domain("skin", 0.81, 0.8)])), None, 0.8),
    "interpolate": (interpolated, "auc", 0.55),
    "rank": (ranking, "logme", 0.9),
    "rank, with results": (lambda: ranking([AGREEMENT]), "weighted_kendall", 0.7),
    "audit": (lambda: Audit(AuditRecord.model_construct(entries=[audit_entry(index=0.4)])), "shortcut_reliance_index", 0.4),
    "audit, trained": (lambda: Audit(AuditRecord.model_construct(entries=[trained_entry(drop=0.25)])), "auc_drop", 0.25),
    "fewshot": (
        lambda: FewshotResult(FewshotRecord.model_construct(heads=[head("ncc", 0.6), head("copa", 0.5)])),
        "accuracy",
        0.6,
    ),
    "compare": (compared, "value", 0.9),
}


@pytest.mark.parametrize("name", RESULTS)
def test_the_number_that_stands_for_a_result_is_one_row_of_its_numbers(name):
    make, metric, value = RESULTS[name]
    result = make()
    rows, words = with_primary(numbers_of(result.to_frame()), result.primary)
    chosen = next(row for row in rows if is_named_by(words, row))
    assert metric in (None, words["metric"]) and chosen["value"] == pytest.approx(result.primary["value"])
    assert value is None or chosen["value"] == pytest.approx(value)
    assert json.loads(json.dumps(rows)) == rows


def test_a_frame_whose_ends_have_blanks_has_intervals():
    frame = pd.DataFrame({"model": ["a"], "drop": [0.5], "drop low": [0.4], "drop high": [0.6]})
    assert numbers_of(frame) == [{"metric": "drop", "value": 0.5, "low": 0.4, "high": 0.6, "model": "a"}]


@pytest.mark.parametrize("written", [{}, {"metric": "other"}, {"metric": {"metric": "auc", "split": "val"}}])
def test_a_study_compares_it_unless_another_is_named(tmp_path, monkeypatch, written):
    registered(monkeypatch)
    study = read_study({"command": "toil", "grid": {"data": ["a", "bb"]}, **written})
    for number, job in enumerate(study.jobs):
        own = tmp_path / "jobs" / job.key
        own.mkdir(parents=True)
        numbers = [{"metric": "other", "value": 9.0}, {"metric": "auc", "value": 0.1, "split": "val"}]
        numbers += [{"metric": "auc", "value": 0.5 + number / 10, "split": "test"}]
        primary = {"metric": "auc", "split": "test"}
        numbers = [{"low": None, "high": None, **row} for row in numbers]
        done = {"run": "1", "seconds": 1.0, "version": "1", "primary": primary, "numbers": numbers}
        (own / "done.json").write_text(json.dumps(done))
    record = summarise(study, tmp_path, read_done(tmp_path, study))
    asked = written.get("metric", "auc")
    values = {"auc": [0.5, 0.6], "other": [9.0, 9.0]}.get(str(asked), [0.1, 0.1])
    assert [cell.value for cell in record.cells] == values
    assert record.metric == ("other" if asked == "other" else "auc")
    assert not [check for check in record.checks if check.title == "Several numbers of one name"]


def test_a_job_notes_which_number_stands_for_it(tmp_path, monkeypatch):
    toy = registered(monkeypatch)
    import crossgraft_toy_jobs.verb as verb

    monkeypatch.setattr(verb.Toil, "primary", property(lambda self: {"metric": "begun_at", "value": self.record.begun_at}))
    assert toy is not None
    record = run_study({"command": "toil", "fixed": {"data": "a"}}, out=tmp_path / "out", executor=Here()).record
    assert record.metric == "begun_at" and record.cells[0].value == 0.0


class Here:
    def submit(self, fn, /, *args, **kwargs):
        from concurrent.futures import Future

        future = Future()
        future.set_result(fn(*args, **kwargs))
        return future
