"""``hf-hub:ORG/NAME`` and ``hf-hub:ORG/NAME@REVISION``: networks of timm on the Hugging Face hub."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from huggingface_hub import constants as hub_constants
from huggingface_hub import hf_hub_download, try_to_load_from_cache
from huggingface_hub.errors import EntryNotFoundError, GatedRepoError, HfHubHTTPError, HFValidationError, LocalEntryNotFoundError
from huggingface_hub.utils import validate_repo_id
from timm.models import list_pretrained

from crossgraft.errors import DataError, MissingWeightsError, UnknownNameError, UsageError
from crossgraft.models.published_names import published_names, terms_in_words
from crossgraft.models.sources.hub_description import CONFIG, WEIGHTS, described, in_parts, lists_of_parts, read_description
from crossgraft.models.sources.library import AvailableModel, PlaceLibrary, Places, count_parameters_of_file
from crossgraft.models.sources.local_folder import in_folder
from crossgraft.models.spec import RANDOM, ModelSpec, family_of, library_name, name_in_library

_REPOSITORY = re.compile(r"(?P<id>[\w.-]+/[\w.-]+)(@(?P<revision>[\w./-]+))?")


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
    library: str = "hf-hub"
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


class HubLibrary(PlaceLibrary):
    """Repositories that hold ``config.json`` as timm writes it, and weights. Nothing of a repository is run."""

    name: ClassVar[str] = "hf-hub"
    title: ClassVar[str] = "networks of timm on the Hugging Face hub"
    form: ClassVar[str] = "hf-hub:ORG/NAME or hf-hub:ORG/NAME@REVISION"

    def knows(self, source: str) -> bool:
        """Whether it can be the name of a repository."""
        return _REPOSITORY.fullmatch(name_in_library(source)) is not None

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
        found = [each for each in repositories_in_cache() if not each.id.startswith("timm/") and _is_of_timm(each)]
        return [f"{self.name}:{each.id}" for each in found]

    def available(self, weights_dir: Path | None, search: str | None) -> list[AvailableModel]:
        """Repositories in the cache, whose weights may or may not be there."""
        names = self.names()
        return [self.row(name, weights_dir) for name in names if search is None or search.lower() in name.lower()]

    def row(self, source: str, weights_dir: Path | None) -> AvailableModel:
        """By the files in the cache."""
        return row_in_cache(source, repository_of(source, form=self.form), WEIGHTS)


def repository_of(source: str, *, form: str) -> Repository:
    """The repository that a source names.

    Raises:
        UnknownNameError: It is no name of one.
    """
    match = _REPOSITORY.fullmatch(name_in_library(source))
    try:
        validate_repo_id("" if match is None else match["id"])
    except HFValidationError:
        match = None
    if match is None or ".." in (match["revision"] or ""):
        raise UnknownNameError("repository", source, [], hint=f"Write {form}.")
    return Repository(match["id"], match["revision"], library_name(source))


def repositories_in_cache() -> list[Repository]:
    """Those of which something is in the cache of the hub."""
    folders = sorted(Path(hub_constants.HF_HUB_CACHE).glob("models--*--*"))
    return [Repository("/".join(folder.name.split("--")[1:3])) for folder in folders]


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
    if repository.library != HubLibrary.name:
        return ""
    known = [each.source for each in published_names().values() if each.source.endswith(f":{repository.id}")]
    if any(library_name(source) != HubLibrary.name for source in known):
        return f" It is no network of timm: write {known[0]}."
    if known:
        return ""
    return (
        f" If its {CONFIG} names a model_type, it is of transformers: write transformers:{repository.id}; if it has an "
        f"open_clip_config.json, write open_clip:{repository.id}."
    )


def _is_of_timm(repository: Repository) -> bool:
    config = repository.cached(CONFIG)
    try:
        return config is not None and bool(read_description(config, of=repository.id))
    except (DataError, UsageError):
        return False
