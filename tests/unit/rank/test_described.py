"""Families of networks whose names are free text."""

import pytest

from crossgraft.rank.described import described


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("somebody/swin-tiny-patch4-window7-224-finetuned-eurosat", "swin"),
        ("somebody/finetuned-vit-base-patch16-224", "vit"),
        ("somebody/BEiT-finetuned", "beit"),
        ("resnet18.tv_in1k", "resnet"),
        ("torchvision:alexnet", "alexnet"),
    ],
)
def test_a_family_is_read_off_the_name(name, family):
    assert described(name).family == family


def test_a_name_without_a_known_family_is_a_family_of_its_own():
    first, second = described("a/hot_dog_or_sandwich"), described("b/lunch")
    assert first.family != second.family and not first.is_known_to_imagenet
