"""Opening images that need no labels by the keywords of ``open_dataset``, for tests that open data both ways."""

from crossgraft.data.given_images import open_images as open_by_options
from crossgraft.options.data import ImageOptions


def open_images(location, *, known_classes=(), several_labels=False, reporter=None, **options):
    return open_by_options(
        location, ImageOptions(**options), known_classes=known_classes, several_labels=several_labels, reporter=reporter
    )
