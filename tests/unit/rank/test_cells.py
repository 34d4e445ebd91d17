import math

import numpy as np
import pytest

from crossgraft.errors import NotApplicable
from crossgraft.rank.assemble import build_cells, describe_score
from crossgraft.rank.evaluate import ModelEvaluation, RawValue, ScoreEvaluation, evaluate_scores, plan_resampling
from crossgraft.rank.options import RankOptions
from crossgraft.scores import ScoreInputs, ScoreValue, _statistics, logme, nca_gradient, nleep, scale_over_zoo, score, zoo_score
from crossgraft.seeding import derive_seed
from crossgraft.statistics import jackknife_interval
from support.model_records import model_record


class Silent:
    def __init__(self):
        self.done = 0

    def advance(self, amount=1):
        self.done += amount

    def note(self, text):
        return None


def combine_scaled(parts):
    return scale_over_zoo([part["spread"] for part in parts])


@zoo_score(title="Scaled spread", reference="made up", combine=combine_scaled)
def scaled_spread(features):
    return {"spread": float(np.var(features))}


@zoo_score(title="Place in the zoo", reference="made up", combine=combine_scaled)
def place_of_mean(features):
    return {"spread": float(np.mean(features))}


@score(title="Brightness", reference="made up")
def brightness(model, images):
    """Needs the model and its images."""
    return float(np.mean(images)) * model


@score(title="Contrast", reference="made up")
def contrast(model, images):
    return float(np.std(images)) * model


@score(title="Shift", reference="made up")
def shift(features, source_features):
    return -float(np.linalg.norm(features.mean(axis=0) - source_features.mean(axis=0)))


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    targets = np.arange(40) % 2
    features = rng.normal(size=(40, 6)) + 0.5 * targets[:, None]
    return features, targets


def evaluate(features, targets, scores, **inputs):
    resampling = plan_resampling(targets, None, seed=0)
    bundle = ScoreInputs(features=features, labels=targets, **inputs)
    return evaluate_scores(scores, bundle, resampling, stage=Silent())


def as_model(name, evaluations, role="candidate"):
    return ModelEvaluation(key=name, model=model_record(name, role=role), evaluations=evaluations)


def test_an_array_score_has_value_interval_and_shuffled_values(problem):
    features, targets = problem
    (evaluation,) = evaluate(features, targets, [logme])
    (cell,) = build_cells(logme, [as_model("a", [evaluation])])
    assert cell.value == logme(features=features, labels=targets)
    assert len(cell.jackknife_values) == 20
    resampling = plan_resampling(targets, None, seed=0)
    literal = [
        logme(features=np.delete(features, block, axis=0), labels=np.delete(targets, block)) for block in resampling.blocks
    ]
    np.testing.assert_allclose(cell.jackknife_values, literal, rtol=1e-9)
    estimate = jackknife_interval(cell.value, literal)
    assert (cell.low, cell.high) == pytest.approx((estimate.low, estimate.high), rel=1e-9)
    shuffled = [logme(features=features, labels=labels) for labels in resampling.shuffled_labels]
    np.testing.assert_allclose(cell.shuffled_values, shuffled, rtol=1e-9)
    assert cell.above_shuffled
    assert cell.seconds > 0
    assert cell.peak_bytes > 0


def test_the_interval_of_a_score_that_is_drawn_holds_its_spread_over_seeds(problem):
    features, targets = problem
    (evaluation,) = evaluate(features, targets, [nleep])
    (cell,) = build_cells(nleep, [as_model("a", [evaluation])])
    seeds = [derive_seed(0, "nleep", "redrawn", number) for number in range(4)]
    others = [nleep(features=features, labels=targets, seed=seed) for seed in seeds]
    assert cell.redrawn_values == [cell.value, *others] and len(set(others)) > 1
    without = jackknife_interval(cell.value, cell.jackknife_values)
    assert cell.standard_error == pytest.approx(np.hypot(without.standard_error, np.std(cell.redrawn_values, ddof=1)))
    (steady,) = build_cells(logme, [as_model("a", evaluate(features, targets, [logme]))])
    assert steady.redrawn_values == []


def test_more_seeds_cost_no_more_statistics(problem, monkeypatch):
    """The principal components are those of the first seed; only the mixture is fitted again."""
    features, targets = problem
    made = []
    begin = _statistics.Spectrum.__init__

    def count(self, matrix):
        made.append(len(matrix))
        begin(self, matrix)

    monkeypatch.setattr(_statistics.Spectrum, "__init__", count)  # not the class: its name is read for checks of types
    evaluate(features, targets, [nleep])
    assert len(made) == 1 + 20


def test_scores_of_source_features_and_of_model_and_images_take_part(problem):
    features, targets = problem
    images = np.linspace(0, 1, 40)[:, None]
    both = evaluate(features, targets, [shift, brightness], source_features=features[:7] + 1, model=2, images=images)
    cells = [build_cells(s, [as_model("a", both)])[0] for s in (shift, brightness)]
    assert cells[0].value == pytest.approx(shift(features=features, source_features=features[:7] + 1))
    assert cells[1].value == pytest.approx(1.0)
    assert all(len(cell.jackknife_values) == 20 for cell in cells)
    missing = evaluate(features, targets, [shift, brightness])
    assert "none were given" in missing[0].reason
    assert "model itself" in missing[1].reason
    assert build_cells(shift, [as_model("a", missing)])[0].value is None


def test_a_zoo_level_score_is_scaled_over_candidates_and_controls_do_not_move_them(problem):
    features, targets = problem
    zoo = [
        as_model(name, evaluate(features * width, targets, [scaled_spread]), role)
        for name, width, role in (
            ("narrow", 1.0, "candidate"),
            ("wide", 2.0, "candidate"),
            ("middle", 1.5, "candidate"),
            ("control", 9.0, "random weights"),
        )
    ]
    cells = {cell.model: cell for cell in build_cells(scaled_spread, zoo)}
    assert (cells["narrow"].value, cells["wide"].value) == (0.0, 1.0)
    assert cells["middle"].value == pytest.approx((1.5**2 - 1) / 3)
    assert cells["control"].value == 1.0  # as one more member it is the widest
    assert "whichever block" in cells["middle"].no_interval_reason  # its place does not move, but for rounding
    alone = build_cells(scaled_spread, zoo[:3])
    assert [cell.value for cell in alone] == [cells[name].value for name in ("narrow", "wide", "middle")]


def test_a_zoo_level_score_leaves_the_same_block_out_of_every_member():
    rng = np.random.default_rng(0)
    targets = np.arange(40) % 2
    members = {name: rng.normal(size=(40, 3)) + i for i, name in enumerate(["low", "middle", "high"])}
    zoo = [as_model(name, evaluate(values, targets, [place_of_mean])) for name, values in members.items()]
    cell = next(cell for cell in build_cells(place_of_mean, zoo) if cell.model == "middle")
    literal = []
    for block in plan_resampling(targets, None, seed=0).blocks:
        low, middle, high = (np.delete(values, block, axis=0).mean() for values in members.values())
        literal.append((middle - low) / (high - low))
    np.testing.assert_allclose(cell.jackknife_values, literal, rtol=1e-9)


def raw(value):
    return RawValue(value=value)


@pytest.mark.parametrize(
    ("evaluation", "expected"),
    [
        (ScoreEvaluation(score="logme", reason="needs source logits"), "needs source logits"),
        (ScoreEvaluation(score="logme", full=RawValue(value=math.nan, warnings=["All equal."])), "All equal."),
        (ScoreEvaluation(score="logme", full=raw(math.inf)), "The score is inf"),
    ],
)
def test_no_value_has_a_reason(evaluation, expected):
    (cell,) = build_cells(logme, [as_model("a", [evaluation])])
    assert cell.value is None
    assert expected in cell.reason


@pytest.mark.parametrize(
    ("blocks", "reason", "expected"),
    [([], "no interval (cost)", "no interval (cost)"), ([raw(1.0), raw(math.nan), raw(1.1)], None, "not finite when one block")],
)
def test_no_interval_has_a_reason(blocks, reason, expected):
    evaluation = ScoreEvaluation(score="logme", full=raw(1.0), blocks=blocks, no_interval_reason=reason)
    (cell,) = build_cells(logme, [as_model("a", [evaluation])])
    assert cell.value == 1.0
    assert cell.low is None
    assert expected in cell.no_interval_reason


def test_a_slow_score_has_no_interval_unless_asked(problem):
    features, targets = problem
    bundle = ScoreInputs(features=features, labels=targets)
    resampling = plan_resampling(targets, None, seed=0)
    (evaluation,) = evaluate_scores([logme], bundle, resampling, interval_seconds=0, stage=Silent())
    assert evaluation.no_interval_reason == "no interval (--interval-seconds 0)"
    assert evaluation.blocks == []
    assert len(evaluation.shuffled) == 5
    (asked,) = evaluate_scores([logme], bundle, resampling, interval_seconds=math.inf, stage=Silent())
    assert len(asked.blocks) == 20


def test_scores_of_images_are_slow_together(problem):
    """One that takes its passes from the other takes no time of its own, and twenty times those passes for an interval."""
    features, targets = problem
    bundle = ScoreInputs(features=features, labels=targets, model=2.0, images=np.ones((40, 2)))
    resampling = plan_resampling(targets, None, seed=0)
    known = [ScoreEvaluation(score=name, full=raw(2.0), seconds=40.0) for name in ("brightness", "contrast", "logme")]
    found = evaluate_scores([brightness, contrast, logme], bundle, resampling, stage=Silent(), first=known)
    assert [len(each.blocks) for each in found] == [0, 0, 20]
    alone = evaluate_scores([brightness], bundle, resampling, stage=Silent(), first=known[:1])
    assert len(alone[0].blocks) == 20


@pytest.mark.parametrize(("given", "longest"), [({}, 60), ({"interval_seconds": 0}, 0), ({"all_intervals": True}, math.inf)])
def test_all_intervals_are_those_of_the_slowest_score_too(given, longest):
    assert RankOptions(**given).longest_with_interval == longest


def test_a_value_not_above_its_shuffled_values_is_marked():
    evaluation = ScoreEvaluation(score="logme", full=raw(0.5), shuffled=[raw(0.4), raw(0.5)], no_interval_reason="x")
    (cell,) = build_cells(logme, [as_model("a", [evaluation])])
    assert cell.above_shuffled is False
    assert cell.largest_shuffled == 0.5


@pytest.mark.parametrize("blocks", [(2 + 1e-15, 2 - 1e-15, 2.0), (3.0, 3.0, 3.0)])
def test_blocks_that_differ_by_rounding_alone_give_no_interval(blocks):
    evaluation = ScoreEvaluation(score="logme", full=raw(2.0), blocks=[raw(value) for value in blocks])
    (cell,) = build_cells(logme, [as_model("a", [evaluation])])
    assert (cell.value, cell.low, cell.jackknife_values) == (2.0, None, [])
    assert cell.no_interval_reason == "The score is the same whichever block of images is left out."


def test_blocks_that_would_leave_one_class_give_no_interval():
    targets = np.array([0, 0, 0, 0, 1])
    groups = np.array([0, 1, 2, 3, 3])
    plan = plan_resampling(targets, groups, seed=0)
    assert plan.blocks == ()
    assert "all images of all classes but one" in plan.no_blocks_reason


def test_the_seed_reaches_scores_that_have_one(problem):
    features, targets = problem
    bundle = ScoreInputs(features=features, labels=targets)
    values = {}
    for seed in (0, 3):
        resampling = plan_resampling(targets, None, seed=seed)
        (evaluation,) = evaluate_scores([nleep], bundle, resampling, stage=Silent())
        values[seed] = evaluation.full.value
        assert values[seed] == nleep(features=features, labels=targets, seed=seed)
    assert values[0] != values[3]


@score(title="Needs 39", reference="made up")
def needs_39_rows(features):
    """Not defined on fewer than 39 rows, so on every jackknife block of two."""
    if len(features) < 39:
        raise NotApplicable("Needs 39 images.")
    return 1.0


@score(title="True labels only", reference="made up")
def first_label_only(features, labels):
    """Not defined when the first two labels are shuffled into the same one."""
    if labels[0] == labels[1]:
        raise NotApplicable("Needs two labels.")
    return 1.0


def test_a_score_that_is_not_defined_on_a_part_of_the_images_has_a_value_without_interval(problem):
    evaluations = evaluate(*problem, [needs_39_rows, logme])
    cell = build_cells(needs_39_rows, [as_model("a", evaluations)])[0]
    assert (cell.value, cell.low) == (1.0, None)
    assert cell.no_interval_reason.endswith("Needs 39 images.")
    assert len(cell.shuffled_values) == 5
    assert len(evaluations[1].blocks) == 20


def test_a_score_that_is_not_defined_on_some_shuffled_labels_is_compared_with_the_others(problem):
    shuffles = plan_resampling(problem[1], None, seed=0).shuffled_labels
    defined = sum(labels[0] != labels[1] for labels in shuffles)
    assert 0 < defined < 5
    (evaluation,) = evaluate(*problem, [first_label_only])
    assert len(evaluation.shuffled) == defined


def test_a_network_that_only_recognises_patients_is_not_above_its_shuffled_values():
    rng = np.random.default_rng(0)
    marked = []
    for _ in range(12):
        patients = np.repeat(np.arange(20), 10)
        targets = rng.permutation(np.arange(20) % 2)[patients]  # of patients who do not differ
        features = rng.normal(size=(20, 8))[patients] + 0.1 * rng.normal(size=(200, 8))
        resampling = plan_resampling(targets, patients, seed=0)
        bundle = ScoreInputs(features=features, labels=targets, groups=patients)
        evaluation = evaluate_scores([logme], bundle, resampling, stage=Silent())
        marked.append(not build_cells(logme, [as_model("a", evaluation)])[0].above_shuffled)
    assert sum(marked) >= 7  # 5 of 6 are expected; shuffling single images marks none


def test_score_values_keep_their_parts_and_warnings(problem):
    @score(title="T", reference="r")
    def talkative(features):
        return ScoreValue(1.0, parts={"a": 2.0}, warnings=["Careful."])

    (cell,) = build_cells(talkative, [as_model("a", evaluate(*problem, [talkative]))])
    assert (cell.parts, cell.warnings) == ({"a": 2.0}, ["Careful."])


def combine_by_scenario(parts, *, scenario="datasets"):
    values = scale_over_zoo([part["spread"] for part in parts])
    return values if scenario == "datasets" else [1 - value for value in values]


@zoo_score(title="Spread", reference="made up", combine=combine_by_scenario)
def spread_by_scenario(features):
    return {"spread": float(np.var(features))}


def test_the_scenario_turns_what_a_zoo_level_score_makes_of_its_parts(problem):
    features, targets = problem
    members = [
        as_model(name, evaluate(scale * features, targets, [spread_by_scenario, scaled_spread]))
        for name, scale in (("a", 1.0), ("b", 2.0), ("c", 4.0))
    ]
    plain = build_cells(spread_by_scenario, members)
    turned = build_cells(spread_by_scenario, members, scenario="architectures")
    assert [cell.value for cell in turned] == pytest.approx([1 - cell.value for cell in plain])
    assert [cell.parts for cell in turned] == [cell.parts for cell in plain]
    assert describe_score(nca_gradient, scenario="architectures").title == "NCA × gradient, architectures"
    assert describe_score(logme, scenario="architectures").title == logme.title
    assert build_cells(scaled_spread, members, scenario="architectures") == build_cells(scaled_spread, members)
