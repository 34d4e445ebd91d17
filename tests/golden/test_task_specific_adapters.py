"""TSA and CoPA + TSA against the authors' own code on small networks (see task_specific_adapters.json)."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from crossgraft.fewshot import CopaTsa, TsaAdapter

HERE = Path(__file__).parent
TOLERANCE = json.loads((HERE / "task_specific_adapters.json").read_text(encoding="utf-8"))["tolerance"]
HARDER = {"learning_rate": 5e-3, "adapter_learning_rate": 2.5e-3}
CROSS_DOMAIN = {"seen": {}, "hard": {**HARDER, "weight_decay": 0.0}, "cifar": HARDER}


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)

    def forward(self, x):
        return self.bn2(self.conv1(x)).relu()


class Stages(nn.Module):
    def __init__(self, widths):
        super().__init__()
        for number, (inputs, outputs) in enumerate(zip([3, *widths], widths, strict=False), start=1):
            self.add_module(f"layer{number}", nn.Sequential(Block(inputs, outputs, 1 if number == 1 else 2)))

    def forward(self, x):
        return self.layer4(self.layer3(self.layer2(self.layer1(x)))).mean((2, 3))


@pytest.fixture(scope="module")
def golden():
    with np.load(HERE / "task_specific_adapters.npz", allow_pickle=False) as stored:
        return {name: stored[name] for name in stored.files}


def network(golden, kind, last_width):
    module = Stages([6, 8, 12, last_width])
    state = {name: value for name, value in golden.items() if name.startswith(f"{kind}/net/")}
    weights = {name.removeprefix(f"{kind}/net/"): torch.from_numpy(value) for name, value in state.items()}
    missing = module.load_state_dict(weights, strict=False).missing_keys
    assert all(name.endswith("num_batches_tracked") for name in missing)
    return module.eval()


@pytest.fixture
def tsa_network(golden):
    return network(golden, "tsa_url", 24)


def transformed_queries(head, golden):
    """β(q), q from the adapted network."""
    return head.adapted_features(torch.from_numpy(golden["tsa_url/xq"])).numpy() @ head.weights_.T


@pytest.mark.parametrize("domain", ["seen", "unseen"])
def test_tsa(golden, tsa_network, domain):
    head = TsaAdapter(backbone=tsa_network, learning_rate=domain).fit(golden["tsa_url/xs"], golden["tsa_url/ys"])
    expected = golden[f"tsa_url/{domain}/zq"]
    np.testing.assert_allclose(transformed_queries(head, golden), expected, atol=TOLERANCE["features"])
    np.testing.assert_array_equal(head.predict(golden["tsa_url/xq"]), golden[f"tsa_url/{domain}/qpred"])
    one_more = TsaAdapter(backbone=tsa_network, learning_rate=domain, steps=41)
    after = one_more.fit(golden["tsa_url/xs"], golden["tsa_url/ys"]).loss_curve_[-1]
    assert after == pytest.approx(float(golden[f"tsa_url/{domain}/support_loss"]), abs=TOLERANCE["last_loss"])


@pytest.mark.parametrize("connection", ["residual", "serial"])
@pytest.mark.parametrize("form", ["matrix", "vector"])
def test_forms_of_adapters(golden, tsa_network, connection, form):
    head = TsaAdapter(
        backbone=tsa_network, connection=connection, form=form, adapter_learning_rate=0.01, learning_rate=0.1, steps=5
    ).fit(golden["tsa_url/xs"], golden["tsa_url/ys"])
    expected = golden[f"tsa_url/{connection}_{form}_5it/zq"]
    np.testing.assert_allclose(transformed_queries(head, golden), expected, atol=TOLERANCE["features"])
    assert head.num_adapter_parameters_ == golden[f"tsa_url/{connection}_{form}_5it/nparam"]


@pytest.mark.parametrize("domain", CROSS_DOMAIN)
def test_copa_with_tsa(golden, domain):
    """In float64, so that what is left is the rounding of the authors' float32, whatever the processor that runs this.

    Adam divides by its own first gradients, and after a jump of the loss two orders of summation are up to 6e-4 apart for a step
    or two before they meet again. In float64 they are 1e-13 apart.
    """
    module = network(golden, "tsa_copa", 512).double()
    support, queries = (golden[f"tsa_copa/{part}"].astype(np.float64) for part in ("xs", "xq"))
    head = CopaTsa(backbone=module, **CROSS_DOMAIN[domain]).fit(support, golden["tsa_copa/ys"])
    assert list(head.adapters_) == ["layer2.0.conv1", "layer3.0.conv1"]
    apart = np.abs(head.loss_curve_ - golden[f"tsa_copa/{domain}/train_losses"])
    assert len(apart) == len(golden[f"tsa_copa/{domain}/train_losses"])
    assert max(np.max(apart[:2]), np.median(apart)) < TOLERANCE["typical_loss"]
    assert np.max(apart) < TOLERANCE["losses"]
    right = np.mean(head.predict(queries) == golden["tsa_copa/yq"])
    assert right == pytest.approx(float(golden[f"tsa_copa/{domain}/val_accs"][-1]))
