"""Measures of similarity against the numbers of other implementations (see similarity.json)."""

import json
from pathlib import Path

import numpy as np
import pytest

from crossgraft.similarity import MinibatchCka, cca, minibatch_cka, prediction_similarity, procrustes, pwcca, rsa, svcca

HERE = Path(__file__).parent
GOLDEN = json.loads((HERE / "similarity.json").read_text(encoding="utf-8"))["values"]


@pytest.fixture(scope="module")
def arrays():
    found = {}
    for name in ("linear_cka.npz", "similarity.npz"):
        with np.load(HERE / name, allow_pickle=False) as file:
            found |= {key: file[key] for key in file.files}
    return found


def test_measures_of_two_sets_of_features(arrays):
    x, y = arrays["X"], arrays["Y"]
    found = {
        "cca_mean.ref": cca(x, y),
        "cca_mean.anatome_qr": cca(x, y),
        "cca_sum.svcca": cca(x, y).parts["sum"],
        "cca_mean_thresh098.svcca": cca(x, y, mean="98 % of the sum"),
        "pwcca_xy.ref": pwcca(x, y),
        "pwcca_yx.ref": pwcca(y, x),
        "svcca99_var.ref": svcca(x, y),
        "svcca99_kx": svcca(x, y).parts["components_x"],
        "svcca99_ky": svcca(x, y).parts["components_y"],
        "procrustes_d.ref": procrustes(x, y),
        "procrustes_1-nuc.ref": 1 - procrustes(x, y).parts["alignment"],
        "procrustes_size_shape.resi": procrustes(x, y, kind="size and shape"),
        "angular_shape_centered.resi": procrustes(x, y, kind="angular"),
        "rsa_corr_spearman.resi": rsa(x, y),
        "rsa_euclid_spearman.resi": rsa(x, y, distance="euclidean"),
    }
    for key, value in found.items():
        assert value == pytest.approx(GOLDEN[key], rel=1e-10), key
    single = [side.astype(np.float32) for side in (x, y)]
    for measure, key in ((cca, "cca_mean"), (pwcca, "pwcca_xy"), (svcca, "svcca99_var"), (procrustes, "procrustes_d")):
        assert measure(*single) == pytest.approx(GOLDEN[f"{key}.ref"], rel=2e-5), key


def test_what_other_programs_get_wrong_is_not_matched(arrays):
    x, y = arrays["X"], arrays["Y"]
    assert abs(pwcca(x, y) - GOLDEN["pwcca_xy.anatome"]) > 0.05
    assert abs(pwcca(y, x) - GOLDEN["pwcca_yx.svcca_(x_branch)"]) > 0.01
    assert abs(svcca(x, y) - GOLDEN["svcca99_sumsv.anatome"]) > 1e-4


@pytest.mark.parametrize("size", [32, 64, 128, 512])
def test_minibatches(arrays, size):
    x, y = arrays["X"], arrays["Y"]
    assert minibatch_cka(x, y, batch_size=size) == pytest.approx(GOLDEN[f"cka_minibatch_b{size}.ref"], rel=1e-12)
    single = minibatch_cka(x.astype(np.float32), y.astype(np.float32), batch_size=size)
    assert single == pytest.approx(GOLDEN[f"cka_minibatch_b{size}.ref"], rel=2e-5)


def test_a_short_last_batch_counts_as_much_as_others(arrays):
    x, y = arrays["X"][:500], arrays["Y"][:500]
    key = "cka_minibatch_b64_n500_lastbatch52"
    assert minibatch_cka(x, y, batch_size=64) == pytest.approx(GOLDEN[f"{key}.ref"], rel=1e-12)
    assert minibatch_cka(x, y, batch_size=64) == pytest.approx(GOLDEN[f"{key}.torch_cka_f64"], rel=1e-12)
    by_images = MinibatchCka(weight="images")
    for rows in np.split(np.arange(500), range(64, 500, 64)):
        by_images.update({"x": x[rows]}, {"y": y[rows]})
    assert by_images.compute().matrix[0, 0] != pytest.approx(GOLDEN[f"{key}.ref"], rel=1e-9)


def test_maps_of_the_thesis(arrays):
    positions = [arrays[name].reshape(-1, 64) for name in ("nhwc_a", "nhwc_b")]
    assert cca(*positions) == pytest.approx(GOLDEN["cca_thesis_first8imgs_first64ch.ref"], rel=1e-10)
    maps = [np.moveaxis(arrays[name], 3, 1) for name in ("nhwc_a", "nhwc_b")]  # all that there is, so every draw is the same
    found = cca(*maps, preset="thesis")
    assert found == pytest.approx(GOLDEN["cca_thesis_first8imgs_first64ch.ref"], rel=1e-10)
    assert found.warnings[0].startswith("576 of 20000 positions and 64 of 64 channels in each of 5 draws")


def test_predictions(arrays):
    found = prediction_similarity(arrays["ps_p1"], arrays["ps_p2"], arrays["ps_y"])
    assert found == GOLDEN["predsim.ref"]
    assert found.independent == pytest.approx(GOLDEN["predsim_indep_a1a2.ref"], rel=1e-12)
    assert found.kappa == pytest.approx(GOLDEN["predsim_kappa_of_errors"], rel=1e-10)
    assert found.agreement == GOLDEN["predsim_agreement(labels equal)"]
    assert abs(found.independent - GOLDEN["predsim_indep_a1a1.released_code"]) > 0.05
