import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crossgraft.data import dataset_from_arrays
from crossgraft.rank.advice import order_models, separable, write_advice, write_checks
from crossgraft.rank.record import ScoreCell
from support.model_records import model_record

NOISE = np.random.default_rng(0).normal(size=(4, 20))


def cell(number, model, value, *, spread=0.001, above=True):
    return ScoreCell(
        model=model,
        score="s",
        value=value,
        jackknife_values=(value + spread * NOISE[number]).tolist(),
        shuffled_values=[0.0],
        above_shuffled=above,
    )


def advise(cells, roles=None, sizes=None, architectures=None):
    roles = {cell.model: "candidate" for cell in cells} | (roles or {})
    models = [
        model_record(
            cell.model,
            role=roles[cell.model],
            num_parameters=(sizes or {}).get(cell.model, 1),
            **({"architecture": architectures[cell.model]} if cell.model in (architectures or {}) else {}),
        )
        for cell in cells
    ]
    return write_advice("LogME", order_models("s", cells, roles), cells, models)


def test_a_separable_winner_is_named():
    advice = advise([cell(0, "a", 0.9), cell(1, "b", 0.1)])
    assert advice == ("Start with a: LogME separates it from every other model here.", ["a"], None)


def test_what_can_not_be_told_apart_from_the_best_is_named_with_it():
    advice = advise([cell(0, "a", 0.9, spread=0.1), cell(1, "b", 0.85, spread=0.1), cell(2, "c", -9.0)])
    assert advice == ("Start with a or b: LogME cannot tell them apart.", ["a", "b"], None)


def test_many_that_can_not_be_told_apart_are_counted():
    cells = [cell(i, name, 0.9 - 0.01 * i, spread=0.1) for i, name in enumerate("abcd")] + [cell(0, "e", -9.0)]
    text = advise(cells).sentence
    assert text == "Start with one of the 4 models that LogME cannot tell apart from the best, a."
    text = advise(cells, sizes={"a": 9, "b": 9, "c": 2, "d": 9, "e": 1}).sentence
    assert text.endswith("from the best, a; the smallest of them is c.")


def test_where_nothing_is_separable_it_says_so():
    advice = advise([cell(0, "a", 0.9, spread=1), cell(1, "b", 0.8, spread=1)])
    assert advice.sentence.startswith("LogME cannot tell the 2 models apart")
    assert advice.models == ["a", "b"]


def test_nothing_above_the_shuffled_labels_is_no_evidence():
    advice = advise([cell(0, "a", 0.9, above=False), cell(1, "b", 0.1, above=False)])
    assert "no evidence for any of them" in advice.sentence
    assert advice.models == ()


def test_a_model_that_is_not_above_its_shuffled_values_leaves_the_advice():
    advice = advise([cell(0, "a", 0.9, above=False), cell(1, "b", 0.5), cell(2, "c", 0.1)])
    assert advice == (
        "Start with b: LogME separates it from every other model that is left. 1 of 3 models is left out, not above its own "
        "LogME under shuffled labels: a.",
        ["b"],
        None,
    )
    assert advise([cell(0, "a", 0.9), cell(1, "b", 0.1, above=False)]).sentence.startswith(
        "Start with a: no other model is left."
    )


def test_rounding_does_not_put_a_model_above_random_weights():
    cells = [cell(i, name, value).model_copy(update={"jackknife_values": []}) for i, (name, value) in enumerate(BY_ROUNDING)]
    advice = advise(cells, {"r": "random weights"}, architectures={"a": "net", "r": "net"})
    assert advice.sentence.endswith("knows more of these images than random weights: r cannot be told apart from it.")


def test_a_random_network_scores_no_higher_by_rounding():
    advice = advise([cell(0, "a", 1.0), cell(1, "r", 1 + 4e-15, spread=0)], {"r": "random weights"})
    assert advice.sentence.endswith("random weights: r cannot be told apart from it.")


BY_ROUNDING = (("a", 1 + 4e-15), ("r", 1.0))


@pytest.mark.parametrize(
    ("value", "spread", "how"),
    [(2.0, 0.001, "scores higher than"), (0.85, 1, "cannot be told apart from"), (0.9, 0, "cannot be")],
)
def test_no_model_is_one_to_start_with_where_any_random_network_does_as_well(value, spread, how):
    cells = [cell(0, "a", 0.9, spread=spread), cell(1, "b", 0.1), cell(2, "r", value, spread=spread)]
    advice = advise(cells, {"r": "random weights"}, architectures={"a": "a", "b": "b", "r": "another"})
    assert advice.sentence.startswith(
        f"LogME does not show that any of these 2 models knows more of the images than random weights: r {how}"
    )
    assert advice.sentence.endswith("the best of them, a.")
    assert advice[1:] == ((), None)


def test_what_is_left_is_above_every_random_network():
    roles = {"r": "random weights", "q": "random weights"}
    cells = [cell(0, "a", 0.9, spread=1), cell(1, "b", 0.8), cell(2, "c", 0.6), cell(3, "r", 0.1), cell(3, "q", 0.7)]
    advice = advise(cells, roles)
    assert advice == (
        "Start with b: no other model is left. 2 of 3 models are left out, not separably above every network with random "
        "weights: a and c.",
        ["b"],
        None,
    )


@given(
    st.lists(st.tuples(st.floats(-1, 1), st.floats(0, 1), st.booleans()), min_size=1, max_size=5),
    st.lists(st.tuples(st.floats(-1, 1), st.floats(0, 1)), min_size=1, max_size=3),
)
@settings(max_examples=60, deadline=None)
def test_never_start_with_a_model_that_a_random_network_cannot_be_told_from(models, controls):
    cells = [cell(i % 4, f"m{i}", value, spread=spread, above=above) for i, (value, spread, above) in enumerate(models)]
    random = [cell((i + 1) % 4, f"r{i}", value, spread=spread) for i, (value, spread) in enumerate(controls)]
    advice = advise([*cells, *random], {each.model: "random weights" for each in random})
    named = {each.model: each for each in cells}
    for name in advice.models:
        assert named[name].above_shuffled
        assert all(separable(named[name], each) and named[name].value > each.value for each in random)
    assert ("Start with" not in advice.sentence) or advice.models


def test_without_an_interval_values_leave_models_out_and_none_is_one_to_start_with():
    roles, architectures = {"r": "random weights"}, {"a": "a", "r": "a"}

    def advised(value):
        bare = [cell(0, "a", 0.9), cell(1, "b", 0.1), cell(2, "r", value)]
        cells = [each.model_copy(update={"jackknife_values": []}) for each in bare]
        return advise(cells, roles, architectures=architectures)

    assert advised(0.8) == (
        "Of all models only a is left. 1 of 2 models is left out, not separably above every network with random weights: b.",
        ["a"],
        "Without intervals nothing tells a from a network with random weights (r).",
    )
    assert advised(0.05).sentence == "LogME cannot tell the 2 models apart on these images."
    assert advised(0.9).models == ()


def test_the_only_model_is_not_said_to_know_more_than_random_weights_where_it_does_not():
    advice = advise([cell(0, "a", 0.9), cell(2, "r", 2.0)], {"r": "random weights"})
    assert advice.sentence == (
        "LogME does not show that a knows more of these images than random weights: r scores higher than it."
    )
    assert advice.models == ()


def test_one_model_or_none_has_no_ranking():
    assert advise([cell(0, "a", 0.9)]).sentence == "Only a has a value, so there is nothing to compare it with."
    assert "no ranking" in advise([ScoreCell(model="a", score="s", value=None, reason="x")]).sentence


def test_a_model_without_a_value_is_not_said_to_be_separated_from_the_best():
    headless, random = ScoreCell(model="h", score="s", value=None, reason="x"), cell(2, "r", 2.0)
    assert advise([cell(0, "a", 0.9), headless, cell(1, "b", 0.1)]).sentence == (
        "Start with a: LogME separates it from every other model that is left. 1 of 3 models has no value: h."
    )
    assert advise([cell(0, "a", 0.9), headless]).sentence == (
        "Only a has a value, so there is nothing to compare it with. 1 of 2 models has no value: h."
    )
    nothing_shown = advise([cell(0, "a", 0.9), headless, random], {"r": "random weights"}).sentence
    assert nothing_shown.endswith("r scores higher than it. 1 of 2 models has no value: h.")


@pytest.fixture
def images():
    return [np.full((4, 4, 1), i, np.uint8) for i in range(24)]


def checks(images, cells, models, *, groups=None, labels=None):
    dataset = dataset_from_arrays(images, labels or [i % 2 for i in range(24)], groups=groups)
    roles = {model.name: model.role for model in models}
    found = write_checks(dataset, models, "LogME", order_models("s", cells, roles), cells)
    return {check.title: check for check in found}


def test_checks_are_silent_on_a_sound_case(images):
    models = [model_record("a"), model_record("b"), model_record("a · random", role="random weights", architecture="a")]
    cells = [cell(0, "a", 0.9), cell(1, "b", 0.5), cell(2, "a · random", 0.1)]
    found = checks(images, cells, models, groups=[i // 2 for i in range(24)])
    assert {check.severity for check in found.values()} == {"passed"}


def test_checks_fire_on_a_case_built_to_fail(images):
    models = [model_record("a"), model_record("b"), model_record("a · random", role="random weights", architecture="a")]
    cells = [cell(0, "a", 0.9, above=False), cell(1, "b", 0.9), cell(2, "a · random", 1.5)]
    found = checks(images, cells, models, labels=[0] * 4 + [1] * 20)
    severities = {title: check.severity for title, check in found.items()}
    assert severities == {
        "Patient leakage": "not assessed",
        "Class sizes": "warning",
        "Shuffled labels": "warning",
        "Random weights": "warning",
        "Order of neighbours": "notice",
    }
    assert "0 (4)" in found["Class sizes"].text
    assert "a" in found["Random weights"].text.rpartition(":")[2]


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([0] * 12 + [1] * 12, "fewer than 3 groups"),
        ([i % 2 * 99 if i % 2 else i for i in range(24)], "All images of the class 1 are of one group"),
    ],
)
def test_too_few_patients_to_tell_a_class_from_a_patient(images, groups, message):
    found = checks(images, [cell(0, "a", 0.9)], [model_record("a")], groups=groups)
    assert found["Patient leakage"].severity == "warning"
    assert message in found["Patient leakage"].text


def test_one_model_has_no_neighbours_to_check(images):
    found = checks(images, [cell(0, "a", 0.9)], [model_record("a")])
    assert found["Order of neighbours"].severity == "not assessed"


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([0.9, 0.9], "The only pair of neighbours by LogME is not separable: "),
        ([0.9, 0.9, 0.1], "1 of 2 pairs of neighbours by LogME is not separable: "),
        ([0.9, 0.9, 0.9], "2 of 2 pairs of neighbours by LogME are not separable: "),
    ],
)
def test_pairs_that_are_not_separable_are_counted_in_plain_words(images, values, text):
    cells = [cell(number, "abc"[number], value) for number, value in enumerate(values)]
    found = checks(images, cells, [model_record(one.model) for one in cells])
    assert found["Order of neighbours"].text.startswith(text)


def test_the_head_of_the_source_classes_does_not_count_for_the_size():
    from crossgraft.rank.advice import _parameters_without_head

    with_head = model_record("a", num_parameters=1010, num_source_classes=5)  # one feature: 5 weights and 5 biases
    assert _parameters_without_head(with_head) == 1000
    assert _parameters_without_head(model_record("b", num_parameters=1010)) == 1010


def test_a_model_that_its_random_control_cannot_be_told_from_is_named(images):
    models = [model_record("a"), model_record("b"), model_record("a · random", role="random weights", architecture="a")]
    cells = [cell(0, "a", 0.9, spread=1.0), cell(1, "b", 0.95), cell(2, "a · random", 0.85, spread=1.0)]
    found = checks(images, cells, models)["Random weights"]
    assert (found.severity, found.text.rpartition(": ")[2]) == ("warning", "a.")
