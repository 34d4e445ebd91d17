"""Published results, evaluated again."""

from typing import TYPE_CHECKING

from crossgraft.faces import lazy_face

if TYPE_CHECKING:
    from crossgraft.published.verb import evaluate_published as evaluate_published

lazy_face(__name__)
