"""A folder, or a repository of the hub, that holds a description of a network, and weights."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from huggingface_hub import constants as hub_constants
from huggingface_hub import hf_hub_download, try_to_load_from_cache
from huggingface_hub.errors import EntryNotFoundError, GatedRepoError, HfHubHTTPError, HFValidationError, LocalEntryNotFoundError
from huggingface_hub.utils import validate_repo_id

from crossgraft.errors import DataError, MissingWeightsError, UnknownNameError, UsageError
from crossgraft.models.published_names import published_names, terms_in_words
from crossgraft.models.sources.hub_description import CONFIG, WEIGHTS, in_parts, lists_of_parts
from crossgraft.models.sources.library import AvailableModel, Places, count_parameters_of_file
from crossgraft.models.spec import family_of, library_name, name_in_library

_HUB = "hf-hub"
REPOSITORY = re.compile(r"(?P<id>[\w.-]+/[\w.-]+)(@(?P<revision>[\w./-]+))?")


@dataclass(frozen=True)
class Repository:
    """A repository of the hub, whole or at a revision.

    Attributes:
        id: Owner and name.
        revision: Branch, tag or commit; None: the newest.
        library: Word of the library that reads it.
        needs: The files that it reads, for messages.
    """

    id: str
    revision: str | None = None
    library: str = _HUB
    needs: str = f"{CONFIG} and {WEIGHTS[0]} (or {WEIGHTS[1]})"

    @property
    def folder_name(self) -> str:
        """How a folder of ``--weights-dir`` is called that holds its files.

        >>> Repository("MahmoodLab/UNI").folder_name
        'MahmoodLab--UNI'
        """
        return self.id.replace("/", "--")

    def folder_in(self, places: Places) -> Path | None:
        """The folder of ``--weights-dir`` that holds its files; says so where nothing tells their revision."""
        if places.weights_dir is None or not (folder := places.weights_dir / self.folder_name).is_dir():
            return None
        if self.revision is not None:
            places.reporter.warn(
                f"The files of {self.id} are those in {folder}, and nothing there says whether they are of revision "
                f"{self.revision}."
            )
        return folder

    def cached(self, file: str) -> Path | None:
        """A file of it in the cache of the hub."""
        found = try_to_load_from_cache(self.id, file, revision=self.revision)
        return Path(found) if isinstance(found, str) else None

    def download(self, file: str, places: Places) -> Path | None:
        """A file of it; None where it has none of this name.

        Raises:
            MissingWeightsError: The repository is closed, gone, or out of reach.
        """
        places.reporter.say(f"Downloading {file} of huggingface.co/{self.id} to {hub_constants.HF_HUB_CACHE}")
        try:
            return Path(hf_hub_download(self.id, file, revision=self.revision))
        except GatedRepoError as error:
            raise MissingWeightsError(
                f"huggingface.co/{self.id} is open only to those who have accepted its terms. Accept them on that page, then "
                "log in on this machine: hf auth login."
            ) from error
        except LocalEntryNotFoundError as error:
            raise self._unreachable(file, error) from error
        except EntryNotFoundError:
            return None
        except (HfHubHTTPError, OSError) as error:
            raise self._unreachable(file, error) from error

    def _unreachable(self, file: str, error: Exception) -> MissingWeightsError:
        first_line = (str(error).splitlines() or [type(error).__name__])[0]
        return MissingWeightsError(
            f"{file} of huggingface.co/{self.id} could not be downloaded (--allow-download): {first_line}. On a machine with "
            f"network, download {CONFIG} and the weights into a folder {self.folder_name} of --weights-dir."
        )


def repository_of(source: str, *, form: str) -> Repository:
    """The repository that a source names.

    Raises:
        UnknownNameError: It is no name of one.
    """
    match = REPOSITORY.fullmatch(name_in_library(source))
    try:
        validate_repo_id("" if match is None else match["id"])
    except HFValidationError:
        match = None
    if match is None or ".." in (match["revision"] or ""):
        raise UnknownNameError("repository", source, [], hint=f"Write {form}.")
    return Repository(match["id"], match["revision"], library_name(source))


def repositories_in_cache(description: str, read: Callable[[Path, str], object]) -> list[Repository]:
    """Those in the cache of the hub whose description (a file of this name) ``read`` can read; it is told the id, too."""
    found: list[Repository] = []
    for folder in sorted(Path(hub_constants.HF_HUB_CACHE).glob("models--*--*")):
        repository = Repository("/".join(folder.name.split("--")[1:3]))
        if (file := repository.cached(description)) is not None:
            with suppress(DataError, UsageError):
                read(file, repository.id)
                found.append(repository)
    return found


def row_in_cache(source: str, repository: Repository, weights: Sequence[str]) -> AvailableModel:
    """The row of one repository, by the files in the cache."""
    path = next((path for name in weights if (path := repository.cached(name)) is not None), None)
    where = f"huggingface.co/{repository.id} (--allow-download)" if path is None else str(path)
    num_parameters = None if path is None else count_parameters_of_file(path)
    return AvailableModel(source, family_of(source.rpartition("/")[2]), num_parameters, path is not None, where)


def file_of(repository: Repository, names: Sequence[str], places: Places) -> Path:
    """The first of these files that is there: in the cache of the hub, or downloaded with consent.

    Raises:
        MissingWeightsError: There is none.
        UsageError: They are weights that lie in several files.
    """
    terms = terms_in_words(f"{repository.library}:{repository.id}")
    for name in names:
        if (cached := repository.cached(name)) is not None:
            return cached
    parts = lists_of_parts(names)
    if (listed := next((name for name in parts if repository.cached(name) is not None), None)) is not None:
        raise in_parts(repository.id, listed)
    if places.allow_download:
        if terms is not None and names[0].endswith(".json"):
            places.reporter.say(f"{repository.id}: {terms}")
        for name in names:
            if (loaded := repository.download(name, places)) is not None:
                return loaded
        if (listed := next((name for name in parts if repository.download(name, places) is not None), None)) is not None:
            raise in_parts(repository.id, listed)
        raise MissingWeightsError(f"huggingface.co/{repository.id} has none of {', '.join(names)}.")
    raise MissingWeightsError(
        f"{names[0]} of huggingface.co/{repository.id} is not on this machine. Download {repository.needs} from there into a "
        f"folder {repository.folder_name} and name the folder around it with --weights-dir; or pass --allow-download, which "
        f"stores them in {hub_constants.HF_HUB_CACHE}.{'' if terms is None else f' {terms}'}{_other_form(repository)}"
    )


def _other_form(repository: Repository) -> str:
    """Which library else may be meant, where the repository cannot be looked into."""
    if repository.library != _HUB:
        return ""
    known = [each.source for each in published_names().values() if each.source.endswith(f":{repository.id}")]
    if any(library_name(source) != _HUB for source in known):
        return f" It is no network of timm: write {known[0]}."
    if known:
        return ""
    return (
        f" If its {CONFIG} names a model_type, it is of transformers: write transformers:{repository.id}; if it has an "
        f"open_clip_config.json, write open_clip:{repository.id}."
    )


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
