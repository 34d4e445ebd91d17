"""The page docs/results/sim.md, written of the rows that recipes/sim.py keeps; trains nothing."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from sim_costs import costs_table, gradients_table, spikes_told
from sim_figure import write_gradients, write_sweeps
from sim_pooled import machines_told, places_from_scratch, places_pretrained, pooled_table, pooled_verdicts
from sim_short import in_short
from sim_sweeps import beyond_chance, losses_table, sweep_points, sweeps_table
from sim_tables import (
    NOTHING,
    StudyTables,
    ahead,
    gaps,
    head,
    of_model,
    points,
    row_of,
    time_ratio,
    values,
)
from sim_text import PAGE
from sim_variants import BASELINE, DROPOUT_RATE, EPOCHS, LONGER, PLACEBO, SIM, core, pieces
from studies import difference_of, verdict
from study_rows import Table
from study_tables import mean_and_interval, set_table
from study_trainings import ON

COLUMNS = {"accuracy": "Accuracy", "balanced_accuracy": "Balanced accuracy", "auc": "AUC"}
TABLE_2 = {
    "resnet20": "ResNet-18: 0.29",
    "resnet32": "ResNet-50: 0.13",
    "resnet56": "ResNet-101: 0.25, ResNet-152: 0.13",
}
"""Gains of ρSIM over the baseline in the paper, of the networks nearest in order of depth; on ResNet-50 what follows."""
TABLE_2_JOINED = {"mixup": "0.23", "cutmix": "0.09", "label smoothing": "0.14"}


def write_page(path: Path, found: Mapping[str, StudyTables]) -> None:
    """The page and, in a folder beside it, its figures."""
    folder = path.with_suffix("")
    folder.mkdir(parents=True, exist_ok=True)
    scratch, swept = found["cifar10"], found["cifar10_sweeps"]
    write_gradients(folder / "gradients.svg", scratch.steps)
    write_sweeps(folder / "sweeps.svg", sweep_points(swept.table))
    depth = {"cifar10_depth": found["cifar10_depth"]}
    medical = {name: found[name] for name, piece in pieces().items() if piece.is_pretrained}
    text = PAGE.format(
        progress=_progress(found),
        short=in_short(found),
        dropout_rate=DROPOUT_RATE,
        longer=_longer(found),
        machines=_machines(found),
        pooled=pooled_table(found, places_from_scratch()),
        mixed=machines_told(found, places_from_scratch()),
        mixed3=machines_told(found, places_pretrained()),
        pooled_verdicts=pooled_verdicts(found, places_from_scratch()),
        core=_core(scratch),
        core_verdicts=_core_verdicts(scratch.table),
        table2=_table_2(found),
        table3=_table_3(medical),
        pooled3=pooled_table(found, places_pretrained()),
        table3_verdicts=pooled_verdicts(found, places_pretrained()),
        sweeps=sweeps_table(swept.table),
        beyond_chance=beyond_chance(swept.table),
        sweeps_figure=f"{folder.name}/sweeps.svg",
        losses=losses_table(swept.table),
        costs=costs_table({"cifar10": scratch, **depth, **medical}),
        gradients=gradients_table({"cifar10": scratch, **depth}),
        spikes=spikes_told(scratch.steps, EPOCHS),
        gradients_figure=f"{folder.name}/gradients.svg",
        tables="\n\n".join(
            set_table(found[name].table, piece.target.title, list(piece.variants), columns=COLUMNS)
            for name, piece in pieces().items()
        ),
    )
    path.write_text(re.sub(r"\n{3,}", "\n\n", text), encoding="utf-8")  # where a part says nothing


def _progress(found: Mapping[str, StudyTables]) -> str:
    """How much of each piece is there; nothing once everything is."""
    wanted = {name: piece.num_trainings for name, piece in pieces().items()}
    there = {name: len(found[name].table.trainings) for name in wanted}
    if there == wanted:
        return ""
    lines = [f"**The study is not finished: {sum(there.values())} of {sum(wanted.values())} trainings are there.**", ""]
    lines += ["| Part | Trainings |", "|---|---|"]
    lines += [f"| {piece.target.title} | {there[name]} of {wanted[name]} |" for name, piece in pieces().items()]
    return "\n".join(lines)


def _machines(found: Mapping[str, StudyTables]) -> str:
    """How many trainings of each piece a GPU has done; nothing where it did none."""
    of_gpu: dict[str, Counter[str]] = {}
    for name, each in found.items():
        for row in each.table.trainings:
            _, on, gpu = row.versions.partition(ON)
            if on:
                of_gpu.setdefault(gpu, Counter())[name] += 1
    titles = {name: piece.target.title for name, piece in pieces().items()}
    said: list[str] = []
    for gpu, trained in of_gpu.items():
        parts = "; ".join(
            f"{titles[name]} ({count} of {len(found[name].table.trainings)})" for name, count in trained.items()
        )
        said.append(
            f"\n\nTrained on one {gpu}: {parts}. The others on CPUs. What is drawn is the same on both, but for\n"
        )
        said.append("dropout; a GPU rounds otherwise, so that single trainings end elsewhere.")
    return "".join(said)


def _longer(found: Mapping[str, StudyTables]) -> str:
    """How many epochs that is, and what follows from which ratio."""
    said: list[str] = []
    for name, each in found.items():
        rows = [row for row in each.table.trainings if row.variant == LONGER]
        for model in dict.fromkeys(row.model for row in rows if row.model in each.costs):
            settings = " ".join(row.settings for row in rows if row.model == model)
            epochs = sorted({int(number) for number in re.findall(r"\bepochs=(\d+)", settings)})
            said.append(
                f"{name} {model}: {', '.join(map(str, epochs))}, a step takes {each.costs[model].ratio:.2f} times as long"
            )
    return "; ".join(said) or "which is not known yet"


def _core(found: StudyTables) -> str:
    table, base = found.table, values(found.table, BASELINE)
    lines = head("Variant", "Accuracy", "− baseline, points", "Ahead, seeds", "− ρSIM, points", "Time", "Seeds")
    for variant in core():
        mine = values(table, variant)
        if not mine:
            continue
        to_base, to_sim = (difference_of(gaps(mine, other)) for other in (base, values(table, SIM)))
        cells = [variant, mean_and_interval(list(mine.values()))]
        cells += ["", ""] if variant == BASELINE else [points(to_base), ahead(to_base)]
        cells += ["" if variant == SIM else points(to_sim), time_ratio(table, variant), str(len(mine))]
        lines.append(row_of(cells))
    return "\n".join(lines) if len(lines) > 2 else NOTHING


def _core_verdicts(table: Table) -> str:
    """One sentence for ρSIM against each of the others."""
    mine, lines = values(table, SIM), list[str]()
    for other in core():
        found = None if other == SIM else difference_of(gaps(mine, values(table, other)))
        if found is not None:
            lines.append(
                f"- **ρSIM over {other}**: {points(found)} points; {verdict(found)}.".replace("pairs", "seeds")
            )
    if not lines:
        return ""
    placebo = difference_of(gaps(values(table, PLACEBO), values(table, BASELINE)))
    if placebo is not None:
        lines.append(
            f"- **placebo over {BASELINE}**: {points(placebo)} points; {verdict(placebo)}.".replace("pairs", "seeds")
        )
    return "\n".join(lines)


def _table_2(found: Mapping[str, StudyTables]) -> str:
    titles = ("Network", "Beside", "Without", "With ρSIM", "Difference, points", "Ahead, seeds", "− placebo, points")
    lines = head(*titles, "Published difference")
    for place in places_from_scratch():
        table, alone = found[place.piece].table, place.without == BASELINE
        published = TABLE_2[place.model] if alone else f"ResNet-50: {TABLE_2_JOINED[place.without]}"
        other, one, placebo = (of_model(values(table, name), place.model) for name in place[2:])
        if one or other:
            gain, more = difference_of(gaps(one, other)), difference_of(gaps(one, placebo))
            means = [mean_and_interval(list(each.values())) for each in (other, one)]
            lines.append(
                row_of([place.model, place.without, *means, points(gain), ahead(gain), points(more), published])
            )
    return "\n".join(lines) if len(lines) > 2 else NOTHING


def _table_3(medical: Mapping[str, StudyTables]) -> str:
    lines = head(
        "Set",
        "Network",
        "Variant",
        "Accuracy",
        "AUC",
        "NLL",
        "Accuracy − baseline, points",
        "AUC − baseline, × 100",
        "Time",
    )
    for name, found in medical.items():
        for model in dict.fromkeys(row.model for row in found.table.trainings):
            for variant in pieces()[name].variants:
                own = {metric: of_model(found.values(variant, metric), model) for metric in ("accuracy", "auc", "nll")}
                if not own["accuracy"]:
                    continue
                differences = [
                    ""
                    if variant == BASELINE
                    else points(difference_of(gaps(each, values(found.table, BASELINE, metric))))
                    for metric, each in own.items()
                    if metric != "nll"
                ]
                means = [mean_and_interval(list(each.values())) for each in own.values()]
                one = Table(tuple(row for row in found.table.trainings if row.model == model))
                lines.append(row_of([name, model, variant, *means, *differences, time_ratio(one, variant)]))
    return "\n".join(lines) if len(lines) > 2 else NOTHING
