"""Few-shot heads and episodes against the authors' own code (see fewshot.json)."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from crossgraft.fewshot import CopaHead, MetaAdapterHead, MetaDataset, NccHead, TipAdapterHead, UrlHead, describe_episode

HERE = Path(__file__).parent
TOLERANCE = json.loads((HERE / "fewshot.json").read_text(encoding="utf-8"))["tolerance"]
EPISODES = ["e1_5way5shot_d64", "e3_3way1shot_d512"]
NEAREST = {"ncc_cos": NccHead(), "ncc_l2": NccHead(distance="l2")}
TRAINED = {
    "url_seen": UrlHead(learning_rate="seen"),
    "url_unseen": UrlHead(learning_rate="unseen"),
    "copa_seen": CopaHead(),
    "copa_unseen": CopaHead(learning_rate=5e-3, weight_decay=0.0),
}
ONE_SHOT = "ignore:CoPA with one image per class"


@pytest.fixture(scope="module")
def golden():
    with np.load(HERE / "fewshot.npz", allow_pickle=False) as stored:
        return {name: stored[name] for name in stored.files}


def fitted(head, golden, episode, dtype=np.float64):
    support = golden[f"{episode}/Xs"].astype(dtype)
    return head.fit(support, golden[f"{episode}/ys"]), golden[f"{episode}/Xq"].astype(dtype)


def logits(head, query):
    return head._logits(query).numpy()


@pytest.mark.filterwarnings(ONE_SHOT)
@pytest.mark.parametrize("episode", EPISODES)
@pytest.mark.parametrize(("name", "head"), [*NEAREST.items(), *TRAINED.items()])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_predictions_and_logits(golden, episode, name, head, dtype):
    head, query = fitted(head, golden, episode, dtype)
    np.testing.assert_array_equal(head.predict(query), golden[f"{episode}/{name}.qpred"])
    if name != "ncc_l2":
        allowed = TOLERANCE["float64" if dtype == np.float64 else "logits in float32"]
        np.testing.assert_allclose(logits(head, query), golden[f"{episode}/{name}.qlogits"], rtol=0, atol=allowed)


@pytest.mark.filterwarnings(ONE_SHOT)
@pytest.mark.parametrize("episode", EPISODES)
@pytest.mark.parametrize(("name", "head"), TRAINED.items())
def test_losses_and_gaps(golden, episode, name, head):
    head, _ = fitted(head, golden, episode)
    close = {"rtol": 0, "atol": TOLERANCE["float64"]}
    np.testing.assert_allclose(head.loss_curve_, golden[f"{episode}/{name}.train_losses"], **close)
    np.testing.assert_allclose(head.gap_.before, golden[f"{episode}/emb.gap"], **close)
    np.testing.assert_allclose(head.gap_.after, golden[f"{episode}/{name}.gap"], **close)
    single, _ = fitted(head, golden, episode, np.float32)
    np.testing.assert_allclose(single.loss_curve_, golden[f"{episode}/{name}.train_losses"], atol=TOLERANCE["losses in float32"])


@pytest.mark.parametrize(("name", "head"), TRAINED.items())
def test_weights(golden, name, head):
    head, _ = fitted(head, golden, EPISODES[0])
    directions = np.random.default_rng(7).standard_normal((64, 4))
    found = {"W": head.weights_} if name.startswith("url") else {"Wi": head.instance_weights_, "Wp": head.prototype_weights_}
    for which, weights in found.items():
        expected = golden[f"{EPISODES[0]}/{name}.{which}.probe"]
        np.testing.assert_allclose(weights @ directions, expected, rtol=0, atol=TOLERANCE["float64"])


def tip(golden, **options):
    head = TipAdapterHead(class_weights=golden["tip/text"], **options)
    return head.fit, golden["tip/Xs"], golden["tip/ys"]


def test_tip_adapter_without_training(golden):
    fit, *support = tip(golden)
    np.testing.assert_allclose(logits(fit(*support), golden["tip/Xt"]), golden["tip/logits_init"], atol=TOLERANCE["adapters"])
    chosen = fit(*support, golden["tip/Xv"], golden["tip/yv"])
    assert (chosen.alpha_, chosen.beta_) == pytest.approx((golden["tip/best_alpha"], golden["tip/best_beta"]))
    np.testing.assert_allclose(logits(chosen, golden["tip/Xt"]), golden["tip/logits_best"], atol=TOLERANCE["adapters"])
    right = np.mean(chosen.predict(golden["tip/Xt"]) == golden["tip/yt"])
    assert 100 * right == pytest.approx(float(golden["tip/acc_best"]))


def test_tip_adapter_with_trained_keys(golden):
    fit, *support = tip(golden, fine_tune=True)
    head = fit(*support)
    np.testing.assert_allclose(head.keys_, golden["tipF/keys_last"], atol=TOLERANCE["adapters"])
    found = logits(head, golden["tip/Xt"])
    np.testing.assert_allclose(found, golden["tipF/logits_last_init_ab"], atol=TOLERANCE["adapters"])


def test_meta_adapter(golden):
    learned = {name[5:]: array for name, array in golden.items() if name.startswith("meta/") and "proj" in name}
    head = MetaAdapterHead(adapter_weights=learned, class_weights=golden["tip/text"])
    head.fit(golden["tip/Xs"], golden["tip/ys"])
    np.testing.assert_allclose(head.class_weights_, golden["meta/weights_out"], atol=TOLERANCE["adapters"])
    np.testing.assert_allclose(logits(head, golden["tip/Xt"]), golden["meta/logits"], atol=TOLERANCE["adapters"])


@pytest.mark.parametrize("name", ["aircraft_like", "dtd_like", "long_tail", "omniglot_like", "small_imbal"])
@pytest.mark.parametrize("seed", range(5))
def test_draws_of_meta_dataset(golden, name, seed):
    found = describe_episode(golden[f"mds/{name}/sizes"], MetaDataset(), np.random.RandomState(seed))
    drawn = {key: golden[f"mds/{name}/seed{seed}/{key}"] for key in vars(found)}
    assert all(np.array_equal(getattr(found, key), value) for key, value in drawn.items())
