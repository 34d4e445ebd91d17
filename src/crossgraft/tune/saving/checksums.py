"""Checksums of ``model.json``, so that a changed description of a model is refused by the name of what was changed.

They find damage and careless edits. They are no signature: who changes the file on purpose can compute them again, which is
why nothing in the file is trusted with code either (see ``models.trusted_code``).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import cast

from crossgraft.errors import DataError
from crossgraft.tune.saving.record import SavedModelRecord

_FIELD = "checksums"


def checksums_of(facts: SavedModelRecord) -> dict[str, str]:
    """SHA-256 of each field of the record but the checksums; of a mapping, one for each of its keys.

    A value is hashed as canonical JSON (sorted keys, no spaces, shortest floats), so that the layout of the file is free.
    """
    values = cast("dict[str, object]", facts.model_dump(mode="json", exclude={_FIELD}))
    found: dict[str, str] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            found |= {f"{name}.{key}": _digest(part) for key, part in cast("Mapping[str, object]", value).items()}
        else:
            found[name] = _digest(value)
    return found


def refuse_changes(facts: SavedModelRecord, path: Path) -> None:
    """Compare a record that was read with the checksums in it.

    Raises:
        DataError: A field was changed, added or removed; the message names it.
    """
    if not facts.checksums:
        raise DataError(
            f"{path} has no checksums: it was edited, or written by an earlier version of crossgraft. Restore the file, or "
            "fine-tune again."
        )
    now = {
        key: digest
        for key, digest in checksums_of(facts).items()
        if key in facts.checksums or key.partition(".")[0] in facts.model_fields_set
    }  # without fields that the version that wrote it did not know
    changed = sorted(key for key in {*now, *facts.checksums} if now.get(key) != facts.checksums.get(key))
    if changed:
        raise DataError(
            f"{path} was changed after it was written: {', '.join(changed)}. The model would decide otherwise than it was "
            "measured. Restore the file, or fine-tune again."
        )


def _digest(value: object) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()
