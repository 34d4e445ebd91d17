"""The split that every command uses, in a file."""

from typing import TYPE_CHECKING

from crossgraft.faces import lazy_face

if TYPE_CHECKING:
    from crossgraft.split.verb import split_data as split_data

lazy_face(__name__)
