"""Are sound models called sound, and planted tags found? Linear heads on frozen features, and fine-tuned networks.

    python recipes/shortcuts_planted.py --data-dir datasets --weights-dir weights --work work
    python recipes/shortcuts_planted.py --only busi --training linear      # a piece
    python recipes/shortcuts_planted.py --training full --device cuda --networks mobilenetv1_050 --work work
    python recipes/shortcuts_planted.py --smoke --work work --rows rows   # noise and an as-built network; it means nothing
    python recipes/shortcuts.py --only none --out docs/results/shortcuts.md   # the page that shows the rows

A share of the training positives (0, 0.5, 1) gets a tag, a classifier is trained, and the rule of ``crossgraft audit`` judges it
on clean held-out images. Linear: 20 seeds, each with a split, carriers and a penalty, which the rule is not told.
Full: fine-tunings, judged by ``audit_model`` itself. Each piece ends as rows of ``planted.csv``; what is there is not done again.
"""

from __future__ import annotations

import argparse
import csv
import io
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from data_folders import add_folders, check_folders
from fewshot_sets import busi, ham10000, medical_mnist
from shortcuts import ROWS
from studies import EXAMPLES, noise, smoke_specs

import crossgraft
from crossgraft.audit.detectability import detectability
from crossgraft.audit.explained import FittingRows, features_of, fit_heads
from crossgraft.audit.mitigation import GroupedRows
from crossgraft.audit.mitigation._mitigation import logistic_scorer
from crossgraft.audit.pull import NUM_SHAMS, Pull, Sham, beside_shams, beside_start, pull_of, shifts
from crossgraft.audit.record import AuditEntry
from crossgraft.audit.trained import fewest_of_a_class, verdict
from crossgraft.compute import limit_threads
from crossgraft.data import Dataset
from crossgraft.edit.confounders import Tag
from crossgraft.edit.edits import Editing
from crossgraft.metrics import MetricValue, auc, auc_difference
from crossgraft.models import ModelSpec, load_backbone, read_zoo
from crossgraft.progress import Reporter
from crossgraft.seeding import generator
from crossgraft.storage.atomic import write_atomically

NETWORKS = ("mobilenetv1_025 · ImageNet", "mobilenetv1_050 · ImageNet", "mobilenetv2_035 · ImageNet")
SHARES, SIDE, FULL_EPOCHS = (0.0, 0.5, 1.0), 128, 6
TAG = Tag(size=0.125, text="L", xy=(0.7, 0.1))
"""The rule was made on an R at the upper left, and on seeds below 20."""
SEEDS, FULL_SEEDS = range(20, 40), range(20, 22)
TEST, PENALTIES = 0.35, (1.0, 0.1, 0.01, 10.0, 0.001)
FIELDS = (
    *("set", "network", "training", "share", "seed", "outcome", "old_outcome", "patients", "clean_auc", "drop", "drop_low"),
    *("drop_high", "reverse", "reverse_low", "pull", "pull_low", "pull_high", "start", "start_low", "start_high"),
    *("shams", "shams_low", "shams_high", "detectability", "seconds"),
)
Row = dict[str, str]


class PlantedSet(NamedTuple):
    """One labelled set and the class in question.

    Attributes:
        name: For files and tables.
        load: Reads it from the folder of data.
        positive: Class in question.
        most: Images of it and of all others that are taken.
        is_tuned: Whether networks are fine-tuned on it, too.
    """

    name: str
    load: Callable[[Path], Dataset]
    positive: str
    most: tuple[int, int] = (400, 400)
    is_tuned: bool = True


SETS = (
    PlantedSet("ham10000_nevus", lambda folder: ham10000(folder).dataset, "nv"),
    PlantedSet("busi_benign", lambda folder: busi(folder).dataset, "benign"),
    PlantedSet("medical_mnist", lambda folder: medical_mnist(folder).dataset, "CXR"),
    PlantedSet("ham10000_melanoma", lambda folder: ham10000(folder).dataset, "mel", (223, 320), is_tuned=False),
    PlantedSet("busi_malignant", lambda folder: busi(folder).dataset, "malignant", (200, 300), is_tuned=False),
)
SMOKE_SETS = (PlantedSet("noise", lambda _: noise("noise"), "1"),)


class Looked(NamedTuple):
    """Features of all images: as they are, with the tag, and with each sham."""

    clean: np.ndarray
    edited: np.ndarray
    shams: np.ndarray


def main(command_line: Sequence[str] | None = None) -> None:
    arguments = parse_arguments(command_line)
    with limit_threads(1):
        for each in SMOKE_SETS if arguments.smoke else SETS:
            if arguments.only and each.name not in arguments.only:
                continue
            images = drawn(each.load(arguments.data_dir), each)
            specs = smoke_specs() if arguments.smoke else networks(arguments)
            for spec in specs if "linear" in arguments.training else ():
                linear(each, images, spec, arguments)
            if "full" in arguments.training and each.is_tuned:
                for seed in FULL_SEEDS[:1] if arguments.smoke else FULL_SEEDS:
                    for spec in specs:
                        full(each, images, spec, seed, arguments)


def drawn(images: Dataset, each: PlantedSet) -> Dataset:
    """At most so many images of the class in question and of all others, under two names."""
    is_positive = np.array(images.class_names)[images.targets] == each.positive
    rng = generator(0, "planted", each.name)
    rows = [
        rng.permutation(np.flatnonzero(side))[:most] for side, most in zip((is_positive, ~is_positive), each.most, strict=True)
    ]
    kept = np.sort(np.concatenate(rows))
    taken = images.take(kept)
    return replace(taken, targets=is_positive[kept].astype(np.int64), class_names=("others", each.positive))


def parts(images: Dataset, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Training and test rows; no patient is in both."""
    unit = np.arange(len(images)) if images.groups is None else np.unique(images.groups, return_inverse=True)[1]
    order = generator(seed, "planted test").permutation(int(unit.max()) + 1)
    is_test = np.isin(unit, order[: round(TEST * len(order))])
    return np.flatnonzero(~is_test), np.flatnonzero(is_test)


def carriers(images: Dataset, train: np.ndarray, share: float, seed: int) -> np.ndarray:
    """Training positives that get the tag; nested in the share."""
    positives = generator(seed, "planted carriers").permutation(train[images.targets[train] == 1])
    return positives[: round(share * len(positives))]


def linear(each: PlantedSet, images: Dataset, spec: ModelSpec, arguments: argparse.Namespace) -> None:
    """Heads of all seeds on the features of one network."""
    seeds = SEEDS[:2] if arguments.smoke else SEEDS
    known = known_of(arguments.rows, each, spec, "linear")
    todo = [(share, seed) for seed in seeds for share in SHARES if (f"{share:g}", str(seed)) not in known]
    if not todo:
        return
    looked = look(images, spec, arguments)
    is_positive = images.targets == 1
    rows: list[Row] = []
    for share, seed in todo:
        began = time.perf_counter()
        train, test = parts(images, seed)
        mixed = looked.clean.copy()
        carrying = carriers(images, train, share, seed)
        mixed[carrying] = looked.edited[carrying]
        labels = images.targets[train]
        head = logistic_scorer(
            GroupedRows(mixed[train].astype(np.float64), labels, np.zeros_like(labels)),
            inverse_penalty=PENALTIES[seed % len(PENALTIES)],
        )
        answers = [head.logits(features[test]) for features in (looked.clean, looked.edited, *looked.shams)]
        groups = None if images.groups is None else images.groups[test]
        pull = judged(answers, looked, train, test, is_positive, images.groups, seed)
        found = numbers(answers[0], answers[1], is_positive[test], groups)
        seen = detectability(looked.clean[test], looked.edited[test], groups)
        rows.append(row(each, spec, share, seed, found, pull, seen.is_detectable, seen.auc.value, began))
    add_rows(arguments.rows, rows)
    print(f"{each.name} {spec.name}: {len(rows)} heads", flush=True)


def judged(
    answers: Sequence[np.ndarray],
    looked: Looked,
    train: np.ndarray,
    test: np.ndarray,
    is_positive: np.ndarray,
    groups: np.ndarray | None,
    seed: int,
) -> Pull:
    """The comparisons of ``crossgraft.audit.explained``, on features that are there; all of them, asked for or not."""
    truth, patients = is_positive[test], None if groups is None else groups[test]
    shift = shifts(answers[0], answers[1], truth)
    fitting = FittingRows(looked.clean[train], is_positive[train], None if groups is None else groups[train])
    heads = fit_heads(fitting, looked.clean[test], answers[0], is_head=True, seed=seed)
    before = heads.logits(looked.clean[test])

    def of_heads(features: np.ndarray) -> np.ndarray:
        return np.stack([shifts(own, now, truth) for own, now in zip(before, heads.logits(features[test]), strict=True)])

    start = of_heads(looked.edited)
    found = beside_start(pull_of(shift, truth, patients), shift, start, truth, patients)
    return beside_shams(found, shift, shifts(answers[0], np.stack(answers[2:]), truth), truth, patients)


def numbers(
    clean: np.ndarray, edited: np.ndarray, is_positive: np.ndarray, groups: np.ndarray | None
) -> tuple[MetricValue, MetricValue, MetricValue, int]:
    """Clean AUC, drop and reverse drop, and patients of the smaller class."""
    labels = is_positive.astype(np.int64)
    drop = auc_difference(clean, np.where(is_positive, clean, edited), labels, groups)
    reverse = auc_difference(clean, np.where(is_positive, edited, clean), labels, groups)
    return auc(clean, labels, groups), drop, reverse, fewest_of_a_class(labels, groups)


def look(images: Dataset, spec: ModelSpec, arguments: argparse.Namespace) -> Looked:
    """Features of one network, kept in the folder of work."""
    path = arguments.work / f"planted-{images.fingerprint[:12]}-{spec.name.split()[0]}.npz"
    if not path.is_file():
        quiet = Reporter(quiet=True)
        backbone = load_backbone(spec, device=arguments.device, weights_dir=arguments.weights_dir, image_size=SIDE)
        edits = [Editing([TAG]), *(Sham(TAG, draw) for draw in range(NUM_SHAMS))]
        clean, edited, *shams = [features_of(backbone, rows, quiet) for rows in (images, *map(images.edited, edits))]
        arguments.work.mkdir(parents=True, exist_ok=True)
        np.savez(path, clean=clean, edited=edited, shams=np.stack(shams))
    with np.load(path) as stored:
        return Looked(stored["clean"], stored["edited"], stored["shams"])


def full(each: PlantedSet, images: Dataset, spec: ModelSpec, seed: int, arguments: argparse.Namespace) -> None:
    """One network, fine-tuned at each share, and judged by the verb."""
    known = known_of(arguments.rows, each, spec, "full")
    for share in SHARES:
        if (f"{share:g}", str(seed)) in known:
            continue
        began = time.perf_counter()
        train, test = parts(images, seed)
        carrying = carriers(images, train, share, seed)
        planted = images.edited(Editing([TAG]), carrying) if len(carrying) else images
        names = np.full(len(images), "train", dtype="<U5")
        names[test] = "test"
        names[generator(seed, "planted val").permutation(train)[: len(train) // 5]] = "val"
        quiet = {"workers": 1, "device": arguments.device, "ledger": False, "reporter": Reporter(quiet=True)}
        tuned = crossgraft.fine_tune(
            replace(planted, splits=names, split=None),
            model=spec,
            epochs=1 if arguments.smoke else FULL_EPOCHS,
            image_size=SIDE,
            seed=seed,
            store=False,
            strict=False,
            **quiet,
        )
        audited = crossgraft.audit_model(
            tuned, data=replace(images, splits=names, split=None), positive=each.positive, confounders=[TAG], start=spec, **quiet
        ).record
        patients = fewest_of_a_class(images.targets[test], None if images.groups is None else images.groups[test])
        add_rows(arguments.rows, [row_of_entry(each, spec, share, seed, audited.entries[0], patients, began)])
        print(f"{each.name} {spec.name} {share:g} {seed}: {time.perf_counter() - began:.0f} s", flush=True)


def row(
    each: PlantedSet,
    spec: ModelSpec,
    share: float,
    seed: int,
    found: tuple[MetricValue, MetricValue, MetricValue, int],
    pull: Pull,
    is_seen: bool,
    detected: float,
    began: float,
) -> Row:
    """A verdict and its numbers."""
    clean, drop, reverse, fewest = found
    outcome = verdict(clean, drop, reverse, pull, is_seen=is_seen)
    values = {
        "patients": fewest,
        "clean_auc": clean.value,
        **ends("drop", drop),
        **ends("reverse", reverse),
        **ends("pull", pull.of_model),
        **ends("start", pull.over_start),
        **ends("shams", pull.over_shams),
        "detectability": detected,
        "seconds": time.perf_counter() - began,
    }
    return {
        "set": each.name,
        "network": spec.name,
        "training": "linear",
        "share": f"{share:g}",
        "seed": str(seed),
        "outcome": outcome,
        "old_outcome": old_rule(clean, drop, reverse, fewest, is_seen=is_seen),
        **{name: "" if value is None else f"{value:.6g}" for name, value in values.items() if name in FIELDS},
    }


def row_of_entry(
    each: PlantedSet, spec: ModelSpec, share: float, seed: int, entry: AuditEntry, patients: int, began: float
) -> Row:
    """What the verb said, and what it would have been called before."""

    def value_of(name: str) -> MetricValue | None:
        found = entry.metric(name)
        if found is None or found.value is None:
            return None
        return MetricValue(found.value, found.low, found.high, 0, None)

    clean, drop, reverse = (value_of(name) for name in ("clean_auc", "auc_drop", "reverse_drop"))
    known = clean is not None and drop is not None and reverse is not None
    values = {
        "patients": patients,
        "clean_auc": None if clean is None else clean.value,
        **ends("drop", drop),
        **ends("reverse", reverse),
        **ends("pull", value_of("pull")),
        **ends("start", value_of("pull_over_start")),
        **ends("shams", value_of("pull_over_shams")),
        "detectability": entry.detectability and entry.detectability.value,
        "seconds": time.perf_counter() - began,
    }
    is_seen = entry.outcome != "undetectable"
    return {
        "set": each.name,
        "network": spec.name,
        "training": "full",
        "share": f"{share:g}",
        "seed": str(seed),
        "outcome": entry.outcome,
        "old_outcome": old_rule(clean, drop, reverse, patients, is_seen=is_seen) if known else "",
        **{name: "" if value is None else f"{value:.6g}" for name, value in values.items() if name in FIELDS},
    }


def ends(name: str, found: MetricValue | None) -> dict[str, float | None]:
    if found is None:
        return dict.fromkeys((name, f"{name}_low", f"{name}_high"))
    return {name: found.value, f"{name}_low": found.low, f"{name}_high": found.high}


def old_rule(clean: MetricValue, drop: MetricValue, reverse: MetricValue, fewest: int, *, is_seen: bool) -> str:
    """What the same numbers were called before: any sure change of the AUC was reliance."""
    if clean.value < 0.55 or not is_seen:
        return "untrained" if clean.value < 0.55 else "undetectable"
    if drop.low is None or drop.high is None:
        return "undecided"
    if reverse.low is not None and reverse.low > 0 and reverse.value > 0.05:
        return "relies"
    if (drop.high if drop.high > drop.low else drop.high + 3 / fewest) < 0.05:
        return "passes"
    return "relies" if drop.low > 0 else "undecided"


def networks(arguments: argparse.Namespace) -> list[ModelSpec]:
    zoo = read_zoo(EXAMPLES / "mobilenets.yaml", weights_dir=arguments.weights_dir, allow_code=EXAMPLES)
    wanted = [name for name in NETWORKS if not arguments.networks or name.split()[0] in arguments.networks]
    return [spec for name in wanted for spec in zoo if spec.name == name]


def known_of(folder: Path, each: PlantedSet, spec: ModelSpec, training: str) -> set[tuple[str, str]]:
    """Share and seed of what is there."""
    wanted = (each.name, spec.name, training)
    rows = [row for row in read_rows(folder) if tuple(row[key] for key in ("set", "network", "training")) == wanted]
    return {(row["share"], row["seed"]) for row in rows}


def read_rows(folder: Path) -> list[Row]:
    path = folder / "planted.csv"
    return list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8")))) if path.is_file() else []


def add_rows(folder: Path, rows: Sequence[Row]) -> None:
    text = io.StringIO()
    writer = csv.DictWriter(text, FIELDS, lineterminator="\n")
    writer.writeheader()
    writer.writerows([*read_rows(folder), *rows])
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / "planted.csv", text.getvalue())


def parse_arguments(command_line: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_folders(parser)
    parser.add_argument("--only", nargs="*", help="names of sets")
    parser.add_argument("--networks", nargs="*", help="first words of names of networks")
    parser.add_argument("--training", nargs="*", default=["linear", "full"], help="linear, full")
    parser.add_argument("--device", default="cpu", help="where networks run: cpu, cuda, cuda:N or mps")
    parser.add_argument("--work", type=Path, required=True, help="folder of features")
    parser.add_argument("--rows", type=Path, default=ROWS, help="folder of the table")
    parser.add_argument("--smoke", action="store_true", help="noise and an as-built network")
    parsed = parser.parse_args(command_line)
    check_folders(parser, parsed)
    return parsed


if __name__ == "__main__":
    main()
