"""Data with every row's part, as a fine-tuning opens them."""

from crossgraft.progress import Reporter
from crossgraft.tune.options import TuneOptions
from crossgraft.tune.planning.rows import open_rows


def rows_of(data, **options):
    """Parts by these options of ``fine_tune``, without a word to anybody."""
    return open_rows(data, TuneOptions(model="test_resnet", **options), Reporter(quiet=True))
