"""What a study leaves."""

from crossgraft.bench.record import CellRecord, FactorRecord, FailureRecord, LevelDifference, StudyRecord
from crossgraft.records.base import CheckRecord, Reference

SETTINGS, SETS = ("plain", "mixup", "cutmix"), ("chest", "skin")


def study_record(**changed):
    """Three settings on two data sets, one of whose jobs failed."""
    cells = [
        CellRecord(
            levels={"data": name, "settings": setting},
            num_done=3,
            num_failed=0,
            value=0.7 + 0.05 * place,
            low=0.6 + 0.05 * place,
            high=0.8 + 0.05 * place,
            interval_of="seeds",
        )
        for name in SETS
        for place, setting in enumerate(SETTINGS)
    ]
    facts = {
        "title": "Mixup and CutMix",
        "command": "tune",
        "factors": [FactorRecord(name="data", levels=list(SETS)), FactorRecord(name="settings", levels=list(SETTINGS))],
        "num_jobs": 19,
        "num_done": 18,
        "num_failed": 1,
        "seconds": 400.0,
        "metric": "balanced_accuracy",
        "larger_is_better": True,
        "compare": "settings",
        "over": "data",
        "cells": cells,
        "differences": [
            LevelDifference(level="mixup", reference="plain", value=0.05, low=0.01, high=0.09, num_pairs=6),
            LevelDifference(level="cutmix", reference="plain", value=0.1, num_pairs=2, reason="2 values, where 3 are needed"),
        ],
        "failures": [FailureRecord(job="0123456789abcdef", levels={"data": "skin", "settings": "plain"}, reason="no such file")],
        "checks": [CheckRecord(title="Failed jobs", severity="warning", text="1 job failed.")],
        "references": [Reference(key="Ranks", text="Demšar.")],
    }
    return StudyRecord(**(facts | changed))
