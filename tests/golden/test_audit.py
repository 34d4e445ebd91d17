"""Spectra, edits and summaries of an audit against independent computations (see audit.json)."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score

from crossgraft.audit import (
    flip_share,
    learning_priority,
    low_pass,
    normalized_psd,
    ood_drop_area,
    pure_shortcut,
    radial_psd,
    shortcut_reliance_index,
    spectral_overlap,
    whiten_spectrum,
)
from crossgraft.audit._fourier import ring_numbers, within
from crossgraft.audit.confounders.low_pass import LowPass
from crossgraft.audit.reliance import num_edited, pair_auc
from crossgraft.features.input_gradients import input_gradients
from crossgraft.statistics import mean_interval, sign_flip, two_sample_permutation

HERE = Path(__file__).parent
IMAGES = ["rand32", "odd31x33", "rect24x40"]


@pytest.fixture(scope="module")
def golden():
    with np.load(HERE / "audit.npz", allow_pickle=False) as stored:
        return {name: stored[name] for name in stored.files}


def agree(found, expected):
    np.testing.assert_allclose(found, expected, **json.loads((HERE / "audit.json").read_text())["tolerance"])


@pytest.mark.parametrize("name", IMAGES)
def test_low_pass(golden, name):
    image = golden[f"img_{name}"]
    agree(low_pass(image, 6, unit="px"), golden[f"lp_px6_{name}"])
    agree(low_pass(image, 0.21), golden[f"lp_cyc0.21_{name}"])


def test_low_pass_of_a_square(golden):
    image = golden["img_rand32"]
    mask = within(32, 32, 6.0, "px")
    np.testing.assert_array_equal(mask, golden["lp_mask_px6_32"])
    assert mask.sum() == golden["lp_mask_px6_count"]
    agree(low_pass(image, 0, unit="px"), golden["lp_D0_0_rand32"])
    edited, _ = LowPass(cutoff=6, unit="px")(image, value_range=(0, 255))
    np.testing.assert_array_equal(np.rint(edited).astype(np.uint8), golden["lp_px6_rand32_uint8"])


@pytest.mark.parametrize("name", IMAGES)
def test_radial_psd(golden, name):
    image = golden[f"img_{name}"]
    agree(radial_psd(image), golden[f"psd_{name}"])
    agree(radial_psd(image, quantity="power"), golden[f"psd_pow2_{name}"])
    agree(radial_psd(image, reduce="sum"), golden[f"psd_sum_{name}"])


def test_spectra_of_known_images(golden):
    agree(radial_psd(golden["img_delta"]), golden["psd_delta"])
    agree(radial_psd(golden["img_cos"]), golden["psd_cos"])
    rings = ring_numbers(32, 32).ravel()
    np.testing.assert_array_equal(np.bincount(rings[rings < 16]), golden["psd_ring_counts_32"])
    psd = golden["psd_rand32"]
    agree(normalized_psd(psd), golden["psdn_sum_nodc_rand32"])
    agree(normalized_psd(psd, by="max"), golden["psdn_max_nodc_rand32"])


def test_spectral_overlap(golden):
    image = golden["img_rand32"]
    residual = image - low_pass(image, 6, unit="px")
    agree(residual, golden["residual_rand32"])
    agree(normalized_psd(radial_psd(residual)), golden["residual_psd"])
    found = spectral_overlap(golden["residual_psd"], golden["sim_other"])
    for name, value in (("overlap", found.overlap), ("cosine", found.cosine), ("emd", found.distance)):
        agree(value, golden[f"sim_{name}"])
    agree(found.spearman, golden["sim_spearman"])


@pytest.fixture
def softmax(golden):
    """Logits W x + b."""
    layer = torch.nn.Linear(768, 4).double()
    with torch.no_grad():
        layer.weight.copy_(torch.from_numpy(golden["lp_W"]))
        layer.bias.copy_(torch.from_numpy(golden["lp_b"]))
    return torch.nn.Sequential(torch.nn.Flatten(), layer)


@pytest.mark.parametrize("batch_size", [2, 6])
def test_learning_priority(golden, softmax, batch_size):
    images, labels = torch.from_numpy(golden["lp_X"]), golden["lp_y"]
    targets = torch.from_numpy(labels)
    losses = torch.nn.functional.cross_entropy(softmax(images), targets, reduction="none")
    agree(losses.detach().numpy(), golden["lp_loss"])

    def objective(batch, before):
        own = targets[before : before + len(batch)]
        return torch.nn.functional.cross_entropy(softmax(batch), own, reduction="sum")

    gradients = torch.cat(list(input_gradients(softmax, images.split(batch_size), objective))).numpy()
    agree(gradients, golden["lp_grad"])
    found = learning_priority(softmax, images, labels, batch_size=batch_size)
    agree(found.per_image, golden["lp_psd_per_image"])
    agree(found.psd, golden["lp_priority"])
    raw = learning_priority(softmax, images, labels, weighting="raw", batch_size=batch_size)
    agree(raw.psd, golden["lp_priority_raw"])
    summed = [normalized_psd(radial_psd(gradient.sum(axis=0))) for gradient in gradients]
    agree(np.mean(summed, axis=0), golden["lp_priority_chansum"])


@pytest.mark.parametrize("name", IMAGES)
def test_whitening(golden, name):
    image, flat = golden[f"img_{name}"], golden[f"wn_In_{name}"]
    found = whiten_spectrum(image)
    agree(found, golden[f"wn_Iw_{name}"])
    agree((found - image.mean()) / image.std() * flat.std() + flat.mean(), flat)
    agree(flat.std(), golden[f"wn_sigma_n_{name}"])


def test_whitening_flattens_each_channel(golden):
    found = whiten_spectrum(golden["img_rand32"])
    magnitude = np.abs(np.fft.fft2(found)).ravel()[1:]
    agree(magnitude, np.full(1023, golden["wn_flat_mag_rand32"]))
    rgb = np.moveaxis(golden["img_rgb16"], 0, 2)
    agree(np.moveaxis(whiten_spectrum(rgb), 2, 0), golden["wn_Iw_rgb16_perchannel"])


def test_summaries_of_curves(golden):
    shares, iid, ood = (golden[f"au_{name}"] for name in ("p", "iid", "ood"))
    agree(iid - ood, golden["au_gap"])
    agree(shortcut_reliance_index(shares, iid, ood), golden["au_SRI"])
    agree(ood_drop_area(shares, iid, ood), golden["au_OOD_drop_area"])
    agree(flip_share(shares, ood), golden["au_p_flip"])
    pure = pure_shortcut(shares)
    agree(pure.iid, golden["au_ref_pure_shortcut_iid"])
    agree(pure.ood, golden["au_ref_pure_shortcut_ood"])


def test_statistics_of_folds(golden):
    a, b, c = (golden[f"perm_{name}"] for name in "abc")
    agree(mean_interval(golden["ci_folds"])[1:], golden["ci_t95"])
    agree(two_sample_permutation(a, b).p_value, golden["perm_p_ab"])
    agree(two_sample_permutation(a, c).p_value, golden["perm_p_ac"])
    agree(sign_flip(a - b).p_value, golden["signflip_p_ab"])
    agree(sign_flip(a - c).p_value, golden["signflip_p_ac"])


def test_areas_and_counts(golden):
    labels, scores = golden["auc_y"], golden["auc_s"]
    agree(pair_auc(scores[labels == 1], scores[labels == 0]), golden["auc_pair"])
    onehot = np.eye(2)[labels].ravel()
    agree(roc_auc_score(onehot, np.column_stack([1 - scores, scores]).ravel()), golden["auc_micro_onehot"])
    shares = golden["au_p"]
    found = [[num_edited(int(number), float(share)) for share in shares] for number in golden["inj_n_pos"]]
    np.testing.assert_array_equal(found, golden["inj_counts"])
