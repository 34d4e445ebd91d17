"""The small JSON files of a dataset of Hugging Face; only what is used of them is looked at, and each of it is checked."""

from __future__ import annotations

import json
from pathlib import Path, PureWindowsPath
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from crossgraft.errors import DataError
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
        raise DataError(
            f"{file} is damaged: {entry}{first['msg']}. Save the dataset again with save_to_disk."
        ) from error
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
