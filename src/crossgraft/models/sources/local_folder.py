"""``local-dir:PATH``: a folder with ``config.json`` and weights, as timm and its hub keep a network."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from crossgraft.errors import MissingWeightsError
from crossgraft.models.sources.hub_description import CONFIG, WEIGHTS, described, in_parts, lists_of_parts, read_description
from crossgraft.models.sources.library import PlaceLibrary, Places
from crossgraft.models.spec import RANDOM, ModelSpec, name_in_library


class LocalFolderLibrary(PlaceLibrary):
    """Folders of this machine. What is in one is data: nothing of it is run."""

    name: ClassVar[str] = "local-dir"
    title: ClassVar[str] = "a folder with config.json and weights"
    form: ClassVar[str] = "local-dir:PATH"

    def knows(self, source: str) -> bool:
        """Any path may be one."""
        return bool(name_in_library(source))

    def locate(self, spec: ModelSpec, places: Places) -> ModelSpec:
        """The network that the folder describes, with the weights in it."""
        path = Path(name_in_library(spec.source)).expanduser()
        tried = [path] if path.is_absolute() else [folder / path for folder in places.folders]
        folder = next((each for each in tried if (each / CONFIG).is_file()), None)
        if folder is None:
            raise MissingWeightsError(
                f"There is no {CONFIG} in {' or '.join(map(str, tried))}. Give the folder that has it and the weights: "
                "local-dir:PATH."
            )
        return in_folder(spec, folder)


def in_folder(spec: ModelSpec, folder: Path) -> ModelSpec:
    """The network that ``config.json`` of a folder describes, with the weights beside it.

    Raises:
        MissingWeightsError: There are none.
        UsageError: They lie in several files.
        DataError, UsageError, UnknownNameError: As of ``read_description`` and ``described``.
    """
    found = described(spec, read_description(folder / CONFIG, of=folder.name), of=folder.name)
    if spec.weights == RANDOM or spec.has_checkpoint:
        return found
    file = next((folder / name for name in WEIGHTS if (folder / name).is_file()), None)
    if file is None:
        if (parts := next((name for name in lists_of_parts(WEIGHTS) if (folder / name).is_file()), None)) is not None:
            raise in_parts(folder.name, parts)
        raise MissingWeightsError(f"{folder} has {CONFIG} and no weights: put one of {', '.join(WEIGHTS)} beside it.")
    return replace(found, weights=str(file.resolve()))
