import pytest

from crossgraft.errors import UsageError
from crossgraft.tune.batch_transforms import BATCH_TRANSFORMS
from crossgraft.tune.choice import choose
from crossgraft.tune.methods import METHODS


def test_a_refused_option_is_said_in_the_words_of_the_plugin_alone():
    with pytest.raises(UsageError) as refused:
        choose(METHODS, "partial:0")
    assert str(refused.value).startswith("The method partial: Partial fine-tuning needs at least one block, asked")
    assert "Value error" not in str(refused.value)
    assert "{" not in str(refused.value)


def test_a_value_of_the_wrong_type_names_option_and_value():
    with pytest.raises(UsageError, match=r"The batch transform mixup: alpha: .*number.* \(got 'abc'\)"):
        choose(BATCH_TRANSFORMS, "mixup:abc")
