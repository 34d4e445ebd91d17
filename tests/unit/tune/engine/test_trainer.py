"""Training from the first step to the chosen weights."""

import math

import pytest
import torch

from crossgraft.choice import choose
from crossgraft.errors import DivergedError, OtherRunError, StorageError, UnknownNameError, UsageError
from crossgraft.tune.batch_transforms import Mixup
from crossgraft.tune.engine.phase_run import Phase
from crossgraft.tune.engine.selection_rule import SelectionRule
from crossgraft.tune.engine.step import Network
from crossgraft.tune.methods import METHODS, put_adapters_in
from support.training import (
    DoubleFeed,
    LossOnFeed,
    PullToStart,
    build_classifier,
    build_feed,
    largest_difference,
    only_head,
    same_bits,
    train_one,
)


class Told:
    """An evaluation that says what it is told, and remembers the weights it saw."""

    def __init__(self, values):
        self.values, self.seen = list(values), []

    def __call__(self, classifier):
        self.seen.append({name: value.clone() for name, value in classifier.state_dict().items()})
        return {"loss": self.values[len(self.seen) - 1]}


def holds(classifier, state):
    return all(torch.equal(value, state[name]) for name, value in classifier.state_dict().items())


@pytest.mark.parametrize("network", ["cnn", "vit", "convnext"])
@pytest.mark.parametrize("name", [name for name, _ in METHODS])
def test_exactly_the_declared_parameters_move(name, network):
    if (name, network) in {("adaptformer", "cnn"), ("adaptformer", "convnext")}:
        return  # it has no place there
    method = METHODS.get(name)() if name != "partial" else choose(METHODS, "partial:1")

    def select(classifier):
        put_adapters_in(method, classifier, seed=0)
        return method.select(classifier)

    first = build_classifier(network)
    selection, before = select(first), first.state_dict()
    # factors of a product that begins as zero move from the second step on
    classifier, _ = train_one(network, selection=select, epochs=1, learning_rate=0.05, warmup_epochs=0.0)
    parameters = {n for n, _ in classifier.named_parameters()}
    moved = {n for n, value in classifier.state_dict().items() if not torch.equal(value, before[n])}
    assert moved & parameters == set(selection.trained)
    # The statistics of a BatchNorm move exactly where it is in train mode.
    buffers = moved - parameters
    in_train_mode = tuple(f"{part}." if part else "" for part in selection.train_mode)
    assert all(buffer.startswith(in_train_mode) for buffer in buffers)
    assert bool(buffers) == (network == "cnn" and any("body.norm.".startswith(part) for part in in_train_mode))


def test_the_same_call_gives_the_same_bits_and_another_seed_others():
    first, again, other = (train_one("dropout", seed=seed)[0] for seed in (0, 0, 1))
    assert same_bits(first, again) and not same_bits(first, other)


def test_the_global_random_state_stays_as_it_was():
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    train_one("dropout", epochs=1)
    assert torch.equal(torch.rand(2), expected)


@pytest.mark.parametrize(
    ("rule", "values", "settings", "best", "epochs"),
    [
        (SelectionRule(), [3, 1, 2, 1, 5], {}, 1, 5),
        (SelectionRule(), [3, 1, 2, 2, 0], {"patience": 2}, 1, 4),
        (SelectionRule(), [3, 1, 2, 2, 0], {"patience": 2, "min_epochs": 5}, 4, 5),
        (SelectionRule("loss", "max"), [3, 1, 4, 2, 4], {}, 2, 5),
        (SelectionRule(keep="last"), [1, 2, 3, 4, 5], {"patience": 3}, 3, 4),
        (SelectionRule(), [math.nan, 2, math.nan, 3, 4], {"patience": 3}, 1, 5),
    ],
)
def test_the_weights_of_the_chosen_epoch_come_back(rule, values, settings, best, epochs):
    told = Told(map(float, values))
    classifier, result = train_one(evaluate=told, rule=rule, epochs=5, **settings)
    assert len(result.history) == len(told.seen) == epochs
    assert result.best_epoch == best and result.best_value == values[best]
    assert result.stopped_early == (epochs < 5)
    assert holds(classifier, told.seen[best])
    assert sum(holds(classifier, state) for state in told.seen) == 1
    assert not classifier.training


def test_training_makes_the_loss_smaller():
    evaluate = LossOnFeed()
    with torch.no_grad():
        before = evaluate(build_classifier().eval())["loss"]
    classifier, result = train_one(epochs=8, evaluate=evaluate)
    assert result.best_value < 0.8 * before
    with torch.no_grad():
        assert evaluate(classifier)["loss"] == pytest.approx(result.best_value, rel=1e-5)
    assert result.history[-1].terms["loss"] < result.history[0].terms["loss"]


def test_a_metric_that_the_rule_misses_is_refused():
    with pytest.raises(UnknownNameError, match="accuracy"):
        train_one(rule=SelectionRule("acuracy", "max"))


def test_what_is_said_on_the_way():
    steps, rows = [], []
    _, result = train_one(on_step=steps.append, on_epoch=rows.append, regularizers=[PullToStart()], warmup_epochs=0.0)
    assert [(s.epoch, s.step, s.total_steps) for s in steps] == [(k // 3, k + 1, 6) for k in range(6)]
    assert tuple(rows) == result.history and [row.epoch for row in rows] == [0, 1]
    assert steps[-1].seconds_left == 0 < steps[0].seconds_left and steps[0].images_per_second > 0
    sizes = [7, 7, 8]
    mean = sum(size * step.terms["task"] for size, step in zip(sizes, steps, strict=False)) / 22
    assert rows[0].terms["task"] == pytest.approx(mean)
    assert set(rows[0].terms) == {"loss", "task", "pull/distance", "pull/factor"}
    assert steps[0].learning_rate == 1e-2 and rows[-1].learning_rate == pytest.approx(1e-4)


def test_regularisers_are_taken_off_whatever_happens():
    pull = PullToStart()
    with pytest.raises(UnknownNameError):
        train_one(regularizers=[pull], rule=SelectionRule("none"))
    assert pull.attached is False


def test_a_regulariser_pulls_the_weights_back():
    start = build_classifier()
    free, _ = train_one()
    held, _ = train_one(regularizers=[PullToStart(strength=100.0)])
    assert largest_difference(held, start) < 0.5 * largest_difference(free, start)


def test_float64_from_end_to_end():
    classifier, _ = train_one("plain", feed=DoubleFeed(), precision="64-true")
    parted, _ = train_one("plain", feed=DoubleFeed(), precision="64-true", accumulate=3)
    assert {p.dtype for p in classifier.parameters()} == {torch.float64}
    assert largest_difference(classifier, parted) < 1e-12


def test_cached_features_train_the_same_head(monkeypatch):
    used = []
    original = Phase.feed_and_network
    monkeypatch.setattr(Phase, "feed_and_network", lambda *a: used.append(type((found := original(*a))[1]).__name__) or found)
    common = {"selection": only_head, "precision": "64-true", "epochs": 3, "learning_rate": 0.1}
    cached, first = train_one(features_are_fixed=True, **common)
    full, second = train_one(**common)
    mixed, _ = train_one(features_are_fixed=True, feed=build_feed(transforms=[Mixup()]), **common)
    assert used == ["HeadOnly", Network.__name__, Network.__name__]
    assert largest_difference(cached, full) < 1e-12
    assert first.best_value == pytest.approx(second.best_value, abs=1e-12)
    assert largest_difference(cached, build_classifier().double()) > 0.01 < largest_difference(cached, mixed)


def test_head_first_trains_the_head_to_the_end_of_its_patience_then_everything():
    start, told = build_classifier(), Told([5.0, 4.0, 4.5, 4.5, 3.0, 2.0])
    settings = {"head_first": True, "head_epochs": 9, "head_patience": 2, "epochs": 2}
    _, result = train_one(evaluate=told, learning_rate=0.05, **settings)
    assert [row.phase for row in result.history] == ["head"] * 4 + ["all"] * 2
    assert [row.epoch for row in result.history] == [0, 1, 2, 3, 0, 1] and result.best_epoch == 1
    body = [name for name in start.state_dict() if name.startswith("body.")]
    assert all(torch.equal(told.seen[3][name], start.state_dict()[name]) for name in body)
    assert not torch.equal(told.seen[4]["body.stem.weight"], told.seen[3]["body.stem.weight"])


def test_without_selection_rows_the_head_converges_by_its_training_loss():
    undefined = Told([math.nan] * 30)
    settings = {"head_first": True, "head_epochs": 12, "head_patience": 1, "epochs": 1, "learning_rate": 0.01}
    _, result = train_one(evaluate=undefined, rule=SelectionRule(keep="last"), **settings)
    losses = [row.terms["loss"] for row in result.history if row.phase == "head"]
    assert len(losses) > 3 and losses[:-1] == sorted(losses[:-1], reverse=True)


def test_the_second_phase_starts_from_the_best_head_and_only_it_has_regularisers():
    seen = []

    class Looks(PullToStart):
        def loss(self, context):
            seen.append(context.classifier.head.weight.detach().clone())
            return super().loss(context)

    told = Told([1.0, 2.0, 2.0, 0.5])
    _, result = train_one(evaluate=told, head_first=True, head_patience=2, epochs=1, regularizers=[Looks()])
    assert len(seen) == 3 and "pull/distance" not in result.history[0].terms
    assert torch.equal(seen[0], told.seen[0]["head.weight"]) and not torch.equal(seen[0], told.seen[2]["head.weight"])


def test_the_evaluation_is_told_when_features_stay_the_same():
    class Keeps(LossOnFeed):
        def __init__(self):
            super().__init__()
            self.told = []

        def keep_features(self, keep):
            self.told.append(keep)

    told = []
    for settings in ({}, {"features_are_fixed": True, "selection": only_head}, {"head_first": True, "head_epochs": 1}):
        evaluate = Keeps()
        train_one(evaluate=evaluate, epochs=1, **settings)
        told.append(evaluate.told)
    assert told == [[False], [True], [True, False]]


def test_head_first_needs_something_else_to_train():
    with pytest.raises(UsageError, match="only head"):
        train_one(selection=only_head, head_first=True)


def test_diverged_training_stops_by_name_and_the_last_checkpoint_stays(tmp_path):
    class Explodes(PullToStart):
        def loss(self, context):
            return {"bang": context.logits.sum() * (math.inf if context.step == 4 else 0.0)}

    with pytest.raises(DivergedError, match=r"step 4: pull/bang"):
        train_one(regularizers=[Explodes()], checkpoint_folder=tmp_path)
    _, result = train_one(regularizers=[PullToStart()], checkpoint_folder=tmp_path)
    assert result.resumed and len(result.history) == 2


def test_a_checkpoint_is_never_written_with_broken_weights(tmp_path):
    with pytest.raises(DivergedError, match="a weight is nan"):
        train_one(checkpoint_folder=tmp_path, checkpoint_every_steps=1, on_step=lambda report: None, loss=BreaksTheHead())
    assert list(tmp_path.iterdir()) == []


class BreaksTheHead:
    """A finite loss whose gradient is not."""

    name = title = citation = "breaks"
    tasks = ("multi-class",)

    def resolve(self, targets, *, task):
        return self

    def __call__(self, logits, targets):
        return torch.sqrt((logits - logits.detach()).abs()).sum(1)


def test_interrupted_runs_go_on_and_finished_ones_are_read(tmp_path):
    def stop(report):
        if report.step == 5:
            raise KeyboardInterrupt

    whole, _ = train_one("dropout")
    with pytest.raises(KeyboardInterrupt):
        train_one("dropout", checkpoint_folder=tmp_path, on_step=stop)
    rest, steps = None, []
    rest, result = train_one("dropout", checkpoint_folder=tmp_path, on_step=steps.append)
    assert [report.step for report in steps] == [4, 5, 6] and result.resumed
    assert same_bits(whole, rest)
    evaluate = LossOnFeed()
    finished, again = train_one("dropout", checkpoint_folder=tmp_path, evaluate=evaluate)
    assert same_bits(whole, finished) and again.history == result.history and evaluate.calls == 0


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"learning_rate": 0.02}, "learning_rate was 0.01"),
        ({"seed": 1}, "seed"),
        ({"selection": only_head}, "trained parameters"),
        ({"feed": "smaller"}, "steps per epoch"),
        ({"configuration": {"data": "b"}}, "data was 'a' and is now 'b'"),
        ({"regularizers": [PullToStart()]}, "regularizers"),
    ],
)
def test_a_checkpoint_of_another_run_is_refused(tmp_path, changes, named):
    changes = {"configuration": {"data": "a"}, **changes}
    if changes.get("feed"):
        changes["feed"] = build_feed(batch_size=4)
    train_one(epochs=1, checkpoint_folder=tmp_path, configuration={"data": "a"})
    with pytest.raises(OtherRunError, match=named):
        train_one(epochs=1, checkpoint_folder=tmp_path, **changes)


def test_how_often_it_is_saved_is_no_other_run(tmp_path):
    train_one(epochs=1, checkpoint_folder=tmp_path)
    assert train_one(epochs=1, checkpoint_folder=tmp_path, checkpoint_every_steps=1)[1].resumed


def test_a_full_disk_stops_by_name(tmp_path, monkeypatch):
    train_one(checkpoint_folder=tmp_path / "good")
    monkeypatch.setattr("os.fsync", lambda _handle: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(StorageError, match="No space left"):
        train_one(checkpoint_folder=tmp_path / "full")
