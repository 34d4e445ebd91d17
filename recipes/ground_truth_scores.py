"""Scores of frozen features on the sets of the trained table, which recipes/benchmark.py sets beside the trainings.

    python recipes/ground_truth_scores.py --data-dir datasets --weights-dir weights
    python recipes/ground_truth_scores.py --only breastmnist
    python recipes/ground_truth_scores.py --smoke --rows rows --work work     # noise; the numbers mean nothing

Each set becomes one table beside the rows of recipes/ground_truth.py, written once all its networks are scored; a set that is
there is not scored again. Only training images are looked at. Scores that need the network itself are left out: they take a
backward pass of every image.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from data_folders import add_folders, check_folders
from ground_truth import CIFAR_SIDE, SIDE, fitting, zoo
from ground_truth_rows import ScoreRow, read_scores, write_scores
from ground_truth_sets import SETS, SMOKE_SETS, TargetSet, parts_of
from ground_truth_table import ROWS
from studies import smoke_specs

from crossgraft.compute import limit_threads
from crossgraft.data import Dataset
from crossgraft.errors import CrossgraftError
from crossgraft.features import FeatureSet, extract_features
from crossgraft.models import ModelSpec, load_backbone
from crossgraft.progress import Reporter
from crossgraft.scores import SCORES, Score, ScoreInputs, ZooScore

LEFT_OUT = ("gradient_ratio", "nca_gradient")


def main(command_line: Sequence[str] | None = None) -> None:
    arguments = parse_arguments(command_line)
    specs = smoke_specs() if arguments.smoke else zoo(arguments.weights_dir)
    with limit_threads(1):
        for target in SMOKE_SETS if arguments.smoke else SETS:
            wanted = not arguments.only or target.name in arguments.only
            if wanted and not read_scores(arguments.rows, target.name):
                measure(target, fitting(target, specs), arguments)


def measure(target: TargetSet, specs: Sequence[ModelSpec], arguments: argparse.Namespace) -> None:
    """All scores of all networks on one set."""
    began = time.process_time()
    train = training_part(target, arguments.data_dir)
    inputs = {spec.name: inputs_of(train, features_of(train, spec, arguments)) for spec in specs}
    rows = [row for name in SCORES.names() if name not in LEFT_OUT for row in scored(name, inputs)]
    write_scores(arguments.rows, target.name, rows)
    print(f"{target.title}: {len(rows)} values, {time.process_time() - began:.0f} CPU seconds", flush=True)


def training_part(target: TargetSet, folder: Path) -> Dataset:
    """The images that networks are fine-tuned on."""
    images = parts_of(target, folder)
    return images.take(np.asarray(images.splits) == "train")


def features_of(train: Dataset, spec: ModelSpec, arguments: argparse.Namespace) -> FeatureSet:
    """At the resolution of the whole trainings; kept on disk under ``--work``."""
    side = CIFAR_SIDE if spec.name.endswith("CIFAR-10") else SIDE
    backbone = load_backbone(spec, weights_dir=arguments.weights_dir, image_size=None if arguments.smoke else side)
    cache = arguments.work / "features"
    return extract_features(train, backbone, cache_dir=cache, num_threads=1, reporter=Reporter(quiet=True))


def inputs_of(train: Dataset, found: FeatureSet) -> ScoreInputs:
    """What scores of arrays may ask for."""
    return ScoreInputs(
        features=np.asarray(found.features),
        labels=train.targets,
        groups=train.groups,
        source_logits=None if found.source_logits is None else np.asarray(found.source_logits),
    )


def scored(name: str, inputs: Mapping[str, ScoreInputs]) -> Iterator[ScoreRow]:
    """One score of every network; a network without a value has the reason."""
    score = SCORES.get(name)
    options = zoo_options(score, inputs)
    if isinstance(score, ZooScore):
        rows = {model: _row(name, model, lambda of=of: dict(score.parts(of))) for model, of in inputs.items()}
        known = [model for model, (_, found) in rows.items() if found is not None]
        values = dict(zip(known, score.combine([rows[model][1] for model in known]), strict=True)) if known else {}
        for model, (row, _) in rows.items():
            yield replace(row, value=_finite(values.get(model)))
        return
    for model, of in inputs.items():
        row, value = _row(name, model, lambda of=of, model=model: score.evaluate(of, **options[model]))
        yield replace(row, value=_finite(value))


def zoo_options(score: Score[Any], inputs: Mapping[str, ScoreInputs]) -> Mapping[str, dict[str, float]]:
    """What a ranking sets from all networks, as the η of ITM."""
    option = score.zoo_option
    if option is None:
        return {model: {} for model in inputs}
    chosen = option.choose([option.measure(of.features, of.labels) for of in inputs.values()])
    return {model: {option.name: value} for model, value in zip(inputs, chosen, strict=True)}


def _row(name: str, model: str, value: Callable[[], Any]) -> tuple[ScoreRow, Any]:
    began = time.process_time()
    try:
        found, reason = value(), ""
    except CrossgraftError as error:
        found, reason = None, " ".join(str(error).split())
    spent = round(time.process_time() - began, 4)
    return ScoreRow(model=model, score=name, cpu_seconds=spent, reason=reason), found


def _finite(value: float | None) -> float | None:
    return None if value is None or not np.isfinite(value) else round(float(value), 8)


def parse_arguments(command_line: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_folders(parser)
    parser.add_argument("--rows", type=Path, default=ROWS, help="tables of the trained table")
    parser.add_argument("--work", type=Path, default=Path("runs") / "ground_truth", help="features")
    parser.add_argument("--only", nargs="+", choices=[target.name for target in SETS], help="these sets")
    parser.add_argument("--smoke", action="store_true", help="noise; the numbers mean nothing")
    parsed = parser.parse_args(command_line)
    check_folders(parser, parsed)
    if parsed.smoke and parsed.rows == parser.get_default("rows"):
        parser.error("--smoke needs another --rows than the tables of the study")
    return parsed


if __name__ == "__main__":
    main()
