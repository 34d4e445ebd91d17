"""A model of the toy zoo is selected within a budget, and its regret is looked up in the honest check."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from crossgraft.demo.best_model import BestModelOptions
from crossgraft.demo.files import DATA_FILE, write_zoo
from crossgraft.demo.honest_check import HonestCheck
from crossgraft.demo.record import DemoSelectionRecord
from crossgraft.metrics import accuracy_difference
from crossgraft.models import ModelSpec
from crossgraft.progress import Reporter
from crossgraft.select.verb import select_model

ZOO_FILE = "zoo.yaml"
SELECT_FOLDER = "select"
BUDGET = "25%"


def select_from_zoo(
    specs: Sequence[ModelSpec],
    check: HonestCheck,
    options: BestModelOptions,
    *,
    folder: Path,
    reporter: Reporter,
) -> DemoSelectionRecord:
    """Select one model for a quarter of the time that fine-tuning all of them takes.

    ``check`` fine-tuned all of them on the same images, so that it is known what another choice would have given.

    Args:
        specs: The zoo; networks with random weights are left out.
        check: Accuracy of each after real fine-tuning.
        options: As for ``tune_best_model``.
        folder: Run directory of the demo with ``DATA_FILE``; it gets the zoo, and ``select``, a run directory of its own.
        reporter: Reporter of progress.

    Raises:
        StorageError: ``folder`` cannot be written.

    Cost:
        About 10 seconds on two cores; which models are tried depends on how long a step of each takes on this machine.
    """
    pretrained = [spec for spec in specs if spec.weights != "random"]
    write_zoo(pretrained, folder / ZOO_FILE)
    code = list(dict.fromkeys(spec.source for spec in pretrained))
    selection = select_model(
        folder / DATA_FILE,
        models=folder / ZOO_FILE,
        budget=BUDGET,
        allow_code=code,
        group_column="writer",
        flip=False,
        epochs=options.epochs,
        seed=options.seed,
        no_images=options.no_images,
        store=False,
        ledger=False,  # nothing is chosen by what comes out
        device="cpu",
        workers=1,
        out=folder / SELECT_FOLDER,
        overwrite=True,
        reporter=reporter,
    ).record
    accuracies = {spec.name: check.full_accuracy[spec.name] for spec in pretrained}
    best = max(accuracies, key=accuracies.__getitem__)
    regret = accuracy_difference(check.full_shares[best], check.full_shares[selection.selected], check.writers)
    return DemoSelectionRecord(
        select_folder=SELECT_FOLDER,
        zoo_file=ZOO_FILE,
        data_file=DATA_FILE,
        code=code,
        select_options=["--budget", BUDGET, *options.typed()],
        selection=selection,
        accuracy=accuracies[selection.selected],
        best=best,
        best_accuracy=accuracies[best],
        regret_low=regret.low,
        regret_high=regret.high,
    )
