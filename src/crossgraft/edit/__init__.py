"""A data set with edited images: an artefact in some, or cues taken away from all."""

from typing import TYPE_CHECKING

from crossgraft.faces import lazy_face

if TYPE_CHECKING:
    from crossgraft.edit.contact_sheets import show_confounders as show_confounders
    from crossgraft.edit.verb import edit_data as edit_data

lazy_face(__name__)
