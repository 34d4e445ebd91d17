"""Folders as transformers writes them, with tiny random networks."""

import pytest
import torch

transformers = pytest.importorskip("transformers")
transformers.logging.disable_progress_bar()

SIZE = 32
TOKENS = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "patch_size": 8, "image_size": SIZE}
TOKENS_AND_MLP = {**TOKENS, "intermediate_size": 64}
STAGES = {"hidden_sizes": [8, 16, 24, 32], "depths": [1, 1, 2, 1], "image_size": SIZE}
WINDOWS = {"embed_dim": 8, "depths": [1, 2], "num_heads": [2, 2], "window_size": 4, "image_size": SIZE, "patch_size": 4}
PATCHES = {**TOKENS_AND_MLP, "num_patches": 16}
LABELS = {"num_labels": 5}
CONFIGURATIONS = {
    "Beit": TOKENS_AND_MLP,
    "CLIPVision": TOKENS_AND_MLP,
    "ConvNext": STAGES,
    "ConvNextV2": STAGES,
    "Data2VecVision": TOKENS_AND_MLP,
    "DeiT": TOKENS_AND_MLP,
    "Dinov2": TOKENS,
    "Dinov2WithRegisters": TOKENS,
    "DINOv3ConvNext": STAGES,
    "DINOv3ViT": {**TOKENS_AND_MLP, "num_register_tokens": 2},
    "IJepa": TOKENS_AND_MLP,
    "MetaClip2Vision": TOKENS_AND_MLP,
    "ResNet": {"embedding_size": 8, "hidden_sizes": [8, 16, 24, 32], "depths": [1, 1, 2, 1]},
    "SiglipVision": TOKENS_AND_MLP,
    "Siglip2Vision": {key: value for key, value in PATCHES.items() if key != "image_size"},
    "Swin": WINDOWS,
    "Swinv2": WINDOWS,
    "ViT": TOKENS_AND_MLP,
    "ViTMAE": {**TOKENS_AND_MLP, "decoder_hidden_size": 16, "decoder_num_hidden_layers": 1, "decoder_num_attention_heads": 2},
    "ViTMSN": TOKENS_AND_MLP,
}
"""Beginning of the names of classes → arguments of the configuration."""
NETWORKS = [f"{name}Model" for name in CONFIGURATIONS]
CLASSIFIERS = [f"{name}ForImageClassification" for name in ("Beit", "Dinov2", "ConvNext", "ResNet", "Swin", "ViT")]


def beginning(name):
    """What the name of a class begins with: ``ViT`` of ``ViTForImageClassification``."""
    return name.partition("For")[0].removesuffix("Model")


def make_network(name, **changes):
    """A network of this class, in eval mode, whose weights are far from zero."""
    configuration = getattr(transformers, f"{beginning(name)}Config")(**CONFIGURATIONS[beginning(name)] | LABELS | changes)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = getattr(transformers, name)(configuration)
        for parameter in network.parameters():
            if parameter.requires_grad:
                torch.nn.init.normal_(parameter, std=0.1)
    return network.eval()


def processor_for(name):
    """One that resizes to the size of the networks."""
    if name.startswith("Siglip2"):
        return transformers.Siglip2ImageProcessor(max_num_patches=16, patch_size=8)
    return transformers.ViTImageProcessor(size={"height": SIZE, "width": SIZE})


def write_folder(folder, name, processor=None, **changes):
    """``config.json``, weights and the processor's file of ``make_network(name)``; the network comes back."""
    network = make_network(name, **changes)
    network.save_pretrained(folder)
    (processor or processor_for(name)).save_pretrained(folder)
    return network
