from itertools import islice

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from crossgraft.demo.training import TrainingRecipe, _shuffled_batches, seeded_initialisation, train


def make_task():
    images = torch.randn(30, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    return images, (images.mean(dim=(1, 2, 3)) > 0).long()


def make_module():
    with seeded_initialisation(0, "test"):
        return nn.Sequential(nn.Flatten(), nn.Linear(64, 2), nn.Dropout(0.0))


def test_training_lowers_the_loss_and_ends_in_eval_mode():
    module, (images, labels) = make_module(), make_task()
    before = cross_entropy(module(images), labels)
    train(module, images, labels, TrainingRecipe(40, 10, 1e-2), seed=0, stream="test")
    assert cross_entropy(module(images), labels) < 0.5 * before
    assert not module.training


def test_it_trains_in_training_mode():
    module, task, modes = make_module().eval(), make_task(), []
    module.register_forward_hook(lambda module, *_: modes.append(module.training))
    train(module, *task, TrainingRecipe(2, 10, 1e-2), seed=0, stream="test")
    assert modes == [True, True]


def test_the_seed_decides_the_result():
    def trained(seed):
        module, task = make_module(), make_task()
        train(module, *task, TrainingRecipe(7, 10, 1e-2), seed=seed, stream="test")
        return module[1].weight

    assert torch.equal(trained(0), trained(0))
    assert not torch.equal(trained(0), trained(1))


def test_initialisation_leaves_the_global_random_state_alone():
    state = torch.get_rng_state()
    first = make_module()[1].weight
    assert torch.equal(torch.get_rng_state(), state)
    torch.rand(3)
    assert torch.equal(make_module()[1].weight, first)


def test_an_epoch_holds_every_image_once_but_for_a_last_smaller_batch():
    batches = list(islice(_shuffled_batches(11, 5, torch.Generator().manual_seed(0)), 4))
    for epoch in (batches[:2], batches[2:]):
        assert len(torch.cat(epoch).unique()) == 10
    assert not torch.equal(batches[0], batches[2])


def test_a_batch_is_never_larger_than_the_data():
    (batch,) = islice(_shuffled_batches(3, 64, torch.Generator().manual_seed(0)), 1)
    assert sorted(batch.tolist()) == [0, 1, 2]
