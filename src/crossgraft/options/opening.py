"""Arguments of ``open_dataset``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from crossgraft.options._option import FromProgram, option, options
from crossgraft.options.data import DatasetOptions, Validating

if TYPE_CHECKING:
    from crossgraft.progress import Reporter
else:
    Reporter = FromProgram


@options
class OpenOptions(Validating, DatasetOptions):
    """What ``open_dataset`` takes."""

    location: Any = option(
        "Folder, CSV or TSV table, .npz file, hf:owner/name, or digits.",
        takes="a path, a DataFrame or a list of files",
    )
    use_split: str | None = option("Split of which the rows are used; None: all rows.", default="train")
    default_split: bool = option("Whether parts that are missing are drawn, as every command does.", default=False)
    fold: int = option("Index of the fold that is set aside, from 0.", default=0)
    num_threads: int | None = option("Threads that decode images.", default=None, least=1)
    reporter: Reporter | None = option("Receiver of progress; silent when None.", default=None, is_typed=False)
