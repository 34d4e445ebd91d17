"""RepSim inside the trainer: what it does to a training, to several processes, to a resumed run."""

import math
from dataclasses import replace

import pytest
import torch

from crossgraft.choice import choose, spell
from crossgraft.errors import DataError, DivergedError, UsageError
from crossgraft.similarity import linear_cka
from crossgraft.tune.regularizers import REGULARIZERS, Regularizer, RepSim
from support import forked
from support.regularizing import context_of
from support.training import DoubleFeed, build_classifier, build_feed, largest_difference, same_bits, train_one


class DoubleSet(DoubleFeed):
    """The same images before the first step."""

    is_plain = True
    fingerprint = None

    def plain_batches(self):
        yield from self.images.split(5)

    def training_batches(self, passes):
        for _ in range(passes):
            yield from self.images.flip(3).split(5)


def terms_of(result, name="repsim/covariance"):
    return [row.terms[name] for row in result.history]


def test_it_is_a_regularizer_with_plain_options():
    assert isinstance(RepSim(), Regularizer)
    assert REGULARIZERS.get("repsim") is RepSim
    asked = choose(REGULARIZERS, "repsim:0.5,reference=batch,normalize=none,learn_q=false")
    assert asked == RepSim(0.5, reference="batch", normalize="none", learn_q=False)
    assert spell(asked) == "repsim:weight=0.5,reference=batch,normalize=none,learn_q=False"
    assert RepSim().task_weight == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weight": -1.0}, "weight of repsim"),
        ({"weight": float("nan")}, "weight of repsim"),
        ({"mean_weight": float("inf")}, "mean_weight of repsim"),
        ({"q_learning_rate": 0.0}, "q_learning_rate of repsim"),
        ({"passes": 0}, "passes of repsim"),
        ({"mode": "procrustes", "mean_weight": 0.1}, "one by one; mean_weight of repsim is about mode=covariance"),
        ({"mode": "procrustes", "learn_alpha": True, "learn_q": False}, "learn_q, learn_alpha of repsim are about"),
        ({"mode": "procrustes", "q_learning_rate": 0.1}, "q_learning_rate of repsim is about"),
        ({"mode": "procrustes", "reference": "dataset_aug"}, "reference of repsim is about"),
        ({"mode": "cka", "reference": "dataset"}, "reference of repsim is about"),
        ({"mode": "cka", "preset": "paper"}, "preset of repsim is about"),
        ({"mode": "cka", "normalize": "none"}, "normalize of repsim is about"),
        ({"mode": "cka", "learn_q": True, "mean_weight": 0.0}, "learn_q, mean_weight of repsim are about"),
        ({"learn_q": False, "q_learning_rate": 0.1}, "never moves Q"),
        ({"passes": 2}, "is of reference=dataset_aug"),
        ({"passes": 2, "reference": "batch"}, "is of reference=dataset_aug"),
    ],
)
def test_options_that_mean_nothing_are_refused(options, message):
    with pytest.raises(UsageError, match=message):
        RepSim(**options)


def test_preset_paper_is_what_the_paper_says_and_what_is_given_counts():
    """Of what each spelling compares with and divides by."""
    classifier, feed = build_classifier("plain").double(), DoubleSet()
    features = torch.rand(10, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    context = context_of(classifier, feed.images[:10], features=features)

    def term(**options):
        regularizer = RepSim(**options)
        regularizer.attach(classifier, feed)
        return regularizer.loss(context)["covariance"].item()

    whole = classifier.features(feed.images).T.cov().detach()
    batch = classifier.features(context.images).T.cov().detach()
    now = features.T.cov()
    of_paper, of_batch = ((now - start).square().sum().item() for start in (whole, batch))
    assert term(mode="covariance") == pytest.approx(of_batch / batch.square().sum().item(), rel=1e-10)
    assert term(preset="paper") == pytest.approx(of_paper, rel=1e-10)
    assert term(preset="paper", normalize="ref") == pytest.approx(of_paper / whole.square().sum().item(), rel=1e-10)
    assert term(preset="paper", reference="batch") == pytest.approx(of_batch, rel=1e-10)
    assert term(reference="dataset") == pytest.approx(of_paper / whole.square().sum().item(), rel=1e-10)
    assert term(reference="batch", normalize="ref") == term(mode="covariance") == term(reference="batch")


def test_on_its_own_it_is_the_similarity_of_the_batch_and_weighs_less():
    """Against the measure itself, of the features of the same images before."""
    classifier, feed = build_classifier("plain").double(), DoubleSet()
    features = torch.rand(10, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    context = context_of(classifier, feed.images[:10], features=features)
    before = classifier.features(context.images).detach()
    lost = 1 - linear_cka(before.numpy(), features.numpy(), debiased=True)
    usual = 0.3 * math.sqrt(8 / 64)  # of features of width 8
    for options, weight in (({}, usual), ({"mode": "cka"}, usual), ({"weight": 2.0}, 2.0)):
        regularizer = RepSim(**options)
        regularizer.attach(classifier, feed)
        assert regularizer.loss(context)["cka"].item() == pytest.approx(weight * lost, rel=1e-10)
        assert regularizer.parameter_groups() == [] and regularizer.state_dict() == {}
    three = features[:3].clone().requires_grad_()
    (term,) = regularizer.loss(context_of(classifier, feed.images[:3], features=three)).values()
    term.backward()
    assert term == 0 and not three.grad.any()


@pytest.mark.parametrize("options", [{}, {"mode": "procrustes"}])
def test_features_that_have_collapsed_have_lost_all(options):
    classifier, feed = build_classifier("plain").double(), DoubleSet()
    same = torch.ones(10, 8, dtype=torch.float64, requires_grad=True)
    regularizer = RepSim(2.0, **options)
    regularizer.attach(classifier, feed)
    (term,) = regularizer.loss(context_of(classifier, feed.images[:10], features=same)).values()
    term.backward()
    assert term == 2 and not same.grad.any()


@pytest.mark.parametrize(
    ("options", "in_full"),
    [
        ({}, "repsim:mode=cka,weight=0.3·√(d/64)"),
        ({"weight": 2.0}, "repsim:mode=cka,weight=2"),
        ({"mode": "procrustes"}, "repsim:mode=procrustes,weight=1"),
        ({"preset": "paper"}, "repsim:mode=covariance,weight=1,reference=dataset,normalize=none"),
        ({"learn_q": False}, "repsim:mode=covariance,weight=1,reference=batch,normalize=ref"),
        ({"preset": "auto"}, "repsim:mode=cka,weight=0.3·√(d/64)"),  # the default, whether it is said or not
        ({"preset": "auto", "mode": "cka"}, "repsim:mode=cka,weight=0.3·√(d/64)"),
        ({"preset": "auto", "learn_q": False}, "repsim:mode=covariance,weight=1,reference=batch,normalize=ref"),
    ],
)
def test_what_was_left_open_can_be_read(options, in_full):
    assert RepSim(**options).in_full == in_full


@pytest.mark.parametrize(
    "option",
    [
        {"learn_q": False}, {"reference": "dataset"}, {"preset": "paper"}, {"mean_weight": 1.0}, {"normalize": "ref"},
        {"learn_q": True}, {"mean_weight": 0.0}, {"learn_alpha": False},  # as they are by default
    ],
)  # fmt: skip
def test_an_option_of_covariances_asks_for_them_with_the_weight_of_the_paper(option):
    classifier, feed = build_classifier("plain").double(), DoubleSet()
    features = torch.rand(10, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    context = context_of(classifier, feed.images[:10], features=features)
    found = []
    for said in (option, {**option, "weight": 1.0, "mode": "covariance"}):
        regularizer = RepSim(**said)
        regularizer.attach(classifier, feed)
        found.append(regularizer.loss(context))
    assert found[0].keys() == found[1].keys() and "covariance" in found[0]
    assert all(found[0][name].item() == found[1][name].item() for name in found[0])


def test_at_weight_0_a_training_ends_with_the_bits_of_one_without():
    plain, _ = train_one("dropout", epochs=1)
    state = torch.random.get_rng_state()
    with_it, result = train_one("dropout", epochs=1, regularizers=[RepSim(0.0, learn_alpha=True)])
    assert same_bits(plain, with_it)
    assert terms_of(result) == [0.0]
    assert torch.equal(state, torch.random.get_rng_state())
    pulled, _ = train_one("dropout", epochs=1, regularizers=[RepSim(1.0)])
    assert not same_bits(plain, pulled)


@pytest.mark.parametrize("options", [{}, {"preset": "paper"}, {"mode": "cka"}, {"reference": "dataset_aug"}])
def test_looking_at_the_images_changes_neither_network_nor_random_state(options):
    classifier = build_classifier("dropout").train()
    before = {name: value.clone() for name, value in classifier.state_dict().items()}
    state = torch.random.get_rng_state()
    RepSim(**options).attach(classifier, build_feed())
    assert torch.equal(state, torch.random.get_rng_state())
    assert all(module.training for module in classifier.modules())
    assert all(torch.equal(value, before[name]) for name, value in classifier.state_dict().items())


@pytest.mark.parametrize(
    "regularizer",
    [
        RepSim(100.0, mode="covariance"),
        RepSim(100.0, reference="dataset"),
        RepSim(10.0, mode="procrustes"),
        RepSim(1.0),
        RepSim(100.0, learn_q=False),
    ],
)
def test_the_term_stays_smaller_than_it_is_without(regularizer):
    """Started again at what a training without it ends with, measured by the same term."""
    name = f"repsim/{regularizer._mode}"
    common = {"epochs": 3, "learning_rate": 0.01}
    _, free = train_one("plain", regularizers=[replace(regularizer, weight=1e-9)], **common)
    _, held = train_one("plain", regularizers=[regularizer], **common)
    without = free.history[-1].terms[name] / 1e-9
    assert held.history[-1].terms[name] / regularizer.weight < 0.5 * without


def test_images_that_are_shown_the_same_way_every_time_are_looked_up():
    """Two ways to the features of a batch: by row, and by the frozen copy."""
    known = DoubleSet()
    copied = DoubleSet()
    copied.is_plain = False
    for options in ({}, {"mode": "cka"}, {"mode": "procrustes"}):
        ends = [
            train_one("plain", feed=feed, precision="64-true", epochs=1, regularizers=[RepSim(3.0, **options)])[0]
            for feed in (known, copied)
        ]
        assert largest_difference(*ends) < 1e-12


def test_without_training_images_it_says_what_it_needs():
    classifier = build_classifier("plain")
    regularizer = RepSim(preset="paper")
    with pytest.raises(UsageError, match=r"attach\(classifier, training_set\)"):
        regularizer.loss(context_of(classifier))
    regularizer.attach(classifier)
    assert sum(p.numel() for module in regularizer.modules() for p in module.parameters()) == 64
    with pytest.raises(UsageError, match="reference=batch"):
        regularizer.loss(context_of(classifier))
    regularizer.detach()
    assert regularizer.modules() == regularizer.parameter_groups() == [] and regularizer.state_dict() == {}


def test_what_is_learned_has_its_own_rate_and_no_decay():
    regularizer = RepSim(q_learning_rate=0.25, learn_alpha=True)
    regularizer.attach(build_classifier("plain"))
    (group,) = regularizer.parameter_groups()
    assert [p.numel() for p in group["params"]] == [1, 64]
    assert (group["lr"], group["weight_decay"]) == (0.25, 0.0)
    fixed = RepSim(learn_q=False)
    fixed.attach(build_classifier("plain"))
    assert fixed.modules() == fixed.parameter_groups() == [] and fixed.state_dict() == {}


def test_one_image_has_no_covariance_and_no_pull():
    classifier = build_classifier("plain")
    learned = {"mean_weight": 1.0, "learn_alpha": True}
    for options in (learned, {**learned, "reference": "dataset"}, {"mode": "procrustes"}):
        regularizer = RepSim(**options)
        regularizer.attach(classifier, build_feed())
        context = context_of(classifier, torch.rand(1, 3, 32, 32))
        total = sum(regularizer.loss(context).values())
        own = [p for group in regularizer.parameter_groups() for p in group["params"]]
        gradients = torch.autograd.grad(total, [*classifier.body.parameters(), *own], allow_unused=not own)
        assert total == 0 and not any(gradient.any() for gradient in gradients if gradient is not None)


@pytest.mark.parametrize("options", [{}, {"preset": "paper"}, {"mode": "cka"}, {"mode": "procrustes"}])
def test_features_that_are_no_numbers_stop_the_training(options):
    class Broken(DoubleSet):
        def batches(self, epoch, *, start=0):
            for batch in super().batches(epoch, start=start):
                batch.images[1] = float("nan")
                yield batch

    feed = Broken()
    feed.is_plain = False
    with pytest.raises(DivergedError, match="repsim/"):
        train_one("plain", feed=feed, precision="64-true", regularizers=[RepSim(**options)])


@pytest.mark.parametrize("rate", [1e60, 1e250])
def test_a_rotation_that_diverges_stops_the_training_by_its_name(rate):
    repsim = RepSim(reference="batch", q_learning_rate=rate)
    with pytest.raises(DivergedError, match=r"in step \d: the rotation Q of repsim diverged .* smaller q_learning_rate"):
        train_one("plain", feed=DoubleFeed(), precision="64-true", regularizers=[repsim])


def test_pretrained_features_that_are_no_numbers_are_refused():
    feed = DoubleSet()
    feed.images[2] = float("nan")
    with pytest.raises(DataError, match="finite features of at least two"):
        RepSim(preset="paper").attach(build_classifier("plain").double(), feed)
    feed = DoubleSet()
    feed.images = feed.images[:1]
    with pytest.raises(DataError, match="at least two training images"):
        RepSim(preset="paper").attach(build_classifier("plain").double(), feed)


@pytest.mark.parametrize(
    "options",
    [
        {"learn_alpha": True, "q_learning_rate": 0.05},
        {"preset": "paper", "q_learning_rate": 0.05},
        {"mode": "cka"},
        {"mode": "procrustes"},
    ],
)
def test_a_run_that_was_stopped_ends_with_the_same_bits(options, tmp_path):
    class StoppedError(Exception):
        pass

    def stop(report):
        if report.step == 6:
            raise StoppedError

    common = {"epochs": 3, "checkpoint_every_steps": 1}
    whole, first = train_one("cnn", regularizers=[RepSim(5.0, **options)], **common)
    common["checkpoint_folder"] = tmp_path
    with pytest.raises(StoppedError):
        train_one("cnn", regularizers=[RepSim(5.0, **options)], on_step=stop, **common)
    resumed, second = train_one("cnn", regularizers=[RepSim(5.0, **options)], **common)
    assert second.resumed and same_bits(whole, resumed)
    assert [row.terms for row in first.history] == [row.terms for row in second.history]


def test_a_checkpoint_of_other_options_is_refused():
    regularizer = RepSim(mode="covariance")
    regularizer.attach(build_classifier("plain"))
    assert regularizer.state_dict().keys() == {"q"}
    with pytest.raises(UsageError, match="other options"):
        regularizer.load_state_dict({})


def test_q_moves_and_stays_orthogonal_in_a_training(tmp_path):
    from safetensors.torch import load_file

    train_one("cnn", regularizers=[RepSim(q_learning_rate=0.01)], checkpoint_folder=tmp_path)
    q = load_file(tmp_path / "checkpoint.safetensors")["regularizer 0/q"]
    assert (q.T @ q - torch.eye(8)).abs().max() < 1e-6 < 1e-3 < (q - torch.eye(8)).abs().max()


@pytest.mark.slow
@pytest.mark.usefixtures("forked_processes")
@pytest.mark.xdist_group(forked.GROUP)
@pytest.mark.parametrize("batch_size", [7, 11], ids=["rows are exchanged", "sums are exchanged"])
def test_two_processes_with_uneven_shares_are_one_with_the_whole_batch(batch_size):
    """Eight features: below them rows go from process to process, above them sums."""
    learned = {"mean_weight": 0.5, "learn_alpha": True, "q_learning_rate": 0.02}
    parts = [RepSim(2.0), _Second(0.3, reference="dataset", **learned), _Third(1.0, mode="procrustes")]
    parts += [_Fourth(1.0, mode="covariance"), _Fifth(2.0, **learned)]
    # Plain descent: at first the terms are 0 but for rounding, which AdamW would blow up by 1 / eps.
    common = {"feed": DoubleSet(batch_size), "precision": "64-true", "optimizer": "sgd", "learning_rate": 0.01}
    one, alone = train_one("plain", **common, regularizers=parts)
    two, together = train_one("plain", num_processes=2, **common, regularizers=parts)
    free, _ = train_one("plain", **common)
    assert largest_difference(one, two) < 1e-10
    for first, second in zip(alone.history, together.history, strict=True):
        assert {name.partition("/")[0] for name in first.terms} >= {part.name for part in parts}
        assert first.terms == pytest.approx(second.terms, abs=1e-10)
    for part in parts:  # each of them moves what is compared
        moved, _ = train_one("plain", **common, regularizers=[part])
        assert largest_difference(moved, free) > 1e-8, part.name


class _Second(RepSim):
    name = "second"


class _Third(RepSim):
    name = "third"


class _Fourth(RepSim):
    name = "fourth"


class _Fifth(RepSim):
    name = "fifth"


def test_a_process_with_one_image_takes_part_in_the_covariance_of_all():
    classifier, regularizer = build_classifier("plain").double(), RepSim(reference="dataset")
    regularizer.attach(classifier, DoubleSet())
    features = torch.rand(10, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    others, mean = features[1:], features.mean(0)
    of_others = iter([others.sum(0), (others - mean).T @ (others - mean)])
    share = context_of(
        classifier,
        features=features[:1],
        num_processes=2,
        num_images=1,
        num_images_of_all=10,
        sum_over_processes=lambda mine: mine + next(of_others),
    )
    whole = regularizer.loss(context_of(classifier, features=features))["covariance"]
    assert regularizer.loss(share)["covariance"].item() == pytest.approx(whole.item(), rel=1e-12)
