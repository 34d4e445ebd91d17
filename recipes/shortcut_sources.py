"""Does it matter what a network was pretrained on? Full audits of five ResNet-20s; docs/results/shortcut_sources.md.

    python recipes/shortcut_sources.py --data-dir datasets --weights-dir weights --out docs/results/shortcut_sources.md
    python recipes/shortcut_sources.py --only medical random                                # a piece
    python recipes/shortcut_sources.py --only none --out docs/results/shortcut_sources.md   # the page alone
    python recipes/shortcut_sources.py --smoke --rows rows --work work   # noise, one epoch; the numbers mean nothing

Each source is a piece: its network is pretrained once (the weights stay under ``--work``), then fine-tuned on the target for
each artefact, share and fold. A piece that was stopped goes on; one whose rows are there is not done again. All pieces take
about 80 minutes of one core.
"""

from __future__ import annotations

import argparse
import csv
import io
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from data_folders import add_folders, check_folders
from shortcut_sources_differences import difference_rows, read_trainings, training_rows
from shortcut_sources_images import low_passed, medical, natural, target, whitened
from shortcut_sources_network import PRETRAINING_EPOCHS, pretrain, spec_of
from shortcut_sources_page import write_page
from studies import noise

from crossgraft import audit_model
from crossgraft.audit.record import AuditEntry, AuditRecord
from crossgraft.compute import limit_threads
from crossgraft.data import Dataset
from crossgraft.models import ModelSpec
from crossgraft.storage.atomic import write_atomically

ROWS = Path(__file__).parents[1] / "docs" / "results" / "shortcut_sources"
CONFOUNDERS = {"tag": "0.125", "low_pass": "0.244", "poisson_image": "2e6", "nlm_denoising": "1.6"}
"""Confounder → its strength. Images are edited at the size of the input, so all of it reaches the network."""
SHARES, FOLDS, EPOCHS = (0.0, 0.2, 0.5, 1.0), 3, 10
TABLES = ("pretraining", "audits", "trainings", "differences")
Row = dict[str, str]


class Source(NamedTuple):
    """What a network has learned from.

    Attributes:
        name: For files.
        load: Reads its images; None: there are none, and weights are random.
    """

    name: str
    load: Callable[[Path], Dataset] | None


SOURCES = (
    Source("natural", natural),
    Source("medical", medical),
    Source("random", None),
    Source("whitened", whitened),
    Source("low_passed", low_passed),
)


def main(command_line: Sequence[str] | None = None) -> None:
    arguments = parse_arguments(command_line)
    if arguments.only != ["none"]:
        with limit_threads(1):
            images = noise("target") if arguments.smoke else target(arguments.data_dir)
            for source in SOURCES:
                done = any(row["source"] == source.name for row in read_rows(arguments.rows, "audits"))
                if not done and (not arguments.only or source.name in arguments.only):
                    piece(source, images, arguments)
            compare(images, arguments)
    tables = {name: read_rows(arguments.rows, name) for name in TABLES}
    print(f"{len(tables['audits'])} audits are there")
    if arguments.out is not None:
        write_page(arguments.out, tables)


def compare(images: Dataset, arguments: argparse.Namespace) -> None:
    """Differences of all sources with rows; where some run is no longer there, the table stays as it is."""
    finished = {row["source"] for row in read_rows(arguments.rows, "trainings")}
    folders = {each.name: run_directory(arguments, each.name) for each in SOURCES if each.name in finished}
    if len(folders) < 2 or not all(folder.is_dir() for folder in folders.values()):
        return
    found = {name: read_trainings(folder, images) for name, folder in folders.items()}
    rows: list[Row] = []
    for place, (name, own) in enumerate(found.items(), start=1):
        rows += difference_rows(name, own, {other: found[other] for other in list(found)[place:]})
    write_rows(arguments.rows, "differences", rows)


def piece(source: Source, images: Dataset, arguments: argparse.Namespace) -> None:
    """Pretrain, audit, and keep rows."""
    began = time.perf_counter()
    spec = pretrained(source, arguments)
    asked: dict[str, Any] = {
        "data": images,
        "positive": "1" if arguments.smoke else "malignant",
        "confounders": [f"{name}:{CONFOUNDERS[name]}" for name in arguments.confounders],
        "shares": SHARES,
        "audit_folds": FOLDS,
        "workers": 1,
        "device": "cpu",
        "ledger": False,
    }
    frozen = audit_model([spec], mode="quick", **asked).record
    folder = run_directory(arguments, source.name)
    epochs = 1 if arguments.smoke else EPOCHS
    full = audit_model([spec], mode="full", epochs=epochs, out=folder, no_images=True, **asked).record
    seconds = time.perf_counter() - began
    add_rows(arguments.rows, "trainings", training_rows(source.name, read_trainings(folder, images)))
    # the last table: a source that is in it is done
    add_rows(arguments.rows, "audits", [audit_row(source.name, each, full, frozen, seconds) for each in full.entries])
    print(f"{source.name}: {len(full.entries)} audits in {seconds:.0f} s", flush=True)


def run_directory(arguments: argparse.Namespace, name: str) -> Path:
    """Run directory of the audit of one source."""
    return arguments.work / "audits" / name


def pretrained(source: Source, arguments: argparse.Namespace) -> ModelSpec:
    """The network of a source, trained where its row is not there."""
    if source.load is None:
        return spec_of(source.name, None)
    rows = [row for row in read_rows(arguments.rows, "pretraining") if row["source"] == source.name]
    folder: Path = arguments.work / "weights" / source.name
    if not rows or not (folder / "model.safetensors").is_file():
        images = noise(source.name) if arguments.smoke else source.load(arguments.data_dir)
        epochs = 1 if arguments.smoke else PRETRAINING_EPOCHS
        began = time.perf_counter()
        record = pretrain(source.name, images, folder, epochs=epochs).tuned.record
        seconds = time.perf_counter() - began
        accuracy, area = record.metric("accuracy"), record.metric("auc")
        row: dict[str, object] = {
            "source": source.name,
            "images": len(images),
            "classes": len(images.class_names),
            "epochs": epochs,
            "best_epoch": record.grid[0].best_epoch,
            "accuracy": accuracy and accuracy.value,
            "accuracy_low": accuracy and accuracy.low,
            "accuracy_high": accuracy and accuracy.high,
            "auc": area and area.value,
            "seconds": seconds,
        }
        rows = [written(row)]
        add_rows(arguments.rows, "pretraining", rows)
        print(f"{source.name}: pretrained in {seconds:.0f} s, accuracy {rows[0]['accuracy']}", flush=True)
    return spec_of(source.name, folder / "model.safetensors", int(rows[0]["classes"]))


def audit_row(name: str, entry: AuditEntry, full: AuditRecord, frozen: AuditRecord, seconds: float) -> Row:
    """Full mode, and what frozen features say of the same artefact."""
    quick = next(each for each in frozen.entries if each.confounder == entry.confounder)
    sri, of_frozen, clean = (
        each.metric(what)
        for each, what in ((entry, "shortcut_reliance_index"), (quick, "shortcut_reliance_index"), (entry, "clean_auc"))
    )
    drawn = next(each for each in full.confounders if each.confounder == entry.confounder)
    reached = quick.detectability
    row: dict[str, object] = {"source": name, "confounder": entry.confounder, "outcome": entry.outcome}
    for prefix, metric in (("", sri), ("frozen_", of_frozen), ("clean_", clean)):
        value = "clean_auc" if metric is clean else f"{prefix}sri"
        row |= {value: metric and metric.value, f"{prefix}low": metric and metric.low}
        row |= {f"{prefix}high": metric and metric.high}
        if metric is not clean:
            row |= {f"{prefix}patients_{end}": metric and getattr(metric, f"patients_{end}") for end in ("low", "high")}
    row |= {"frozen_outcome": quick.outcome, "detectability": reached and reached.value, "rms": drawn.rms}
    return written({**row, "input_rms": entry.input_rms, "seconds": seconds})


def written(row: dict[str, object]) -> Row:
    """As it stands in a table."""
    return {
        key: "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value) for key, value in row.items()
    }


def read_rows(folder: Path, name: str) -> list[Row]:
    path = folder / f"{name}.csv"
    return list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8")))) if path.is_file() else []


def add_rows(folder: Path, name: str, rows: Sequence[Row]) -> None:
    """Beside those that are there; older ones of the same source go."""
    fresh = {row["source"] for row in rows}
    write_rows(folder, name, [*(row for row in read_rows(folder, name) if row["source"] not in fresh), *rows])


def write_rows(folder: Path, name: str, rows: Sequence[Row]) -> None:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / f"{name}.csv", text.getvalue())


def parse_arguments(command_line: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_folders(parser)
    names = [source.name for source in SOURCES]
    parser.add_argument("--only", nargs="+", choices=[*names, "none"], help="these sources; none: the page alone")
    parser.add_argument("--confounders", nargs="+", choices=list(CONFOUNDERS), default=list(CONFOUNDERS))
    parser.add_argument("--rows", type=Path, default=ROWS, help="folder of the tables")
    parser.add_argument("--work", type=Path, default=Path("runs") / "shortcut_sources", help="weights and runs")
    parser.add_argument("--out", type=Path, help="the page")
    parser.add_argument("--smoke", action="store_true", help="noise and one epoch")
    parsed = parser.parse_args(command_line)
    if parsed.only != ["none"]:
        check_folders(parser, parsed)
    if parsed.smoke and parsed.rows == ROWS:
        parser.error("--smoke needs another --rows than the tables of the study")
    return parsed


if __name__ == "__main__":
    main()
