"""The report of a ranking."""

from __future__ import annotations

from crossgraft.records.ranking import RankingRecord
from crossgraft.report.kinds import Kind, SectionBuilder
from crossgraft.report.sections.agreement import agreement_section
from crossgraft.report.sections.checks import checks_section
from crossgraft.report.sections.controls import controls_section
from crossgraft.report.sections.data import data_section
from crossgraft.report.sections.labels import labels_section
from crossgraft.report.sections.models import models_section
from crossgraft.report.sections.prior import prior_section
from crossgraft.report.sections.provenance import provenance_section
from crossgraft.report.sections.references import references_section
from crossgraft.report.sections.score_warnings import warnings_section
from crossgraft.report.sections.scores import rankings_section, scores_section
from crossgraft.report.sections.verdict import ranking_heading, verdict_section

BELOW_THE_VERDICT: tuple[SectionBuilder, ...] = (
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
RANKING = Kind(
    RankingRecord,
    ranking_heading,
    (verdict_section, *BELOW_THE_VERDICT),
    terminal=(rankings_section, prior_section, agreement_section, warnings_section, verdict_section),
)
