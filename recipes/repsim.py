"""Fine-tuning that keeps what the model knows: accuracy, similarity and what that is for; docs/results/repsim.md.

    python recipes/repsim.py --data-dir datasets --weights-dir weights --out docs/results/repsim.md
    python recipes/repsim.py --only breastmnist --networks resnet20 --variants full "batch, frozen" --seeds 0   # a piece
    python recipes/repsim.py --only none --out docs/results/repsim.md                        # the page alone
    python recipes/repsim.py --smoke                # as-built networks and noise; the numbers mean nothing

The environment variable CROSSGRAFT_DATA may name a folder that holds both, ``datasets`` and ``weights``. First a small ViT is
trained on natural images, once, because none that is trained is small enough to be fine-tuned on a CPU this often. Each
training ends as a row of ``--rows`` (three tables a set), and what is there with the same settings is not trained again, so the
study can be done in pieces, on several machines, and by two processes at once that work on different sets. Trainings with few
steps are those of recipes/repsim_few_steps.py.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from repsim_ablations import NETWORKS as ABLATED
from repsim_ablations import TARGET as ABLATIONS
from repsim_ablations import ablations
from repsim_few_steps import CHOSEN_ON, JUDGED
from repsim_page import write_page
from repsim_variants import CURVE_ENDS, variants
from studies import EXAMPLES, MEDICAL_TARGETS, SEEDS, SMOKE_TARGETS, Target, short, smoke_specs
from study_kept import Probe, changed_images, probe_on
from study_rows import CurveRow, Decided, KeptRow, most_probable, read_predictions, read_table
from study_trainings import (
    SIDE,
    Rows,
    Training,
    data_of,
    do_all,
    read_arguments,
    seeds_of,
    settings_of,
    study_parser,
    tune,
    versions,
)
from study_vit import NATURAL_FILE, VIT, VIT_NAME, pretrained_vit

from crossgraft import interpolate
from crossgraft.compute import limit_threads
from crossgraft.models import ModelSpec, load_backbone, read_zoo
from crossgraft.models.classifier import make_classifier
from crossgraft.running.jobs import Job
from crossgraft.tune import FineTuningResult

ALPHAS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
BATCH_NORMS = ("estimate", "mix")
NETWORKS = {"resnet20": "small_networks.yaml", "mobilenetv2_035": "mobilenets.yaml", "mobilenetv2_100": "mobilenets.yaml"}
"""Beside the ViT: name → zoo file; of several weights of one architecture the first."""
SIDES = {VIT_NAME: VIT["img_size"], "resnet20": 32}
"""Pixels of an image's side where it is not that of all studies: what the weights were trained on."""
PRETRAINING = "cifar10"
PROBE_ROWS = (1500, 500)
"""Images that fit, and that measure, a linear probe."""


def main(command_line: Sequence[str] | None = None) -> None:
    arguments = parse_arguments(command_line)
    targets = SMOKE_TARGETS if arguments.smoke else MEDICAL_TARGETS
    failed = 0
    if arguments.only != ["none"]:
        with limit_threads(arguments.threads):
            failed = do_all(jobs(targets, networks(arguments), arguments), KeptRows(arguments, targets))
            failed += do_all(ablation_jobs(networks(arguments), arguments), Rows(arguments))
    ablated = read_table(arguments.rows, ABLATIONS.name)
    tables = {target.name: read_table(arguments.rows, target.name) for target in targets}
    if arguments.out is not None:
        write_page(
            arguments.out,
            tables,
            ablated,
            few={name: read_table(arguments.rows / "few_steps", name) for name in (*JUDGED, *CHOSEN_ON)},
            titles={t.name: t.title for t in targets},
            vit=VIT_NAME,
            wanted=wanted(targets, arguments),
        )
    print(f"{sum(len(table.trainings) for table in (*tables.values(), ablated))} trainings are there")
    if failed:
        raise SystemExit(f"{failed} trainings failed; the same command tries them again")


def networks(arguments: argparse.Namespace) -> list[ModelSpec]:
    """The ViT, and networks with BatchNorm."""
    wanted = arguments.networks or [VIT_NAME, *NETWORKS]
    found = [pretrained_vit(arguments, PRETRAINING)] if VIT_NAME in wanted else []
    if arguments.smoke:
        return [*found, *smoke_specs()]
    for name, zoo in NETWORKS.items():
        specs = read_zoo(EXAMPLES / zoo, weights_dir=arguments.weights_dir, allow_code=EXAMPLES)
        found += [next(spec for spec in specs if short(spec) == name)] if name in wanted else []
    return found


def jobs(targets: Sequence[Target], specs: Sequence[ModelSpec], arguments: argparse.Namespace) -> Iterator[Training]:
    """All that is asked for, the most informative first: the usual weights with every seed, then the others with one."""
    chosen = [target for target in targets if not arguments.only or target.name in arguments.only]
    for is_swept in (False, True):
        for seed in [each for each in seeds_of(arguments) if not is_swept or each == SEEDS[0]]:
            for spec in specs:
                for name, variant in variants(has_batch_norm=short(spec) != VIT_NAME).items():
                    if variant.is_swept is not is_swept or (arguments.variants and name not in arguments.variants):
                        continue
                    for target in chosen:
                        side = SIDES.get(short(spec))
                        of_side = {} if side is None else {"image_size": side}
                        yield Training(target, spec, name, seed, {**variant.options, **of_side})


def ablation_jobs(specs: Sequence[ModelSpec], arguments: argparse.Namespace) -> Iterator[Training]:
    """Those of Table 5, seed by seed."""
    for seed in seeds_of(arguments):
        for spec in specs:
            if (arguments.only and ABLATIONS.name not in arguments.only) or short(spec) not in ABLATED:
                continue
            for name, options in ablations(short(spec)).items():
                if not arguments.variants or name in arguments.variants:
                    side = SIDES.get(short(spec))
                    yield Training(ABLATIONS, spec, name, seed, {**options, **({"image_size": side} if side else {})})


def wanted(targets: Sequence[Target], arguments: argparse.Namespace) -> int:
    """Trainings of the whole study."""
    kinds = [False, True] if arguments.smoke else [False, True, True, True]
    seeds = len(seeds_of(arguments) if arguments.smoke else SEEDS)
    of_each = [1 if each.is_swept else seeds for kind in kinds for each in variants(has_batch_norm=kind).values()]
    of_ablations = sum(seeds * len(ablations(name)) for name in ABLATED[: len(kinds)])
    return len(targets) * sum(of_each) + of_ablations


class KeptRows(Rows):
    """Rows with what was kept, and of FULL the curve from LINEAR to it."""

    def __init__(self, arguments: argparse.Namespace, targets: Sequence[Target]) -> None:
        super().__init__(arguments)
        self._found_before: dict[tuple[str, int], float] = {}
        self._others = {target.name: targets[(place + 1) % len(targets)] for place, target in enumerate(targets)}

    def out_of(self, training: Training) -> Path | None:
        """Only the ends of curves leave run directories."""
        return run_of(training, self.arguments) if training.variant in CURVE_ENDS else None

    def read_back(self, job: Job[Training]) -> bool | None:
        """Of FULL there may be a row without its curve, so that what it lacks is found while it is done."""
        return None if job.spec.variant == "full" else super().read_back(job)

    def do(self, job: Job[Training]) -> bool:
        """Make what is missing of row and curve."""
        if super().read_back(job) is None:
            super().do(job)
        if job.spec.variant == "full":
            make_curve(job.spec, self.arguments)
        return True

    def also(self, training: Training, tuned: FineTuningResult) -> None:
        """Look at what the body has kept, and at changed images."""
        rows, name = self.arguments.rows, training.target.name
        row = self._kept(training, tuned)
        read_table(rows, name).with_kept(row).write(rows, name)

    def _kept(self, training: Training, tuned: FineTuningResult) -> KeptRow:
        record, classifier = tuned.record, tuned.classifier
        best = next(row for row in record.history if row.is_best)
        found: dict[str, float | None] = {
            name: record.similarity.get(name) for name in ("cka_adapted", "cka_debiased_adapted", "cka_debiased_untouched")
        }
        found["val_cka_debiased"] = best.val_cka_debiased
        if classifier is not None and not self.arguments.smoke:
            folder, target = self.arguments.data_dir, training.target
            probes = {
                "probe_natural": probe_on(folder / NATURAL_FILE, *PROBE_ROWS),
                "probe_medical": probe_on(folder / self._others[target.name].file, *PROBE_ROWS),
            }
            for name, probe in probes.items():
                found[name] = probe.accuracy(classifier)
                found[f"{name}_before"] = self._before(probe, training, classifier.num_outputs)
            images = changed_images(folder / target.file)
            found["clean_accuracy"] = images.accuracy(classifier)
            found["corrupted_accuracy"] = images.corrupted_accuracy(classifier)
        rounded = {name: None if value is None else round(value, 5) for name, value in found.items()}
        return KeptRow(model=short(training.spec), variant=training.variant, seed=training.seed, **rounded)

    def _before(self, probe: Probe, training: Training, num_outputs: int) -> float:
        """What the probe finds with the pretrained body; once for each network."""
        key = short(training.spec), id(probe)
        if key not in self._found_before:
            side = training.options.get("image_size", SIDE)
            backbone = load_backbone(training.spec, weights_dir=self.arguments.weights_dir, image_size=side)
            self._found_before[key] = probe.accuracy(make_classifier(backbone, num_outputs, seed=0))
        return self._found_before[key]


def run_of(job: Training, arguments: argparse.Namespace) -> Path:
    return arguments.results / job.target.name / f"{short(job.spec)}-{job.variant}-{job.seed}"


def make_curve(job: Training, arguments: argparse.Namespace) -> None:
    """Between LINEAR and FULL of this seed, with both ways to find the statistics of BatchNorm."""
    table = read_table(arguments.rows, job.target.name)
    settings = " ".join([settings_of(job, arguments), "alphas=" + ",".join(f"{alpha:g}" for alpha in ALPHAS)])
    if table.has_curve(short(job.spec), job.seed, settings):
        return
    known = variants(has_batch_norm="batch_norm" in job.options)
    sides = {name: value for name, value in job.options.items() if name == "image_size"}
    ends = [job._replace(variant=name, options={**known[name].options, **sides}) for name in CURVE_ENDS]
    for end in ends:
        tune(end, arguments, run_of(end, arguments))  # read back where its run directory is there
    rows: list[CurveRow] = []
    for batch_norm in BATCH_NORMS:
        rows += curve(ends, arguments, batch_norm, settings)
    read_table(arguments.rows, job.target.name).with_curve(rows).write(arguments.rows, job.target.name)
    print(f"{job.target.name} {short(job.spec)} curve, seed {job.seed}: {len(rows)} networks", flush=True)


def curve(ends: Sequence[Training], arguments: argparse.Namespace, batch_norm: Any, settings: str) -> list[CurveRow]:
    """Networks between two run directories."""
    full, linear = (run_of(end, arguments) for end in ends)
    truth = read_predictions(full / "predictions.csv")[1]
    decided: list[Decided] = []
    found = interpolate(
        full,
        data_of(ends[0], arguments),
        linear=linear,
        alphas=ALPHAS,
        batch_norm=batch_norm,
        allow_code=ends[0].spec.folder,
        device="cpu",
        workers=arguments.threads,
        on_point=lambda said: decided.append(most_probable(said.test_logits, truth)),
    )
    known = {"model": short(ends[0].spec), "seed": ends[0].seed, "settings": settings, "versions": versions()}
    return CurveRow.of_record(found.record, decided, **known)


def parse_arguments(command_line: Sequence[str] | None = None) -> argparse.Namespace:
    names = dict.fromkeys([*variants(has_batch_norm=True), *(name for each in ABLATED for name in ablations(each))])
    parser = study_parser(__doc__ or "", name="repsim", variants=names, targets=[*MEDICAL_TARGETS, ABLATIONS])
    parser.add_argument("--networks", nargs="+", choices=[VIT_NAME, *NETWORKS], help="these networks only")
    return read_arguments(parser, command_line)


if __name__ == "__main__":
    main()
