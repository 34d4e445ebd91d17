import numpy as np

from crossgraft.seeding import derive_seed, generator, torch_generator


def test_streams_depend_on_seed_and_name_only():
    assert generator(0, "a").random() == generator(0, "a").random()
    assert len({generator(0, "a").random(), generator(0, "b").random(), generator(1, "a").random()}) == 3
    assert derive_seed(1, "a", 2) != derive_seed(1, "a2")


def test_the_global_states_are_left_alone():
    import torch

    before = np.random.get_state()[1].copy(), torch.get_rng_state()
    generator(0, "x").random()
    torch.rand(1, generator=torch_generator(0, "x"))
    assert (np.random.get_state()[1] == before[0]).all()
    assert torch.equal(torch.get_rng_state(), before[1])
