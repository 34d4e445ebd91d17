"""``hf-hub:ORG/NAME`` and ``hf-hub:ORG/NAME@REVISION``: networks of timm on the Hugging Face hub."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from timm.models import list_pretrained

from crossgraft.models.sources.described_places import REPOSITORY, file_of, repositories_in_cache, repository_of, row_in_cache
from crossgraft.models.sources.hub_description import CONFIG, WEIGHTS, described, in_folder, read_description
from crossgraft.models.sources.library import AvailableModel, PlaceLibrary, Places
from crossgraft.models.spec import RANDOM, ModelSpec, name_in_library


class HubLibrary(PlaceLibrary):
    """Repositories that hold ``config.json`` as timm writes it, and weights. Nothing of a repository is run."""

    name: ClassVar[str] = "hf-hub"
    title: ClassVar[str] = "networks of timm on the Hugging Face hub"
    form: ClassVar[str] = "hf-hub:ORG/NAME or hf-hub:ORG/NAME@REVISION"

    def knows(self, source: str) -> bool:
        """Whether it can be the name of a repository."""
        return REPOSITORY.fullmatch(name_in_library(source)) is not None

    def locate(self, spec: ModelSpec, places: Places) -> ModelSpec:
        """The network that the repository describes: in ``weights_dir``, in the cache of the hub, or downloaded with consent."""
        repository = repository_of(spec.source, form=self.form)
        if (folder := repository.folder_in(places)) is not None:
            return in_folder(spec, folder)
        name = repository.id.removeprefix("timm/")
        if repository.revision is None and name != repository.id and name in list_pretrained(f"{name.partition('.')[0]}.*"):
            return replace(spec, source=name)  # timm knows all about its own
        config = file_of(repository, (CONFIG,), places)
        found = described(spec, read_description(config, of=repository.id), of=repository.id)
        if spec.weights == RANDOM or spec.has_checkpoint:
            return found
        return replace(found, weights=str(file_of(repository, WEIGHTS, places)))

    def names(self) -> list[str]:
        """Those in the cache of the hub that timm can build, but for timm's own."""
        found = repositories_in_cache(CONFIG, lambda file, of: read_description(file, of=of))
        return [f"{self.name}:{each.id}" for each in found if not each.id.startswith("timm/")]

    def available(self, weights_dir: Path | None, search: str | None) -> list[AvailableModel]:
        """Repositories in the cache, whose weights may or may not be there."""
        names = self.names()
        return [self.row(name, weights_dir) for name in names if search is None or search.lower() in name.lower()]

    def row(self, source: str, weights_dir: Path | None) -> AvailableModel:
        """By the files in the cache."""
        return row_in_cache(source, repository_of(source, form=self.form), WEIGHTS)
