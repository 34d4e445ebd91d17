"""Spectra, edits and summaries of an audit against independent computations (see audit.json).

Noise and projections are in ``test_audit_imaging``; between them the two files look up every array.
"""

from __future__ import annotations

import ast
import json
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch

from crossgraft.audit import (
    Curves,
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
from crossgraft.audit.fold_scores import micro_auc
from crossgraft.audit.learning_priority import _SummedLoss
from crossgraft.audit.reliance import pair_auc
from crossgraft.edit.confounders.low_pass import LowPass
from crossgraft.edit.injection import num_edited
from crossgraft.edit.spectrum import ring_numbers, within
from crossgraft.features.passes import input_gradients
from crossgraft.statistics import mean_interval, sign_flip, two_sample_permutation

HERE = Path(__file__).parent
IMAGES = ["rand32", "odd31x33", "rect24x40"]


@pytest.fixture(scope="module")
def golden():
    with np.load(HERE / "audit.npz", allow_pickle=False) as stored:
        return {name: stored[name] for name in stored.files}


def agree(found, expected):
    np.testing.assert_allclose(found, expected, **json.loads((HERE / "audit.json").read_text())["tolerance"])


def looked_up(file):
    """Every X of ``golden[X]`` in the tests of a file; an f-string stands for all values that its test is parametrised by."""
    module = ast.parse(file.read_text())
    constants = {each.targets[0].id: each.value for each in module.body if isinstance(each, ast.Assign)}
    for function in module.body:
        if not isinstance(function, ast.FunctionDef):
            continue
        given = [each.args for each in function.decorator_list if isinstance(each, ast.Call) and len(each.args) == 2]
        choices = {names.value: constants[of.id] if isinstance(of, ast.Name) else of for names, of in given}
        for node in ast.walk(function):
            match node:
                case ast.Subscript(value=ast.Name(id="golden"), slice=ast.Constant(value=name)):
                    yield name
                case ast.Subscript(value=ast.Name(id="golden"), slice=ast.JoinedStr(values=parts)):
                    spelled = (
                        [part.value] if isinstance(part, ast.Constant) else map(str, ast.literal_eval(choices[part.value.id]))
                        for part in parts
                    )
                    yield from map("".join, product(*spelled))


def test_every_array_is_looked_up(golden):
    assert {*looked_up(HERE / "test_audit.py"), *looked_up(HERE / "test_audit_imaging.py")} == set(golden)


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
    agree(found.overlap, golden["sim_overlap"])
    agree(found.cosine, golden["sim_cosine"])
    agree(found.distance, golden["sim_emd"])
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
    objective = _SummedLoss(softmax, labels)
    agree([float(objective(images[i : i + 1], i).detach()) for i in range(6)], golden["lp_loss"])
    agree(float(objective(images, 0).detach()), golden["lp_loss"].sum())
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
    image, deviation = golden[f"img_{name}"], golden[f"wn_sigma_n_{name}"]
    found = whiten_spectrum(image)
    agree(found, golden[f"wn_Iw_{name}"])
    # Undone: |F(I_w)| is σ_o / σ_n beside the mean, and the mean of I_n is 1 / (H W).
    agree(image.std() / np.abs(np.fft.fft2(found)).ravel()[1:], np.full(image.size - 1, deviation))
    agree((found - image.mean()) / image.std() * deviation + 1 / image.size, golden[f"wn_In_{name}"])


def test_whitening_flattens_each_channel(golden):
    found = whiten_spectrum(golden["img_rand32"])
    magnitude = np.abs(np.fft.fft2(found)).ravel()[1:]
    agree(magnitude, np.full(1023, golden["wn_flat_mag_rand32"]))
    rgb = np.moveaxis(golden["img_rgb16"], 0, 2)
    agree(np.moveaxis(whiten_spectrum(rgb), 2, 0), golden["wn_Iw_rgb16_perchannel"])


def test_summaries_of_curves(golden):
    shares, iid, ood = golden["au_p"], golden["au_iid"], golden["au_ood"]
    agree(Curves(shares, iid, ood).gap, golden["au_gap"])
    agree(shortcut_reliance_index(shares, iid, ood), golden["au_SRI"])
    agree(ood_drop_area(shares, iid, ood), golden["au_OOD_drop_area"])
    agree(flip_share(shares, ood), golden["au_p_flip"])
    pure = pure_shortcut(shares)
    agree(pure.iid, golden["au_ref_pure_shortcut_iid"])
    agree(pure.ood, golden["au_ref_pure_shortcut_ood"])


def test_statistics_of_folds(golden):
    a, b, c = golden["perm_a"], golden["perm_b"], golden["perm_c"]
    _, low, high, _ = mean_interval(golden["ci_folds"])
    agree(high, golden["ci_t95"][1])  # the folds lean to the other side, where Hall's end lies beyond Student's
    assert low < golden["ci_t95"][0]
    agree(two_sample_permutation(a, b).p_value, golden["perm_p_ab"])
    agree(two_sample_permutation(a, c).p_value, golden["perm_p_ac"])
    agree(sign_flip(a - b).p_value, golden["signflip_p_ab"])
    agree(sign_flip(a - c).p_value, golden["signflip_p_ac"])


def test_areas(golden):
    labels, scores = golden["auc_y"], golden["auc_s"]
    agree(pair_auc(scores[labels == 1], scores[labels == 0]), golden["auc_pair"])
    agree(micro_auc(scores, labels), golden["auc_micro_onehot"])
    labels, same = np.repeat([1, 0], [30, 70]), np.full(100, 0.3)
    assert pair_auc(same[labels == 1], same[labels == 0]) == 0.5
    agree(micro_auc(same, labels), golden["auc_micro_constant_0.3"])


def test_counts(golden):
    found = [[num_edited(int(number), float(share)) for share in golden["au_p"]] for number in golden["inj_n_pos"]]
    np.testing.assert_array_equal(found, golden["inj_counts"])
