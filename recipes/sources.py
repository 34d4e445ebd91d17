"""What should a network have learned from? One ResNet-20 from each data set and from all but the target; docs/results/sources.md.

    python recipes/sources.py --data-dir datasets --weights-dir weights --out docs/results/sources.md
    python recipes/sources.py --only breastmnist busi                   # these targets
    python recipes/sources.py --only none --out docs/results/sources.md # the page alone
    python recipes/sources.py --smoke --rows rows --work work --out page.md   # noise, one epoch; the numbers mean nothing

Each source is pretrained once (its weights stay under ``--work``), then fine-tuned on every target that it has no image of. Each
training ends as a row of ``--rows``, and what is there with the same settings is not trained again: the same command goes on
where it was stopped. All of it takes about two hours of one core. ``--minutes`` begins no fine-tuning after that.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from data_folders import add_folders
from ground_truth import Cell, Cells, do_all, zoo
from ground_truth_rows import FULL, LEARNING_RATES
from ground_truth_sets import TargetSet, smoke_noise
from shortcut_sources_network import pretrain, spec_of
from sources_images import MEDICAL, RANDOM, Opener, described, effective_rank, scores_on, similarity, sources_of
from sources_page import SEEDS, PairRow, SourceRow, read_pairs, read_sources, write_page, write_pairs, write_sources
from studies import smoke_specs
from study_trainings import RESULTS, read_arguments

from crossgraft.compute import limit_threads
from crossgraft.data import Dataset
from crossgraft.models import ModelSpec, load_backbone

LEAST_EPOCHS, MOST_EPOCHS, IMAGES_SEEN = 25, 100, 40_000
REFERENCE = "mobilenetv1_025 · ImageNet"
"""The network that images are described with; it is no source."""
SMOKE_TARGETS = (
    TargetSet("noise", "Noise", smoke_noise, per_class=20),
    TargetSet("more_noise", "More noise", smoke_noise, per_class=20),
)


class Study:
    """What was said, and what is read once.

    Args:
        arguments: Of the command line.
        targets: All of them; those that are not trained on are sources as well.
    """

    def __init__(self, arguments: argparse.Namespace, targets: Sequence[TargetSet]) -> None:
        self.arguments, self.targets = arguments, targets
        self.cached: dict[str, Any] = {}

    def images(self, name: str, opened: Opener) -> Dataset:
        """Of one source."""
        if name not in self.cached:
            self.cached[name] = opened(self.arguments.data_dir)
        return self.cached[name]

    def seen(self, name: str, images: Dataset) -> tuple[np.ndarray, np.ndarray]:
        """What the reference network and the spectrum say of images."""
        key = f"seen {name}"
        if key not in self.cached:
            self.cached[key] = described(images, self.reference, self.arguments.work / "features")
        return self.cached[key]

    @property
    def reference(self) -> Any:
        """The network that describes images."""
        arguments = self.arguments
        specs = smoke_specs() if arguments.smoke else zoo(arguments.weights_dir)
        spec = specs[0] if arguments.smoke else next(each for each in specs if each.name == REFERENCE)
        return load_backbone(spec, weights_dir=arguments.weights_dir)


def main(command_line: Sequence[str] | None = None) -> None:
    arguments = parse_arguments(command_line)
    targets = SMOKE_TARGETS if arguments.smoke else MEDICAL
    failed = 0
    if arguments.only != ["none"]:
        study = Study(arguments, targets)
        work = Cells(arguments)
        with limit_threads(1):
            for target in targets:
                if (not arguments.only or target.name in arguments.only) and time.monotonic() < arguments.deadline:
                    specs = [source_spec(name, opened, study) for name, opened in sources(target, study).items()]
                    describe_pairs(target, specs, work.images(target), study)
                    failed += do_all(cells(target, specs), work)
    if arguments.out is not None:
        write_page(arguments.out, arguments.rows, targets)
    if failed:
        raise SystemExit(f"{failed} trainings failed; the same command tries them again")


def sources(target: TargetSet, study: Study) -> Mapping[str, Opener | None]:
    """Sources of a target; with ``--smoke`` the other noise and random weights alone."""
    found = sources_of(target, study.targets)
    return {name: each for name, each in found.items() if not study.arguments.smoke or name not in ("cifar10",)}


def cells(target: TargetSet, specs: Sequence[ModelSpec]) -> Iterator[Cell]:
    """Seed by seed, so that the first one is complete first."""
    for seed in SEEDS:
        for spec in specs:
            for rate in LEARNING_RATES:
                yield Cell(target, spec, FULL, rate, seed)


def source_spec(name: str, opened: Opener | None, study: Study) -> ModelSpec:
    """The network with the weights of a source, pretrained where they are not there."""
    if opened is None:
        return spec_of(name, None)
    arguments = study.arguments
    rows = {row.source: row for row in read_sources(arguments.rows)}
    folder = arguments.work / "weights" / name.replace(" ", "_")
    if name not in rows or not (folder / "model.safetensors").is_file():
        images = study.images(name, opened)
        epochs = 1 if arguments.smoke else int(np.clip(IMAGES_SEEN / len(images), LEAST_EPOCHS, MOST_EPOCHS))
        began = time.process_time()
        record = pretrain(name, images, folder, epochs=epochs).tuned.record
        area, accuracy = record.metric("auc"), record.metric("accuracy")
        rows[name] = SourceRow(
            source=name,
            images=len(images),
            classes=len(images.class_names),
            epochs=epochs,
            best_epoch=record.grid[0].best_epoch,
            auc=None if area is None else area.value,
            accuracy=None if accuracy is None else accuracy.value,
            diversity=effective_rank(study.seen(name, images)[0]),
            cpu_seconds=round(time.process_time() - began, 1),
        )
        write_sources(arguments.rows, list(rows.values()))
        print(f"{name}: pretrained on {len(images)} images, {rows[name].cpu_seconds} CPU seconds", flush=True)
    return spec_of(name, folder / "model.safetensors", rows[name].classes)


def describe_pairs(target: TargetSet, specs: Sequence[ModelSpec], images: Dataset, study: Study) -> None:
    """What is known of each source and this target before anything is fine-tuned: similarity, and scores of frozen features."""
    arguments = study.arguments
    pairs = {(row.source, row.target): row for row in read_pairs(arguments.rows)}
    train = images.take(np.asarray(images.splits) == "train")
    openers = sources(target, study)
    for spec in specs:
        if (spec.name, target.name) in pairs:
            continue
        scores = scores_on(train, load_backbone(spec), arguments.work / "features")
        opened = openers[spec.name]
        alike: Mapping[str, float] = {}
        if opened is not None and spec.name != RANDOM:
            seen = study.seen(spec.name, study.images(spec.name, opened))
            alike = similarity(seen, study.seen(f"target {target.name}", train))
        known = {name: round(value, 8) for name, value in {**alike, **scores}.items()}
        pairs[spec.name, target.name] = PairRow(source=spec.name, target=target.name, **known)
    write_pairs(arguments.rows, list(pairs.values()))


def parse_arguments(command_line: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_folders(parser)
    parser.add_argument("--rows", type=Path, default=RESULTS / "sources", help="tables of what is done")
    parser.add_argument("--work", type=Path, default=Path("runs") / "sources", help="weights and features")
    parser.add_argument("--out", type=Path, help="the page to write")
    names = [target.name for target in MEDICAL]
    parser.add_argument("--only", nargs="+", choices=[*names, "none"], help="these targets; none: write the page only")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no fine-tuning after that")
    parser.add_argument("--smoke", action="store_true", help="noise and one epoch; the numbers mean nothing")
    parsed = read_arguments(parser, command_line)
    parsed.deadline = time.monotonic() + 60 * parsed.minutes
    return parsed


if __name__ == "__main__":
    main()
