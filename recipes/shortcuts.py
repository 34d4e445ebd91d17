"""Which networks lean on which artefact: frozen features, every confounder at two strengths; docs/results/shortcuts.md.

    python recipes/shortcuts.py --data-dir datasets --weights-dir weights --out docs/results/shortcuts.md
    python recipes/shortcuts.py --only busi --confounders tag low_pass        # a piece
    python recipes/shortcuts.py --only none --out docs/results/shortcuts.md   # the page alone
    python recipes/shortcuts.py --smoke              # an as-built network and noise; the numbers mean nothing

The environment variable CROSSGRAFT_DATA may name a folder that holds both, ``datasets`` and ``weights``. Each piece (a set, a
confounder with its options) ends as rows of ``--rows``, one table per set, and what is there is not done again.
"""

from __future__ import annotations

import argparse
import csv
import io
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from data_folders import add_folders, check_folders
from fewshot_sets import brain, busi, ham10000
from shortcuts_page import write_page
from studies import EXAMPLES, noise, smoke_specs

from crossgraft import audit_model
from crossgraft.compute import limit_threads
from crossgraft.data import Dataset
from crossgraft.models import ModelSpec, read_zoo
from crossgraft.storage.atomic import write_atomically

ROWS = Path(__file__).parents[1] / "docs" / "results" / "shortcuts"
ZOOS = ("mobilenets.yaml", "small_networks.yaml")
STRENGTHS = {
    "tag": ("0.0625", "0.125"),
    "low_pass": ("0.488", "0.244"),
    "poisson_image": ("2e7", "2e6"),
    "nlm_denoising": ("0.8", "1.6"),
    "text_annotation": ("size=0.06", "size=0.12"),
    "pen_mark": ("width=0.008", "width=0.02"),
    "ruler": ("width=0.04", "width=0.08"),
    "chest_tube": ("amplitude=0.1", "amplitude=0.25"),
    "ecg_lead": ("1", "3"),
    "motion_blur": ("0.02", "0.05"),
    "intensity_shift": ("1.05,offset=0.02", "1.1,offset=0.05"),
    "gamma": ("1.1", "1.3"),
    "jpeg": ("60", "20"),
    "bias_field": ("0.15", "0.3"),
    "gibbs": ("0.9", "0.7"),
    "resample": ("0.75", "0.5"),
    "mr_motion": ("3", "8"),
    "collimation": ("0.04", "0.08"),
}
"""Confounder → options at two strengths, the weaker one first."""


class AuditedSet(NamedTuple):
    """One labelled set and the class in question."""

    name: str
    title: str
    load: Callable[[Path], Dataset]
    positive: str


SETS = (
    AuditedSet("busi", "BUSI", lambda folder: busi(folder).dataset, "malignant"),
    AuditedSet("brain", "Brain MRI", brain, "yes"),
    AuditedSet("ham10000", "HAM10000", lambda folder: ham10000(folder).dataset, "mel"),
)
SMOKE_SETS = (AuditedSet("noise", "Noise", lambda _: noise("noise"), "1"),)
FIELDS = (
    "network",
    "confounder",
    "options",
    "outcome",
    "sri",
    "low",
    "high",
    "patients_low",
    "patients_high",
    "clean_auc",
    "iid_auc",
    "ood_auc",
    "detectability",
    "rms",
    "input_rms",
    "seconds",
)


def main(arguments: Sequence[str] | None = None) -> None:
    parsed = parse_arguments(arguments)
    sets = SMOKE_SETS if parsed.smoke else SETS
    specs: list[ModelSpec] = []
    for each in sets:
        if parsed.only and each.name not in parsed.only:
            continue
        rows, images = read_rows(parsed.rows, each.name), None
        for name, several in STRENGTHS.items():
            if parsed.confounders and name not in parsed.confounders:
                continue
            for options in several[:1] if parsed.smoke else several:
                if any((row["confounder"], row["options"]) == (name, options) for row in rows):
                    continue
                images = images or each.load(parsed.data_dir)
                specs = specs or (smoke_specs() if parsed.smoke else models(parsed.weights_dir))
                rows += audit(images, each.positive, specs, name, options)
                write_rows(parsed.rows, each.name, rows)
                print(f"{each.name} {name}:{options}: {float(rows[-1]['seconds']) * len(specs):.0f} s", flush=True)
    found = {each: read_rows(parsed.rows, each.name) for each in sets}
    print(f"{sum(map(len, found.values()))} rows are there")
    if parsed.out is not None:
        write_page(parsed.out, [(each.title, rows) for each, rows in found.items()], read_rows(parsed.rows, "planted"))


def audit(images: Dataset, positive: str, specs: Sequence[ModelSpec], name: str, options: str) -> list[dict[str, str]]:
    """All networks with one confounder."""
    begin = time.perf_counter()
    with limit_threads(1):
        found = audit_model(
            list(specs), data=images, positive=positive, confounders=[f"{name}:{options}"], workers=1, ledger=False
        ).record
    rms = found.confounders[0].rms
    rows: list[dict[str, str]] = []
    for entry in found.entries:
        sri = entry.metric("shortcut_reliance_index")
        values = {
            "sri": sri and sri.value,
            "low": sri and sri.low,
            "high": sri and sri.high,
            "patients_low": sri and sri.patients_low,
            "patients_high": sri and sri.patients_high,
            **{each: (metric := entry.metric(each)) and metric.value for each in ("clean_auc", "iid_auc", "ood_auc")},
            "detectability": entry.detectability and entry.detectability.value,
            "rms": rms,
            "input_rms": entry.input_rms,
            "seconds": (time.perf_counter() - begin) / len(found.entries),
        }
        texts = {key: "" if value is None else f"{value:.6g}" for key, value in values.items()}
        rows.append({"network": entry.model, "confounder": name, "options": options, "outcome": entry.outcome, **texts})
    return rows


def models(weights_dir: Path) -> list[ModelSpec]:
    """Every checkpoint of the examples."""
    zoos = [EXAMPLES / zoo for zoo in ZOOS]
    return [spec for zoo in zoos for spec in read_zoo(zoo, weights_dir=weights_dir, allow_code=EXAMPLES)]


def read_rows(folder: Path, name: str) -> list[dict[str, str]]:
    path = folder / f"{name}.csv"
    return list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8")))) if path.is_file() else []


def write_rows(folder: Path, name: str, rows: Sequence[dict[str, str]]) -> None:
    text = io.StringIO()
    writer = csv.DictWriter(text, FIELDS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / f"{name}.csv", text.getvalue())


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_folders(parser)
    parser.add_argument("--only", nargs="*", help="names of sets; none: the page alone")
    parser.add_argument("--confounders", nargs="*", help="names of confounders")
    parser.add_argument("--rows", type=Path, default=ROWS, help="folder of the tables")
    parser.add_argument("--out", type=Path, help="the page")
    parser.add_argument("--smoke", action="store_true", help="noise and an as-built network")
    parsed = parser.parse_args(arguments)
    check_folders(parser, parsed)
    return parsed


if __name__ == "__main__":
    main()
