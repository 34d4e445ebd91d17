"""What every frozen command begins with: tiny images, networks and weights that any machine makes alike."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from support.tiny import TINY_MODELS, make_images

TIMM_SIZE = 32
ZOO = f"""
- {{name: narrow, source: "tiny_models:tiny", weights: narrow.safetensors, family: tiny}}
- {{name: wide, source: "tiny_models:tiny", weights: wide.safetensors, kwargs: {{width: 12}}, family: tiny}}
- {{name: residual, source: test_resnet, weights: residual.safetensors, family: residual}}
- {{name: attending, source: test_vit, weights: attending.safetensors, kwargs: {{img_size: {TIMM_SIZE}}}, family: vit}}
"""
RESULTS = "model,auc\nnarrow,0.7\nwide,0.8\nresidual,0.9\nattending,0.6\n"
CALL_INTERPOLATION = """
import sys
from pathlib import Path

from crossgraft import interpolate

curve = interpolate("tune-full", "images", linear="tune-linear", alphas=(0, 0.5, 1), allow_code="tiny_models.py", workers=1)
folder = Path(sys.argv[1])
folder.mkdir()
(folder / "report.json").write_text(curve.to_json())
curve.to_frame().to_csv(folder / "points.csv", index=False)
"""


def make_scene(folder: Path) -> None:
    """Write images (two folders of one class each), a zoo of four networks with weights, and results of each.

    Args:
        folder: Empty.
    """
    (folder / "tiny_models.py").write_text(TINY_MODELS)
    (folder / "zoo.yaml").write_text(ZOO)
    for entry in ZOO.strip().splitlines():
        name = entry.partition("name: ")[2].partition(",")[0]
        (folder / f"{name}.yaml").write_text(entry + "\n")
    (folder / "results.csv").write_text(RESULTS)
    (folder / "interpolate.py").write_text(CALL_INTERPOLATION)
    make_images(folder / "images", {"benign": 20, "malignant": 20})
    make_images(folder / "new", {"benign": 5, "malignant": 5})
    _write_weights(folder)


def _write_weights(folder: Path) -> None:
    import timm
    from safetensors.torch import save_file

    names: dict = {}
    exec(TINY_MODELS, names)
    networks = {
        "narrow": names["tiny"](8),
        "wide": names["tiny"](12),
        "residual": timm.create_model("test_resnet"),
        "attending": timm.create_model("test_vit", img_size=TIMM_SIZE),
    }
    for seed, (name, network) in enumerate(networks.items()):
        save_file(drawn_weights(network.state_dict(), seed), folder / f"{name}.safetensors")


def drawn_weights(state: dict, seed: int) -> dict:
    """Weights for the tensors of ``state``, drawn by NumPy: torch's own depend on the instructions of the processor."""
    import torch

    rng = np.random.default_rng(seed)
    drawn = {}
    for name, tensor in state.items():
        if not tensor.is_floating_point():
            drawn[name] = tensor.clone()
            continue
        noise = rng.uniform(-1, 1, tuple(tensor.shape))
        if tensor.ndim > 1:
            noise *= (3 / tensor[0].numel()) ** 0.5
        elif name.endswith(("weight", "var")):
            noise = 1 + 0.2 * noise
        else:
            noise *= 0.1
        drawn[name] = torch.from_numpy(noise).to(tensor.dtype)
    return drawn
