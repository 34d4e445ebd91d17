"""What an edit of a data set leaves."""

from crossgraft.edit.record import EditedClassRow, EditRecord, EditRow
from crossgraft.records.base import Reference


def edit_row(edit="tag", **changed):
    facts = {
        "edit": edit,
        "title": edit.upper(),
        "leaf": "external",
        "num_images": 12,
        "rms": 4.5,
        "share_changed": 0.02,
        "psnr": 35.0,
    }
    return EditRow(**(facts | changed))


def edit_record(dataset, **changed):
    """A tag in some malignant images; ``dataset`` is that of another record."""
    facts = {
        "dataset": dataset,
        "edits": [edit_row()],
        "classes": [
            EditedClassRow(class_name="malignant", num_images=24, num_edited=12),
            EditedClassRow(class_name="benign", num_images=30, num_edited=0),
        ],
        "num_edited": 12,
        "share": 0.5,
        "strength": 1.0,
        "unit": "image",
        "seed": 0,
        "fingerprint": "ab" * 32,
        "table": "labels.csv",
        "references": [Reference(key="Tag", text="Juodelyte.")],
    }
    return EditRecord(**(facts | changed))
