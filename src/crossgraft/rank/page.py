"""The report of a ranking."""

from __future__ import annotations

from crossgraft.data.page import data_section
from crossgraft.rank.incomplete_ranking import refuse_incomplete
from crossgraft.rank.page_agreement import agreement_section
from crossgraft.rank.page_controls import controls_section
from crossgraft.rank.page_labels import labels_section
from crossgraft.rank.page_models import models_section
from crossgraft.rank.page_prior import prior_section
from crossgraft.rank.page_score_warnings import warnings_section
from crossgraft.rank.page_scores import rankings_section, scores_section
from crossgraft.rank.page_verdict import ranking_heading, verdict_section
from crossgraft.rank.record import RankingRecord
from crossgraft.report.checks import checks_section
from crossgraft.report.kinds import Kind, SectionBuilder
from crossgraft.report.provenance import provenance_section
from crossgraft.report.references import references_section

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
REPORT = Kind(
    RankingRecord,
    ranking_heading,
    (verdict_section, *BELOW_THE_VERDICT),
    terminal=(rankings_section, prior_section, agreement_section, warnings_section, verdict_section),
    refuse=refuse_incomplete,
)
