"""Which images a saved model has seen, in a file beside its folder."""

from __future__ import annotations

from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from crossgraft.errors import DataError
from crossgraft.paths import read_whole

IMAGES_FILE = "training_images.json"
"""Digests of the images that had a part in the fine-tuning. They lie beside the folder, which is passed on without them: who
has an image could find out that it was trained on."""


def read_known_images(path: Path) -> frozenset[str] | None:
    """The digests; None where the folder was passed on without them.

    Raises:
        DataError: The file is damaged.
    """
    try:
        return frozenset(TypeAdapter(list[str]).validate_json(read_whole(path)))
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        reason = error.errors(include_url=False)[0]["msg"] if isinstance(error, ValidationError) else error.strerror
        raise DataError(f"{path} is damaged: {reason}. Restore the file, or remove it to go on without it.") from error
