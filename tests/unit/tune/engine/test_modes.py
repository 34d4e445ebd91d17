"""What a selection says is what requires a gradient and what is in train mode."""

import pytest

from crossgraft.errors import UsageError
from crossgraft.tune.engine.step import apply_modes, apply_selection, head_alone, training_batch_norms
from crossgraft.tune.protocols import Selection
from support.training import build_classifier, everything, only_head


def test_gradients_and_modes_follow_the_selection():
    classifier = build_classifier()
    selection = only_head(classifier)
    apply_selection(classifier, selection)
    classifier.train()
    apply_modes(classifier, selection)
    assert {n for n, p in classifier.named_parameters() if p.requires_grad} == {"head.weight", "head.bias"}
    assert classifier.head.training and not classifier.body.norm.training and not classifier.training
    apply_modes(classifier, everything(classifier))
    assert classifier.body.norm.training


@pytest.mark.parametrize("change", ["missing", "twice", "unknown", "nothing"])
def test_a_selection_that_is_not_a_partition_is_refused(change):
    classifier = build_classifier()
    trained, frozen = dict(everything(classifier).trained), {}
    if change == "missing":
        del trained["body.stem.weight"]
    elif change == "twice":
        frozen["body.stem.weight"] = "both"
    elif change == "unknown":
        trained["body.stam.weight"] = "misspelt"
    else:
        trained, frozen = {}, trained
    message = "trains no parameter" if change == "nothing" else r"body\.st[ae]m\.weight"
    with pytest.raises(UsageError, match=message):
        apply_selection(classifier, Selection(trained, frozen, ("",)))


def test_head_alone_freezes_the_rest_and_refuses_what_is_the_head_alone_already():
    classifier = build_classifier()
    of_head = head_alone(everything(classifier))
    assert set(of_head.trained) == {"head.weight", "head.bias"} and of_head.train_mode == ("head",)
    apply_selection(classifier, of_head)
    with pytest.raises(UsageError, match="only head"):
        head_alone(only_head(classifier))
    without = Selection({"body.stem.weight": "x"}, {}, ())
    with pytest.raises(UsageError, match="no head"):
        head_alone(without)


def test_batch_norms_that_move_are_found():
    classifier = build_classifier()
    assert training_batch_norms(classifier, everything(classifier)) == ["body.norm"]
    assert training_batch_norms(classifier, only_head(classifier)) == []
    assert training_batch_norms(build_classifier("plain"), everything(build_classifier("plain"))) == []
    part = Selection({}, {}, ("body.norm",))
    assert training_batch_norms(classifier, part) == ["body.norm"]
    assert training_batch_norms(classifier, Selection({}, {}, ("body.nor",))) == []
