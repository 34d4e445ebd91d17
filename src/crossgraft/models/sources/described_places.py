"""A folder, or a repository of the hub, that holds a description of a network, and weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from crossgraft.errors import MissingWeightsError, UnknownNameError
from crossgraft.models.sources.hub_description import in_parts, lists_of_parts
from crossgraft.models.sources.hub_models import Repository, file_of, repository_of
from crossgraft.models.sources.library import Places
from crossgraft.models.spec import name_in_library


@dataclass(frozen=True)
class DescribedPlace:
    """Where the files of one network are.

    Attributes:
        name: Name of the folder or repository, for messages.
        folder: The folder, or
        repository: The repository, and
        places: what may be asked for it.
    """

    name: str
    folder: Path | None
    repository: Repository | None
    places: Places

    def file(self, names: Sequence[str]) -> Path:
        """The first of these files.

        Raises:
            MissingWeightsError: There is none.
        """
        if self.repository is not None:
            return file_of(self.repository, names, self.places)
        found = self.find(names)
        if found is None:
            raise MissingWeightsError(f"{self.name} has none of {', '.join(names)}. Put one there, or give weights: random.")
        return found

    def find(self, names: Sequence[str]) -> Path | None:
        """The first of these files, if there is one."""
        if self.folder is not None:
            return next((path for name in names if (path := self.folder / name).is_file()), None)
        try:
            return self.file(names)
        except MissingWeightsError:
            return None

    def weights(self, names: Sequence[str]) -> Path:
        """The first of these files, which hold tensors.

        Raises:
            MissingWeightsError: There is none.
            UsageError: They lie in several files.
        """
        if self.folder is not None and self.find(names) is None and (parts := self.find(lists_of_parts(names))) is not None:
            raise in_parts(self.name, parts.name)
        return self.file(names).resolve()


def find_place(source: str, places: Places, *, description: str, form: str, needs: str) -> DescribedPlace:
    """A folder with the description, a folder ``ORG--NAME`` of ``weights_dir``, or a repository of the hub.

    Args:
        source: A name with the word of its library.
        places: Where folders are looked for.
        description: Name of the file that a folder must have.
        form: How the library's names are written, for messages.
        needs: The files that are read, for messages.

    Raises:
        MissingWeightsError: It is no folder, and no name of a repository.
    """
    name = name_in_library(source)
    path = Path(name).expanduser()
    tried = [path] if path.is_absolute() else [folder / path for folder in places.folders]
    folder = next((each for each in tried if (each / description).is_file()), None)
    if folder is not None:
        return DescribedPlace(folder.name, folder, None, places)
    try:
        repository = replace(repository_of(source, form=form), needs=needs)
    except UnknownNameError as error:
        raise MissingWeightsError(
            f"{name} is no repository (ORG/NAME) and no folder with {description} (looked for in "
            f"{', '.join(str(each.parent) for each in tried)}). Write {form}."
        ) from error
    if (folder := repository.folder_in(places)) is not None:
        return DescribedPlace(folder.name, folder, None, places)
    return DescribedPlace(repository.id, None, repository, places)
