"""The page docs/results/sim.md, written of the rows that recipes/sim.py keeps; trains nothing."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from sim_costs import clock_seconds, costs_table, cpu_seconds, whole_trainings
from sim_figure import write_gradients, write_sweeps
from sim_gradients import gradients_table, smoothing_told, spikes_told
from sim_pooled import (
    METRICS,
    OF_EQUAL_CLASSES,
    Comparison,
    Place,
    comparisons_from_scratch,
    comparisons_pretrained,
    difference_in,
    differences_table,
    machines_told,
    places_from_scratch,
    places_pretrained,
)
from sim_short import in_short
from sim_sweeps import beyond_chance, losses_table, sweep_points, sweeps_table, widths_told
from sim_tables import NOTHING, StudyTables, ahead, gaps, head, marked, of_model, of_seeds, row_of, values
from sim_text import PAGE
from sim_variants import BASELINE, DROPOUT_RATE, EPOCHS, LONGER, SIM, core, pieces
from studies import difference_of
from study_tables import mean_and_interval, set_table
from study_trainings import ON

COLUMNS = {"accuracy": "Accuracy", "auc": "AUC"}
OF_UNEQUAL_CLASSES = {"accuracy": "Accuracy", "balanced_accuracy": "Balanced accuracy", "auc": "AUC"}
TABLE_2 = {"resnet20": "ResNet-18: 0.29", "resnet32": "ResNet-50: 0.13", "resnet56": "ResNet-101: 0.25, ResNet-152: 0.13"}
"""Gains of ρSIM over the baseline in the paper, of the networks nearest by rank of depth; on ResNet-50 what follows."""
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
        pooled=differences_table(found, _from_scratch(), comparisons_from_scratch(), OF_EQUAL_CLASSES),
        mixed=machines_told(found, places_from_scratch()),
        mixed3=machines_told(found, places_pretrained()),
        core=_core(found),
        table2=_table_2(found),
        table3=_table_3(medical),
        pooled3=differences_table(found, _pretrained(), comparisons_pretrained(), list(METRICS)),
        sweeps=sweeps_table(swept),
        beyond_chance=beyond_chance(swept.table),
        widths=widths_told(swept.table),
        sweeps_figure=f"{folder.name}/sweeps.svg",
        losses=losses_table(swept.table),
        costs=costs_table(found),
        gradients=gradients_table({"cifar10": scratch, **depth}),
        smoothing=smoothing_told({"cifar10": scratch, **depth}),
        spikes=spikes_told(scratch.steps, EPOCHS),
        gradients_figure=f"{folder.name}/gradients.svg",
        tables="\n\n".join(
            set_table(
                found[name].table,
                piece.target.title,
                list(piece.variants),
                columns=OF_UNEQUAL_CLASSES if piece.is_pretrained else COLUMNS,
                with_seconds=False,
            )
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
    versions: dict[bool, set[str]] = {True: set(), False: set()}
    for name, each in found.items():
        for row in each.table.trainings:
            programs, on, gpu = row.versions.partition(ON)
            versions[bool(on)] |= set(re.findall(r"torch \S+", programs))
            if on:
                of_gpu.setdefault(gpu, Counter())[name] += 1
    titles = {name: piece.target.title for name, piece in pieces().items()}
    said: list[str] = []
    for gpu, trained in of_gpu.items():
        parts = "; ".join(f"{titles[name]} ({count} of {len(found[name].table.trainings)})" for name, count in trained.items())
        on_gpu, on_cpu = (", ".join(sorted(versions[each])) for each in (True, False))
        said.append(f"\n\nTrained on one {gpu} ({on_gpu}): {parts}. The others on CPUs ({on_cpu}). What is drawn is the\n")
        said.append("same on both, but for dropout; rounding is not, so that single trainings end elsewhere.")
    return "".join(said)


def _longer(found: Mapping[str, StudyTables]) -> str:
    """How many epochs that is, and from which ratio it follows."""
    titles = ("Set", "Network", "A step with ρSIM takes", "Epochs", "Epochs of `longer`")
    lines = head(*titles, "CPU: with ρSIM, `longer`", "GPU: with ρSIM, `longer`")
    for name, each in found.items():
        rows = [row for row in each.table.trainings if row.variant == LONGER]
        for model in dict.fromkeys(row.model for row in rows if row.model in each.costs):
            settings = [row.settings for row in each.table.trainings if (row.model, row.variant) == (model, BASELINE)]
            longer = [row.settings for row in rows if row.model == model]
            ratio = f"{each.costs[model].ratio:.2f} times as long"
            costs = [whole_trainings(found, name, model, measure) for measure in (cpu_seconds, clock_seconds)]
            lines.append(row_of([name, model, ratio, _epochs(settings), _epochs(longer), *costs]))
    return "\n".join(lines) if len(lines) > 2 else NOTHING


def _epochs(settings: Iterable[str]) -> str:
    return ", ".join(sorted(set(re.findall(r"\bepochs=(\d+)", " ".join(settings))), key=int))


def _from_scratch() -> dict[str, list[Place]]:
    places = places_from_scratch()
    alone = [place for place in places if place.piece == "cifar10"]
    return {"all": places, "ResNet-20 alone": alone}


def _pretrained() -> dict[str, list[Place]]:
    """Both sets, and each: they may differ."""
    places = places_pretrained()
    return {"both sets": places} | {
        name: [place for place in places if place.piece == name] for name in dict.fromkeys(p.piece for p in places)
    }


def _core(found: Mapping[str, StudyTables]) -> str:
    """Every variant of ResNet-20 beside its baseline, and ρSIM beside it."""
    table, base = found["cifar10"].table, values(found["cifar10"].table, BASELINE)
    titles = [f"ρSIM − it: {METRICS[metric][0]}" for metric in OF_EQUAL_CLASSES]
    lines = head("Variant", "Accuracy", "− baseline, points", "Ahead, seeds", *titles)
    places = [place for place in places_from_scratch() if place.piece == "cifar10"]
    for variant in core():
        if not (mine := values(table, variant)):
            continue
        to_base = difference_of(gaps(mine, base))
        cells = [variant, mean_and_interval(list(mine.values()))]
        cells += ["", ""] if variant == BASELINE else [marked(to_base), ahead(to_base)]
        to_it = Comparison(variant, "with_sim", variant)
        cells += ["" if variant == SIM else marked(difference_in(found, places, metric, to_it)) for metric in OF_EQUAL_CLASSES]
        lines.append(row_of(cells))
    return "\n".join(lines) if len(lines) > 2 else NOTHING


def _table_2(found: Mapping[str, StudyTables]) -> str:
    titles = ("Network", "Beside", "Without", "− ResNet-20", "With ρSIM", "Difference, points", "Ahead, seeds")
    lines = head(*titles, "− placebo, points", "Published difference")
    (simplest,) = pieces()["cifar10"].networks
    base = of_seeds(values(found["cifar10"].table, BASELINE), simplest)
    for place in places_from_scratch():
        table, alone = found[place.piece].table, place.without == BASELINE
        published = TABLE_2[place.model] if alone else f"ResNet-50: {TABLE_2_JOINED[place.without]}"
        other, one, placebo = (of_model(values(table, name), place.model) for name in place[2:])
        if one or other:
            gain, more = difference_of(gaps(one, other)), difference_of(gaps(one, placebo))
            means = [mean_and_interval(list(each.values())) for each in (other, one)]
            change = difference_of(gaps(of_seeds(other, place.model), base))
            cells = [place.model, place.without, means[0], "" if place.piece == "cifar10" else marked(change), means[1]]
            lines.append(row_of([*cells, marked(gain), ahead(gain), marked(more), published]))
    return "\n".join(lines) if len(lines) > 2 else NOTHING


def _table_3(medical: Mapping[str, StudyTables]) -> str:
    """Every variant of every set and network."""
    titles = ("Accuracy", "AUC", "NLL", "Accuracy − baseline, points", "AUC − baseline, × 100")
    lines = head("Set", "Network", "Variant", *titles)
    for name, found in medical.items():
        for model in dict.fromkeys(row.model for row in found.table.trainings):
            for variant in pieces()[name].variants:
                own = {metric: of_model(found.values(variant, metric), model) for metric in ("accuracy", "auc", "nll")}
                if not own["accuracy"]:
                    continue
                differences = [
                    difference_of(gaps(own[metric], values(found.table, BASELINE, metric))) for metric in ("accuracy", "auc")
                ]
                means = [mean_and_interval(list(each.values())) for each in own.values()]
                paired = ["", ""] if variant == BASELINE else map(marked, differences)
                lines.append(row_of([name, model, variant, *means, *paired]))
    return "\n".join(lines) if len(lines) > 2 else NOTHING
