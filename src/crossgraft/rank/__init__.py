"""From scores to an honest ranking: intervals, controls, agreement with fine-tuned results."""

from crossgraft.rank.rank_models import rank_models as rank_models
from crossgraft.rank.ranking import Ranking as Ranking
from crossgraft.statistics import friedman as friedman
from crossgraft.statistics import rank_intervals as rank_intervals
from crossgraft.statistics import weighted_kendall as weighted_kendall
from crossgraft.statistics import weighted_kendall_itm as weighted_kendall_itm
