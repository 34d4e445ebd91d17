"""Two demonstrations for docs/results/frequency.md: projection noise on computed tomograms, and a tuned network under filters."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from fewshot_sets import medical_mnist
from studies import noise

from crossgraft import fine_tune
from crossgraft.audit import band_accuracy, detectability, frequency_audit, subject_of
from crossgraft.data import Dataset
from crossgraft.edit.confounders.poisson_projection import PoissonProjection
from crossgraft.edit.edits import Editing
from crossgraft.errors import CrossgraftWarning
from crossgraft.features import extract_features
from crossgraft.models import Backbone, ModelSpec, load_backbone
from crossgraft.seeding import generator

NETWORK = "mobilenetv1_025 · ImageNet"
CT = ("AbdomenCT", "ChestCT", "HeadCT")
FIELD_OF_VIEW_M = 0.26
"""Side of a slice of LoDoPaB-CT; what those of Medical MNIST have is not known."""
PHOTONS = (2e7, 4096.0)
EPOCHS = 15
Row = dict[str, str]


def ct_rows(data_dir: Path, specs: Sequence[ModelSpec], *, is_smoke: bool) -> list[Row]:
    """Noise of two doses on each kind of tomogram: how large it is, whether a network sees it, how many rays are lost."""
    images, names = (noise("ct"), ("0", "1")) if is_smoke else (medical_mnist(data_dir).dataset, CT)
    backbone = load_backbone(one_of(specs))
    rows: list[Row] = []
    for name in names:
        slices = images.take(np.flatnonzero(np.array(images.class_names)[images.targets] == name))
        slices = slices.take(range(20 if is_smoke else len(slices)))
        side = slices.read(0).shape[0]
        clean = features(slices, backbone)
        for photons in PHOTONS:
            edit = PoissonProjection(num_photons=photons, pixel_size_m=FIELD_OF_VIEW_M / side)
            editing = Editing([edit])
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", CrossgraftWarning)  # starved rays are a column
                noisy = slices.edited(editing)
            seen = detectability(clean, features(noisy, backbone)).auc
            facts = editing.facts()[0]
            starved = [
                edit.noise(slices.read(row).mean(axis=2) / 255, generator(0, "starved", str(row))).starved_share
                for row in range(len(slices))
            ]
            rows.append(
                {
                    "images": name,
                    "num_images": str(len(slices)),
                    "num_photons": f"{photons:g}",
                    "rms": f"{facts.rms:.6g}",
                    "share_changed": f"{facts.share_changed:.6g}",
                    "starved": f"{np.mean(starved):.6g}",
                    "network": backbone.name,
                    "detectability": f"{seen.value:.6g}",
                    "low": "" if seen.low is None else f"{seen.low:.6g}",
                    "high": "" if seen.high is None else f"{seen.high:.6g}",
                }
            )
    return rows


def tuned_rows(divided: Dataset, positive: str, specs: Sequence[ModelSpec], *, is_smoke: bool) -> list[Row]:
    """AUC of a fine-tuned network whose test images lose frequencies; and what it looks at, before and after."""
    spec = one_of(specs)
    tuned = fine_tune(divided, model=spec, epochs=1 if is_smoke else EPOCHS, workers=1, ledger=False).model
    test = divided.take(np.flatnonzero(divided.splits == "test"))
    bands = band_accuracy(subject_of(tuned), test, positive=positive)
    about = {"network": spec.name, "num_images": str(len(test))}
    measured = [("clean", 0.0, bands.clean), *((f"{row.kind}-pass", row.cutoff, row.value) for row in bands.rows)]
    rows = [
        {
            **about,
            "curve": name,
            "cycles_per_pixel": f"{cutoff:.5g}",
            "value": f"{found.value:.6g}",
            "low": "" if found.low is None else f"{found.low:.6g}",
            "high": "" if found.high is None else f"{found.high:.6g}",
        }
        for name, cutoff, found in measured
    ]
    seen = frequency_audit(tuned, test, before=load_backbone(spec))
    curves = {"images": seen.psd, "before": seen.before and seen.before.psd, "after": seen.after and seen.after.psd}
    return rows + [
        {**about, "curve": name, "cycles_per_pixel": f"{frequency:.5g}", "value": f"{value:.5g}", "low": "", "high": ""}
        for name, psd in curves.items()
        for frequency, value in zip(seen.frequencies, [] if psd is None else psd, strict=False)
    ]


def features(images: Dataset, backbone: Backbone) -> np.ndarray:
    return np.asarray(extract_features(images, backbone, num_threads=1).features)


def one_of(specs: Sequence[ModelSpec]) -> ModelSpec:
    return next((spec for spec in specs if spec.name == NETWORK), specs[0])
