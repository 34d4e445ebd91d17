"""What every format says after it has written its files and loaded them again."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from pydantic import ValidationError

from crossgraft import optional
from crossgraft.errors import CrossgraftError, ExportError, MissingError, RunDirectoryError, StorageError, UsageError
from crossgraft.export.record import ExportRecord
from crossgraft.export.source_model import Answer, SourceModel
from crossgraft.result import Result
from crossgraft.storage.atomic import describe_os_error, folder_beside, remove_leftovers

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False)
class Exported(Result[ExportRecord]):
    """An exported model: ``record``, which is ``export.json`` in the folder ``out``, says how far its outputs agree."""

    def summary(self) -> str:
        """What it is, how far it was compared, and where it is."""
        record, agreement = self.record, self.record.agreement
        return (
            f"{record.model.name}, exported as {record.format} for {record.loads_with}; {agreement.num_images} images compared: "
            f"logits differ by at most {agreement.largest_logit_difference:.1e}. {record.model.use}"
        )

    def places(self) -> Mapping[str, object]:
        """The folder, and where it is on the hub."""
        pushed = self.record.pushed_to
        return {"Export": self.out, **({"On the hub": pushed} if pushed else {})}

    def to_frame(self) -> pd.DataFrame:
        """One row per file: ``file``, ``bytes`` and ``sha256``."""
        import pandas as pd

        rows = [(file.name, file.num_bytes, file.sha256) for file in self.record.files]
        return pd.DataFrame(rows, columns=["file", "bytes", "sha256"])


RECORD_FILE = "export.json"
"""In every export; says that a folder may be replaced by another one."""


def refuse_existing(out: Path, *, overwrite: bool) -> None:
    """Look before the work is done; what a killed export left beside ``out`` is removed.

    Raises:
        RunDirectoryError: ``out`` is there, and is not to be replaced or is no export.
    """
    remove_leftovers(out.parent, of=out.name)
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return
    if not (out / RECORD_FILE).is_file():
        raise RunDirectoryError(f"{out} holds files that are not an export. Choose another folder with --out.")
    if not overwrite:
        raise RunDirectoryError(f"{out} holds an export already. Use --overwrite to replace it, or another --out.")
    known = _files_of(out / RECORD_FILE)
    there = [entry for entry in out.rglob("*") if entry.is_symlink() or not entry.is_dir()]
    if others := sorted(name for name in (entry.relative_to(out).as_posix() for entry in there) if name not in known):
        raise RunDirectoryError(
            f"{out} holds {others[0]} beside an export, which would be lost with it. Move it, or choose another --out."
        )


def _files_of(record: Path) -> set[str]:
    try:
        files = ExportRecord.model_validate_json(record.read_bytes()).files
    except (OSError, ValidationError) as error:
        raise RunDirectoryError(
            f"{record} is no record of an export, so that the folder is not replaced. Choose another --out."
        ) from error
    return {RECORD_FILE, *(file.name for file in files)}


@contextmanager
def new_folder(out: Path) -> Generator[Path]:
    """A folder to write into, beside ``out``; takes its place when the block ends well, and is removed when it does not.

    Raises:
        StorageError: It cannot be written; an older ``out`` stays as it was.
    """
    missing = [folder for folder in out.parents if not folder.exists()]
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with folder_beside(out) as fresh:
            yield fresh
    except BaseException as error:
        for folder in missing:
            with suppress(OSError):  # not empty: somebody else uses it
                folder.rmdir()
        if isinstance(error, OSError) and not isinstance(error, CrossgraftError):
            raise StorageError(
                f"Cannot write the export into {out}: {describe_os_error(error)}. Free some space or choose another --out."
            ) from error
        raise


_NAME = re.compile(r"[\w.-]+/[\w.-]+")


def check_push(push_to: str | None, *, format: str) -> None:
    """Refuse before the work what could not be sent after it.

    Raises:
        UsageError: ``push_to`` is no name of a repository, or the format is not the layout of the hub.
        MissingExtraError: The client of the hub is not installed.
        MissingError: There is no token.
    """
    if push_to is None:
        return
    if format != "safetensors":
        raise UsageError(f"--push-to sends the layout of the hub, --format safetensors; not {format}. Leave one out.")
    if not _NAME.fullmatch(push_to):
        raise UsageError(f"--push-to takes OWNER/NAME, such as my-group/breast-mobilenet; not {push_to}.")
    if _client().get_token() is None:
        raise MissingError(
            f"To push to {push_to}, the hub of Hugging Face needs your token. Run: hf auth login, or set HF_TOKEN."
        )


def push(folder: Path, push_to: str, *, private: bool) -> str:
    """Create the repository if it is not there, upload all files.

    Returns:
        The address of the repository.

    Raises:
        ExportError: No network, no permission …; the export stays on this machine.
    """
    api: Any = _client().HfApi(library_name="crossgraft")
    try:
        url = api.create_repo(push_to, private=private, exist_ok=True)
        api.upload_folder(repo_id=push_to, folder_path=folder, commit_message="Fine-tuned model, exported by crossgraft")
    except Exception as error:  # the client passes on the errors of its HTTP library, which differ by version
        reason = (str(error).strip().splitlines() or [""])[0].rstrip(".") or type(error).__name__
        raise ExportError(
            f"The export could not be sent to {push_to}: {reason}. It is complete in {folder}; send it with: hf upload "
            f"{push_to} {folder}"
        ) from error
    return str(url)


def _client() -> Any:
    return optional.require("huggingface_hub", extra="export", needed_for="--push-to")


DESCRIPTION = "description.json"
"""Name of the file beside the model, and of the same document inside it."""


class Written(NamedTuple):
    """Files that are there, and how to use them.

    Attributes:
        answer: Answer of the model that was loaded from the files.
        checked_with: The package that loaded them, with its version.
        loads_with: The package in a word.
        how_to_load: One line of Python.
        how_to_use: Instructions for the card, in Markdown.
        card_name: File of the card.
        card_header: Header in front of the card.
        notes: Notes to the reader.
        holds_adapters: The adapters are files of their own, and not part of weights.
    """

    answer: Answer
    checked_with: str
    loads_with: str
    how_to_load: str
    how_to_use: str
    card_name: str = "MODEL_CARD.md"
    card_header: str = ""
    notes: tuple[str, ...] = ()
    holds_adapters: bool = False


class Format(ABC):
    """One way to write a model.

    Attributes:
        name: As ``--format`` takes it.
        as_graph: Whether the file includes normalisation and probabilities.
        packages: Packages that are needed and may be missing.
        extra: The extra of crossgraft that installs them.
    """

    name: ClassVar[str]
    as_graph: ClassVar[bool] = False
    packages: ClassVar[tuple[str, ...]] = ()
    extra: ClassVar[str] = "export"

    def require(self) -> None:
        """Import what is needed before any work is done.

        Raises:
            MissingExtraError: A package is not installed.
        """
        for package in self.packages:
            optional.require(package, extra=self.extra, needed_for=f"--format {self.name}")

    @abstractmethod
    def write(self, source: SourceModel, folder: Path) -> Written:
        """Write the model into ``folder`` and load it again.

        Raises:
            ExportError: It cannot be written in this format; the message says why.
            StorageError: Disk full, no permission …
        """


def python_block(code: str) -> str:
    """Code for a card."""
    return f"```python\n{code.strip()}\n```"
