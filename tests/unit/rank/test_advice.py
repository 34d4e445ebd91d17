import numpy as np
import pytest

from crossgraft.data import dataset_from_arrays
from crossgraft.rank.advice import write_advice, write_checks
from crossgraft.rank.model_history import order_models
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


def test_an_advised_model_not_above_its_shuffled_values_is_a_warning():
    advice = advise([cell(0, "a", 0.9, above=False), cell(1, "b", 0.1)])
    assert advice.sentence.startswith("Start with a:")
    assert advice.caution == "a is not above its own LogME under shuffled labels."
    assert advise([cell(0, "a", 0.9), cell(1, "b", 0.1, above=False)]).caution is None


def test_a_random_network_of_another_architecture_as_good_as_the_best_is_a_warning():
    roles = {"r": "random weights"}
    higher = advise([cell(0, "a", 0.9), cell(1, "b", 0.1), cell(2, "r", 2.0)], roles)
    assert higher.caution == "A network with random weights (r) scores higher than the best model."
    equal = advise([cell(0, "a", 0.9, spread=1), cell(1, "b", 0.1), cell(2, "r", 0.85, spread=1)], roles)
    assert equal.caution == "A network with random weights (r) cannot be told apart from the best model."
    assert advise([cell(0, "a", 0.9), cell(1, "b", 0.1), cell(2, "r", 0.1)], roles).caution is None


def test_models_that_are_not_above_their_own_random_weights_leave_the_advice():
    roles, architectures = {"a · random": "random weights"}, {"a": "a", "a · random": "a"}
    others = [cell(1, "b", 0.5), cell(2, "c", 0.1)]
    advice = advise([cell(0, "a", 0.9), *others, cell(3, "a · random", 0.95)], roles, architectures=architectures)
    assert advice == (
        "Start with b: LogME separates it from every other model that is left. 1 of 3 models is left out, not separably above "
        "the same architecture with random weights: a.",
        ["b"],
        "A network with random weights (a · random) scores higher than the best model.",
    )
    below = advise([cell(0, "a", 0.9), *others, cell(3, "a · random", 0.2)], roles, architectures=architectures)
    assert below.models == ["a"]
    assert "left out" not in below.sentence


def test_without_an_interval_the_values_say_whether_a_model_is_above_its_random_weights():
    roles, architectures = {"r": "random weights"}, {"a": "a", "r": "a"}

    def advised(value):
        bare = [cell(0, "a", 0.9), cell(1, "b", 0.1), cell(2, "r", value)]
        cells = [each.model_copy(update={"jackknife_values": []}) for each in bare]
        return advise(cells, roles, architectures=architectures).models

    assert "a" in advised(0.8)
    assert "a" not in advised(0.9)


def test_nothing_is_advised_where_no_model_is_above_its_random_weights():
    roles, architectures = {"r": "random weights"}, {"a": "a", "b": "a", "r": "a"}
    advice = advise([cell(0, "a", 0.9), cell(1, "b", 0.8), cell(2, "r", 2.0)], roles, architectures=architectures)
    assert advice.sentence.startswith("None of the 2 models is separably above the same architecture with random weights")
    assert advice.models == ()


def test_the_only_model_is_not_above_its_random_weights_where_it_is_not():
    roles, architectures = {"r": "random weights"}, {"a": "a", "r": "a"}
    advice = advise([cell(0, "a", 0.9), cell(1, "r", 2.0)], roles, architectures=architectures)
    assert advice.sentence.startswith("The only model is not separably above the same architecture with random weights")


def test_one_model_or_none_has_no_ranking():
    assert advise([cell(0, "a", 0.9)]).sentence == "Only a has a value, so there is nothing to compare it with."
    advice = advise([cell(0, "a", 0.9), cell(2, "r", 2.0)], {"r": "random weights"})
    assert advice.caution == "A network with random weights (r) scores higher than the best model."
    assert "no ranking" in advise([ScoreCell(model="a", score="s", value=None, reason="x")]).sentence


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
