"""What a fine-tuned model says about images."""

from typing import TYPE_CHECKING

from crossgraft.faces import lazy_face

if TYPE_CHECKING:
    from crossgraft.predict.verb import predict as predict

lazy_face(__name__)
