"""What holds for every way to vary images."""

import pytest
import torch

from crossgraft.choice import choose, spell
from crossgraft.errors import UsageError
from crossgraft.tune.augmentations import AUGMENTATIONS, Augmentation

CHOICES = [*AUGMENTATIONS.names(), "thesis:4", "thesis:6"]
DRAWING = [choice for choice in CHOICES if choice != "none"]
MIRRORING = ["light", "thesis", "thesis:6"]


def drawn_from(seed):
    return torch.Generator().manual_seed(seed)


def pictures(num_images=6, channels=3, height=11, width=16):
    return torch.rand(num_images, channels, height, width, generator=drawn_from(99))


def bright_on_the_left(num_images=64):
    images = torch.full((num_images, 1, 24, 24), 0.3)
    images[..., :12] = 0.7
    return images


def mirrored(images):
    return (images[..., :12].mean((1, 2, 3)) < images[..., 12:].mean((1, 2, 3)) - 1e-3).float().mean().item()


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("channels", [1, 3])
def test_images_keep_their_shape_type_and_range(choice, channels):
    augment, images = choose(AUGMENTATIONS, choice), pictures(channels=channels)
    before = images.clone()
    varied = augment(images, drawn_from(0))
    assert isinstance(augment, Augmentation)
    assert varied.shape == images.shape and varied.dtype == torch.float32
    assert varied.min() >= 0 and varied.max() <= 1
    assert torch.equal(images, before)
    assert torch.equal(augment(torch.ones_like(images), drawn_from(0)).amax(), torch.tensor(1.0))


@pytest.mark.parametrize("choice", DRAWING)
def test_the_generator_decides_and_every_image_draws_for_itself(choice):
    augment, images = choose(AUGMENTATIONS, choice), pictures(1).expand(8, -1, -1, -1)
    varied = augment(images, drawn_from(0))
    assert torch.equal(varied, augment(images, drawn_from(0)))
    assert not torch.equal(varied, augment(images, drawn_from(1)))
    assert len({tuple(image.flatten().tolist()) for image in varied}) == 8


def test_without_augmentation_nothing_is_drawn():
    images, generator = pictures(), drawn_from(0)
    before = generator.get_state()
    assert torch.equal(choose(AUGMENTATIONS, "none")(images, generator), images)
    assert torch.equal(generator.get_state(), before)


@pytest.mark.parametrize("choice", CHOICES)
def test_nothing_is_mirrored_where_flipping_is_off(choice):
    augment = choose(AUGMENTATIONS, f"{choice}{',' if ':' in choice else ':'}flip=false")
    assert not augment.flip
    assert mirrored(augment(bright_on_the_left(), drawn_from(0))) == 0


@pytest.mark.parametrize("choice", MIRRORING)
def test_half_of_the_images_are_mirrored_where_flipping_is_on(choice):
    share = mirrored(choose(AUGMENTATIONS, choice)(bright_on_the_left(400), drawn_from(0)))
    assert 0.3 < share < 0.6  # a standard error of 0.025; crops may show one side alone


def test_chapter_4_never_mirrors():
    augment = choose(AUGMENTATIONS, "thesis:4")
    assert augment.flip and mirrored(augment(bright_on_the_left(), drawn_from(0))) == 0


@pytest.mark.parametrize("choice", DRAWING)
def test_an_image_of_one_shade_stays_one_where_only_pixels_move(choice):
    options = ",brightness=0.0,contrast=0.0" if choice == "light" else ""
    augment = choose(AUGMENTATIONS, choice + options.replace(",", ":", 1))
    varied = augment(torch.full((8, 1, 9, 9), 0.25), drawn_from(0))
    assert (varied - 0.25).abs().max() < 1e-6


@pytest.mark.parametrize("choice", [*CHOICES, "light:0.5,contrast=0.0,flip=False", "thesis:6,flip=False"])
def test_what_is_spelt_is_chosen_again(choice):
    augment = choose(AUGMENTATIONS, choice)
    assert choose(AUGMENTATIONS, spell(augment)) == augment


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ("light:0.0", r"smallest_side must be in \(0, 1\]"),
        ("light:1.5", "smallest_side"),
        ("light:brightness=1.0", "brightness must be"),
        ("light:contrast=-0.1", "contrast must be"),
        ("thesis:5", "chapter"),
    ],
)
def test_options_out_of_range_are_refused(choice, message):
    with pytest.raises(UsageError, match=message):
        choose(AUGMENTATIONS, choice)
