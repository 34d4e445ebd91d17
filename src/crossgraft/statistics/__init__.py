"""Intervals, tests, rank correlations and the quality of a choice; arrays in, numbers out."""

from typing import TYPE_CHECKING

from crossgraft.faces import lazy_face

if TYPE_CHECKING:
    from crossgraft.statistics.exact_tests import LEAST_REGRETS as LEAST_REGRETS
    from crossgraft.statistics.exact_tests import ExactTest as ExactTest
    from crossgraft.statistics.exact_tests import MeanInterval as MeanInterval
    from crossgraft.statistics.exact_tests import mean_interval as mean_interval
    from crossgraft.statistics.exact_tests import sign_flip as sign_flip
    from crossgraft.statistics.exact_tests import two_sample_permutation as two_sample_permutation
    from crossgraft.statistics.holm import holm as holm
    from crossgraft.statistics.jackknife import Estimate as Estimate
    from crossgraft.statistics.jackknife import jackknife_blocks as jackknife_blocks
    from crossgraft.statistics.jackknife import jackknife_interval as jackknife_interval
    from crossgraft.statistics.rank_correlation import kendall as kendall
    from crossgraft.statistics.rank_correlation import spearman as spearman
    from crossgraft.statistics.rank_correlation import weighted_kendall as weighted_kendall
    from crossgraft.statistics.rank_correlation import weighted_kendall_interval as weighted_kendall_interval
    from crossgraft.statistics.rank_correlation import weighted_kendall_itm as weighted_kendall_itm
    from crossgraft.statistics.rank_intervals import Friedman as Friedman
    from crossgraft.statistics.rank_intervals import RankInterval as RankInterval
    from crossgraft.statistics.rank_intervals import critical_difference as critical_difference
    from crossgraft.statistics.rank_intervals import friedman as friedman
    from crossgraft.statistics.rank_intervals import friedman_of_ranks as friedman_of_ranks
    from crossgraft.statistics.rank_intervals import leaderboard_ranks as leaderboard_ranks
    from crossgraft.statistics.rank_intervals import method_ranks as method_ranks
    from crossgraft.statistics.rank_intervals import rank_intervals as rank_intervals
    from crossgraft.statistics.selection_quality import relative_top_k_accuracy as relative_top_k_accuracy
    from crossgraft.statistics.selection_quality import top_1_regret as top_1_regret
    from crossgraft.statistics.skewed_mean import skewed_reach as skewed_reach
    from crossgraft.statistics.two_sample import Quantity as Quantity
    from crossgraft.statistics.two_sample import TwoSampleTest as TwoSampleTest
    from crossgraft.statistics.two_sample import WithInterval as WithInterval
    from crossgraft.statistics.two_sample import independent_difference as independent_difference
    from crossgraft.statistics.two_sample import largest_difference as largest_difference
    from crossgraft.statistics.two_sample import largest_gap as largest_gap
    from crossgraft.statistics.two_sample import permutation_p_value as permutation_p_value
    from crossgraft.statistics.two_sample import shuffle_labels as shuffle_labels
    from crossgraft.statistics.two_sample import total_variation as total_variation
    from crossgraft.statistics.two_sample import two_sample_tests as two_sample_tests

lazy_face(__name__)
