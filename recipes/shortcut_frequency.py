"""Whether an artefact is relied on where a network looks: overlap of spectra against SRI; docs/results/frequency.md.

    python recipes/shortcut_frequency.py --data-dir datasets --weights-dir weights --out docs/results/frequency.md
    python recipes/shortcut_frequency.py --only busi ct                               # pieces
    python recipes/shortcut_frequency.py --only none --out docs/results/frequency.md  # the page alone
    python recipes/shortcut_frequency.py --smoke         # an as-built network and noise; the numbers mean nothing

The environment variable CROSSGRAFT_DATA may name a folder that holds both, ``datasets`` and ``weights``. SRI is read from
``--reliance``, the rows of recipes/shortcuts.py. Each piece (a set and a network; the demonstrations ``ct`` and ``tuned``) ends
as rows of ``--rows``, and what is there is not done again.
"""

from __future__ import annotations

import argparse
import csv
import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from data_folders import add_folders, check_folders
from shortcut_frequency_demos import ct_rows, tuned_rows
from shortcut_frequency_page import write_page
from shortcut_frequency_probe import probe_priority
from shortcuts import ROWS as RELIANCE
from shortcuts import SETS, SMOKE_SETS, STRENGTHS, AuditedSet, models
from studies import smoke_specs

from crossgraft.audit import EditSpectrum, edit_spectrum, learning_priority, mean_psd, normalized_psd, spectral_overlap
from crossgraft.audit.frequency import MOST_IMAGES, draw_rows
from crossgraft.compute import limit_threads
from crossgraft.data import Dataset
from crossgraft.data.opening import open_divided
from crossgraft.data.transforms import prepare_batch
from crossgraft.edit.edits import Editing, choose_edits
from crossgraft.models import ModelSpec, load_backbone
from crossgraft.options.data import DatasetOptions
from crossgraft.progress import Reporter
from crossgraft.storage.atomic import write_atomically
from crossgraft.types import Preprocessing

ROWS = Path(__file__).parents[1] / "docs" / "results" / "shortcut_frequency"
DEMOS = ("ct", "tuned")
MEASURED = ("overlap", "overlap_probe", "cosine", "distance", "flat")
Row = dict[str, str]
Known = dict[tuple[str, Preprocessing], EditSpectrum]


def main(arguments: Sequence[str] | None = None) -> None:
    parsed = parse_arguments(arguments)
    sets = SMOKE_SETS if parsed.smoke else SETS
    wanted = parsed.only or [*(each.name for each in sets), *DEMOS]
    specs = (smoke_specs() if parsed.smoke else models(parsed.weights_dir)) if wanted != ["none"] else []
    with limit_threads(1):
        for each in sets:
            if each.name in wanted:
                look_at_set(each, specs, parsed)
        if "ct" in wanted:
            once(parsed.rows, "ct", lambda: ct_rows(parsed.data_dir, specs, is_smoke=parsed.smoke))
        if "tuned" in wanted:
            once(parsed.rows, "tuned", lambda: tuned(sets[0], specs, parsed))
    if parsed.out is not None:
        tables = {path.stem: read_rows(path) for path in sorted(parsed.rows.glob("*.csv"))}
        reliance = {each.name: read_rows(parsed.reliance / f"{each.name}.csv") for each in sets}
        write_page(parsed.out, [(each.name, each.title) for each in sets], tables, reliance)


def look_at_set(each: AuditedSet, specs: Sequence[ModelSpec], parsed: argparse.Namespace) -> None:
    """Every network that has no rows yet, on the test part that an audit measures on."""
    rows, spectra = read_rows(parsed.rows / f"{each.name}.csv"), read_rows(parsed.rows / f"{each.name}_spectra.csv")
    left = [spec for spec in specs if spec.name not in {row["network"] for row in rows}]
    if not left:
        return
    parts = divide(each.load(parsed.data_dir))
    train, test = parts.take(np.flatnonzero(parts.splits == "train")), test_images(parts)
    strengths = {"gamma": ("1.1",)} if parsed.smoke else STRENGTHS
    edited: dict[tuple[str, str], Dataset] = {}
    for name, several in strengths.items():
        for options in several:
            (edit,) = choose_edits(f"{name}:{options}")
            if getattr(edit, "scope", None) == "global":  # what touches a part of the image is broadband
                edited[name, options] = test.edited(Editing([edit]))
    known: Known = {}
    for spec in left:
        of_network, curves = look_at_network(spec, (train, test), each.positive, edited, known)
        rows, spectra = rows + of_network, spectra + curves
        write_rows(parsed.rows / f"{each.name}_spectra.csv", spectra)
        write_rows(parsed.rows / f"{each.name}.csv", rows)
        print(f"{each.name} {spec.name}: {len(of_network)} artefacts", flush=True)


def test_images(parts: Dataset) -> Dataset:
    """The test part of ``audit_model``, at most ``MOST_IMAGES``."""
    test = parts.take(np.flatnonzero(parts.splits == "test"))
    return test.take(draw_rows(test, MOST_IMAGES, seed=0))


def divide(images: Dataset) -> Dataset:
    """As every command divides images without a split."""
    return open_divided(images, DatasetOptions(), use_split=None, reporter=Reporter(quiet=True))


def look_at_network(
    spec: ModelSpec, parts: tuple[Dataset, Dataset], positive: str, edited: Mapping[tuple[str, str], Dataset], known: Known
) -> tuple[list[Row], list[Row]]:
    """Its overlap with each artefact, and its spectra: of the gradient of its features, and of the loss of a probe on them."""
    backbone, (train, test) = load_backbone(spec), parts
    preprocessing = backbone.preprocessing
    inputs = prepare_batch([test.read(row) for row in range(len(test))], preprocessing)
    priorities = {
        "priority": learning_priority(backbone, inputs).psd,
        "probe": probe_priority(backbone, train, test, inputs, positive).psd,
    }
    images = mean_psd(inputs.double().numpy().transpose(0, 2, 3, 1))
    psds = {name: normalized_psd(psd) for name, psd in {"images": images, **priorities}.items()}
    side = min(preprocessing.height_pixels, preprocessing.width_pixels)
    about = {"network": spec.name, "family": spec.family or "", "input_pixels": str(side)}
    curves = [
        {**about, "cycles_per_pixel": f"{ring / side:.5g}", **{name: f"{psd[ring]:.5g}" for name, psd in psds.items()}}
        for ring in range(len(images))
    ]
    rows: list[Row] = []
    for (name, options), changed in edited.items():
        key = (f"{name}:{options}", preprocessing)
        if key not in known:
            known[key] = edit_spectrum(test, changed, preprocessing, edit=key[0])
        found = known[key]
        beside = {} if found.psd is None else spectral_overlap(found.psd, psds["priority"])._asdict()
        if found.psd is not None:
            beside["overlap_probe"] = spectral_overlap(found.psd, psds["probe"]).overlap
        texts = {key: f"{beside[key]:.6g}" if key in beside else "" for key in MEASURED}
        counted = {"num_images": str(len(test)), "num_changed": str(found.num_changed), "rms": f"{found.rms:.6g}"}
        rows.append({**about, "confounder": name, "options": options, **texts, **counted})
    return rows, curves


def tuned(each: AuditedSet, specs: Sequence[ModelSpec], parsed: argparse.Namespace) -> list[Row]:
    return tuned_rows(divide(each.load(parsed.data_dir)), each.positive, specs, is_smoke=parsed.smoke)


def once(folder: Path, name: str, rows: Callable[[], list[Row]]) -> None:
    """Rows of a demonstration, unless they are there."""
    if not (folder / f"{name}.csv").is_file():
        write_rows(folder / f"{name}.csv", rows())
        print(f"{name} is done", flush=True)


def read_rows(path: Path) -> list[Row]:
    return list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8")))) if path.is_file() else []


def write_rows(path: Path, rows: Sequence[Row]) -> None:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, text.getvalue())


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_folders(parser)
    parser.add_argument("--only", nargs="*", help="names of sets, ct, tuned; none: the page alone")
    parser.add_argument("--rows", type=Path, default=ROWS, help="folder of the tables")
    parser.add_argument("--reliance", type=Path, default=RELIANCE, help="folder of the rows of recipes/shortcuts.py")
    parser.add_argument("--out", type=Path, help="the page")
    parser.add_argument("--smoke", action="store_true", help="noise and an as-built network")
    parsed = parser.parse_args(arguments)
    check_folders(parser, parsed)
    return parsed


if __name__ == "__main__":
    main()
