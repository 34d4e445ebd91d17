"""One image file: no data set, but something that a model can look at."""

from __future__ import annotations

from pathlib import Path

from crossgraft.data.medical.formats import is_image_file
from crossgraft.data.sources._image_files import rows_of_files
from crossgraft.data.sources._source import DataSource, SourceRequest, SourceRows


class ImageFile(DataSource):
    """One file, of one image or of several slices; asked only where no labels are needed."""

    name = "image_file"
    description = "an image file"

    def accepts(self, location: str) -> bool:
        """Any existing file with the extension of an image."""
        path = Path(location)
        return path.is_file() and is_image_file(path)

    def open(self, location: str, request: SourceRequest) -> SourceRows:
        """List its slices."""
        path = Path(location)
        return rows_of_files([path], [path.name], request, name=path.stem, labels=None)


ONE_IMAGE = ImageFile()
