"""Small image files and folders, made on the spot."""

import io

import numpy as np
import pytest
from PIL import Image

from crossgraft.progress import Reporter


@pytest.fixture
def pixels():
    """`pixels(seed, height=8, width=6, channels=1, dtype=np.uint8)`: one image of random samples."""

    def make(seed, height=8, width=6, channels=1, dtype=np.uint8):
        rng = np.random.default_rng(seed)
        if np.dtype(dtype).kind == "f":
            return rng.random((height, width, channels)).astype(dtype)
        return rng.integers(0, np.iinfo(dtype).max, (height, width, channels), endpoint=True).astype(dtype)

    return make


@pytest.fixture
def write_image(pixels):
    """`write_image(path, seed)`: an 8-bit image file, with its folders; returns the (height, width, channels) samples."""

    def write(path, seed=0, channels=1):
        samples = pixels(seed, channels=channels)
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(samples[..., 0] if channels == 1 else samples).save(path)
        return samples

    return write


@pytest.fixture
def make_folder(tmp_path, write_image):
    """`make_folder({"cat": 3, "train/dog": 2})`: a folder `images` with that many PNG files in each sub-folder."""

    def make(counts, name="images"):
        root = tmp_path / name
        root.mkdir()
        for folder_number, (folder, count) in enumerate(counts.items()):
            (root / folder).mkdir(parents=True)
            for number in range(count):
                write_image(root / folder / f"{number}.png", seed=100 * folder_number + number)
        return root

    return make


@pytest.fixture
def reporter():
    """A reporter that writes into memory; read it with `reporter.stream.getvalue()`."""
    return Reporter(io.StringIO())
