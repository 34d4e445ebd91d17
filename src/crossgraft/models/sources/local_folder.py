"""``local-dir:PATH``: a folder with ``config.json`` and weights, as timm and its hub keep a network."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from crossgraft.errors import MissingWeightsError
from crossgraft.models.sources.hub_description import CONFIG, in_folder
from crossgraft.models.sources.library import PlaceLibrary, Places
from crossgraft.models.spec import ModelSpec, name_in_library


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
