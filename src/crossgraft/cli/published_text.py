"""An evaluated benchmark as it ends in the terminal: one table a scenario, best first, conclusion last."""

from __future__ import annotations

from pathlib import Path

from crossgraft.cli.text_table import place, text_table, wrap
from crossgraft.records import MeanRecord, PublishedRecord, ScenarioRecord
from crossgraft.report.sections.published import friedman_text, reproduction_text
from crossgraft.words.formatting import MISSING, NumberFormat

_TWO, _THREE = NumberFormat(decimals=2), NumberFormat(decimals=3)


def published_text(record: PublishedRecord, report: Path | None) -> str:
    """Tables, slips and conclusions; everything else is on the page."""
    parts = [wrap(f"{record.title} · {record.source}")]
    for scenario in record.scenarios:
        parts += [_scenario(scenario)]
    if record.slips:
        slips = [wrap(f"{s.where}: printed {s.printed}; recomputed {s.recomputed}.", indent="  ") for s in record.slips]
        parts.append("\n".join(["Printed numbers that do not follow from the paper's own data:", *slips]))
    parts += (
        ["\n".join(wrap(f"{a.question} {a.answer}", indent="  ") for a in record.answers)] if record.answers else []
    )
    end = "\n".join(wrap(scenario.conclusion) for scenario in record.scenarios)
    return "\n\n".join([*parts, end + ("\n" + place("Report", report) if report else "")])


def _scenario(scenario: ScenarioRecord) -> str:
    header = ["method", "weighted Kendall", "95 % interval", "minus prior", "regret"]
    methods = sorted(scenario.methods, key=lambda m: -(m.mean.value if m.mean.value is not None else -9.0))
    rows = [
        [
            method.title + (" (control)" if method.role == "control" else ""),
            _TWO(method.mean.value),
            _TWO.interval(method.mean.low, method.mean.high),
            _gain(method.gain),
            _THREE(method.regret.value),
        ]
        for method in methods
    ]
    lines = [wrap(scenario.title), text_table(header, rows, right=header[1:])]
    lines += [wrap(reproduction_text(scenario.reproduction))] if scenario.reproduction else []
    lines += [wrap(friedman_text(scenario.friedman).rpartition(" A bar")[0])] if scenario.friedman else []
    return "\n".join(lines)


def _gain(gain: MeanRecord | None) -> str:
    if gain is None or gain.value is None:
        return MISSING
    return f"{_TWO(gain.value)} {_TWO.interval(gain.low, gain.high)}"
