import numpy as np

from crossgraft.seeding import derive_seed, generator, torch_generator


def test_streams_depend_on_seed_and_name_only():
    assert generator(0, "a").random() == generator(0, "a").random()
    assert len({generator(0, "a").random(), generator(0, "b").random(), generator(1, "a").random()}) == 3
    assert derive_seed(1, "a", 2) != derive_seed(1, "a2")


def global_states():
    import torch

    numpy_state = np.random.get_state()[1]  # noqa: NPY002 - the global state is what must not change
    return numpy_state.tolist(), torch.get_rng_state().tolist()


def test_the_global_states_are_left_alone():
    import torch

    before = global_states()
    generator(0, "x").random()
    torch.rand(1, generator=torch_generator(0, "x"))
    assert global_states() == before
