import numpy as np
import pytest

from crossgraft.choice import choose, spell
from crossgraft.errors import UsageError
from crossgraft.fewshot import TipAdapterHead, TsaAdapter
from crossgraft.tune.batch_transforms import BATCH_TRANSFORMS
from crossgraft.tune.methods import METHODS
from crossgraft.tune.regularizers import REGULARIZERS


def test_a_refused_option_is_said_in_the_words_of_the_plugin_alone():
    with pytest.raises(UsageError) as refused:
        choose(METHODS, "partial:0")
    assert str(refused.value).startswith("The method partial: Partial fine-tuning needs at least one block, asked")
    assert "Value error" not in str(refused.value)
    assert "{" not in str(refused.value)


def test_a_value_of_the_wrong_type_names_option_and_value():
    with pytest.raises(UsageError, match=r"The batch transform mixup: alpha: .*number.* \(got 'abc'\)"):
        choose(BATCH_TRANSFORMS, "mixup:abc")


@pytest.mark.parametrize("text", ["hcs:yes", "hcs:lam=true", "bss:k=on", "repsim:mean_weight=no"])
def test_yes_is_no_number(text):
    with pytest.raises(UsageError, match="is not yes or no"):
        choose(REGULARIZERS, text)


def test_yes_is_an_answer_where_one_is_asked_for():
    assert choose(REGULARIZERS, "hcs:0.5,debiased=yes,cache=no") == REGULARIZERS.get("hcs")(0.5, True, False)


def test_what_no_text_can_hold_is_spelled_as_a_short_digest_of_it():
    vectors = np.random.default_rng(0).normal(size=(40, 8))
    given = [vectors, vectors.tolist(), dict(enumerate(vectors)), dict(enumerate(2 * vectors)), 2 * vectors]
    spelled = [spell(TipAdapterHead(class_weights=each, beta=2.0)) for each in given]
    assert len(set(spelled)) == len(given)
    assert spelled == [spell(TipAdapterHead(class_weights=each, beta=2.0)) for each in given]
    for text in spelled:
        assert text.startswith("tip_adapter:class_weights=") and text.endswith(",beta=2.0") and len(text) < 50


def _is_wide(name, module):
    return True


def test_a_function_is_spelled_by_its_name():
    """Not by its place in memory, which is another one in the next process."""
    assert spell(TsaAdapter(layers=_is_wide)) == "tsa:layers=_is_wide"
