"""Source editing: the cue is taken away from every image before a network sees it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from crossgraft.audit.mitigation._mitigation import ConfounderKind, FittedScorer, GroupedRows, Mitigation, logistic_scorer
from crossgraft.edit._image_edit import ImageEdit
from crossgraft.edit.confounders import Confounder
from crossgraft.edit.edits import choose_edits
from crossgraft.errors import UsageError


@dataclass(frozen=True)
class SourceEditing(Mitigation):
    """Every image is edited alike, in all parts and after the artefact; on the features of these, ``erm``.

    Whoever computes features applies ``image_edit``; ``fit`` takes the rows for those of edited images.

    Args:
        edit: An edit of the whole image, such as ``low_pass:0.125`` or ``whiten_spectrum``; it must reach what the artefact
            changes.

    Cost: an edit per image, and features once more.

    Source: Juodelyte, thesis, section 5.2, where images of the source are edited.
    """

    name: ClassVar[str] = "source_editing"
    title: ClassVar[str] = "Source editing"
    reference: ClassVar[str] = "Juodelyte, thesis on cross-domain transfer in medical imaging, section 5.2"
    kinds: ClassVar[tuple[ConfounderKind, ...]] = ("global",)
    applies_to_images: ClassVar[bool] = True

    edit: str = "low_pass:0.125"

    def __post_init__(self) -> None:
        """Refuse an edit that there is not, and one that leaves most of the image as it is."""
        chosen = self.image_edit
        if isinstance(chosen, Confounder) and chosen.scope == "local":
            raise UsageError(
                f"source_editing takes a cue away from the whole image, and {chosen.name} paints a part of it. "
                "Name another edit, such as low_pass:0.125."
            )

    @property
    def image_edit(self) -> ImageEdit:
        """What is done to each image."""
        return choose_edits(self.edit)[0]

    def fit_rows(self, train: GroupedRows, val: GroupedRows, *, seed: int) -> FittedScorer:
        """As ``erm``."""
        return logistic_scorer(train)
