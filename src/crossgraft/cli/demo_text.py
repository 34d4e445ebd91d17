"""What the demo prints: five short chapters, and what to type next."""

from __future__ import annotations

from pathlib import Path

from crossgraft.cli.comparison_text import variants_text
from crossgraft.cli.ranking_text import MAX_MODEL_NAME, ranking_text, shorten
from crossgraft.cli.text_table import place, text_table, wrap
from crossgraft.records import BestModelRecord, DemoRecord, FineTuningComparisonRecord, MetricRecord
from crossgraft.words.comparison_words import answer_in_words
from crossgraft.words.formatting import NumberFormat, counted, joined

NEXT = "On your own images: crossgraft rank my_images/ --group-column patient --models resnet18,mobilenetv2_100"
_NUMBERS = NumberFormat(decimals=3)


def demo_text(record: DemoRecord, out: Path, report: Path | None) -> str:
    """Split comparison, ranking, the check by fine-tuning, the best model tuned and compared, limits, the path of the report."""
    best = record.best_model
    chapters = [
        ("1. How the images are split changes what you measure", _split(record)),
        ("2. Rank the toy models without fine-tuning them", ranking_text(record.ranking, None)),
        ("3. Check: fine-tune every one of them and test on unseen writers", _fine_tuned(record)),
        *(
            []
            if best is None
            else [("4. Fine-tune the best-ranked one with crossgraft tune, and predict", _tuned(best))]
        ),
        *(
            []
            if best is None or best.comparison is None
            else [("5. Three ways to fine-tune it: what they give, and what they keep", _compared(best.comparison))]
        ),
        ("What this demo cannot show", "\n".join(wrap(f"- {limit}", indent="  ") for limit in record.limits)),
    ]
    body = "\n\n".join(f"{title}\n\n{text}" for title, text in chapters)
    end = NEXT if report is None else NEXT + "\n" + place("Report", report)
    return "\n\n".join([body, *([] if best is None else [_again(best, out)]), end])


def _split(record: DemoRecord) -> str:
    comparison = record.split_comparison
    rows = [
        [
            "shuffled images",
            _accuracy(comparison.shuffled_accuracy, comparison.shuffled_low, comparison.shuffled_high),
        ],
        [
            "whole writers",
            _accuracy(comparison.grouped_accuracy, comparison.grouped_low, comparison.grouped_high),
        ],
    ]
    table = text_table(["folds made of", f"accuracy of {comparison.probe}"], rows)
    return f"{table}\n\n{wrap(comparison.explanation)}"


def _fine_tuned(record: DemoRecord) -> str:
    ranks = {row.model: row.rank for row in record.ranking.ranking(record.ranking.primary_score).rows}
    rows = [
        [
            shorten(row.model, MAX_MODEL_NAME),
            str(ranks.get(row.model) or "control"),
            _accuracy(row.linear_accuracy, row.linear_low, row.linear_high),
            _accuracy(row.full_accuracy, row.full_low, row.full_high),
        ]
        for row in sorted(record.fine_tuned, key=lambda row: -row.full_accuracy)
    ]
    return text_table(["model", "rank", "linear probe", "full fine-tuning"], rows, right=["rank"])


def _tuned(best: BestModelRecord) -> str:
    images = joined([f"{row.num_images} {row.name}" for row in best.splits])
    heading = f"{best.model} · {images} images, no writer in two parts · {best.settings}, {best.num_epochs} epochs"
    first = best.metrics[0]
    header = [f"on {counted(first.num_images, 'image')} of {counted(first.num_groups or 0, 'unseen writer')}", "value"]
    rows = [[_title(row), _NUMBERS(row.value), _NUMBERS.interval(row.low, row.high)] for row in best.metrics]
    metrics = text_table([*header, "95 % interval"], rows, right=["value", "95 % interval"])
    digits = [[row.target, row.decision, _NUMBERS(row.probability)] for row in best.predictions]
    predictions = text_table(["unseen digit", "predicted", "probability"], digits, right=["probability"])
    return f"{wrap(heading)}\n\n{metrics}\n\n{predictions}"


def _compared(comparison: FineTuningComparisonRecord) -> str:
    return f"{variants_text(comparison)}\n\n{wrap(answer_in_words(comparison))}"


def _title(row: MetricRecord) -> str:
    return row.title if row.higher_is_better else f"{row.title}, less is better"


def _again(best: BestModelRecord, run_directory: Path) -> str:
    """Not wrapped: each line is to be copied whole."""
    return "\n".join(["The same by hand:", *(f"  {command}" for command in best.commands(run_directory))])


def _accuracy(value: float, low: float, high: float) -> str:
    return f"{value:.3f} [{low:.3f}, {high:.3f}]"
