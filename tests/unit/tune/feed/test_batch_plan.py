"""Which rows make which batch follows from the seed alone."""

import pytest
import torch

from crossgraft.errors import UsageError
from crossgraft.tune.feed.batches import BatchPlan


def one_hot(classes, num_classes=None):
    return torch.nn.functional.one_hot(torch.as_tensor(classes), num_classes or -1).float()


def drawn(plan, epochs):
    """How often each row is drawn, an epoch on average."""
    rows = torch.cat([torch.cat(plan.epoch(epoch)) for epoch in range(epochs)])
    return torch.bincount(rows, minlength=plan.num_samples) / epochs


@pytest.mark.parametrize(
    ("num_samples", "batch_size", "drop_last", "sizes"),
    [
        (10, 5, False, [5, 5]),
        (12, 5, False, [5, 5, 2]),
        (12, 5, True, [5, 5]),
        (11, 5, False, [5, 6]),
        (11, 5, True, [5, 5]),
        (6, 5, False, [6]),
        (4, 5, False, [4]),
        (4, 5, True, [4]),
        (1, 5, False, [1]),
        (1, 5, True, [1]),
        (3, 1, False, [1, 1, 1]),
        (3, 2, False, [3]),
    ],
)
@pytest.mark.parametrize("sampler", ["shuffle", "balanced"])
def test_sizes_of_batches(num_samples, batch_size, drop_last, sizes, sampler):
    targets = one_hot([row % 2 for row in range(num_samples)], 2)
    plan = BatchPlan(targets, batch_size=batch_size, sampler=sampler, drop_last=drop_last)
    assert [len(rows) for rows in plan.epoch(3)] == sizes
    assert plan.steps_per_epoch == len(sizes)


def test_an_epoch_shows_every_row_once_in_a_new_order():
    plan = BatchPlan(one_hot([0, 1] * 20), batch_size=7)
    first, second = (torch.cat(plan.epoch(epoch)) for epoch in (0, 1))
    assert sorted(first.tolist()) == sorted(second.tolist()) == list(range(40))
    assert first.tolist() != second.tolist()
    assert first.tolist() != list(range(40))


@pytest.mark.parametrize("sampler", ["shuffle", "balanced"])
def test_an_epoch_follows_from_seed_and_number_alone(sampler):
    targets = one_hot([0, 1] * 20)
    plan = BatchPlan(targets, batch_size=7, sampler=sampler, seed=3)
    plan.epoch(0)
    again = BatchPlan(targets, batch_size=7, sampler=sampler, seed=3)
    assert all(torch.equal(a, b) for a, b in zip(plan.epoch(5), again.epoch(5), strict=True))
    other = BatchPlan(targets, batch_size=7, sampler=sampler, seed=4)
    assert torch.cat(plan.epoch(5)).tolist() != torch.cat(other.epoch(5)).tolist()


def test_balanced_draws_every_class_equally_often():
    classes = torch.tensor([0] * 180 + [1] * 18 + [2] * 2)
    plan = BatchPlan(one_hot(classes, 4), batch_size=50, sampler="balanced")
    counts = drawn(plan, 50)
    # 50 epochs of 200 draws: the share of a class has a standard error of 0.005.
    for index in range(3):
        assert counts[classes == index].sum() / 200 == pytest.approx(1 / 3, abs=0.025)
    assert counts[classes == 0].sum() > 0


def test_with_several_labels_the_rarest_decides_and_no_label_is_a_class_of_its_own():
    targets = torch.tensor([[1.0, 0.0]] * 7 + [[1.0, 1.0]] + [[0.0, 0.0]] * 2)
    counts = drawn(BatchPlan(targets, batch_size=10, sampler="balanced"), 1000)
    weights = torch.tensor([1 / 8] * 7 + [1.0] + [1 / 2] * 2)
    # 10 000 draws: at most 0.05 an epoch of standard error.
    torch.testing.assert_close(counts, 10 * weights / weights.sum(), rtol=0, atol=0.2)


@pytest.mark.parametrize(("num_samples", "batch_size", "message"), [(3, 0, "at least one"), (0, 3, "no row")])
def test_plans_without_a_meaning(num_samples, batch_size, message):
    with pytest.raises(UsageError, match=message):
        BatchPlan(torch.ones(num_samples, 2), batch_size=batch_size)


DOMAINS = torch.tensor([0] * 12 + [1] * 5 + [2] * 30)


def by_domain(sampler="domains", *, batch_size=10, seed=3, domains=DOMAINS, **changes):
    targets = one_hot([row % 2 for row in range(len(domains))])
    return BatchPlan(targets, batch_size=batch_size, sampler=sampler, seed=seed, domains=domains, **changes)


def test_batches_by_domain_have_equally_many_of_each_one_after_the_other():
    plan = by_domain()
    batches = plan.epoch(4)
    assert plan.steps_per_epoch == len(batches) == 6  # 47 rows in batches of 9
    assert all(DOMAINS[rows].tolist() == [0] * 3 + [1] * 3 + [2] * 3 for rows in batches)
    again = by_domain().epoch(4)
    assert all(torch.equal(first, second) for first, second in zip(batches, again, strict=True))
    assert torch.cat(batches).tolist() != torch.cat(plan.epoch(5)).tolist()
    assert torch.cat(batches).tolist() != torch.cat(by_domain(seed=4).epoch(4)).tolist()


def test_a_domain_that_runs_out_begins_anew_in_another_order():
    drawn_rows = torch.cat(by_domain().epoch(0))
    of_small = drawn_rows[DOMAINS[drawn_rows] == 1].tolist()
    laps = [of_small[start : start + 5] for start in (0, 5, 10)]
    assert [sorted(lap) for lap in laps] == [[12, 13, 14, 15, 16]] * 3
    assert len({tuple(lap) for lap in laps}) > 1
    of_large = drawn_rows[DOMAINS[drawn_rows] == 2].tolist()
    assert len(set(of_large)) == len(of_large) == 18


def test_batches_by_domain_and_class_leave_out_what_no_domain_has():
    domains = torch.tensor([0, 0, 0, 0, 1, 1, 1])
    targets = one_hot([0, 1, 0, 1, 1, 1, 1])
    plan = BatchPlan(targets, batch_size=7, sampler="domains_and_classes", domains=domains)
    cells = [(domains[rows].tolist(), targets[rows].argmax(1).tolist()) for rows in plan.epoch(0)]
    assert cells == [([0, 0, 0, 0, 1, 1], [0, 0, 1, 1, 1, 1])]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"domains": None}, "which column names them"),
        ({"batch_size": 2}, "equally many different images of 3 strata"),
        ({"batch_size": 18}, "the smallest has 5"),
    ],
)
def test_domains_that_a_batch_has_no_place_for(changes, says):
    said = {"domains": DOMAINS, "batch_size": 10, **changes}
    with pytest.raises(UsageError, match=says):
        BatchPlan(torch.ones(47, 2), sampler="domains", **said)
