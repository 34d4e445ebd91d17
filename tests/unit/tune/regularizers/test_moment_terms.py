"""The closed-form gradient for Q: against differences, against autograd through torch's own map, and what it leads to."""

import pytest
import torch
from torch import nn

from crossgraft.tune.regularizers._moment_terms import FactoredMoments, MomentMatching, Moments

SIZE = 6
ALL = {"learn_q": True, "learn_alpha": True, "normalize": "ref", "mean_weight": 0.7}


def matching(**options):
    return MomentMatching(SIZE, torch.zeros((), dtype=torch.float64), **{**ALL, **options})


def features(seed, count=20):
    generator = torch.Generator().manual_seed(seed)
    spread = torch.linspace(0.5, 2, SIZE, dtype=torch.float64)
    mixed = torch.randn(SIZE, SIZE, generator=generator, dtype=torch.float64)
    return torch.randn(count, SIZE, generator=generator, dtype=torch.float64) * spread @ mixed + 0.3


def moments(rows):
    return Moments(rows.mean(0), rows.T.cov())


def factored(rows):
    return FactoredMoments(rows.mean(0), (rows - rows.mean(0)) / (len(rows) - 1) ** 0.5)


def rotation(seed):
    return torch.linalg.qr(features(seed, SIZE)).Q


def total(made, rows, start):
    return torch.stack(list(made.terms(moments(rows), start).values())).sum()


@pytest.mark.parametrize("normalize", ["ref", "none"])
def test_gradients_of_features_step_and_scale_are_those_of_differences(normalize):
    made, start, rows = matching(normalize=normalize), moments(features(0)), features(1).requires_grad_(True)
    q = rotation(2)
    made.rotation.value.copy_(q)
    with torch.no_grad():
        made.alpha.fill_(1.2)
    found = torch.autograd.grad(total(made, rows, start), [rows, made.rotation.skew, made.alpha])
    direction = torch.zeros(SIZE, SIZE, dtype=torch.float64)
    direction[0, 3], direction[3, 0] = 1, -1

    def turned(by):
        made.rotation.value.copy_(q @ torch.linalg.matrix_exp(by * direction))

    def shifted(by):
        rows.data[4, 2] += by

    def scaled(by):
        made.alpha.data += by

    def difference(change, back):
        change(1e-5)
        above = total(made, rows, start).item()
        back(-2e-5)
        return (above - total(made, rows, start).item()) / 2e-5

    assert found[1][0, 3].item() == pytest.approx(difference(turned, lambda by: turned(by / 2)), rel=1e-7)
    turned(0)
    assert found[0][4, 2].item() == pytest.approx(difference(shifted, shifted), rel=1e-7)
    rows.data[4, 2] += 1e-5
    assert found[2].item() == pytest.approx(difference(scaled, scaled), rel=1e-7)


@pytest.mark.parametrize("options", [{}, {"normalize": "none"}, {"learn_alpha": False}, {"learn_q": False}])
@pytest.mark.parametrize("count", [2, 5, 20])
def test_rows_give_what_their_covariance_gives(options, count):
    made, start = matching(**options), moments(features(0))
    if made.rotation is not None:
        made.rotation.value.copy_(rotation(2))
    if made.alpha is not None:
        made.alpha.data.fill_(1.3)
    found = []
    for of in (moments, factored):
        rows = features(1, count).requires_grad_(True)
        terms = made.terms(of(rows), start)
        leaves = [rows, *made.parameters()]
        found.append([*terms.values(), *torch.autograd.grad(sum(terms.values()), leaves)])
    assert len(found[0]) == 3 + sum(1 for _ in made.parameters())
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-11, atol=1e-11 * float(one.detach().abs().max()))
        assert one.any()


def test_rotated_features_with_a_rotated_q_have_the_same_terms():
    made, start, rows, turn = matching(), moments(features(0)), features(1), rotation(3)
    before = made.terms(moments(rows), start)
    plain = made.terms(moments(rows @ turn), start)
    made.rotation.value.copy_(turn)
    after = made.terms(moments(rows @ turn), start)
    for name in ("covariance", "mean"):
        assert after[name].item() == pytest.approx(before[name].item(), rel=1e-12)
        assert abs(plain[name].item() - before[name].item()) > 1e-3 * before[name].item()


@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.AdamW])
def test_five_steps_agree_with_torchs_parametrization_to_first_order(optimizer):
    """A literal loop with autograd through Q = exp(X − Xᵀ), at a quarter of the rate about a sixteenth of the difference."""
    start, rows = moments(features(0)), features(1)

    def ours(rate):
        made = matching(learn_alpha=False, normalize="none")
        stepper = optimizer([{"params": list(made.parameters()), "weight_decay": 0.0}], lr=rate)
        for _ in range(5):
            stepper.zero_grad()
            total(made, rows, start).backward()
            stepper.step()
            made.move(0)
        return made.rotation.value

    def theirs(rate):
        layer = nn.Linear(SIZE, SIZE, bias=False, dtype=torch.float64)
        layer.weight.data = torch.eye(SIZE, dtype=torch.float64)
        nn.utils.parametrizations.orthogonal(layer, orthogonal_map="matrix_exp")
        parameters = [p for p in layer.parameters() if p.requires_grad]
        stepper = optimizer(parameters, lr=rate, weight_decay=0.0)
        now = moments(rows)
        for _ in range(5):
            stepper.zero_grad()
            q = layer.weight
            loss = (now.covariance - q.T @ start.covariance @ q).square().sum()
            (loss + 0.7 * (now.mean - start.mean @ q).square().sum()).backward()
            stepper.step()
        return layer.weight.detach()

    rate = 1e-4 if optimizer is torch.optim.SGD else 1e-3
    rate = rate / moments(rows).covariance.norm().item() if optimizer is torch.optim.SGD else rate
    coarse, fine = ((ours(r) - theirs(r)).norm().item() for r in (rate, rate / 4))
    moved = (theirs(rate) - torch.eye(SIZE, dtype=torch.float64)).norm().item()
    assert moved > 1e-3
    assert coarse < 0.1 * moved
    assert fine < coarse / 10


def test_learning_q_alone_goes_down_to_the_difference_of_the_spectra():
    made = matching(learn_alpha=False, normalize="none", mean_weight=0.0)
    start, now = moments(features(0)), moments(features(1))
    spectra = [torch.linalg.eigvalsh(m.covariance) for m in (start, now)]
    least = (spectra[0] - spectra[1]).square().sum().item()
    stepper = torch.optim.AdamW([{"params": list(made.parameters()), "weight_decay": 0.0}], lr=0.05)
    found = []
    for _ in range(300):
        stepper.zero_grad()
        term = made.terms(now, start)["covariance"]
        term.backward()
        stepper.step()
        made.move(0)
        found.append(term.item())
    assert found[0] > 2 * least
    assert least * (1 - 1e-12) < found[-1] < 1.05 * least


def test_reference_features_that_do_not_vary_divide_by_nothing():
    made = matching()
    start = Moments(torch.zeros(SIZE, dtype=torch.float64), torch.zeros(SIZE, SIZE, dtype=torch.float64))
    now = moments(features(1))
    terms = made.terms(now, start)
    assert terms["covariance"].item() == pytest.approx(now.covariance.square().sum().item(), rel=1e-12)
    assert terms["mean"].item() == pytest.approx(0.7 * now.mean.square().sum().item(), rel=1e-12)


def test_ref_divides_by_the_squares_of_what_training_started_from():
    start, now = moments(features(0)), moments(features(1))
    plain, divided = (matching(normalize=normalize).terms(now, start) for normalize in ("none", "ref"))
    for name, of in (("covariance", start.covariance), ("mean", start.mean)):
        assert divided[name].item() == pytest.approx(plain[name].item() / of.square().sum().item(), rel=1e-12)
