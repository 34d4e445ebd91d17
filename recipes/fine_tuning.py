"""Full, linear, from scratch, head first: fine-tuning on small medical sets, the numbers of docs/results/fine-tuning.md.

    python recipes/fine_tuning.py --data-dir datasets --weights-dir weights --out docs/results/fine-tuning.md
    python recipes/fine_tuning.py --smoke           # as-built networks and noise; the numbers mean nothing

The environment variable CROSSGRAFT_DATA may name a folder that holds both, ``datasets`` and ``weights``. Every training is a
run directory under ``--results``: what is finished is not trained again, what was stopped goes on at its last checkpoint.
``--only`` does a part of the study, and the page is written of all that is there.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from data_folders import add_folders, check_folders, unpack
from fine_tuning_page import Result, write_page
from studies import SEEDS, SMOKE_TARGETS, Target, mobilenets, noise, short, smoke_specs

from crossgraft import fine_tune
from crossgraft.compute import limit_threads
from crossgraft.data.dataset import Dataset
from crossgraft.errors import DivergedError
from crossgraft.models import ModelSpec
from crossgraft.progress import Reporter
from crossgraft.tune.record import TuningRecord

SIDE = 64
METHODS: dict[str, dict[str, Any]] = {
    "full": {"method": "full"},
    "head first": {"method": "full", "head_first": True},
    "linear": {"method": "linear"},
    "scratch": {"method": "scratch"},
}
EPOCHS = 20

TARGETS = (
    Target("breastmnist", "BreastMNIST", "breastmnist.npz"),
    Target("retinamnist", "RetinaMNIST", "retinamnist.npz"),
    Target("pneumoniamnist", "PneumoniaMNIST", "pneumoniamnist.npz", {"per_class": 300}),
)
FOLDS = 5
FOLDED = {"lesion": {"group_column": "lesion_id"}, "image": {"group_column": "none"}}
"""HAM10000 holds several pictures of some lesions: folds of whole lesions, and of single pictures."""
FOLDED_MODEL = "mobilenetv2_035 · ImageNet"


def main(command_line: Sequence[str] | None = None) -> None:
    arguments = parse_arguments(command_line)
    targets = SMOKE_TARGETS if arguments.smoke else TARGETS
    specs = smoke_specs() if arguments.smoke else mobilenets(arguments.weights_dir)
    results: list[Result] = []
    with limit_threads(arguments.threads):
        for target in targets:
            for spec in specs:
                results += study_methods(target, spec, arguments)
        folded = study_folds(specs, arguments)
    if arguments.out is not None:
        wanted = len(targets) * len(specs) * len(METHODS) * len(seeds_of(arguments)) + len(FOLDED)
        write_page(arguments.out, results, folded, titles={t.name: t.title for t in targets}, wanted=wanted)
    print(f"{len(results)} trainings and {len(folded)} cross-validations are there")


def study_methods(target: Target, spec: ModelSpec, arguments: argparse.Namespace) -> list[Result]:
    """One training for each method and seed; those that are not to be done now are read where they are there."""
    results: list[Result] = []
    for seed in seeds_of(arguments):
        for method, options in METHODS.items():
            out = arguments.results / target.name / f"{short(spec)}-{method.replace(' ', '-')}-{seed}"
            record = finished(out)
            if record is None and is_wanted(target.name, arguments):
                data = noise(target.name) if arguments.smoke else arguments.data_dir / target.file
                record = train(data, spec, arguments, out, seed=seed, **target.options, **options)
            if record is not None:
                results.append(Result(target.name, spec.name, method, seed, record))
    return results


def train(
    data: Path | Dataset, spec: ModelSpec, arguments: argparse.Namespace, out: Path, *, seed: int, **options: Any
) -> TuningRecord | None:
    """Train once; None where it diverged, which the page shows as a training that is not there."""
    try:
        tuned = fine_tune(
            data,
            model=spec,
            epochs=1 if arguments.smoke else EPOCHS,
            image_size=None if arguments.smoke else SIDE,
            weights_dir=arguments.weights_dir,
            store=False,
            no_images=True,
            device="cpu",
            workers=arguments.threads,
            seed=seed,
            out=out,
            reporter=Reporter(quiet=True),
            **options,
        )
    except DivergedError as error:
        print(f"{out.name}: {error}", flush=True)
        return None
    found = tuned.headline
    print(f"{out.parent.name} {out.name}: {found.value if found else None} in {tuned.record.seconds:.0f} s", flush=True)
    return tuned.record


def study_folds(specs: Sequence[ModelSpec], arguments: argparse.Namespace) -> dict[str, TuningRecord]:
    """Five folds of HAM10000, by lesion and by picture."""
    records: dict[str, TuningRecord] = {}
    for name, options in FOLDED.items():
        out = arguments.results / "ham10000" / f"by-{name}"
        record = finished(out)
        if record is None and is_wanted("ham10000", arguments) and not arguments.smoke:
            folder = unpack(arguments.data_dir / "ham10000_subset_jpg200x150.tar", arguments.results / "unpacked")
            spec = next(spec for spec in specs if spec.name == FOLDED_MODEL)
            folder = folder / "ham10000_subset"
            options = {"image_root": folder / "images", "folds": FOLDS, **options}
            record = train(folder / "metadata.csv", spec, arguments, out, seed=0, **options)
        if record is not None:
            records[name] = record
    return records


def finished(out: Path) -> TuningRecord | None:
    """What a finished training found."""
    file = out / "report.json"
    return TuningRecord.model_validate_json(file.read_text(encoding="utf-8")) if file.is_file() else None


def is_wanted(name: str, arguments: argparse.Namespace) -> bool:
    return not arguments.only or name in arguments.only


def seeds_of(arguments: argparse.Namespace) -> tuple[int, ...]:
    return SEEDS[:1] if arguments.smoke else SEEDS


def parse_arguments(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_folders(parser)
    parser.add_argument("--results", type=Path, default=Path("runs") / "fine-tuning", help="run directories of all trainings")
    parser.add_argument("--out", type=Path, help="the page to write")
    names = [target.name for target in TARGETS]
    parser.add_argument(
        "--only", nargs="+", choices=[*names, "ham10000", "none"], help="train on these sets; none: write the page only"
    )
    parser.add_argument("--threads", type=int, default=1, help="of the network")
    parser.add_argument("--smoke", action="store_true", help="as-built networks and noise; the numbers mean nothing")
    parsed = parser.parse_args(arguments)
    check_folders(parser, parsed)
    return parsed


if __name__ == "__main__":
    main()
