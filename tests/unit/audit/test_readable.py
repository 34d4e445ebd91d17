"""A probe for who is in the picture: on patients that it has not seen, beside what nobody learned."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler

from crossgraft.audit.attributes import BinaryAttribute
from crossgraft.audit.readable import CLASS, PENALTIES, UNTRAINED, ProbedFeatures, read_attribute, unread
from crossgraft.audit.record import AuditMetric, ReadableRow
from crossgraft.audit.words import readable_in_words
from crossgraft.errors import DataError

RNG = np.random.default_rng(0)
PATIENTS = np.repeat(np.arange(100), 2).astype(str)
FLAGS = np.repeat(RNG.random(100) < 0.5, 2)
SEEN = np.c_[FLAGS * 1.5, RNG.normal(size=(200, 3))] + RNG.normal(size=(200, 4))
LEARNED, READ = np.arange(120), np.arange(120, 200)
LOOKS = [
    ProbedFeatures("features", SEEN),
    ProbedFeatures(UNTRAINED, RNG.normal(size=(200, 4))),
    ProbedFeatures(CLASS, RNG.normal(size=(200, 2))),
]


def sex(flags=FLAGS, known=None):
    return BinaryAttribute(flags, np.ones(200, bool) if known is None else known, "sex F")


def test_the_probe_is_logistic_regression_on_other_patients():
    rows = {row.features: row for row in read_attribute("net", "sex:F", LOOKS, sex(), LEARNED, READ, PATIENTS)}
    scaler = StandardScaler().fit(SEEN[LEARNED])
    literal = set()
    for penalty in PENALTIES:
        fitted = LogisticRegression(C=penalty, max_iter=1000).fit(scaler.transform(SEEN[LEARNED]), FLAGS[LEARNED])
        literal.add(round(roc_auc_score(FLAGS[READ], fitted.decision_function(scaler.transform(SEEN[READ]))), 9))
    assert round(rows["features"].auc.value, 9) in literal
    assert rows["features"].auc.low > 0.5
    more = rows["features"].more_than_random_weights
    assert more.value == pytest.approx(rows["features"].auc.value - rows[UNTRAINED].auc.value)
    assert more.low > 0
    assert rows[UNTRAINED].more_than_random_weights is None and rows[CLASS].more_than_class is None
    assert (rows["features"].num_images, rows["features"].num_with) == (80, int(FLAGS[READ].sum()))


def test_too_few_without_it_are_named():
    nearly_all = np.r_[np.repeat(True, 195), np.repeat(False, 5)]
    with pytest.raises(DataError, match="train and val has 120 and 0"):
        read_attribute("net", "sex:F", LOOKS, sex(nearly_all), LEARNED, READ, PATIENTS)


def test_what_is_not_known_is_left_out_and_too_few_are_named():
    known = RNG.random(200) < 0.8
    (row,) = read_attribute("net", "sex:F", LOOKS[:1], sex(known=known), LEARNED, READ, PATIENTS)
    assert row.num_images == known[READ].sum() and row.more_than_random_weights is None
    few = np.zeros(200, bool)
    few[[1, 2, 130]] = True
    with pytest.raises(DataError, match="takes 10 images with it and 10 without it; train and val has 2 and 118"):
        read_attribute("net", "sex:F", LOOKS, sex(few), LEARNED, READ, PATIENTS)
    with pytest.raises(DataError, match="1 groups have images in test and in another part"):
        read_attribute("net", "sex:F", LOOKS, sex(), np.arange(121), np.arange(121, 200), PATIENTS)


def metric(low, high):
    return AuditMetric(name="auc", value=(low + high) / 2, low=low, high=high)


@pytest.mark.parametrize(
    ("auc", "more", "of_class", "said"),
    [
        (
            metric(0.45, 0.6),
            metric(0.1, 0.2),
            None,
            "Nothing shows that sex F can be read from features of net: AUC 0.53, not told",
        ),
        (metric(0.2, 0.4), None, None, "Nothing shows that sex F can be read from features of net: AUC 0.30, below chance."),
        (metric(0.6, 0.8), metric(0.1, 0.2), metric(0.1, 0.2), "surely more than from random weights."),
        (
            metric(0.6, 0.8),
            metric(-0.1, 0.2),
            metric(-0.1, 0.2),
            "not told from random weights, nor from what the class alone says.",
        ),
        (metric(0.6, 0.8), metric(-0.2, -0.1), None, "above chance, and less than from random weights."),
        (metric(0.6, 0.8), None, None, ": above chance."),
    ],
)
def test_sentences_say_what_the_intervals_say(auc, more, of_class, said):
    row = ReadableRow(
        model="net",
        attribute="sex:F",
        said="sex F",
        features="features",
        num_images=80,
        num_with=40,
        auc=auc,
        more_than_random_weights=more,
        more_than_class=of_class,
    )
    assert said in readable_in_words([row, row.model_copy(update={"features": "pixels"})])
    assert readable_in_words([row.model_copy(update={"features": "pixels"})]) == ""
    assert readable_in_words([unread("net", "sex:F", sex(), "Too few.")]) == "sex F was not read from net. Too few."
