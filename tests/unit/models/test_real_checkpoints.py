"""The example zoo loads real MobileNets and reproduces their recorded outputs."""

import json
from pathlib import Path

import pytest
import torch

from crossgraft.models import load_backbone, read_zoo

pytestmark = pytest.mark.real_data

ZOO = Path(__file__).parents[3] / "examples" / "own_models" / "mobilenets.yaml"
# The reference is printed to 4 decimals; a convolution that adds in another order moves an output of 3 by 1e-5.
PRINTED = 1e-4


def test_the_example_zoo_reproduces_the_recorded_outputs(real_data):
    weights = real_data / "weights"
    reference = json.loads((weights / "fidelity_reference.json").read_text())["checkpoints"]
    specs = read_zoo(ZOO, weights_dir=weights, allow_code=ZOO.parent)
    assert len(specs) == 9
    for spec in specs:
        backbone = load_backbone(spec, weights_dir=weights)
        size = (1, 3, backbone.preprocessing.height_pixels, backbone.preprocessing.width_pixels)
        output = backbone(torch.linspace(-1, 1, 3 * size[2] * size[3]).reshape(size))
        found = output.features if output.source_logits is None else output.source_logits
        expected = torch.tensor(reference[Path(spec.weights).name]["probe_first8"])
        torch.testing.assert_close(found[0, :8], expected, rtol=0, atol=PRINTED, msg=lambda m, n=spec.name: f"{n}: {m}")
        if output.source_logits is not None:
            head = backbone.module.get_classifier()
            with torch.no_grad():
                torch.testing.assert_close(head(output.features), output.source_logits, rtol=1e-5, atol=1e-5)


def test_pytorch_padding_would_load_without_an_error_and_be_wrong(real_data):
    """Why the zoo file says ``pad_type: same``: nothing else would notice."""
    weights = real_data / "weights"
    (right,) = read_zoo("mobilenetv1_100.imagenet_qat.safetensors", weights_dir=weights)
    wrong = type(right)(**{**right.__dict__, "kwargs": {**right.kwargs, "pad_type": ""}})
    first, second = load_backbone(right), load_backbone(wrong)
    assert first.weights_fingerprint == second.weights_fingerprint
    assert first.structure_fingerprint != second.structure_fingerprint
    images = torch.linspace(-1, 1, 3 * 224 * 224).reshape(1, 3, 224, 224)
    assert not torch.allclose(first(images).features, second(images).features, atol=0.1)
