"""The page docs/results/repsim.md, written of the rows that recipes/repsim.py keeps; trains nothing."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from repsim_ablations import OF, ablations_table
from repsim_batch_norm import batch_norm_modes, why_frozen
from repsim_figure import write_figure
from repsim_headline import differences, headline
from repsim_kinds import KINDS, Kind, comparable, of_kind, paired, reference_of, values
from repsim_text import PAGE
from repsim_uses import SHOWN, bought, use_differences, uses, weights
from repsim_variants import DEFAULT, FORMS, default_variant
from studies import difference_of, verdict
from study_rows import Table
from study_tables import Key, Tables, in_numbers, mean_and_interval, or_dash, over_pairs, over_seeds

COLUMNS = {
    "accuracy": "Accuracy",
    "auc": "AUC",
    "cka_debiased": "CKA, debiased",
    "cka_debiased_adapted": "… to re-estimated",
    "cka": "CKA, biased",
}
PAPER = {"full": (72.02, 0.52), "repsim": (71.03, 0.68), "hcs 0.8": (68.79, 0.76), "linear": (61.41, None)}
"""RepSim, Table 1, means of five sets: accuracy (mAP of two sets) in %, CKA."""


ORDERINGS = (  # first, second, number, what the paper has
    ("full", "repsim", "accuracy", "Table 1: 72.02 and 71.03"),
    ("repsim", "full", "cka_debiased", "Table 1: 0.68 and 0.52"),
    ("hcs 0.8", "repsim", "cka_debiased", "Table 1: 0.76 and 0.68"),
    ("repsim", "hcs 0.8", "accuracy", "Table 1: 71.03 and 68.79"),
    ("hcs 0.8", "linear", "accuracy", "Table 1: 68.79 and 61.41"),
)


def write_page(
    path: Path, tables: Tables, ablated: Table, *, few: Tables, titles: Mapping[str, str], vit: str, wanted: int
) -> None:
    """The page and, in a folder beside it, its figure; ``wanted`` is the number of trainings of the whole study.

    Args:
        path: Of the page.
        tables: Of each set.
        ablated: Of the ablations.
        few: Of trainings with few steps, of each set.
        titles: Set → for people.
        vit: Name of the ViT.
        wanted: Trainings of all of them.
    """
    folder = path.with_suffix("")
    folder.mkdir(parents=True, exist_ok=True)
    figure = folder / "trade-off.svg"
    write_figure(figure, {kind.title: of_kind(tables, kind, vit) for kind in KINDS[:3]})
    there = sum(len(table.trainings) for table in (*tables.values(), ablated))
    progress = f"**The study is not finished: {there} of {wanted} trainings are there.**" if there < wanted else ""
    text = PAGE.format(
        progress=progress,
        headline=headline(tables, few, vit),
        differences=differences(tables, few, vit),
        kept=_kept_everywhere(tables, vit),
        decided=why_frozen(tables),
        batch_norm=batch_norm_modes(tables),
        kinds="\n\n".join(_kind_table(tables, kind, vit) for kind in KINDS),
        figure=f"{folder.name}/{figure.name}",
        orderings=_orderings(tables, vit),
        ablations=ablations_table(ablated, tables.get(OF.name, Table())),
        weights=weights(tables, vit),
        free=_free(tables, vit),
        uses=uses(tables, vit),
        use_differences=use_differences(tables, vit),
        bought=bought(tables, vit),
        published=_published(tables, vit),
        tables="\n\n".join(_set_table(tables[name], title) for name, title in titles.items()),
    )
    path.write_text(text, encoding="utf-8")


def _kind_table(tables: Tables, kind: Kind, vit: str) -> str:
    own = of_kind(tables, kind, vit)
    lines = [f"### {kind.title}", "", f"| Variant | {' | '.join(COLUMNS.values())} | CKA − FULL's |", "|---" * 7 + "|"]
    for variant in ("linear", *SHOWN):
        cells = [over_seeds(comparable(own, variant, metric)) for metric in COLUMNS]
        gain = "" if variant in ("full", "linear") else in_numbers(paired(own, variant, "full", reference_of(kind))[0])
        if gain not in ("", "–") or any(cell != "–" for cell in cells):
            lines.append(f"| {variant} | {' | '.join(cells)} | {gain} |")
    return "\n".join(lines)


def _kept_everywhere(tables: Tables, vit: str) -> str:
    """The default beside FULL on every set and network."""
    lines = ["| Set | Network | FULL, CKA debiased | default | gain | accuracy − FULL's |", "|---" * 6 + "|"]
    accuracies: dict[Key, float] = {}
    for name in tables:
        for model in dict.fromkeys(row.model for row in tables[name].trainings):
            default = default_variant(has_batch_norm=model != vit)
            full = _of_model(values({name: tables[name]}, "full", "cka_debiased"), model)
            kept = _of_model(values({name: tables[name]}, default, "cka_debiased"), model)
            accuracy = {
                key: gap for key, gap in paired({name: tables[name]}, default, "full", "accuracy")[1].items() if key[1] == model
            }
            accuracies |= accuracy
            both = [kept[key] - full[key] for key in kept if key in full]
            if both:
                cells = [mean_and_interval(list(full.values())), mean_and_interval(list(kept.values())), mean_and_interval(both)]
                lines.append(f"| {name} | {model} | {' | '.join(cells)} | {mean_and_interval(list(accuracy.values()))} |")
    found = difference_of(over_pairs(accuracies))
    mean = (
        ""
        if found is None
        else f"\n\nAccuracy, mean over all pairs: {in_numbers(found)} of FULL's, ahead in {found.ahead} of {found.pairs}."
    )
    return "\n".join(lines) + mean


def _of_model(found: Mapping[Key, float], model: str) -> dict[Key, float]:
    return {key: value for key, value in found.items() if key[1] == model}


def _orderings(tables: Tables, vit: str) -> str:
    """What the paper orders, for each kind of network and each form of RepSim that may stand for it."""
    lines = ["| Network | First | Second | Number | Mean difference | Ahead, pairs | Published | Here |", "|---" * 8 + "|"]
    for kind in KINDS:
        own = of_kind(tables, kind, vit)
        for first, second, metric, published in ORDERINGS:
            for form in (DEFAULT, "paper", "batch") if "repsim" in (first, second) else ("",):
                one, other = (form if name == "repsim" else name for name in (first, second))
                number = reference_of(kind) if metric == "cka_debiased" else metric
                found, _ = paired(own, one, other, number)
                if found is not None:
                    said = verdict(found).split(",")[0]
                    cells = [
                        kind.title,
                        one,
                        other,
                        COLUMNS.get(number, number),
                        in_numbers(found),
                        f"{found.ahead} of {found.pairs}",
                    ]
                    lines.append(f"| {' | '.join(cells)} | {published} | {said} |")
    return "\n".join(lines)


def above(tables: Tables, variant: str, line: str, *, metric: str, by: str) -> dict[Key, float]:
    """How far each training lies above a line of its set, network and seed at the same similarity."""
    similar, gaps = values(tables, variant, by), dict[Key, float]()
    for key, value in values(tables, variant, metric).items():
        points = sorted(_line(tables, key, line, metric, by))
        if key in similar and len(points) > 1:
            gaps[key] = value - float(np.interp(similar[key], *zip(*points, strict=True)))
    return gaps


def _line(tables: Tables, key: Key, line: str, metric: str, by: str) -> list[tuple[float, float]]:
    if line == "straight":
        ends = [(values(tables, name, by).get(key), values(tables, name, metric).get(key)) for name in ("full", "linear")]
    else:
        rows = tables[key[0]].curve
        ends = [
            (getattr(row, by), getattr(row, metric))
            for row in rows
            if (row.model, row.seed, row.batch_norm) == (key[1], key[2], line)
        ]
    return [(similar, value) for similar, value in ends if similar is not None and value is not None]


def _free(tables: Tables, vit: str) -> str:
    lines = ["| Network | Variant | weights mixed | statistics estimated | line LINEAR–FULL |", "|---" * 5 + "|"]
    for kind in KINDS[:3]:
        own = of_kind(tables, kind, vit)
        for variant in ("l2_sp", "hcs 0.8", *FORMS):
            found = [
                difference_of(over_pairs(above(own, variant, line, metric="accuracy", by="cka_debiased")))
                for line in ("mix", "estimate", "straight")
            ]
            if any(found):
                cells = [f"{in_numbers(each)}, {each.ahead} of {each.pairs}" if each else "–" for each in found]
                lines.append(f"| {kind.title} | {variant} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _published(tables: Tables, vit: str) -> str:
    own = of_kind(tables, KINDS[0], vit)
    lines = ["| Variant | Published, % | Published CKA | Accuracy here | CKA here | CKA here, debiased |", "|---" * 6 + "|"]
    for variant, (accuracy, cka) in PAPER.items():
        for name in (DEFAULT, "paper", "batch") if variant == "repsim" else (variant,):
            here = [over_seeds(comparable(own, name, metric)) for metric in ("accuracy", "cka", "cka_debiased")]
            lines.append(
                f"| {variant if name == variant else f'repsim ({name})'} | {accuracy:.2f} | {or_dash(cka)} | {' | '.join(here)} |"
            )
    return "\n".join(lines)


def _set_table(table: Table, title: str) -> str:
    if not table.trainings:
        return f"### {title}\n\nNot trained yet."
    lines = [f"### {title}", "", f"| Network | Variant | {' | '.join(COLUMNS.values())} | CPU seconds |", "|---" * 8 + "|"]
    for model, variant in sorted({(row.model, row.variant) for row in table.trainings}):
        cells = [mean_and_interval(list(_of_model(values({"": table}, variant, metric), model).values())) for metric in COLUMNS]
        seconds = list(_of_model(values({"": table}, variant, "cpu_seconds"), model).values())
        lines.append(f"| {model} | {variant} | {' | '.join(cells)} | {statistics.median(seconds) if seconds else 0:.0f} |")
    failed = [f"{row.model}, {row.variant}, seed {row.seed}: {row.state}" for row in table.trainings if row.state != "done"]
    return "\n".join([*lines, *(["", *failed] if failed else [])])
