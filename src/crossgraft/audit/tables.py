"""Tables of an audit beside its report."""

from __future__ import annotations

import pandas as pd

from crossgraft.audit.record import AuditRecord


def entries_frame(record: AuditRecord) -> pd.DataFrame:
    """One row per model, confounder and mitigation."""
    rows: list[dict[str, object]] = []
    for entry in record.entries:
        row: dict[str, object] = {
            "model": entry.model,
            "confounder": entry.confounder,
            "mitigation": entry.mitigation,
            "outcome": entry.outcome,
            "reason": entry.reason,
        }
        for metric in entry.metrics:
            row |= {metric.name: metric.value, f"{metric.name} low": metric.low, f"{metric.name} high": metric.high}
            if entry.mode != "trained" and metric.patients_low is not None:
                row |= {f"{metric.name} patients low": metric.patients_low}
                row |= {f"{metric.name} patients high": metric.patients_high}
        detected = None if entry.detectability is None else entry.detectability.value
        rows.append({**row, "detectability": detected, "input_rms": entry.input_rms})
    return pd.DataFrame(rows)


def curves_frame(record: AuditRecord) -> pd.DataFrame:
    """One row per model, confounder, mitigation and share."""
    return pd.DataFrame(
        [
            {
                "model": entry.model,
                "confounder": entry.confounder,
                "mitigation": entry.mitigation,
                "share": point.share,
                "realised": point.realised,
                **{
                    name: value
                    for metric in point.metrics
                    for name, value in (
                        (metric.name, metric.value),
                        (f"{metric.name} low", metric.low),
                        (f"{metric.name} high", metric.high),
                    )
                },
            }
            for entry in record.entries
            for point in entry.points
            if point.metrics
        ]
    )


def differences_frame(record: AuditRecord) -> pd.DataFrame:
    """One row per model, confounder and share; without a share, of the whole curve."""
    rows: list[dict[str, object]] = []
    for each in record.differences:
        named = {"model": each.model, "reference": each.reference, "confounder": each.confounder}
        summed, by_share = each.reliance, each.points
        ends = {"patients low": summed.patients_low, "patients high": summed.patients_high}
        rows.append({**named, "quantity": summed.name, "share": None, "difference": summed.value, **ends})
        for point in by_share:
            ends = {"patients low": point.ood.patients_low, "patients high": point.ood.patients_high}
            tests = {"p": point.p_value, "p holm": point.p_value_holm, "p floor": point.floor}
            found = {"quantity": "ood", "share": point.share, "difference": point.ood.value}
            rows.append({**named, **found, **ends, **tests})
    return pd.DataFrame(rows)
