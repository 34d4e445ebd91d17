"""Which tokens are taken, and what taking them does to the gradient."""

import pytest
import torch

from crossgraft.tune.sim.distances import Drawing, drawn_tokens, number_of_tokens, rolled, some_channels, take_tokens


def draw(sampling, *, images=4, positions=20, count=5, places=None, batch_size=None, inputs=None, seed=0):
    inputs = torch.randn(images, positions, 3, generator=torch.Generator().manual_seed(9)) if inputs is None else inputs
    places = torch.arange(images) if places is None else places
    return drawn_tokens(sampling, count, inputs, torch.Generator().manual_seed(seed), places, batch_size or images)


@pytest.mark.parametrize(("rho", "positions", "expected"), [(0.2, 2, 2), (0.001, 100, 2), (1.0, 7, 7), (0.5, 5, 3)])
def test_there_are_two_tokens_at_least(rho, positions, expected):
    assert number_of_tokens(rho, positions) == expected


def test_v0_takes_the_same_tokens_of_all_images_and_v1_others_of_each():
    same, other = draw("v0"), draw("v1")
    assert same.shape == (5,) and other.shape == (4, 5)
    assert len({tuple(row) for row in other.tolist()}) == 4
    for row in [same, *other]:
        assert len(set(row.tolist())) == 5 and row.tolist() == sorted(row.tolist())


def test_v2_takes_the_largest_of_three_times_as_many_v1():
    inputs = torch.randn(4, 20, 3, generator=torch.Generator().manual_seed(1))
    candidates, found = draw("v1", count=15, inputs=inputs), draw("v2", inputs=inputs)
    for image in range(4):
        means = inputs[image].mean(1)
        expected = sorted(candidates[image].tolist(), key=lambda place: -means[place])[:5]
        assert found[image].tolist() == sorted(expected)


def test_v2_of_few_positions_takes_the_largest_of_all():
    inputs = torch.arange(6.0).reshape(1, 6, 1)
    assert draw("v2", inputs=inputs, count=3, images=1).tolist() == [[3, 4, 5]]


def test_norm_takes_the_longest_tokens_of_each_image_and_draws_nothing():
    inputs = torch.randn(4, 20, 3, generator=torch.Generator().manual_seed(1))
    found = draw("norm", inputs=inputs)
    for image in range(4):
        lengths = [sum(float(value) ** 2 for value in token) for token in inputs[image]]
        assert found[image].tolist() == sorted(sorted(range(20), key=lambda place: -lengths[place])[:5])
    assert torch.equal(draw("norm", inputs=inputs, seed=7), found)
    generator = torch.Generator().manual_seed(0)
    state = generator.get_state()
    drawn_tokens("norm", 5, inputs, generator, torch.arange(4), 4)
    assert torch.equal(generator.get_state(), state)
    assert draw("norm", inputs=torch.zeros(1, 6, 3), count=3, images=1).tolist() == [[0, 1, 2]]  # of equal ones the first


@pytest.mark.parametrize("sampling", ["v0", "v1", "v2", "norm"])
def test_what_is_drawn_for_an_image_does_not_depend_on_how_the_batch_is_cut(sampling):
    inputs = torch.randn(6, 20, 3, generator=torch.Generator().manual_seed(1))
    whole = draw(sampling, images=6, inputs=inputs)
    part = draw(sampling, inputs=inputs[2:5], places=torch.tensor([2, 3, 4]), batch_size=6)
    assert torch.equal(part, whole if sampling == "v0" else whole[2:5])


@pytest.mark.parametrize("index", [torch.tensor([0, 3]), torch.tensor([[0, 3], [1, 2], [2, 5]])], ids=["v0", "v1"])
@pytest.mark.parametrize("axis", [1, 3])
@pytest.mark.parametrize("channels_last", [False, True])
def test_tokens_and_their_gradient(index, axis, channels_last):
    maps = torch.randn(3, 4, 2, 3, dtype=torch.float64) if axis == 1 else torch.randn(3, 2, 3, 4, dtype=torch.float64)
    if channels_last:
        maps = maps.to(memory_format=torch.channels_last)
    maps.requires_grad_()
    tokens = maps.movedim(axis, -1).flatten(1, -2)
    expected = tokens[:, index] if index.ndim == 1 else torch.stack([tokens[i, index[i]] for i in range(3)])
    found = take_tokens(maps, index, axis)
    assert torch.equal(found, expected)
    weights = torch.randn(found.shape, dtype=torch.float64)
    ours, theirs = (torch.autograd.grad((each * weights).sum(), maps)[0] for each in (found, expected))
    assert torch.equal(ours, theirs)
    if axis == 1:
        assert ours.stride() == maps.stride()


def test_tokens_keep_their_values_whatever_is_written_into_the_map_later():
    maps = torch.randn(2, 3, 4, requires_grad=True)
    middle = 2 * maps
    found = take_tokens(middle, torch.tensor([1, 2]), 1)
    before = found.clone()
    middle.zero_()
    assert torch.equal(found, before)


def test_a_rolled_index_gives_the_tokens_of_the_image_before():
    maps, index = torch.randn(6, 2, 6), torch.randint(0, 6, (6, 2), generator=torch.Generator().manual_seed(0))
    for rows in (1, 2, 3):  # of one image
        found = take_tokens(maps, rolled(index, rows), 1).roll(rows, dims=0)
        for row in range(6):
            assert torch.equal(found[row], maps[row - rows].T[index[row]])


def test_rows_of_a_block_are_of_images():
    drawn = Drawing(torch.Generator(), torch.tensor([4, 2]), batch_size=5)
    assert [each.tolist() for each in (drawn.rows(2).places, drawn.rows(6).places)] == [[4, 2], [12, 13, 14, 6, 7, 8]]
    assert drawn.rows(2)[1:] == (5, 1) and drawn.rows(6)[1:] == (15, 3)
    unknown = [drawn.rows(3), drawn.rows(1), Drawing(torch.Generator()).rows(3)]  # no whole number of rows per image
    assert [(rows.places.tolist(), *rows[1:]) for rows in unknown] == [([0, 1, 2], 3, 1), ([0], 1, 1), ([0, 1, 2], 3, 1)]


def test_channels_are_drawn_and_not_the_first_ones():
    given, taken = torch.randn(2, 3, 12), torch.randn(2, 3, 12)
    drawn = [some_channels(given, taken, lambda count: count // 2, torch.Generator().manual_seed(seed)) for seed in range(3)]
    columns = [
        [column for column in range(12) if any(torch.equal(given[..., column], part) for part in each[0].unbind(-1))]
        for each in drawn
    ]
    assert all(len(found) == 6 for found in columns) and len({tuple(found) for found in columns}) == 3
    for (ours, theirs), chosen in zip(drawn, columns, strict=True):
        assert torch.equal(ours, given[..., chosen]) and torch.equal(theirs, taken[..., chosen])
    narrow, _ = some_channels(given[..., :4], taken, lambda count: count // 2, torch.Generator().manual_seed(0))
    assert narrow.shape[-1] == 2
