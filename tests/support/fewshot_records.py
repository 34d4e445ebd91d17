"""What a run of few-shot episodes leaves."""

from crossgraft.fewshot.record import FewshotRecord, HeadRow, SizeRow
from crossgraft.records.base import Reference


def head(name, accuracy, difference=None, **changed):
    facts = {
        "head": name,
        "title": name.upper(),
        "accuracy": accuracy,
        "half_width": 0.01,
        "difference": difference,
        "difference_half_width": None if difference is None else 0.004,
        "rank": 1.5,
        "plain_rank": 1,
        "seconds": 0.01,
    }
    return HeadRow(**(facts | changed))


def fewshot_record(dataset, model, **changed):
    """CoPA above logistic regression, and NCC below it; ``dataset`` and ``model`` are those of another record."""
    facts = {
        "dataset": dataset,
        "model": model,
        "heads": [head("copa", 0.81, 0.02), head("logistic", 0.79), head("ncc", 0.76, -0.03, warnings={"said": 3})],
        "baseline": "logistic",
        "sampler": "meta_dataset",
        "sampler_title": "Meta-Dataset",
        "num_episodes": 600,
        "sizes": [SizeRow(name="Ways", least=5, mean=7.25, most=10)],
        "groups_apart": True,
        "checks": [],
        "references": [Reference(key="CoPA", text="Tian.")],
    }
    return FewshotRecord(**(facts | changed))
