"""Every way in which the demo fine-tuned its best-ranked model is audited, as a user's own model would be."""

from __future__ import annotations

from pathlib import Path

from crossgraft.audit.verb import audit_model
from crossgraft.demo.record import AuditedModelRecord, BestModelRecord
from crossgraft.progress import Reporter

CONFOUNDERS = ("low_pass:0.2", "intensity_shift:1.0,offset=0.15", "jpeg:10")
"""Another resolution, another exposure, and strong compression: what a digit of 8 × 8 pixels has room for."""
AUDIT_FOLDER = "audit"


def audit_best_model(best: BestModelRecord, folder: Path, *, no_images: bool, reporter: Reporter) -> BestModelRecord:
    """Ask each fine-tuned model about the digits of the unseen writers without and with three artefacts.

    Args:
        best: What was fine-tuned in ``folder``.
        folder: Run directory of the demo; the audits become run directories in its folder ``audit``.
        no_images: Put no pictures into records and reports.
        reporter: Reporter of progress.

    Raises:
        StorageError: ``folder`` cannot be written.

    Cost: about two seconds of one core.
    """
    trainings = [] if best.comparison is None else best.comparison.trainings
    audits: list[AuditedModelRecord] = []
    for row in trainings:
        if row.folder is None:
            continue
        where = f"{AUDIT_FOLDER}/{row.variant}"
        found = audit_model(
            folder / str(best.compare_folder) / row.folder,
            data=folder / best.data_file,
            group_column="writer",
            confounders=list(CONFOUNDERS),
            allow_code=best.code,
            ledger=False,  # nothing is chosen by what comes out
            no_images=no_images,
            device="cpu",
            workers=1,
            out=folder / where,
            overwrite=True,
            reporter=reporter,
        ).record
        audits.append(AuditedModelRecord(variant=row.variant, audit_folder=where, audit=found))
    return best.model_copy(update={"audits": audits})
