"""Networks between the pretrained and a fine-tuned one, without training."""

from typing import TYPE_CHECKING

from crossgraft.faces import lazy_face

if TYPE_CHECKING:
    from crossgraft.interpolate.interpolation import Interpolated as Interpolated
    from crossgraft.interpolate.verb import interpolate as interpolate
    from crossgraft.interpolate.verb import interpolate_runs as interpolate_runs

lazy_face(__name__)
