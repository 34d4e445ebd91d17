"""What an audit leaves."""

from crossgraft.audit.record import (
    AuditCell,
    AuditDifference,
    AuditDifferencePoint,
    AuditEntry,
    AuditMetric,
    AuditPoint,
    AuditRecord,
    ConfounderRecord,
    GateRecord,
)
from crossgraft.records.base import Reference

SHARES = (0.0, 0.5, 1.0)


def metric(name, value, half_width=0.02):
    return AuditMetric(name=name, value=value, low=value - half_width, high=value + half_width)


def point(share, iid, ood):
    cells = [
        AuditCell(positive=positive, artefact=artefact, num_images=20, accuracy=0.75, is_small=False)
        for positive in (True, False)
        for artefact in (True, False)
    ]
    return AuditPoint(share=share, realised=share, metrics=[metric("iid", iid), metric("ood", ood)], cells=cells)


def audit_entry(model="mobilenetv2_100", confounder="tag", outcome="relies", index=0.4, **changed):
    """A sweep over three shares; the gap between both curves grows with the share."""
    facts = {
        "model": model,
        "confounder": confounder,
        "mode": "quick",
        "outcome": outcome,
        "reason": "The intervals of the shortcut reliance index lie above 0.",
        "metrics": [
            metric("shortcut_reliance_index", index),
            metric("clean_auc", 0.875),
            metric("ood_auc", 0.375),
            metric("worst_group_accuracy", 0.25),
        ],
        "points": [point(share, 0.875 + 0.05 * share, 0.875 - 0.5 * share) for share in SHARES],
        "detectability": metric("detectability", 0.9),
    }
    return AuditEntry(**(facts | changed))


def over_patients(name, value, half_width=0.02):
    return AuditMetric(name=name, value=value, patients_low=value - half_width, patients_high=value + half_width)


def audit_difference(model="resnet18", confounder="tag", index=0.25, **changed):
    """A model that relies more than the one it is compared with, the more the larger the share."""
    points = [
        AuditDifferencePoint(share=share, ood=over_patients("ood", -0.4 * share), p_value=0.008, p_value_holm=0.048, floor=0.008)
        for share in SHARES
    ]
    reliance = over_patients("shortcut_reliance_index", index)
    facts = {"model": model, "confounder": confounder, "reference": "mobilenetv2_100", "reliance": reliance}
    return AuditDifference(**(facts | {"points": points} | changed))


def trained_entry(outcome="relies", drop=0.25, **changed):
    """A model that is asked as it is."""
    metrics = [metric("auc_drop", drop), metric("clean_auc", 0.875), metric("ood_auc", 0.875 - drop)]
    return audit_entry(outcome=outcome, mode="trained", metrics=metrics, points=[], **changed)


def confounder_record(name="tag", **changed):
    facts = {
        "confounder": name,
        "title": name.upper(),
        "leaf": "external",
        "scope": "local",
        "said": "a letter in the corner",
        "rms": 4.5,
        "share_changed": 0.02,
        "psnr": 35.0,
    }
    return ConfounderRecord(**(facts | changed))


def audit_record(dataset, model, **changed):
    """A tag that one model relies on; ``dataset`` and ``model`` are those of another record."""
    facts = {
        "dataset": dataset,
        "positive": "malignant",
        "mode": "quick",
        "models": [model],
        "confounders": [confounder_record()],
        "entries": [audit_entry()],
        "shares": SHARES,
        "num_folds": 5,
        "num_test": 80,
        "num_positive_test": 40,
        "test_mode": "exact",
        "unit": "image",
        "negatives": 0.0,
        "strength": 1.0,
        "seed": 0,
        "gates": [GateRecord(condition="shortcut_reliance_index>0.1", state="failed", said="mobilenetv2_100 with tag (0.400).")],
        "notes": ["malignant is told from all 2 other classes together."],
        "references": [Reference(key="Tag", text="Juodelyte.")],
        "seconds": 3.5,
    }
    return AuditRecord(**(facts | changed))
