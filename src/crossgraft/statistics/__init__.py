"""Intervals, permutation tests and rank correlations; arrays in, numbers out."""

from crossgraft.statistics.jackknife import Estimate as Estimate
from crossgraft.statistics.jackknife import jackknife_blocks as jackknife_blocks
from crossgraft.statistics.jackknife import jackknife_interval as jackknife_interval
from crossgraft.statistics.permutation import permutation_p_value as permutation_p_value
from crossgraft.statistics.permutation import shuffle_labels as shuffle_labels
from crossgraft.statistics.weighted_kendall import weighted_kendall as weighted_kendall
