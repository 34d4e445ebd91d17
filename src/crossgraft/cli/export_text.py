"""An export as it ends in the terminal: at most 100 columns, no colour needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crossgraft.cli.text_table import place, text_table, wrap
from crossgraft.records import ExportRecord
from crossgraft.words.formatting import count

if TYPE_CHECKING:
    from crossgraft.tune.exporting import Exported


def export_text(exported: Exported) -> str:
    """What it is, its files, how it was checked, how it is loaded, and where it is."""
    record = exported.record
    files = [[file.name, _size(file.num_bytes)] for file in record.files]
    parts = [
        wrap(_heading(record)),
        text_table(["file", "size"], files, right=["size"]),
        _agreement(record),
        "\n".join([wrap(f"Takes {record.model.input}."), wrap(f"Gives {record.model.output}.")]),
        *(wrap(note) for note in record.notes),
        "\n".join([place("Load it with", record.how_to_load), *_places(exported)]),
    ]
    return "\n\n".join(parts)


def _heading(record: ExportRecord) -> str:
    model = record.model
    return f"{model.name}, fine-tuned on {model.trained_on} · {record.format}, for {record.loads_with} · {model.use}"


def _size(num_bytes: int) -> str:
    return f"{num_bytes / 1e6:.1f} MB" if num_bytes >= 1e5 else f"{count(num_bytes)} bytes"


def _agreement(record: ExportRecord) -> str:
    found = record.agreement
    sizes = ", ".join(map(str, found.batch_sizes[:-1])) + f" and {found.batch_sizes[-1]}"
    differences = f"logits differ by at most {found.largest_logit_difference:.1e}"
    allowed = f"{found.allowed_logit_difference:.1e}"
    if found.largest_probability_difference is not None and found.allowed_probability_difference is not None:
        differences += f", probabilities by at most {found.largest_probability_difference:.1e}"
        allowed += f" and {found.allowed_probability_difference:.1e}"
    return wrap(
        f"Loaded again with {found.checked_with} and compared with the model on {found.num_images} generated images, in "
        f"batches of {sizes}: {differences} (allowed: {allowed})."
    )


def _places(exported: Exported) -> list[str]:
    pushed = exported.record.pushed_to
    return [place("Export", exported.out), *([place("On the hub", pushed)] if pushed else [])]
