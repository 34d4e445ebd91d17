"""Figures of the report, one per file; each function takes records and returns an inline SVG."""

from crossgraft.report.plots.attention import MOST_NETWORKS as MOST_DRAWN_NETWORKS
from crossgraft.report.plots.attention import attention_figure as attention_figure
from crossgraft.report.plots.certainty import certainty_figure as certainty_figure
from crossgraft.report.plots.class_balance import class_balance_figure as class_balance_figure
from crossgraft.report.plots.confusion import MOST_CLASSES as MOST_CONFUSED_CLASSES
from crossgraft.report.plots.confusion import confusion_figure as confusion_figure
from crossgraft.report.plots.critical_difference import critical_difference_figure as critical_difference_figure
from crossgraft.report.plots.dot_rows import DotRow as DotRow
from crossgraft.report.plots.dot_rows import dot_rows_figure as dot_rows_figure
from crossgraft.report.plots.episode_look import episode_look_figure as episode_look_figure
from crossgraft.report.plots.feature_map import feature_map_figure as feature_map_figure
from crossgraft.report.plots.feature_map import tsne_figure as tsne_figure
from crossgraft.report.plots.filters import filters_figure as filters_figure
from crossgraft.report.plots.gradient_norms import MOST_NAMES as MOST_NAMED_BLOCKS
from crossgraft.report.plots.gradient_norms import BlockCurve as BlockCurve
from crossgraft.report.plots.gradient_norms import gradient_norms_figure as gradient_norms_figure
from crossgraft.report.plots.interpolation_path import interpolation_path_figure as interpolation_path_figure
from crossgraft.report.plots.intervals import IntervalRow as IntervalRow
from crossgraft.report.plots.intervals import intervals_figure as intervals_figure
from crossgraft.report.plots.layer_curves import LayerCurve as LayerCurve
from crossgraft.report.plots.layer_curves import layer_curves_figure as layer_curves_figure
from crossgraft.report.plots.layer_grid import layer_grid_figure as layer_grid_figure
from crossgraft.report.plots.layer_pca import MOST_NAMED_CLASSES as MOST_NAMED_CLASSES
from crossgraft.report.plots.layer_pca import Panel as Panel
from crossgraft.report.plots.layer_pca import layer_pca_figure as layer_pca_figure
from crossgraft.report.plots.learning_curves import LearningCurve as LearningCurve
from crossgraft.report.plots.learning_curves import learning_curves_figure as learning_curves_figure
from crossgraft.report.plots.ranking import ranking_figure as ranking_figure
from crossgraft.report.plots.reliability import reliability_figure as reliability_figure
from crossgraft.report.plots.reliance import RelianceCurve as RelianceCurve
from crossgraft.report.plots.reliance import reliance_figure as reliance_figure
from crossgraft.report.plots.roc import roc_figure as roc_figure
from crossgraft.report.plots.scatter import Interval as Interval
from crossgraft.report.plots.scatter import Point as Point
from crossgraft.report.plots.scatter import is_drawable as is_drawable
from crossgraft.report.plots.scatter import scatter_figure as scatter_figure
from crossgraft.report.plots.spectra import MOST_ARTEFACTS as MOST_DRAWN_ARTEFACTS
from crossgraft.report.plots.spectra import BandCurve as BandCurve
from crossgraft.report.plots.spectra import SpectrumCurve as SpectrumCurve
from crossgraft.report.plots.spectra import bands_figure as bands_figure
from crossgraft.report.plots.spectra import spectra_figure as spectra_figure
from crossgraft.report.plots.split_comparison import split_figure as split_figure
from crossgraft.report.plots.split_counts import split_counts_figure as split_counts_figure
from crossgraft.report.plots.style import family_marks as family_marks
from crossgraft.report.plots.trade_off import TradeOff as TradeOff
from crossgraft.report.plots.trade_off import trade_off_figure as trade_off_figure

__all__ = [
    "BandCurve",
    "BlockCurve",
    "DotRow",
    "Interval",
    "IntervalRow",
    "LayerCurve",
    "LearningCurve",
    "MOST_CONFUSED_CLASSES",
    "MOST_DRAWN_ARTEFACTS",
    "MOST_DRAWN_NETWORKS",
    "MOST_NAMED_BLOCKS",
    "MOST_NAMED_CLASSES",
    "Panel",
    "Point",
    "RelianceCurve",
    "SpectrumCurve",
    "TradeOff",
    "attention_figure",
    "bands_figure",
    "certainty_figure",
    "class_balance_figure",
    "confusion_figure",
    "critical_difference_figure",
    "dot_rows_figure",
    "episode_look_figure",
    "family_marks",
    "feature_map_figure",
    "filters_figure",
    "gradient_norms_figure",
    "interpolation_path_figure",
    "intervals_figure",
    "is_drawable",
    "layer_curves_figure",
    "layer_grid_figure",
    "layer_pca_figure",
    "learning_curves_figure",
    "ranking_figure",
    "reliability_figure",
    "reliance_figure",
    "roc_figure",
    "scatter_figure",
    "spectra_figure",
    "split_counts_figure",
    "split_figure",
    "trade_off_figure",
    "tsne_figure",
]
