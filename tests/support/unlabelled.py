"""Opening images that need no labels by the keywords of ``open_dataset``, for tests that open data both ways."""

from crossgraft.data.given_images import open_images as open_by_options
from crossgraft.options.data import ImageOptions
from crossgraft.progress import Reporter


def open_images(location, *, known_classes=(), several_labels=False, reporter=None, **options):
    reporter = reporter or Reporter(quiet=True)
    return open_by_options(
        location, ImageOptions(**options), reporter, known_classes=known_classes, several_labels=several_labels
    )
