"""Transferability scores: one file per score, higher is always better.

Each score is a function of arrays, ``logme(features=X, labels=y)``, and returns a ``ScoreValue``: a float with ``parts``
and ``warnings``. ``ScoreInputs`` shares the statistics of one model between scores, jackknife blocks and label
permutations. Other packages add scores through the entry-point group ``crossgraft.scores``.
"""

from __future__ import annotations

from crossgraft.registry import Registry
from crossgraft.scores._inputs import ScoreInputs as ScoreInputs
from crossgraft.scores._score import Parts as Parts
from crossgraft.scores._score import Score as Score
from crossgraft.scores._score import ScoreValue as ScoreValue
from crossgraft.scores._score import ZooOption as ZooOption
from crossgraft.scores._score import ZooScore as ZooScore
from crossgraft.scores._score import scale_over_zoo as scale_over_zoo
from crossgraft.scores._score import score as score
from crossgraft.scores._score import zoo_score as zoo_score
from crossgraft.scores._statistics import FeatureStatistics as FeatureStatistics
from crossgraft.scores._statistics import Statistics as Statistics

# One line exports a score and registers it; tables have the order of these lines.
# isort: off
from crossgraft.scores.nce import nce as nce
from crossgraft.scores.leep import leep as leep
from crossgraft.scores.nleep import nleep as nleep
from crossgraft.scores.logme import logme as logme
from crossgraft.scores.h_score import h_score as h_score
from crossgraft.scores.regularized_h_score import regularized_h_score as regularized_h_score
from crossgraft.scores.gbc import gbc as gbc
from crossgraft.scores.parc import parc as parc
from crossgraft.scores.sfda import sfda as sfda
from crossgraft.scores.energy import energy as energy
from crossgraft.scores.etran import etran as etran
from crossgraft.scores.ped import ped as ped
from crossgraft.scores.ncti import ncti as ncti
from crossgraft.scores.transrate import transrate as transrate
from crossgraft.scores.lfc import lfc as lfc
from crossgraft.scores.itm import itm as itm
from crossgraft.scores.itm import adaptive_etas as adaptive_etas
from crossgraft.scores.itm import itm_dispersion as itm_dispersion
from crossgraft.scores.nca_score import nca_score as nca_score
from crossgraft.scores.lead import lead as lead
from crossgraft.scores.pactran import pactran as pactran
from crossgraft.scores.gradient_ratio import gradient_ratio as gradient_ratio
from crossgraft.scores.nca_gradient import nca_gradient as nca_gradient
from crossgraft.scores.knn_probe import knn_probe as knn_probe
from crossgraft.scores.linear_probe import linear_probe as linear_probe
# isort: on

AnyScore = Score[...]
"""A score, whatever its options."""

SCORES: Registry[AnyScore] = Registry("score", group="crossgraft.scores", plugin_type=Score)
"""Every score that is installed."""
for _score in [exported for exported in globals().values() if isinstance(exported, Score)]:
    SCORES.add(_score.name, _score)

DEFAULT_SCORES = ("leep", "logme", "regularized_h_score", "knn_probe")
"""What a ranking computes when nothing is asked for: the score that orders it, and others that cost less than that one.

N-LEEP takes as long as all of these together, and published results give it no weight beside the static prior. It and the linear
probe are asked for by name.
"""
