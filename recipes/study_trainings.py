"""How a study trains: one job after the other, each kept as a row of its set's table, none made twice."""

from __future__ import annotations

import argparse
import importlib.metadata
import platform
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from data_folders import add_folders, check_folders
from studies import MEDICAL_TARGETS, SEEDS, Target, device_name, noise, short
from study_rows import TrainingRow, most_probable, read_predictions, read_table

from crossgraft import fine_tune
from crossgraft.data.dataset import Dataset
from crossgraft.errors import DivergedError
from crossgraft.models import ModelSpec
from crossgraft.progress import Reporter
from crossgraft.running.jobs import Job, Outcome, Work, run_jobs
from crossgraft.tune import FineTuningResult

SIDE, EPOCHS, BATCH_SIZE = 64, 15, 64
GPUS = ("cuda", "mps")
ON = " on "
"""Between versions and the name of a GPU."""

RESULTS = Path(__file__).parents[1] / "docs" / "results"


def study_parser(
    description: str,
    *,
    name: str,
    variants: Iterable[str],
    targets: Iterable[Target] = MEDICAL_TARGETS,
    seeds: Iterable[int] = SEEDS,
) -> argparse.ArgumentParser:
    """What every study can be told: where everything lies, and which piece of it is wanted."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_folders(parser)
    parser.add_argument("--rows", type=Path, default=RESULTS / name, help="tables of what is done")
    parser.add_argument("--results", type=Path, default=Path("runs") / name, help="run directories that stay")
    parser.add_argument("--out", type=Path, help="the page to write")
    names = [target.name for target in targets]
    parser.add_argument("--only", nargs="+", choices=[*names, "none"], help="these sets; none: write the page only")
    parser.add_argument("--variants", nargs="+", choices=list(variants), help="these variants only")
    parser.add_argument("--seeds", nargs="+", type=int, choices=list(seeds), help="these seeds only")
    parser.add_argument("--threads", type=int, default=1, help="of the network")
    parser.add_argument("--device", default="cpu", help="where networks are trained: cpu, cuda, cuda:N or mps")
    parser.add_argument("--smoke", action="store_true", help="as-built networks and noise; the numbers mean nothing")
    return parser


def read_arguments(parser: argparse.ArgumentParser, command_line: Sequence[str] | None) -> argparse.Namespace:
    """Checked: folders are there, and numbers of ``--smoke`` stay out of the tables of the study."""
    parsed = parser.parse_args(command_line)
    if parsed.only != ["none"]:
        check_folders(parser, parsed)
    if parsed.smoke and parsed.rows == parser.get_default("rows"):
        parser.error("--smoke needs another --rows than the tables of the study")
    return parsed


class Training(NamedTuple):
    """What decides one of them."""

    target: Target
    spec: ModelSpec
    variant: str
    seed: int
    options: dict[str, Any]

    @property
    def in_words(self) -> str:
        """For the terminal."""
        return f"{self.target.name} {short(self.spec)} {self.variant}, seed {self.seed}"


class Rows(Work[Training, bool]):
    """Trains; the result stays as a row of the table of its set.

    Args:
        arguments: Of the command line.
        out: Run directory that stays; None: the row stays alone.
    """

    def __init__(self, arguments: argparse.Namespace, out: Path | None = None) -> None:
        self.arguments, self.out = arguments, out

    def out_of(self, training: Training) -> Path | None:
        """Run directory of one training."""
        return self.out

    def also(self, training: Training, tuned: FineTuningResult) -> None:
        """What else is looked at while the network is there; nothing here."""

    def read_back(self, job: Job[Training]) -> bool | None:
        """Is there a row with the same settings?"""
        training, table = job.spec, read_table(self.arguments.rows, job.spec.target.name)
        return table.has_training(short(training.spec), training.variant, training.seed, job.key) or None

    def do(self, job: Job[Training]) -> bool:
        """Make the row."""
        rows, name = self.arguments.rows, job.spec.target.name
        row = train(job.spec, self.arguments, job.key, self.out_of(job.spec), self.also)
        read_table(rows, name).with_training(row).write(rows, name)
        print(f"{job.name}: {row.in_words}", flush=True)
        return True


def do_all(trainings: Iterable[Training], work: Rows, *, keep_going: bool = True) -> int:
    """Do what is missing; the number of those that failed."""
    jobs = [Job(training.in_words, training, settings_of(training, work.arguments)) for training in trainings]
    return sum(bool(outcome.reason) for outcome in run_jobs(jobs, work, keep_going=keep_going, told=tell_failure))


def tell_failure(outcome: Outcome[Training, bool]) -> None:
    """One line, if there is one."""
    if outcome.reason:
        print(f"{outcome.job.name} failed: {outcome.reason}", flush=True)


def settings_of(job: Training, arguments: argparse.Namespace) -> str:
    """What decides the numbers besides set, network and seed: rows with other settings are trained anew."""
    said = {"side": SIDE, "epochs": EPOCHS, "batch_size": BATCH_SIZE, **job.target.options, **job.options}
    said["side"] = said.pop("image_size", said["side"])
    return ("smoke " if arguments.smoke else "") + " ".join(f"{name}={said[name]}" for name in sorted(said))


def train(
    job: Training,
    arguments: argparse.Namespace,
    settings: str,
    out: Path | None,
    also: Callable[[Training, FineTuningResult], None] | None = None,
) -> TrainingRow:
    """The row of a training; without numbers where it diverged. ``also`` sees the network before its row is kept."""
    known = {"model": short(job.spec), "variant": job.variant, "seed": job.seed, "settings": settings}
    known["versions"] = versions(arguments.device)
    began = time.process_time()
    with tempfile.TemporaryDirectory() as nowhere:
        out = out or Path(nowhere) / "run"
        try:
            tuned = tune(job, arguments, out)
        except DivergedError as error:
            return TrainingRow(**known, state=f"diverged: {error}")
        spent = round(time.process_time() - began, 2)
        decided = most_probable(*read_predictions(out / "predictions.csv"))
        if also is not None:
            also(job, tuned)
    counted = None if arguments.device.startswith(GPUS) else spent  # a processor that waits for a GPU is busy, too
    return TrainingRow.of_record(tuned.record, decided, **known, cpu_seconds=counted)


def tune(job: Training, arguments: argparse.Namespace, out: Path) -> FineTuningResult:
    """Train, or read back what is in ``out``."""
    options = {"image_size": SIDE, "epochs": EPOCHS, "batch_size": BATCH_SIZE, **job.target.options, **job.options}
    if arguments.smoke:
        options |= {"image_size": None, "epochs": 1}
    return fine_tune(
        data_of(job, arguments),
        model=job.spec,
        weights_dir=arguments.weights_dir,
        store=False,
        no_images=True,
        device=arguments.device,
        workers=arguments.threads,
        seed=job.seed,
        out=out,
        reporter=Reporter(quiet=True),
        **options,
    )


def data_of(job: Training, arguments: argparse.Namespace) -> Path | Dataset:
    """Images of the set; noise with ``--smoke``."""
    if job.target.opened is not None:
        return job.target.opened(arguments.data_dir)
    return noise(job.target.name) if arguments.smoke else arguments.data_dir / job.target.file


def versions(device: str = "cpu") -> str:
    """Of the programs that decide the numbers, and the GPU where there was one."""
    said = {name: importlib.metadata.version(name) for name in ("crossgraft", "torch", "timm")}
    on = ON + device_name(device) if device.startswith("cuda") else ""
    return " ".join([f"python {platform.python_version()}", *(f"{name} {version}" for name, version in said.items())]) + on


def seeds_of(arguments: argparse.Namespace, seeds: Sequence[int] = SEEDS) -> tuple[int, ...]:
    """Those of ``seeds`` that are asked for; all without a word."""
    if arguments.smoke:
        return tuple(seeds[:1])
    return tuple(seed for seed in seeds if not arguments.seeds or seed in arguments.seeds)
