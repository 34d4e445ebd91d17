"""From a spec to the text tower that belongs to its image tower."""

from __future__ import annotations

from pathlib import Path

from crossgraft.compute import resolve_device
from crossgraft.errors import UsageError
from crossgraft.models.sources.libraries import library_of
from crossgraft.models.sources.library import Places
from crossgraft.models.sources.text_tower import TextTower
from crossgraft.models.sources.transformers_texts import TEXT_FAMILIES
from crossgraft.models.spec import RANDOM, ModelSpec
from crossgraft.models.zoo import read_zoo
from crossgraft.progress import Reporter


def load_text_tower(
    spec: ModelSpec | str,
    *,
    device: str = "cpu",
    weights_dir: str | Path | None = None,
    allow_download: bool = False,
    reporter: Reporter | None = None,
) -> TextTower:
    """The text tower of a CLIP or SigLIP, from the file of weights that the image tower comes from, and its tokenizer.

    Nothing of a folder or repository is run: descriptions and settings are data, weights are read as tensors only.

    Args:
        spec: Spec from ``read_zoo``, or a name: ``open_clip:FOLDER``, ``transformers:ORG/NAME`` …
        device: ``auto``, ``cpu``, ``cuda``, ``cuda:N`` or ``mps``.
        weights_dir: Folder in which folders ``ORG--NAME`` are looked up first; by default that of the spec.
        allow_download: Whether files may be downloaded. Nothing else ever uses the network.
        reporter: Reporter of downloads.

    Raises:
        UsageError: The model has no text tower.
        MissingWeightsError: Weights, tokenizer or a description are not on this machine.
        MissingExtraError: A package is not installed (``crossgraft[text]``).
        WeightsMismatchError: The weights do not fit.
        DataError: A file is damaged, or tokenizer and network do not belong together.
    """
    folder = Path(weights_dir) if weights_dir is not None else None
    if isinstance(spec, str):
        (spec,) = read_zoo([spec], weights_dir=folder, allow_download=allow_download, reporter=reporter)
    if spec.text_source is None:
        raise UsageError(
            f"{spec.name} has no text tower, which prompts need. Take a network that was trained with texts: "
            f"open_clip:ORG/NAME or open_clip:FOLDER, or transformers: of {', '.join(TEXT_FAMILIES)}."
        )
    if spec.weights == RANDOM:
        raise UsageError(f"{spec.name} has random weights, to which no text belongs. Leave out weights: random, or the prompts.")
    folder = folder or spec.weights_dir
    folders = [Path(each) for each in (folder, spec.folder, Path.cwd()) if each is not None]
    places = Places(folder, folders, allow_download, reporter or Reporter(quiet=True))
    return library_of(spec.text_source).text_tower(spec, places, device=resolve_device(device))
