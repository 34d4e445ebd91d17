"""Small images for the report: at most 96 pixels a side, to protect patients."""

from __future__ import annotations

import base64
import io

import numpy as np
from PIL import Image

THUMBNAIL_PIXELS = 96


def thumbnail_png(pixels: np.ndarray) -> str:
    """An image of (height, width, 1 or 3) as a small PNG file in base64."""
    if pixels.dtype != np.uint8:
        # Stretched to the range of the image, because twelve bits shown in sixteen are black.
        low, high = float(pixels.min()), float(pixels.max())
        pixels = ((pixels.astype(np.float32) - low) / max(high - low, 1e-12) * 255).astype(np.uint8)
    image = Image.fromarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels)
    image.thumbnail((THUMBNAIL_PIXELS, THUMBNAIL_PIXELS))
    buffer = io.BytesIO()
    image.save(buffer, format="PNG", optimize=True)
    return base64.b64encode(buffer.getvalue()).decode("ascii")
