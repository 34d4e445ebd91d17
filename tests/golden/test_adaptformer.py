"""The bottleneck of AdaptFormer against numbers of the authors' own code."""

from pathlib import Path

import numpy as np
import torch

from crossgraft.models.adapters import AdaptFormerAdapter

GIVEN = {name: torch.from_numpy(values) for name, values in np.load(Path(__file__).with_name("adaptformer.npz")).items()}


def test_addition_and_output():
    adapter = AdaptFormerAdapter(16, bottleneck=4, scale=0.1, dropout=0.1, norm="none").double().eval()
    weights = {name.removeprefix("af."): value for name, value in GIVEN.items() if name.startswith("af.")}
    adapter.load_state_dict({name.replace("_proj", ""): value for name, value in weights.items()})
    found = adapter.addition(GIVEN["af_x"])
    torch.testing.assert_close(found, GIVEN["af_delta"], rtol=0, atol=1e-14)
    torch.testing.assert_close(GIVEN["af_x"] + found, GIVEN["af_out_residual"], rtol=0, atol=1e-14)
    adapter.train()
    assert not torch.equal(adapter.addition(GIVEN["af_x"]), found)  # dropout
