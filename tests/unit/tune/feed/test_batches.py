"""A batch follows from seed, epoch and step; the thread that prepares it neither lingers nor hides an error."""

import dataclasses
import threading
from contextlib import closing

import numpy as np
import pytest
import torch

from crossgraft.data import prepare_batch
from crossgraft.data.dataset import dataset_from_arrays
from crossgraft.errors import UnreadableImageError, UsageError
from crossgraft.tune.augmentations import Light, NoAugmentation
from crossgraft.tune.batch_transforms import CutMix, Mixup
from crossgraft.tune.feed.batches import BatchMaker, BatchPlan, evaluation_batches
from crossgraft.tune.feed.images import TrainingImages
from crossgraft.types import Preprocessing

PREPROCESSING = Preprocessing(8, 8)
ARRAYS = np.random.default_rng(0).integers(0, 256, (23, 9, 9, 3), dtype=np.uint8)
TARGETS = torch.eye(3)[torch.arange(23) % 3]


def make_images(arrays=ARRAYS):
    return TrainingImages(dataset_from_arrays(arrays, np.arange(len(arrays)) % 3), PREPROCESSING)


def make_maker(images=None, *, augmentation=None, batch_transforms=(), seed=0, batch_size=5):
    return BatchMaker(
        images or make_images(),
        TARGETS,
        BatchPlan(TARGETS, batch_size=batch_size, seed=seed),
        augmentation=augmentation or Light(),
        batch_transforms=batch_transforms,
        seed=seed,
    )


def same(first, second):
    return (
        torch.equal(first.rows, second.rows)
        and torch.equal(first.images, second.images)
        and torch.equal(first.targets, second.targets)
    )


@dataclasses.dataclass
class Spy:
    """Does nothing to images and batches, and remembers what it saw."""

    seen: list = dataclasses.field(default_factory=list)
    seeds: list = dataclasses.field(default_factory=list)
    name = title = citation = "spy"
    flip = True
    accepts_multi_label = True

    def __call__(self, images, *more):
        *targets, generator = more
        self.seen.append(images)
        self.seeds.append(generator.initial_seed())
        return (images, *targets) if targets else images


def test_starting_anywhere_gives_the_rest_of_the_epoch():
    whole = list(make_maker(batch_transforms=[Mixup(), CutMix()]).batches(2))
    assert [len(batch.rows) for batch in whole] == [5, 5, 5, 5, 3]
    for start in (0, 1, 4, 5):
        rest = list(make_maker(batch_transforms=[Mixup(), CutMix()]).batches(2, start=start))
        assert len(rest) == 5 - start
        assert all(same(a, b) for a, b in zip(whole[start:], rest, strict=True))


def test_seed_epoch_and_step_each_change_what_is_drawn():
    maker, rows = make_maker(batch_transforms=[Mixup(1.0)]), torch.arange(5)
    batch = maker.make(0, 0, rows)
    assert same(batch, maker.make(0, 0, rows))
    for other in (maker.make(0, 1, rows), maker.make(1, 0, rows), make_maker(seed=1).make(0, 0, rows)):
        assert not torch.equal(batch.images, other.images)
        assert not torch.equal(batch.targets, other.targets)


def test_augmentation_sees_unit_images_and_transforms_see_normalised_ones_in_order():
    before, first, second = Spy(), Spy(), Spy()
    maker = make_maker(augmentation=before, batch_transforms=[first, Mixup(1.0), second])
    (batch, *_), rows = maker.batches(0), maker.plan.epoch(0)[0]
    assert torch.equal(before.seen[0], maker.images.read(rows))
    prepared = prepare_batch([ARRAYS[row] for row in rows], PREPROCESSING)
    assert torch.equal(first.seen[0], prepared)
    assert not torch.equal(second.seen[0], prepared)
    assert torch.equal(second.seen[0], batch.images)
    assert len({*before.seeds, *first.seeds, *second.seeds}) == 3 * len(before.seeds)


def test_a_large_batch_is_augmented_in_parts_that_draw_different_numbers():
    spy = Spy()
    make_maker(augmentation=spy, batch_size=23).make(0, 0, torch.arange(23))
    assert [len(part) for part in spy.seen] == [16, 7]
    rows = torch.zeros(20, dtype=torch.int64)
    images = make_maker(batch_size=23).make(0, 0, rows).images
    assert len({tuple(image.flatten().tolist()) for image in images}) == 20


@pytest.mark.parametrize("batch_size", [5, 23])
def test_without_augmentation_a_batch_is_what_prepare_batch_makes(batch_size):
    for batch in make_maker(augmentation=NoAugmentation(), batch_size=batch_size).batches(0):
        assert torch.equal(batch.images, prepare_batch([ARRAYS[row] for row in batch.rows], PREPROCESSING))
        assert torch.equal(batch.targets, TARGETS[batch.rows])


def test_no_global_random_state_is_read_or_moved():
    before = torch.get_rng_state(), np.random.get_state()[1].tolist()  # noqa: NPY002 - that nobody touches it
    first = list(make_maker(batch_transforms=[Mixup(), CutMix()]).batches(0))
    assert torch.equal(torch.get_rng_state(), before[0])
    assert np.random.get_state()[1].tolist() == before[1]  # noqa: NPY002
    torch.rand(3)
    second = make_maker(batch_transforms=[Mixup(), CutMix()]).batches(0)
    assert all(same(a, b) for a, b in zip(first, second, strict=True))


def test_the_next_batch_is_made_while_this_one_is_in_use():
    made = [threading.Event() for _ in range(5)]

    class Signal(Spy):
        def __call__(self, images, generator):
            assert threading.current_thread() is not threading.main_thread()
            made[len(self.seen)].set()
            return super().__call__(images, generator)

    with closing(make_maker(augmentation=Signal()).batches(0)) as batches:
        next(batches)
        assert made[1].wait(timeout=10)
        assert not made[2].wait(timeout=0.05)  # one ahead, not more


@pytest.mark.parametrize("end", ["all", "close", "drop"])
def test_no_thread_is_left(end):
    before = threading.active_count()
    batches = make_maker().batches(0)
    next(batches)
    assert threading.active_count() == before + 1
    if end == "all":
        list(batches)
    elif end == "close":
        batches.close()
    else:
        del batches
    assert threading.active_count() == before


def test_an_error_in_the_thread_reaches_the_one_who_asks():
    dataset = dataset_from_arrays(ARRAYS, np.arange(23) % 3)
    third = BatchPlan(TARGETS, batch_size=5).epoch(0)[2]

    def read(row):
        if row == third[1]:
            raise UnreadableImageError(f"row {row}", "gone")
        return ARRAYS[row]

    broken = dataclasses.replace(dataset, _images=dataclasses.replace(dataset._images, kept={}, decode=read))
    before = threading.active_count()
    batches = make_maker(TrainingImages(broken, PREPROCESSING)).batches(0)
    next(batches)
    next(batches)
    with pytest.raises(UnreadableImageError, match=f"row {third[1]}"):
        next(batches)
    assert threading.active_count() == before


def test_an_epoch_that_is_over_has_no_batches():
    assert list(make_maker().batches(0, start=5)) == []


def test_evaluation_goes_through_all_rows_in_order():
    batches = list(evaluation_batches(make_images(), batch_size=10))
    assert [len(batch) for batch in batches] == [10, 10, 3]
    assert torch.equal(torch.cat(batches), prepare_batch(list(ARRAYS), PREPROCESSING))


def test_what_does_not_belong_together_is_refused():
    with pytest.raises(UsageError, match="20 images, 23 rows"):
        make_maker(make_images(ARRAYS[:20]))
    with pytest.raises(UsageError, match="batches of 0"):
        evaluation_batches(make_images(), batch_size=0)


class Mixing(Spy):
    """Mixes nothing, and says that it does."""

    mixes_images = True


def test_images_are_mixed_within_their_domain_with_numbers_of_its_own():
    domains = torch.arange(23) % 2
    plan = BatchPlan(TARGETS, batch_size=5, domains=domains)
    mixing, plain = Mixing(), Spy()
    common = {"augmentation": NoAugmentation(), "seed": 0}
    maker = BatchMaker(make_images(), TARGETS, plan, batch_transforms=[mixing, plain], **common)
    rows = torch.tensor([0, 1, 2, 3, 4])
    batch = maker.make(0, 0, rows)
    assert [len(images) for images in mixing.seen] == [3, 2] and len(set(mixing.seeds)) == 2
    assert [len(images) for images in plain.seen] == [5]
    assert torch.equal(batch.domains, domains[rows])
    mixed = BatchMaker(make_images(), TARGETS, plan, batch_transforms=[Mixup(1.0)], **common).make(0, 0, rows)
    alone = BatchMaker(make_images(), TARGETS, plan, batch_transforms=[Mixup(1.0)], **common).make(0, 0, rows[::2])
    torch.testing.assert_close(mixed.images[::2], alone.images)  # whatever the other domain's images are
    assert not torch.equal(mixed.images[::2], batch.images[::2])
