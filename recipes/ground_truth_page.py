"""The page docs/results/ground_truth.md, written of the rows that recipes/ground_truth.py keeps; trains nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from ground_truth_rows import (
    FIDELITIES,
    FIFTH,
    FULL,
    HALF,
    LEARNING_RATES,
    NUM_BEST,
    SEEDS,
    CellRow,
    Trained,
    read_cells,
    seed_deviation,
    trained,
)
from ground_truth_sets import TargetSet
from ground_truth_table import NETWORKS, complete_set, networks_of, table_csv

from crossgraft.rank.ground_truth import noise_ceiling
from crossgraft.statistics import top_1_regret, weighted_kendall
from crossgraft.storage.atomic import write_atomically

TITLES = {FIFTH: "A fifth of the epochs", HALF: "Half the resolution"}
HEAD = """\
<!-- Written by recipes/ground_truth.py; do not edit. -->

# Seventeen checkpoints, really fine-tuned

```
python recipes/ground_truth.py --data-dir datasets --weights-dir weights --out docs/results/ground_truth.md
{published}```

{progress}

## How

- {networks} networks of `examples/own_models` with their weights, all of them trained, at 64 pixels a side (the four networks for
  CIFAR-10 at 32). A network is left out where its pretraining had the images or the classes of the set.
- At most 100 training images of each class (20 in Medical MNIST, 40 in CIFAR-10), the same for all; at most 160 images in val
  and 400 in test. Parts are those of the publication, or are drawn once, with lesions and pictures that look alike kept
  together. An image that is also in test, pixel by pixel, is not trained on.
- AdamW, batches of 32, at most 15 epochs along a cosine, stopped after 5 without improvement; learning rates {rates}.
  **The AUC on val picks the epoch and the learning rate; test decides nothing.** The {best} networks that are best on val are
  trained with {seeds} seeds, and their result is the mean.
- Beside it the same with a fifth of the epochs (3, with their own schedule) and at half the resolution. Their value is the AUC on
  **val**, as a selection sees it.
- Accuracy and balanced accuracy are of the most probable class. CPU seconds are of one core, for the whole call, on a machine
  that had other work, which makes them larger than they would be alone.
- Patients are not known in any of the sets but HAM10000 (lesions): **patient leakage not checked** elsewhere."""

PUBLISHED = (
    "crossgraft rank --published docs/results/ground_truth/table_auc.csv\n"
    "crossgraft select --replay docs/results/ground_truth/table_auc.csv --budget 10%,25%,50%\n"
)


class Progress(NamedTuple):
    """How much of a set is there."""

    done: int
    wanted: int
    complete: bool
    cpu_seconds: float


def write_page(out: Path, rows: Path, targets: Sequence[TargetSet], *, smoke: bool = False) -> None:
    """The page, and the table of the complete sets beside the rows."""
    for metric in ("auc", "accuracy"):
        rows.mkdir(parents=True, exist_ok=True)
        write_atomically(rows / f"table_{metric}.csv", table_csv(rows, targets, metric))
    out.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(out, page_of(rows, targets, smoke=smoke))


def page_of(rows: Path, targets: Sequence[TargetSet], *, smoke: bool = False) -> str:
    """All of it as Markdown."""
    progress = {target.name: progress_of(rows, target, smoke=smoke) for target in targets}
    head = HEAD.format(
        progress=_progress(targets, progress),
        published=PUBLISHED if any(each.complete for each in progress.values()) else "",
        networks=NETWORKS,
        rates=" and ".join(f"{rate:g}" for rate in LEARNING_RATES),
        best={3: "three"}[NUM_BEST],
        seeds={3: "three"}[len(SEEDS)],
    )
    sections = [head, _cheap(rows, targets)]
    sections += [_set(rows, target) for target in targets if progress[target.name].done]
    return "\n\n".join(section for section in sections if section) + "\n"


def progress_of(rows: Path, target: TargetSet, *, smoke: bool = False) -> Progress:
    """Trainings that are there, and those of the whole set."""
    cells = read_cells(rows, target.name)
    networks = 1 if smoke else networks_of(target)
    first = networks * len(FIDELITIES) * len(LEARNING_RATES)
    more = min(NUM_BEST, networks) * (len(SEEDS) - 1) * len(LEARNING_RATES)
    spent = sum(row.cpu_seconds or 0.0 for row in cells.values())
    return Progress(len(cells), first + more, bool(complete_set(rows, target, "auc")), spent)


def _progress(targets: Sequence[TargetSet], progress: dict[str, Progress]) -> str:
    done, wanted = (sum(getattr(each, name) for each in progress.values()) for name in ("done", "wanted"))
    spent = sum(each.cpu_seconds for each in progress.values()) / 3600
    if done >= wanted:
        return f"All {wanted} trainings are there; they took {spent:.1f} CPU-hours."
    complete = [target.title for target in targets if progress[target.name].complete]
    begun = [
        f"{target.title} ({found.done} of {found.wanted})"
        for target in targets
        if (found := progress[target.name]).done and not found.complete
    ]
    missing = [target.title for target in targets if not progress[target.name].done]
    said = [f"**The study is not finished: {done} of {wanted} trainings are there**, of {spent:.1f} CPU-hours."]
    said += [
        f"{what}: {'; '.join(names) or 'none'}."
        for what, names in (("Complete", complete), ("Begun", begun), ("Missing", missing))
    ]
    said.append("The same command goes on where it was stopped. Tables for `rank --published` hold complete sets alone.")
    return " ".join(said)


def _cheap(rows: Path, targets: Sequence[TargetSet]) -> str:
    """How well cheap trainings rank whole ones, on the complete sets."""
    found = {target.title: known for target in targets if (known := complete_set(rows, target, "auc"))}
    if not found:
        return ""
    lines = [
        "## Do cheap trainings rank the whole ones?",
        "",
        "Weighted Kendall (scipy's) with the AUC on test after a whole training; in brackets the regret of the first choice in "
        "points of AUC. *Val*: the whole trainings themselves, by their AUC on val. *Ceiling*: one seed ranked against another, "
        "drawn from the standard deviation of the middle one of the networks with several seeds. *Cost*: CPU seconds, as a share "
        "of those of the whole trainings.",
        "",
        f"| Set | Networks | Val | {' | '.join(f'{title} | Cost' for title in TITLES.values())} | Ceiling |",
        "|---|---" + "|---" * (2 * len(TITLES) + 2) + "|",
    ]
    lines += [_cheap_row(title, known) for title, known in found.items()]
    return "\n".join(lines)


def _cheap_row(title: str, known: Sequence[Trained]) -> str:
    truth = np.array([each.result for each in known])
    cells = [_ranked(np.array([each.first.val_auc for each in known]), truth)]
    whole = sum(each.cpu_seconds[FULL] for each in known)
    for kind in TITLES:
        cells.append(_ranked(np.array([each.low[kind] for each in known]), truth))
        cells.append(f"{100 * sum(each.cpu_seconds[kind] for each in known) / whole:.0f} %")
    deviation = seed_deviation(known) or 0.0
    cells.append(f"{noise_ceiling(truth, np.full(len(truth), deviation)):.2f}")
    return f"| {title} | {len(known)} | {' | '.join(cells)} |"


def _ranked(values: np.ndarray, truth: np.ndarray) -> str:
    if len(truth) < 2 or np.ptp(values) == 0 or np.ptp(truth) == 0:
        return "–"
    tau, regret = weighted_kendall(values, truth), 100 * top_1_regret(values, truth)
    return f"{tau:.2f} ({regret:.1f})".replace("-", "−")


def _set(rows: Path, target: TargetSet) -> str:
    cells = read_cells(rows, target.name)
    by_metric = {
        metric: {each.model: each for each in trained(cells, metric)} for metric in ("auc", "accuracy", "balanced_accuracy")
    }
    of_area = sorted(by_metric["auc"].values(), key=lambda each: -each.result)
    some = next((row for row in cells.values() if row.num_train), None)
    lines = [
        f"## {target.title}",
        "",
        f"{some.num_train} training and {some.num_test} test images. " * bool(some)
        + "The best first; intervals are 95 %, of the test images, of the first seed; ± is the standard deviation between seeds.",
        "",
        "| Network | AUC | Accuracy | Balanced accuracy | Learning rate | Val | 1/5 epochs | 1/2 pixels | CPU-s |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    lines += [_network(each, by_metric) for each in of_area]
    if failed := [
        f"{row.model}, {row.fidelity}, {row.learning_rate:g}: {row.state}" for row in cells.values() if row.state != "done"
    ]:
        lines += ["", "Without numbers: " + "; ".join(failed) + "."]
    return "\n".join(lines)


def _network(each: Trained, by_metric: dict[str, dict[str, Trained]]) -> str:
    row = each.first
    low = [f"{each.low[kind]:.3f}" if kind in each.low else "–" for kind in TITLES]
    cells = [
        each.model,
        f"{_with_seeds(each)} {_ends(row, 'auc')}".strip(),
        _with_seeds(by_metric["accuracy"][each.model]),
        _with_seeds(by_metric["balanced_accuracy"][each.model]),
        f"{row.learning_rate:g}",
        f"{row.val_auc:.3f}",
        *low,
        f"{sum(each.cpu_seconds.values()):.0f}",
    ]
    return f"| {' | '.join(cells)} |"


def _with_seeds(each: Trained) -> str:
    deviation = each.standard_deviation
    return f"{each.result:.3f}" + ("" if deviation is None else f" ± {deviation:.3f}")


def _ends(row: CellRow, metric: str) -> str:
    low, high = getattr(row, f"{metric}_low"), getattr(row, f"{metric}_high")
    return "" if low is None or high is None else f"[{low:.3f}, {high:.3f}]"
