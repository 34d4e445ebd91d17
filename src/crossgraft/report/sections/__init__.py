"""The sections of each kind of report, in order. A new command adds its files and one line to ``KINDS``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from crossgraft.records import (
    DataCheckRecord,
    DemoRecord,
    FineTuningComparisonRecord,
    PredictionRecord,
    PublishedRecord,
    RankingRecord,
    Record,
    TuningRecord,
)
from crossgraft.report.blocks import Heading, Section
from crossgraft.report.sections.agreement import agreement_section
from crossgraft.report.sections.checks import checks_section, warnings_section
from crossgraft.report.sections.controls import controls_section
from crossgraft.report.sections.data import data_section
from crossgraft.report.sections.data_check import (
    alike_section,
    checked_data_section,
    columns_section,
    data_check_heading,
    data_check_references_section,
    data_check_verdict_section,
    findings_section,
    looked_at_section,
)
from crossgraft.report.sections.demo import (
    best_model_section,
    compared_section,
    demo_heading,
    fine_tuned_section,
    of_its_ranking,
    split_section,
)
from crossgraft.report.sections.labels import labels_section
from crossgraft.report.sections.models import models_section
from crossgraft.report.sections.prediction import (
    certain_section,
    measured_section,
    model_section,
    prediction_checks_section,
    prediction_heading,
    prediction_verdict_section,
    rows_section,
)
from crossgraft.report.sections.prior import prior_section
from crossgraft.report.sections.provenance import provenance_section
from crossgraft.report.sections.published import (
    answers_section,
    cited_section,
    errata_section,
    published_heading,
    published_references_section,
    published_verdict_section,
    scenarios_section,
)
from crossgraft.report.sections.references import references_section
from crossgraft.report.sections.scores import rankings_section, scores_section
from crossgraft.report.sections.tuning import (
    classes_section,
    metrics_section,
    subgroups_section,
    tuning_heading,
    tuning_verdict_section,
)
from crossgraft.report.sections.tuning_comparison import (
    compared_trainings_section,
    comparison_heading,
    comparison_verdict_section,
    differences_section,
    mixed_weights_section,
    variants_section,
)
from crossgraft.report.sections.tuning_data import tuning_checks_section, tuning_data_section
from crossgraft.report.sections.tuning_decisions import calibration_section, thresholds_section
from crossgraft.report.sections.tuning_training import curves_section, folds_section, grid_section, plan_section
from crossgraft.report.sections.verdict import ranking_heading, verdict_section
from crossgraft.report.source import Source

SectionBuilder = Callable[[Source[Any]], Section | None]
"""Makes one section, or None when the record has nothing for it."""


@dataclass(frozen=True)
class Kind:
    """One kind of report: its record, its heading, and its sections in the order of the page.

    Fields ``only_in_the_file`` are left out of the copy of the record on the page: thousands of numbers that no reader of it
    needs.
    """

    record_type: type[Record]
    heading: Callable[[Source[Any]], Heading]
    builders: Sequence[SectionBuilder]
    only_in_the_file: tuple[str, ...] = ()


_RANKING: tuple[SectionBuilder, ...] = (
    scores_section,
    rankings_section,
    labels_section,
    controls_section,
    prior_section,
    agreement_section,
    checks_section,
    warnings_section,
    data_section,
    models_section,
    provenance_section,
    references_section,
)

KINDS: Mapping[str, Kind] = {
    "ranking": Kind(RankingRecord, ranking_heading, (verdict_section, *_RANKING)),
    "data_check": Kind(
        DataCheckRecord,
        data_check_heading,
        (
            data_check_verdict_section,
            findings_section,
            alike_section,
            columns_section,
            looked_at_section,
            checked_data_section,
            provenance_section,
            data_check_references_section,
        ),
    ),
    "demo": Kind(
        DemoRecord,
        demo_heading,
        (
            of_its_ranking(verdict_section),
            split_section,
            fine_tuned_section,
            best_model_section,
            compared_section,
            *(of_its_ranking(builder) for builder in _RANKING),
        ),
    ),
    "published": Kind(
        PublishedRecord,
        published_heading,
        (
            published_verdict_section,
            scenarios_section,
            answers_section,
            cited_section,
            errata_section,
            provenance_section,
            published_references_section,
        ),
    ),
    "tuning": Kind(
        TuningRecord,
        tuning_heading,
        (
            tuning_verdict_section,
            metrics_section,
            classes_section,
            subgroups_section,
            calibration_section,
            thresholds_section,
            curves_section,
            folds_section,
            grid_section,
            tuning_checks_section,
            tuning_data_section,
            plan_section,
            provenance_section,
            references_section,
        ),
    ),
    "tuning-comparison": Kind(
        FineTuningComparisonRecord,
        comparison_heading,
        (
            comparison_verdict_section,
            variants_section,
            differences_section,
            mixed_weights_section,
            compared_trainings_section,
            tuning_checks_section,
            tuning_data_section,
            provenance_section,
            references_section,
        ),
    ),
    "prediction": Kind(
        PredictionRecord,
        prediction_heading,
        (
            prediction_verdict_section,
            certain_section,
            measured_section,
            rows_section,
            prediction_checks_section,
            model_section,
            provenance_section,
            references_section,
        ),
        only_in_the_file=("rows",),
    ),
}
"""Kind of record (its field ``kind``) → how it is shown."""
