"""Every few-shot head: the rules of scikit-learn, and bad input."""

import copy
import pickle

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from crossgraft.choice import choose, spell
from crossgraft.errors import CrossgraftWarning, DataError, DivergedError, UnknownNameError, UsageError
from crossgraft.fewshot import (
    HEADS,
    CopaHead,
    LogisticHead,
    MetaAdapterHead,
    NccHead,
    RidgeHead,
    TipAdapterHead,
    UrlHead,
    ZeroShotHead,
    class_weights_from_head,
    gap,
)
from crossgraft.fewshot.choice import choose_heads, heads_left_out, name_of_baseline
from crossgraft.fewshot.class_weights import source_classes_of, with_rows_of_pretrained_head
from crossgraft.models import ModelSpec, load_backbone

pytestmark = pytest.mark.filterwarnings("ignore:CoPA with one image per class", "ignore:.*rows are all zeros")
READY = [
    NccHead(),
    NccHead(distance="l2"),
    NccHead(distance="lin"),
    UrlHead(),
    CopaHead(),
    TipAdapterHead(),
    TipAdapterHead(fine_tune=True),
    MetaAdapterHead(adapter_weights="initial"),
    LogisticHead(),
    RidgeHead(),
]
TESTED = {type(head) for head in READY}
READY += [
    head()
    for _, head in HEADS
    if not getattr(head, "reads_images", False) and head not in TESTED and not getattr(head, "needs_class_weights", False)
]


def spelled(head):
    return spell(head)


@pytest.fixture
def task():
    """Three classes of five images, and queries."""
    random = np.random.default_rng(0)
    centres = random.standard_normal((3, 12))
    y = np.repeat(["malign", "benign", "none"], 5)
    X = centres[np.repeat([0, 1, 2], 5)] + 0.3 * random.standard_normal((15, 12))
    return X, y, centres + 0.1 * random.standard_normal((3, 12))


@parametrize_with_checks(READY)
def test_rules_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize("head", READY, ids=spelled)
def test_queries_near_a_centre_get_its_class_and_probabilities_say_so(head, task):
    X, y, query = task
    head = clone(head).fit(X, y)
    assert head.predict(query).tolist() == ["malign", "benign", "none"]
    probabilities = head.predict_proba(query)
    assert head.classes_.tolist() == ["benign", "malign", "none"]
    assert head.classes_[probabilities.argmax(axis=1)].tolist() == ["malign", "benign", "none"]
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)


@pytest.mark.parametrize("head", READY, ids=spelled)
def test_the_same_bits_again_from_a_copy_a_clone_and_a_pickle(head, task):
    X, y, query = task
    head = clone(head).fit(X, y)
    expected = head.predict_proba(query)
    for twin in (clone(head).fit(X, y), copy.deepcopy(head), pickle.loads(pickle.dumps(head))):
        np.testing.assert_array_equal(twin.predict_proba(query), expected)


@pytest.mark.parametrize("head", READY, ids=spelled)
def test_float32_stays_float32(head, task):
    X, y, query = task
    head = clone(head).fit(X.astype(np.float32), y)
    assert head.predict_proba(query).dtype == np.float32
    np.testing.assert_allclose(head.predict_proba(query), clone(head).fit(X, y).predict_proba(query), atol=2e-3)


@pytest.mark.parametrize("head", READY, ids=spelled)
def test_a_head_can_be_written_as_text(head):
    assert choose(HEADS, spell(head)).get_params() == head.get_params()


@pytest.mark.parametrize("head", READY, ids=spelled)
def test_bad_rows_are_named(head, task):
    X, y, query = task
    head = clone(head)
    with pytest.raises(NotFittedError):
        head.predict_proba(query)
    with pytest.raises(DataError, match="one class: malign"):
        head.fit(X[:5], y[:5])
    with pytest.raises(DataError, match="Row 3 holds NaN"):
        head.fit(np.where(X[3, 2] == X, np.nan, X), y)
    with pytest.raises(DataError, match="inconsistent numbers of samples"):
        head.fit(X, y[:-1])
    with pytest.raises(ValueError, match="0 sample"):
        head.fit(X[:0], y[:0])
    with pytest.raises(DataError, match="12 features"):
        head.fit(X, y).predict(query[:, :7])
    with pytest.raises(DataError, match="Row 1 holds NaN"):
        head.predict(np.where(query[1, 2] == query, np.inf, query))


@pytest.mark.parametrize("head", [NccHead(), UrlHead(), CopaHead()], ids=spelled)
@pytest.mark.filterwarnings("default:.*rows are all zeros")
def test_rows_without_a_direction_are_a_warning_and_give_numbers(head, task):
    X, y, query = task
    with pytest.warns(CrossgraftWarning, match="2 of 15 rows are all zeros \\(the first: 4\\)"):
        found = clone(head).fit(np.where(np.isin(np.arange(15), [4, 9])[:, None], 0, X), y).predict_proba(query)
    assert np.isfinite(found).all()


@pytest.mark.parametrize(
    ("head", "error", "said"),
    [
        (NccHead(distance="cosine"), UnknownNameError, "Did you mean cos"),
        (UrlHead(learning_rate="new"), UsageError, "seen or unseen"),
        (UrlHead(learning_rate=0), UsageError, "learning_rate of url .* above 0"),
        (UrlHead(steps=1.5), UsageError, "steps of url must be a whole number"),
        (CopaHead(weight_decay=-1), UsageError, "weight_decay of copa .* at least 0"),
        (CopaHead(logit_scale=np.inf), UsageError, "logit_scale"),
        (CopaHead(init="eye"), UsageError, "identity or random"),
        (TipAdapterHead(alpha=-1), UsageError, "alpha of tip_adapter"),
        (TipAdapterHead(batch_size=0), UsageError, "batch_size"),
        (TipAdapterHead(largest_beta=0.05), UsageError, "largest_beta"),
        (TipAdapterHead(seed=1.5), UsageError, "seed of tip_adapter must be a whole number"),
        (MetaAdapterHead(adapter_weights="initial", shots=0), UsageError, "shots"),
        (MetaAdapterHead(adapter_weights="drawn"), UsageError, "meta_fit, or be initial"),
        (LogisticHead(C=0), UsageError, "C of logistic"),
        (RidgeHead(penalty=0), UsageError, "penalty of ridge"),
    ],
    ids=lambda value: spell(value) if hasattr(value, "fit") else None,
)
def test_options_out_of_range(head, error, said, task):
    with pytest.raises(error, match=said):
        head.fit(*task[:2])


def test_rho_sim_changes_what_adapters_learn_and_nothing_at_weight_zero(task):
    """Table 4 of Self Identity Mapping: the term joins the loss of Tip-Adapter-F, and that of meta_fit."""
    X, y, _ = task
    keys = {
        weight: TipAdapterHead(fine_tune=True, epochs=3, rho_sim_weight=weight).fit(X, y).keys_ for weight in (0.0, 5e-3, 1.0)
    }
    assert not np.array_equal(keys[0.0], keys[1.0]) and not np.array_equal(keys[5e-3], keys[1.0])
    again = TipAdapterHead(fine_tune=True, epochs=3, rho_sim_weight=1.0).fit(X, y)
    np.testing.assert_array_equal(again.keys_, keys[1.0])
    plain, regularised = (
        MetaAdapterHead(epochs=2, rho_sim_weight=weight).meta_fit(X, y).adapter_weights for weight in (0.0, 1.0)
    )
    assert not np.array_equal(plain["k_proj.weight"], regularised["k_proj.weight"])
    assert not np.array_equal(plain["q_proj.weight"], regularised["q_proj.weight"])
    assert plain.keys() == regularised.keys() == {"q_proj.weight", "k_proj.weight", "alpha_proj.weight", "alpha_proj.bias"}
    with pytest.raises(UsageError, match="rho_sim_weight of tip_adapter"):
        TipAdapterHead(rho_sim_weight=-1.0).fit(X, y)


def test_class_weights_from_the_pretrained_head():
    backbone = load_backbone(ModelSpec("r", "test_resnet", weights="random"), image_size=32)
    rows = backbone.linear_head.weight.detach().numpy()
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    weights = class_weights_from_head(backbone, {"b": [2, 5], "a": [7]})
    np.testing.assert_allclose(weights["b"], unit[[2, 5]].mean(axis=0), atol=1e-7)
    features = unit[[7, 2, 7, 5]] + 1e-3
    alone = TipAdapterHead(class_weights=weights, alpha=0.0).fit(features, ["a", "b", "a", "b"])
    assert alone.predict(unit[[5, 7, 2]]).tolist() == ["b", "a", "b"] and not alone.uses_prototypes_
    for named, said in (
        ({"a": []}, "The class a has no source class"),
        ({"a": [10**6]}, "names the source class 1000000"),
        ({"a": [7.9]}, "source classes of a are of type float64, and must be whole numbers from 0 to"),
        ({"a": np.zeros(len(rows), bool)}, "of type bool"),
    ):
        with pytest.raises(UsageError, match=said):
            class_weights_from_head(backbone, named)
    headless = load_backbone(ModelSpec("v", "test_vit", weights="random", kwargs={"num_classes": 0}), image_size=32)
    with pytest.raises(UsageError, match="has no linear head"):
        class_weights_from_head(headless, {"a": [0]})


def test_zero_shot_is_the_nearest_class_weight_whatever_the_support_set(task):
    X, y, query = task
    weights = dict(zip(("malign", "benign", "none"), np.eye(12), strict=False))
    found = ZeroShotHead(class_weights=weights).fit(X, y)
    order = [weights[name] for name in found.classes_]
    cosines = (query @ np.stack(order).T) / np.linalg.norm(query, axis=1, keepdims=True)
    assert found.predict(query).tolist() == found.classes_[cosines.argmax(axis=1)].tolist()
    shares = np.exp(100 * (cosines - cosines.max(axis=1, keepdims=True)))
    np.testing.assert_allclose(found.predict_proba(query), shares / shares.sum(axis=1, keepdims=True), atol=1e-9)
    other = ZeroShotHead(class_weights=weights).fit(X[::-1] + 3, y[::-1])
    assert other.predict(query).tolist() == found.predict(query).tolist()
    with pytest.raises(
        UsageError, match=r"none were given\. Give some: zero_shot:class_weights=FILE, or --prompts .*; without any take ncc"
    ):
        ZeroShotHead().fit(X, y)


def test_source_classes_come_from_a_file(tmp_path):
    file = tmp_path / "classes.yaml"
    file.write_text("cat: [3, 5-7]\ndog: 2 - 4\n0: 9\n")
    assert source_classes_of(file) == {"cat": [3, 5, 6, 7], "dog": [2, 3, 4], "0": [9]}
    backbone = load_backbone(ModelSpec("r", "test_resnet", weights="random"), image_size=32)
    ready = with_rows_of_pretrained_head(TipAdapterHead(class_weights=str(file), alpha=0.5), backbone)
    np.testing.assert_array_equal(ready.class_weights["dog"], class_weights_from_head(backbone, {"dog": [2, 3, 4]})["dog"])
    assert ready.alpha == 0.5 and with_rows_of_pretrained_head(NccHead(), backbone).distance == "cos"
    for text, said in (
        ("cat: 5-3", "cat has '5-3', which is no number of a source class, and no range such as 151-268"),
        ("cat: [tabby]", "cat has 'tabby'"),
        ("[1, 2]", "must say label: numbers of source classes"),
        ("cat: [", "cannot be read as YAML"),
    ):
        file.write_text(text)
        with pytest.raises(DataError, match=said):
            source_classes_of(file)
    with pytest.raises(DataError, match="There is no file of source classes"):
        source_classes_of(tmp_path / "none.yaml")


def test_what_all_heads_leave_out_is_said():
    left_out = heads_left_out("all")
    assert "zero_shot" not in choose_heads("all") and "zero_shot:class_weights=FILE" in left_out["zero_shot"]


def test_titles_say_what_the_options_make_of_a_head():
    heads = choose_heads("tip_adapter,tip_adapter:fine_tune=true,tip_adapter:fine_tune=true,rho_sim_weight=0.005")
    assert [head.title_in_full for head in heads.values()] == ["Tip-Adapter", "Tip-Adapter-F", "Tip-Adapter-F + ρSIM"]
    assert MetaAdapterHead(rho_sim_weight=0.005).title_in_full == "Meta-Adapter + ρSIM"


def test_classifiers_of_one_class_are_told_apart_by_their_options():
    names = list(choose_heads([LogisticRegression(C=5.0), LogisticRegression(), RidgeClassifier(alpha=2.0)]))
    assert names == ["LogisticRegression:C=5.0", "LogisticRegression", "RidgeClassifier"]
    with pytest.raises(UsageError, match=r"LogisticRegression:C=5\.0 is given twice"):
        choose_heads([LogisticRegression(C=5.0), LogisticRegression(C=5.0)])


def test_numbers_of_another_type_become_float64(task):
    X, y, query = task
    types = [NccHead().fit(X.astype(each), y).predict_proba(query).dtype for each in ("float16", "float32", "float64")]
    assert types == ["float64", "float32", "float64"]


def test_balanced_logistic_regression_counts_classes_equally(task):
    """The same as repeating the images of small classes; nothing where classes are equally large."""
    X, y, _ = task
    plain, balanced = (LogisticHead(balanced=each).fit(X, y) for each in (False, True))
    np.testing.assert_allclose(plain.weights_, balanced.weights_, atol=1e-6)
    few = np.r_[0:5, 5:6]  # five of one class, one of another
    repeated = np.r_[0:5, [5] * 5]
    # weights n / (C n_c) are 0.6 and 3, those of repeated images 1 and 5: the same loss, at C / 0.6
    once = LogisticHead(balanced=True, C=10.0).fit(X[few], y[few])
    often = LogisticHead(C=6.0).fit(X[repeated], y[repeated])
    np.testing.assert_allclose(once.predict_proba(X), often.predict_proba(X), atol=1e-4)


@pytest.mark.parametrize("width", [2, 40])
def test_balanced_ridge_regression_is_the_weighted_one(width):
    """Least squares with weights n / (C n_c), by scikit-learn, on both sides of n = d."""
    random = np.random.default_rng(width)
    labels = np.repeat([0, 1, 2], [2, 5, 13])
    rows = random.standard_normal((20, width)) + labels[:, None]
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    weights = 20 / (3 * np.bincount(labels)[labels])
    expected = Ridge(alpha=0.5).fit(unit, 2 * np.eye(3)[labels] - 1, sample_weight=weights)
    found = RidgeHead(penalty=0.5, balanced=True).fit(rows, labels)
    np.testing.assert_allclose(found.weights_, expected.coef_, atol=1e-9)
    np.testing.assert_allclose(found.intercepts_, expected.intercept_, atol=1e-9)
    assert not np.allclose(found.weights_, RidgeHead(penalty=0.5).fit(rows, labels).weights_, atol=1e-3)


def test_labels_of_validation_images_are_compared_by_value(task):
    """As text "10" stands before "2"."""
    X, _, query = task
    y = np.repeat([2, 10, 30], 5)
    found, same = (TipAdapterHead().fit(X, y, query, np.array([2, 10, 30], dtype=kind)) for kind in (np.int64, np.float64))
    assert (found.alpha_, found.beta_) == (same.alpha_, same.beta_)
    with pytest.raises(DataError, match="Validation image 1 holds NaN"):
        TipAdapterHead().fit(X, y, np.where(np.arange(3)[:, None] == 1, np.nan, query), [2, 10, 30])
    with pytest.raises(DataError, match=r"lacks: 10, 2, 30\. Labels must be of the same type"):
        TipAdapterHead().fit(X, y, query, ["2", "10", "30"])


def test_a_seed_of_numpy_is_a_seed(task):
    X, y, _ = task
    found, same = (
        TipAdapterHead(fine_tune=True, batch_size=4, epochs=2, rho_sim_weight=1.0, seed=seed).fit(X, y).keys_
        for seed in (3, np.int64(3))
    )
    np.testing.assert_array_equal(found, same)


def test_keys_that_diverge_are_an_error(task):
    X, y, _ = task
    with pytest.raises(DivergedError, match=r"tip_adapter .* learning_rate \(now 1e\+30\)"):
        TipAdapterHead(fine_tune=True, learning_rate=1e30).fit(X.astype(np.float32), y)


@pytest.mark.parametrize("head", [CopaHead(learning_rate=1e20), UrlHead(learning_rate=1e30)], ids=spelled)
def test_a_training_that_diverges_is_an_error(head, task):
    X, y, query = task
    with pytest.raises(DivergedError, match=f"training of {head.name} diverged.*Lower learning_rate"):
        head.fit(X.astype(np.float32), np.tile(np.unique(y), 5))  # nothing that can be learned
    with pytest.raises(DivergedError, match=r"no finite numbers for 3 of 3 queries \(the first: row 0\)"):
        head.predict(query.astype(np.float32))


def test_a_meta_training_that_diverges_is_an_error(task):
    with pytest.raises(DivergedError, match="training of meta_adapter diverged"):
        MetaAdapterHead(learning_rate=1e30).meta_fit(task[0].astype(np.float32), task[1])


@pytest.mark.parametrize("head", [NccHead(), NccHead(distance="l2"), LogisticHead()], ids=spelled)
def test_rows_of_endless_length_are_refused(head, task):
    X, y, query = (each if each.dtype.kind == "U" else each.astype(np.float32) for each in task)
    head = clone(head).fit(X, y)
    query[1] *= 1e20
    with pytest.raises(DataError, match=r"Row 1 of the features .* overflows float32"):
        head.predict_proba(query)
    X[7] *= 1e20
    with pytest.raises(DataError, match=r"Row 7 of the features .* overflows float32"):
        head.fit(X, y)
    assert np.isfinite(clone(head).fit(X.astype(np.float64), y).predict_proba(query.astype(np.float64))).all()


def test_class_weights_may_be_parameters_and_labels_of_another_number_type(task):
    X, _, query = task
    y = np.repeat([0, 1, 2], 5)
    weights = torch.nn.Linear(12, 3).weight
    plain = TipAdapterHead(class_weights=weights.detach().numpy()).fit(X, y).predict_proba(query)
    by_label = {0: weights[0], np.int64(1): weights[1], "2.0": weights[2]}
    for given, labels in ((weights, y), (by_label, y.astype(float))):
        found = TipAdapterHead(class_weights=given).fit(X, labels).predict_proba(query)
        np.testing.assert_array_equal(found, plain)
    half = TipAdapterHead(class_weights=weights.bfloat16()).fit(X, y).predict_proba(query)
    np.testing.assert_allclose(half, plain, atol=0.2)


@pytest.mark.parametrize("given", [np.full((3, 12), object()), [["a"] * 12] * 3, {0: np.full(12, "x"), 1: 2, 2: 3}])
def test_class_weights_that_are_no_numbers(given, task):
    with pytest.raises(DataError, match=r"The class weights( of 0)? are no array of numbers: "):
        TipAdapterHead(class_weights=given).fit(task[0], np.repeat([0, 1, 2], 5))


@pytest.mark.parametrize(
    ("heads", "typed", "name"),
    [
        ("ncc,logistic:balanced=true,logistic", None, "logistic"),
        ("ncc,logistic:balanced=true", None, "logistic:balanced=True"),
        ("ncc,copa", None, "ncc"),
        ("ncc,logistic:balanced=true,logistic", "logistic:balanced=true", "logistic:balanced=True"),
        ("ncc,copa:1", "copa:learning_rate=1.0", "copa:learning_rate=1.0"),
        ([LogisticRegression(), LogisticRegression(C=5.0)], "LogisticRegression:C=5.0", "LogisticRegression:C=5.0"),
    ],
)
def test_the_baseline_is_found_however_its_options_are_written(heads, typed, name):
    assert name_of_baseline(choose_heads(heads), typed) == name


@pytest.mark.parametrize("typed", ["url", "logistic:balanced=true", "nothing", "ncc:no=1"])
def test_a_baseline_that_is_no_head_is_refused(typed):
    with pytest.raises(UnknownNameError, match=f"Unknown baseline: {typed}"):
        name_of_baseline(choose_heads("ncc,logistic"), typed)


def test_class_weights_without_direction_are_refused(task):
    X, y, _ = task
    weights = {label: np.zeros(X.shape[1]) if label == y[0] else X[0] for label in np.unique(y)}
    with pytest.raises(DataError, match=f"The class weights of {y[0]} are all zeros"):
        TipAdapterHead(class_weights=weights).fit(X, y)


def test_features_may_be_tensors_of_a_network(task):
    X, y, query = task
    plain = NccHead().fit(X.astype(np.float32), y).predict_proba(query.astype(np.float32))
    with_gradient = torch.tensor(X, dtype=torch.float32, requires_grad=True)
    np.testing.assert_array_equal(NccHead().fit(with_gradient, y).predict_proba(torch.tensor(query).float()), plain)
    half = NccHead().fit(torch.tensor(X).bfloat16(), y)
    assert half.predict(torch.tensor(query).bfloat16()).shape == (len(query),)


@pytest.mark.parametrize("bad", [np.empty((0, 3)), np.zeros(3), [["a", "b"]]])
def test_validation_images_of_another_kind_are_named(task, bad):
    X, y, _ = task
    with pytest.raises(DataError, match="Validation image"):
        TipAdapterHead().fit(X, y, X_val=bad, y_val=y[: len(bad)])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"labels": np.zeros(14, int)}, "labels must be 15 whole numbers"),
        ({"labels": np.full(15, 1.7)}, "labels must be 15 whole numbers"),
        ({"labels": np.array(["a"] * 15)}, "labels must be 15 whole numbers"),
        ({"labels": np.full(15, -1)}, "Label -1 of row 0 is no row of prototypes; there are 0 to 2"),
        ({"labels": np.full(15, 5)}, "Label 5 of row 0"),
        ({"instances": np.full((15, 4), np.nan)}, "Row 0 of instances holds NaN"),
        ({"prototypes": np.ones((3, 5))}, "instances have the width 4, and prototypes 5"),
        ({"prototypes": np.ones(4)}, r"prototypes must have the shape \(rows, width\)"),
        ({"instances": [["a"] * 4] * 15}, "instances must be numbers"),
    ],
)
def test_a_gap_of_what_does_not_belong_together_is_refused(change, said):
    given = {"instances": np.ones((15, 4)), "prototypes": np.eye(3, 4), "labels": np.repeat(np.arange(3), 5)}
    assert gap(**given) >= 0
    with pytest.raises(DataError, match=said):
        gap(**(given | change))
