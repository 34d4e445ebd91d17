"""Few-shot heads on two real support sets of Meta-Dataset, against what the authors' code gave for them."""

import numpy as np
import pytest

from crossgraft.fewshot import CopaHead, NccHead, UrlHead

HEADS = {
    "ncc_cos": NccHead(),
    "ncc_l2": NccHead(distance="l2"),
    "url_seen": UrlHead(learning_rate="seen"),
    "url_unseen": UrlHead(learning_rate="unseen"),
    "copa_seen": CopaHead(),
    "copa_unseen": CopaHead(learning_rate=5e-3, weight_decay=0.0),
}


@pytest.fixture(scope="module")
def oracle(real_data):
    file = real_data.parent / "oracles" / "fewshot.npz"  # embeddings of third parties, not passed on
    if not file.is_file():
        pytest.skip(f"there is no {file}")
    with np.load(file, allow_pickle=False) as stored:
        return {name: stored[name] for name in stored.files if name.startswith("real_")}


@pytest.mark.real_data
@pytest.mark.parametrize("episode", ["real_omniglot", "real_vgg_flower"])
@pytest.mark.parametrize("name", HEADS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_predictions_losses_and_gaps(oracle, episode, name, dtype):
    values = {key.removeprefix(f"{episode}/"): value for key, value in oracle.items()}
    head = HEADS[name].fit(values["Xs"].astype(dtype), values["ys"])
    query, is_double = values["Xq"].astype(dtype), dtype == np.float64
    np.testing.assert_array_equal(head.predict(query), values[f"{name}.qpred"])
    if name != "ncc_l2":
        logits = head._logits(query).numpy()
        np.testing.assert_allclose(logits, values[f"{name}.qlogits"], rtol=0, atol=1e-9 if is_double else 1e-2)
    if f"{name}.train_losses" in values:
        expected = values[f"{name}.train_losses"]
        np.testing.assert_allclose(head.loss_curve_, expected, rtol=0, atol=1e-9 if is_double else 1e-4)
    if is_double and f"{name}.gap" in values:
        np.testing.assert_allclose(head.gap_.before, values["emb.gap"], rtol=0, atol=1e-9)
        np.testing.assert_allclose(head.gap_.after, values[f"{name}.gap"], rtol=0, atol=1e-9)
