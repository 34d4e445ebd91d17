"""From scores to an honest ranking: intervals, controls, agreement with fine-tuned results."""

from typing import TYPE_CHECKING

from crossgraft.faces import lazy_face

if TYPE_CHECKING:
    from crossgraft.rank.aggregate import Evidence as Evidence
    from crossgraft.rank.aggregate import aggregate as aggregate
    from crossgraft.rank.aggregate import borda as borda
    from crossgraft.rank.aggregate import fit_parameters as fit_parameters
    from crossgraft.rank.aggregate import robust_rank_aggregation as robust_rank_aggregation
    from crossgraft.rank.aggregate import static_prior as static_prior
    from crossgraft.rank.ranking import Ranking as Ranking
    from crossgraft.rank.results_store import known_results as known_results
    from crossgraft.statistics import friedman as friedman
    from crossgraft.statistics import rank_intervals as rank_intervals
    from crossgraft.statistics import weighted_kendall as weighted_kendall
    from crossgraft.statistics import weighted_kendall_itm as weighted_kendall_itm

lazy_face(__name__)
