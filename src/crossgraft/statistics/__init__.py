"""Intervals, tests, rank correlations and the quality of a choice; arrays in, numbers out."""

from crossgraft.statistics.friedman import Friedman as Friedman
from crossgraft.statistics.friedman import critical_difference as critical_difference
from crossgraft.statistics.friedman import friedman as friedman
from crossgraft.statistics.friedman import friedman_of_ranks as friedman_of_ranks
from crossgraft.statistics.friedman import method_ranks as method_ranks
from crossgraft.statistics.independent_difference import WithInterval as WithInterval
from crossgraft.statistics.independent_difference import independent_difference as independent_difference
from crossgraft.statistics.jackknife import Estimate as Estimate
from crossgraft.statistics.jackknife import jackknife_blocks as jackknife_blocks
from crossgraft.statistics.jackknife import jackknife_interval as jackknife_interval
from crossgraft.statistics.permutation import permutation_p_value as permutation_p_value
from crossgraft.statistics.permutation import shuffle_labels as shuffle_labels
from crossgraft.statistics.rank_correlation import kendall as kendall
from crossgraft.statistics.rank_correlation import spearman as spearman
from crossgraft.statistics.rank_correlation import weighted_kendall as weighted_kendall
from crossgraft.statistics.rank_correlation import weighted_kendall_itm as weighted_kendall_itm
from crossgraft.statistics.rank_intervals import RankInterval as RankInterval
from crossgraft.statistics.rank_intervals import rank_intervals as rank_intervals
from crossgraft.statistics.selection_quality import relative_top_k_accuracy as relative_top_k_accuracy
from crossgraft.statistics.selection_quality import top_1_regret as top_1_regret
