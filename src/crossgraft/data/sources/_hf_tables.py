"""Finding the Arrow files of a dataset of Hugging Face, in a saved folder or in the local cache, and mapping them.

Files are only read: no index, lock or cache file is left in a folder of the user.
"""

from __future__ import annotations

import json
import os
import re
import warnings
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from inspect import signature
from pathlib import Path, PureWindowsPath
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from crossgraft.data._groups import Confidential
from crossgraft.data.sources._image_files import ImageRoot
from crossgraft.data.sources._source import canonical_split
from crossgraft.errors import DataError, MissingError, UsageError
from crossgraft.optional import require
from crossgraft.paths import shortened


class _Description(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True)


class SavedFile(_Description):
    """An entry of ``_data_files``."""

    filename: str


class SavedState(_Description):
    """``state.json``, beside the files of one split."""

    files: list[SavedFile] = Field(default=[], alias="_data_files")
    old_files: Any = Field(default=None, alias="_indices_data_files")
    split: str | None = Field(default=None, alias="_split")


class SavedSplits(_Description):
    """``dataset_dict.json``, beside the folders of all splits."""

    splits: list[str] = []


class CachedInfo(_Description):
    """``dataset_info.json``, as the cache of ``datasets`` has it."""

    config_name: str | None = None
    splits: dict[str, Any] | None = None


_Kind = TypeVar("_Kind", bound=_Description)


def read_description(file: Path, kind: type[_Kind]) -> _Kind:
    """What a file says.

    Raises:
        DataError: The file is missing, cannot be read, is no JSON, or an entry has another type.
    """
    try:
        return kind.model_validate(json.loads(file.read_text(encoding="utf-8")))
    except FileNotFoundError as error:
        raise DataError(f"The dataset is not complete: there is no {file}. Save it again with save_to_disk.") from error
    except OSError as error:
        raise DataError(f"Cannot read {shortened(str(file))}: {error.strerror or error}.") from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        entry = "".join(f"{part}: " for part in (".".join(map(str, first["loc"])),) if part)
        raise DataError(f"{file} is damaged: {entry}{first['msg']}. Save the dataset again with save_to_disk.") from error
    except (ValueError, RecursionError) as error:
        raise DataError(f"{file} is damaged: {error}. Save the dataset again with save_to_disk.") from error


def refuse_other_folder(name: str, where: Path) -> None:
    """Raise unless ``name`` is that of something directly in a folder, on any system.

    Args:
        name: Name of a file or folder, as a description gives it.
        where: The description, for the message.

    Raises:
        DataError: It is a path, or no name at all.
    """
    if PureWindowsPath(name).name != name or name in ("", ".."):
        raise DataError(
            f"{where} names {shortened(name) or '(empty)'}, which is not the name of something in that folder. Save the "
            "dataset again with save_to_disk."
        )


HUB_PREFIX = "hf:"

_ALL_SPLITS = "dataset_dict.json"
_STATE = "state.json"
_INFO = "dataset_info.json"
_HUB_NAME = re.compile(r"hf:(?P<name>[^\W_][\w.-]*(?:/[^\W_][\w.-]*)?)(?::(?P<config>.+))?")
_TRUE = ("1", "ON", "YES", "TRUE")


@dataclass(frozen=True)
class ArrowSplits:
    """Where the rows of each split are; nothing is opened yet.

    Attributes:
        name: Name of the dataset, without an absolute path.
        files: Split → its Arrow files. The key None: a saved dataset without splits.
        image_folders: Folders of the images that rows only name.
        saved_as: The split that a dataset without splits was taken from, if it says so.
    """

    name: str
    files: Mapping[str | None, list[Path]]
    image_folders: tuple[Path, ...]
    saved_as: str | None = None


@dataclass(frozen=True, eq=False, repr=False)
class ArrowRows(Confidential):
    """Rows in memory-mapped files.

    Attributes:
        features: Column → what it holds (``datasets.Features``).
        table: A ``pyarrow.Table``.
        file_lengths: Rows of each file.
    """

    features: Mapping[str, Any]
    table: Any
    file_lengths: tuple[int, ...]


def is_saved_folder(folder: Path) -> bool:
    """Whether the folder was written by ``save_to_disk``."""
    return (folder / _ALL_SPLITS).is_file() or ((folder / _STATE).is_file() and (folder / _INFO).is_file())


def saved_splits(folder: Path, *, allow_outside: bool) -> ArrowSplits:
    """The splits of a folder written by ``save_to_disk``.

    Args:
        folder: Folder that holds them.
        allow_outside: Whether its Arrow files may be symbolic links that lead out of it.

    Raises:
        DataError: A file is missing or damaged, or outside of the folder, or two splits have names that mean the same.
    """
    name = folder.resolve().name
    bounds = None if allow_outside else ImageRoot([folder])
    if (folder / _STATE).is_file():
        state = read_description(folder / _STATE, SavedState)
        return ArrowSplits(name, {None: _saved_files(folder, state, bounds)}, (folder,), saved_as=state.split)
    files: dict[str | None, list[Path]] = {}
    for word in read_description(folder / _ALL_SPLITS, SavedSplits).splits:
        refuse_other_folder(word, folder / _ALL_SPLITS)
        state = read_description(folder / word / _STATE, SavedState)
        _add_split(files, word, _saved_files(folder / word, state, bounds), name)
    return ArrowSplits(name, files, (folder,))


def hub_splits(location: str, *, allow_download: bool) -> ArrowSplits:
    """The splits of ``hf:OWNER/NAME`` or ``hf:OWNER/NAME:CONFIG``; the network is used only if it must be and may be.

    Raises:
        MissingError: The dataset is not on this machine, and may not or cannot be fetched.
        UsageError: The location is malformed, or the dataset has several configurations.
    """
    match = _HUB_NAME.fullmatch(location)
    if match is None:
        raise UsageError(
            f"{location} does not name a dataset of the hub. Write hf:OWNER/NAME, or hf:OWNER/NAME:CONFIG where a dataset "
            "has several configurations."
        )
    name, config = match["name"], match["config"]
    datasets = _require_datasets(location)
    cache = Path(datasets.config.HF_DATASETS_CACHE).expanduser()
    folder = _cached_folder(cache, name, config)
    if folder is None:
        _refuse_without_permission(name, cache, allow_download=allow_download)
        _fetch(datasets, name, config)
        folder = _cached_folder(cache, name, config)
    if folder is None:
        raise MissingError(f"The dataset {name} was fetched, but is not in {cache}. Save it with save_to_disk instead.")
    files: dict[str | None, list[Path]] = {}
    for word in read_description(folder / _INFO, CachedInfo).splits or {}:
        shard_name = re.compile(rf".+-{re.escape(word)}(-\d{{5}}-of-\d{{5}})?\.arrow")
        _add_split(files, word, sorted(file for file in folder.glob("*.arrow") if shard_name.fullmatch(file.name)), name)
    return ArrowSplits(name if config is None else f"{name}:{config}", files, _cache_folders(datasets))


def read_rows(files: Sequence[Path], name: str) -> ArrowRows:
    """Map ``files`` into memory and read the descriptions of their columns; no row is read.

    Raises:
        DataError: A file is missing or damaged, or the files have other columns or classes than the first.
        MissingExtraError: The package ``datasets`` is not installed.
    """
    datasets = _require_datasets(name)
    import pyarrow

    if not files:
        raise DataError(f"The dataset {name} has no rows. Save it with some.")
    try:
        for file in files:
            _refuse_damaged_buffers(file)
        parts = [datasets.Dataset.from_file(str(file)) for file in files]
        table = pyarrow.concat_tables([part.data.table for part in parts])
    # What describes the columns is part of the file too, and datasets takes it as it is.
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError, pyarrow.ArrowException) as error:
        reason = " ".join(str(error).split()).rstrip(".")
        raise DataError(f"The dataset {name} is damaged: {reason}. Save it again with save_to_disk.") from error
    if any(part.features != parts[0].features for part in parts):
        raise DataError(f"The splits of the dataset {name} have different columns or classes. Save them with the same.")
    return ArrowRows(parts[0].features, table, tuple(len(part) for part in parts))


def _refuse_damaged_buffers(file: Path) -> None:
    """Raise ``ArrowException`` if cells lie outside of the file, where reading them would end the process; reads no image."""
    import pyarrow
    import pyarrow.ipc

    with pyarrow.memory_map(str(file)) as content:
        pyarrow.ipc.open_stream(content).read_all().validate(full=True)


def _require_datasets(what: str) -> Any:
    return require("datasets", extra="hf", needed_for=f"Reading the Hugging Face dataset {what}")


def _saved_files(folder: Path, state: SavedState, bounds: ImageRoot | None) -> list[Path]:
    if state.old_files:
        raise DataError(f"{folder} was written by a very old version of datasets. Load and save it again with a new one.")
    files: list[Path] = []
    for entry in state.files:
        refuse_other_folder(entry.filename, folder / _STATE)
        file = folder / entry.filename
        if bounds is not None and not bounds.holds_file(file, is_link=True):
            raise DataError(
                f"{shortened(entry.filename)} in {folder} is a link that leads out of the dataset. Copy the file there, or "
                "pass --allow-outside if it is meant."
            )
        files.append(file)
    return files


def _add_split(files: dict[str | None, list[Path]], word: str, paths: list[Path], name: str) -> None:
    split = canonical_split(word)
    if split in files:
        raise DataError(f"The dataset {name} has two splits that mean {split}. Rename one of them.")
    files[split] = paths


def _cache_folders(datasets: Any) -> tuple[Path, ...]:
    """Where ``datasets`` keeps what it fetched and unpacked."""
    from huggingface_hub.constants import HF_HUB_CACHE

    config = datasets.config
    folders = (config.HF_DATASETS_CACHE, config.DOWNLOADED_DATASETS_PATH, config.EXTRACTED_DATASETS_PATH, HF_HUB_CACHE)
    return tuple(Path(folder).expanduser() for folder in folders)


def _cached_folder(cache: Path, name: str, config: str | None) -> Path | None:
    """The newest folder of one configuration in the cache of ``datasets``, or None."""
    from datasets.naming import camelcase_to_snakecase

    *owner, short_name = name.split("/")
    root = cache / "___".join([*owner, camelcase_to_snakecase(short_name)])
    by_config: dict[str, list[Path]] = {}
    for info in root.glob(f"*/*/*/{_INFO}"):
        # A folder with another name than its configuration holds the dataset as made with special arguments.
        if read_description(info, CachedInfo).config_name == info.parents[2].name:
            by_config.setdefault(info.parents[2].name, []).append(info.parent)
    if config is None and len(by_config) > 1:
        examples = ", ".join(f"hf:{name}:{known}" for known in sorted(by_config))
        raise UsageError(f"Several configurations of the dataset {name} are on this machine. Write one of {examples}.")
    folders = by_config.get(config, []) if config is not None else [folder for group in by_config.values() for folder in group]
    return max(folders, key=lambda folder: folder.stat().st_mtime, default=None)


def _refuse_without_permission(name: str, cache: Path, *, allow_download: bool) -> None:
    missing = f"The dataset {name} is not in the cache of Hugging Face on this machine ({cache})."
    if not allow_download:
        raise MissingError(
            f"{missing} Pass --allow-download to fetch it with all its splits, or give a folder written by save_to_disk."
        )
    if any(os.environ.get(switch, "").upper() in _TRUE for switch in ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE")):
        raise MissingError(f"{missing} It is not fetched, because HF_HUB_OFFLINE is set: unset it and try again.")


def _fetch(datasets: Any, name: str, config: str | None) -> None:
    """Download and prepare a dataset; old versions of ``datasets`` are told to run no code of it."""
    no_code = {"trust_remote_code": False} if "trust_remote_code" in signature(datasets.load_dataset).parameters else {}
    try:
        with _silenced(datasets):
            datasets.load_dataset(name, config, **no_code)
    except (OSError, ValueError, RuntimeError, datasets.exceptions.DatasetsError) as error:
        reason = " ".join(str(error).split()).rstrip(".")
        raise MissingError(f"The dataset {name} cannot be fetched from the hub: {reason}.") from error


@contextmanager
def _silenced(datasets: Any) -> Generator[None]:
    """No bars, log lines or warnings of ``datasets``; errors come as exceptions."""
    bars, verbosity = datasets.are_progress_bars_disabled(), datasets.logging.get_verbosity()
    datasets.disable_progress_bars()
    datasets.logging.set_verbosity(datasets.logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        datasets.logging.set_verbosity(verbosity)
        if not bars:
            datasets.enable_progress_bars()
