"""``write_demo``: the demo as a run directory with a report."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from crossgraft.data import open_dataset
from crossgraft.data.describe import make_thumbnails
from crossgraft.demo.audited import AUDIT_FOLDER
from crossgraft.demo.best_model import COMPARE_FOLDER, MODEL_FILE, OTHER_FOLDER, OTHER_MODEL_FILE, PREDICT_FOLDER
from crossgraft.demo.files import DATA_FILE, UNSEEN_FOLDER
from crossgraft.demo.record import DemoRecord
from crossgraft.demo.selected import SELECT_FOLDER, ZOO_FILE
from crossgraft.demo.steps import run_demo
from crossgraft.demo.target_task import divide_digits
from crossgraft.options.empty import refuse_empty
from crossgraft.progress import Reporter
from crossgraft.records.base import Thumbnail
from crossgraft.result import Result
from crossgraft.running.publishing import publish
from crossgraft.running.run_directory import open_run

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False)
class DemoResult(Result[DemoRecord]):
    """What the demo measured: ``record`` holds every number."""

    def summary(self) -> str:
        """The advice of its ranking."""
        return self.record.ranking.advice

    def to_frame(self) -> pd.DataFrame:
        """One row per model that was fine-tuned."""
        import pandas as pd

        return pd.DataFrame([row.model_dump() for row in self.record.fine_tuned])


OWN = (
    *(
        f"{folder}/"
        for folder in (COMPARE_FOLDER, OTHER_FOLDER, PREDICT_FOLDER, AUDIT_FOLDER, SELECT_FOLDER, UNSEEN_FOLDER)
    ),
    *(DATA_FILE, MODEL_FILE, OTHER_MODEL_FILE, ZOO_FILE, "fine_tuned.csv"),
)
"""What is written beside the files of the run itself."""

INTRODUCTION = (
    "crossgraft finds the pretrained model that suits your images without fine-tuning them all, fine-tunes it, and says how far "
    "each number can be trusted. Here is all of that on real handwriting, offline, in about a minute."
)


def write_demo(
    *,
    out: str | Path,
    seed: int = 0,
    cache_dir: str | Path | None = None,
    fast: bool = False,
    no_images: bool = False,
    overwrite: bool = False,
    reporter: Reporter | None = None,
) -> DemoResult:
    """Run the demo; write ``run.json``, ``report.json``, ``fine_tuned.csv`` and ``report.html``.

    The best-ranked model gets run directories of its own inside, ``tune`` and ``predict``, beside the files that were given
    to them (see ``demo.best_model``).

    Args:
        out: Run directory.
        seed: Random seed.
        cache_dir: Where the toy zoo is kept.
        fast: Fewer models and steps.
        no_images: Put no thumbnails into the report.
        overwrite: Replace another run in ``out``.
        reporter: Where progress goes; silent when None.

    Returns:
        What was measured, and the report, unless that could not be written.

    Raises:
        RunDirectoryError: ``out`` is in use or holds another run.
        StorageError: Something cannot be written.
    """
    refuse_empty("out", out)
    path = Path(out)
    reporter = reporter or Reporter(quiet=True)
    config: dict[str, object] = {"seed": seed, "fast": fast, "no_images": no_images}
    named = path.name if path.is_absolute() else str(path)
    words = [
        "crossgraft",
        "demo",
        "--out",
        named,
        "--seed",
        str(seed),
        *["--fast"] * fast,
        *["--no-images"] * no_images,
    ]
    with open_run(
        path, command="demo", command_line=shlex.join(words), config=config, seed=seed, overwrite=overwrite
    ) as run:
        run.own(*OWN)
        reporter.say(INTRODUCTION)
        with reporter.spared():
            record = run_demo(
                out=path,
                seed=seed,
                cache_dir=cache_dir,
                fast=fast,
                no_images=no_images,
                reporter=reporter,
                timed=run.stage,
            )
        fingerprints = {model.name: model.weights_fingerprint for model in record.ranking.models}
        run.update(data_fingerprint=record.ranking.dataset.fingerprint, weights_fingerprints=fingerprints)
        page = publish(run, record, reporter, thumbnails=None if no_images else lambda: _thumbnails(seed))
        return DemoResult(record, path, page)


def _thumbnails(seed: int) -> list[Thumbnail]:
    return make_thumbnails(divide_digits(open_dataset("digits"), seed=seed).train)
