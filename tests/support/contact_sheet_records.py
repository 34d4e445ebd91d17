"""What ``crossgraft list confounders --data`` leaves."""

from crossgraft.edit.record import ContactSheetRow, ContactSheetsRecord, ShownImageRow
from crossgraft.records.base import Reference


def sheet_row(edit="tag", **changed):
    facts = {
        "edit": edit,
        "title": edit.upper(),
        "place": "environment › external",
        "scope": "a part of the image",
        "options": "size=0.0625 (share of the shorter side)",
        "sheet": f"sheets/{edit}.png",
        "num_images": 3,
        "rms": 2.8,
        "share_changed": 0.0013,
        "psnr": 39.2,
        "share_touched": 0.0013,
        "limit": 150.0,
        "problems": [],
    }
    return ContactSheetRow(**(facts | changed))


def sheets_record(dataset, **changed):
    """Two edits on three images; ``dataset`` is that of another record."""
    facts = {
        "dataset": dataset,
        "images": [
            ShownImageRow(number=7, class_names=["malignant"]),
            ShownImageRow(number=9, class_names=["malignant"]),
            ShownImageRow(number=4, class_names=["benign"]),
        ],
        "sheets": [
            sheet_row(),
            sheet_row("low_pass", place="environment › imaging", scope="the whole image", share_touched=None),
        ],
        "seed": 0,
        "references": [Reference(key="Tag", text="Juodelyte.")],
    }
    return ContactSheetsRecord(**(facts | changed))
