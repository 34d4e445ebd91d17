"""What limits an audit, the most severe first, in the order of ``sections._verdict``; and what to type next."""

from __future__ import annotations

from crossgraft.audit.record import AuditRecord
from crossgraft.edit.words import LEAST_RMS, little_changed
from crossgraft.metrics.looks_words import looks_in_words
from crossgraft.models.on_this_machine import new_folder
from crossgraft.report.source import Source
from crossgraft.report.verdict import Caveat, CaveatOf, Following, unsound_data
from crossgraft.words.formatting import counted, joined

_QUICK_ALONE = ("--mitigate",)
_ALL = "Measured on all images"


def nothing_assessable(source: Source[AuditRecord]) -> Caveat | None:
    """Silence is no pass."""
    blind = [entry for entry in source.record.entries if not entry.is_assessable and entry.mitigation == "erm"]
    if not blind:
        return None
    which = joined(list(dict.fromkeys(entry.confounder for entry in blind)))
    return Caveat(f"{counted(len(blind), 'combination')} could not be assessed ({which}): that is no pass.")


def may_have_seen(source: Source[AuditRecord]) -> Caveat | None:
    """Images of a trained model, of which nobody knows whether it learned from them."""
    if source.record.mode != "trained" or not any(note.startswith(_ALL) for note in source.record.notes):
        return None
    return Caveat("The model may have learned from these images. Give images that it has not seen.")


def looked_before(source: Source[AuditRecord]) -> Caveat | None:
    """A choice among models by these images."""
    text = looks_in_words(source.record.looks, "auc")
    return None if text is None else Caveat(text)


def lost_in_rounding(source: Source[AuditRecord]) -> Caveat | None:
    """Artefacts that images of 8 bits hardly show."""
    record = source.record
    lost = [row.confounder for row in record.confounders if row.rms is not None and row.rms < LEAST_RMS]
    text = little_changed(lost) if record.strength else None
    return None if text is None else Caveat(text)


def may_be_clinical(source: Source[AuditRecord]) -> Caveat | None:
    """An attribute may be a cause."""
    named = [row.confounder for row in source.record.confounders if row.scope == "attribute"]
    if not any(entry.outcome == "relies" and entry.confounder in named for entry in source.record.entries):
        return None
    return Caveat("An attribute may carry clinical signal: a gap is not proof of a wrong model.")


def without_groups(source: Source[AuditRecord]) -> Caveat | None:
    """Images of one patient count as independent."""
    if source.record.dataset.num_groups is not None:
        return None
    return Caveat("Without a column of patients, intervals take images as independent: --group-column.")


def after_audit(source: Source[AuditRecord]) -> Following:
    """To see the artefact, or to look deeper; what does not fit into these images is not proposed again."""
    record = source.record
    if record.mode == "quick" and any(entry.outcome in ("undetectable", "undecided") for entry in record.entries):
        line = source.typed.again(("--mode", "full"), without=_QUICK_ALONE)
        return Following(line, "to train the networks, which may see more than frozen features")
    drawn = [row for row in record.confounders if row.scope != "attribute"]
    painted = [row.confounder for row in drawn if row.rms is not None]
    if drawn and not painted:
        data = source.typed.value("--data") or "DATA"
        line = source.typed.then("list", "confounders", flags=[("--data", data)])
        return Following(line, "to see which artefacts fit into these images")
    if record.confounders and not painted:
        line = source.typed.again(("--confounder", "tag"))
        return Following(line, "to put an artefact into the images, and see whether it is relied on")
    line = source.typed.then(
        "edit",
        source.typed.value("--data") or "DATA",
        new_folder("edited"),
        flags=[("--with", painted[0] if painted else "tag")],
    )
    return Following(line, "to write images with the artefact, and look at them")


AUDIT_CAVEATS: tuple[CaveatOf[AuditRecord], ...] = (
    unsound_data,
    may_have_seen,
    nothing_assessable,
    lost_in_rounding,
    may_be_clinical,
    looked_before,
    without_groups,
)
