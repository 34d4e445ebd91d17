"""Hand a fine-tuned model on: other formats, each loaded again and compared before it gets its name."""

from typing import TYPE_CHECKING

from crossgraft.faces import lazy_face

if TYPE_CHECKING:
    from crossgraft.export.written import Exported as Exported

lazy_face(__name__)
