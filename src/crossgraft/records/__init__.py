"""The plain rows that commands write and reports read; nothing here computes anything.

Every record is a pydantic model: it validates when read back, prints as JSON, and its JSON schema documents the files of
a run directory. ``None`` means "there is no number", and a text field beside it says why. Bump ``SCHEMA_VERSION`` when a
field changes its meaning. Records of one question stand in its room, as ``record.py``.
"""

from typing import TYPE_CHECKING

from crossgraft.faces import lazy_face

if TYPE_CHECKING:
    from crossgraft.records.base import SCHEMA_VERSION as SCHEMA_VERSION
    from crossgraft.records.base import CheckRecord as CheckRecord
    from crossgraft.records.base import Record as Record
    from crossgraft.records.base import Reference as Reference
    from crossgraft.records.base import Severity as Severity
    from crossgraft.records.base import StageRecord as StageRecord
    from crossgraft.records.base import Thumbnail as Thumbnail

lazy_face(__name__)
