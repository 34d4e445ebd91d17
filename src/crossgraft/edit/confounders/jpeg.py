"""JPEG: what is lost when an image is stored small."""

from __future__ import annotations

from dataclasses import dataclass, field
from io import BytesIO
from typing import ClassVar

import numpy as np
from jaxtyping import UInt8
from PIL import Image

from crossgraft.edit._image_edit import Confounder, Domain, Leaf, Painted, Pixels, measured_in


def jpeg_bytes(picture: UInt8[np.ndarray, "height width *rgb"], quality: int) -> bytes:
    """A JPEG file: grey levels, or colours at half their resolution.

    Args:
        picture: (height, width) or (height, width, 3).
        quality: 1 to 95, the scale of the Independent JPEG Group.
    """
    stream = BytesIO()
    Image.fromarray(picture).save(stream, format="JPEG", quality=quality)
    return stream.getvalue()


@dataclass(frozen=True)
class Jpeg(Confounder):
    """JPEG: blocks of 8 × 8 pixels lose the details that the eye misses least.

    JPEG knows 8 bits: other images are rounded to 256 levels on the way. An image of three equal channels is stored as the
    grey image that it is.

    Args:
        quality: Quality on the scale of the Independent JPEG Group.
    """

    name: ClassVar[str] = "jpeg"
    title: ClassVar[str] = "JPEG"
    leaf: ClassVar[Leaf] = "imaging"
    domain: ClassVar[Domain] = "codec"
    reference: ClassVar[str] = "ITU-T T.81 (1992)"

    quality: int = field(default=40, metadata=measured_in("quality", low=1, high=95))

    def edit(self, pixels: Pixels, rng: np.random.Generator) -> Painted:
        """Stored and read again."""
        levels = np.rint(pixels * 255).astype(np.uint8)
        is_grey = bool((levels == levels[:, :, :1]).all())
        stored = jpeg_bytes(np.ascontiguousarray(levels[:, :, 0]) if is_grey else levels, self.quality)
        with Image.open(BytesIO(stored)) as opened:
            read = np.asarray(opened, dtype=np.float64) / 255
        return Painted(np.broadcast_to(read[:, :, None], pixels.shape) if is_grey else read)
