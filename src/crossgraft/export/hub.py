"""Send an export to the hub of Hugging Face: only when it was asked for, and private unless said otherwise."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from crossgraft import optional
from crossgraft.errors import ExportError, MissingError, UsageError

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
        api.upload_folder(
            repo_id=push_to, folder_path=folder, commit_message="Fine-tuned model, exported by crossgraft"
        )
    except Exception as error:  # the client passes on the errors of its HTTP library, which differ by version
        reason = (str(error).strip().splitlines() or [""])[0].rstrip(".") or type(error).__name__
        raise ExportError(
            f"The export could not be sent to {push_to}: {reason}. It is complete in {folder}; send it with: hf upload "
            f"{push_to} {folder}"
        ) from error
    return str(url)


def _client() -> Any:
    return optional.require("huggingface_hub", extra="export", needed_for="--push-to")
