"""A table replayed: the code of ``select`` decides, simpler ways choose beside it."""

import itertools
import json

import numpy as np
import pytest

import crossgraft
from crossgraft.errors import DataError, UnknownNameError, UsageError
from crossgraft.rank.published import read_benchmark_table
from crossgraft.select import parse_budget
from crossgraft.select.replay import replay, replay_published

MODELS = ("resnet18.tv_in1k", "resnet50.tv_in1k", "densenet121.tv_in1k", "mobilenetv2_100.ra_in1k", "nobody")
HEADER = "model,target,value,val,seconds,group"


def write(folder, lines, header=HEADER, name="mine.csv"):
    path = folder / name
    path.write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
    return path


def drawn(folder, *, targets=5, seed=0, name="mine.csv"):
    """A table whose models differ alike on all targets, with noise on val, costs, and two targets of one group."""
    rng = np.random.default_rng(seed)
    quality = np.linspace(0.6, 0.8, len(MODELS))
    lines = []
    for t in range(targets):
        for m, model in enumerate(MODELS):
            value = quality[m] + 0.05 * rng.normal()
            group = "pair" if t < 2 else f"g{t}"
            lines.append(f"{model},t{t},{value:.6f},{value + 0.03 * rng.normal():.6f},{10 * (m + 1)},{group}")
    return write(folder, lines, name=name)


def literal(path, share, *, target):
    """Regrets of the ways that need no draws, written out, on one target."""
    table = read_benchmark_table(path)
    t = table.targets.index(target)
    others = [i for i, group in enumerate(table.groups) if group != table.groups[t]]
    relative = []
    for i in others:
        values = table.results[i]
        relative.append([(np.sum(values > v) + 1 - 0.5) / len(values) for v in values])
    order = np.argsort(np.mean(relative, axis=0), kind="stable")
    cost, val, truth = table.seconds[t], table.validation[t], table.results[t]
    left, trained = share * cost.sum(), []
    for m in order:
        if cost[m] <= left + 1e-9:
            trained.append(m)
            left -= cost[m]
    best = max(trained, key=lambda m: val[m])
    first = next(m for m in order if cost[m] <= share * cost.sum() + 1e-9)
    top1 = {0: 69.76, 1: 76.13, 2: 74.43, 3: 72.97}
    fits = [m for m in top1 if cost[m] <= share * cost.sum() + 1e-9]
    named = {"select": best, "prior_order_best_val": best, "prior": first, "all_trained": int(np.argmax(val))}
    named["imagenet"] = max(fits, key=top1.get)
    return {method: truth.max() - truth[m] for method, m in named.items()}


def test_regrets_are_those_written_out(tmp_path):
    path = drawn(tmp_path)
    record = crossgraft.replay_selection(path, budget="30%,60%").record
    for budget, share in (("30%", 0.3), ("60%", 0.6)):
        each = [literal(path, share, target=f"t{t}") for t in range(5)]
        for method in each[0]:
            row = record.row(method, budget)
            regrets = [found[method] for found in each]
            assert row.mean_regret == pytest.approx(np.mean(regrets), abs=1e-12), (method, budget)
            assert row.worst_regret == pytest.approx(max(regrets), abs=1e-12) and row.num_targets == 5
    assert record.has_val and record.has_seconds and not record.is_cold


def test_random_is_the_mean_over_orders_and_halving_is_random_without_cheap_trainings(tmp_path):
    path = write(
        tmp_path, [f"{m},{t},{v}" for t in "ab" for m, v in zip("xyz", (0.5, 0.7, 0.9), strict=True)], "model,target,value"
    )
    record = crossgraft.replay_selection(path, budget="34%").record
    assert record.row("random", "34%").mean_regret == pytest.approx(0.2, abs=0.03)  # one of three, at random
    assert record.row("halving", "34%").mean_regret == pytest.approx(0.2, abs=0.03)
    assert record.row("select", "34%").mean_regret == 0.0 and record.row("select", "34%").low is None
    assert record.row("imagenet", "34%").mean_regret is None and record.row("imagenet", "34%").num_targets == 0
    said = " ".join(record.notes)
    assert "no column val" in said and "no column seconds" in said and "halving is random" in said


def test_halving_uses_cheap_trainings_where_the_table_has_some(tmp_path):
    lines = [f"{m},{t},{v},{v}" for t in "ab" for m, v in zip("vwxyz", (0.5, 0.6, 0.7, 0.8, 0.9), strict=True)]
    path = write(tmp_path, lines, "model,target,value,low:size=0.1")
    record = crossgraft.replay_selection(path, budget="30%").record  # all five at a hundredth of the cost, then one
    assert record.row("halving", "30%").mean_regret == 0.0 < record.row("random", "30%").mean_regret


def test_the_order_is_the_static_prior_and_relatives_stay_unknown(tmp_path):
    record = crossgraft.replay_selection(drawn(tmp_path), budget="50%").record
    by_name = {row.order: row for row in record.orders}
    assert by_name["prior"].weighted_kendall == by_name["static_prior"].weighted_kendall
    assert by_name["prior"].beyond_static_prior.value == 0.0 and by_name["prior"].beyond_static_prior.low is None
    lines = [f"{m},{t},{v},p" for t in "ab" for m, v in zip("xy", (0.9, 0.1), strict=True)]
    path = write(tmp_path, lines, "model,target,value,group", name="pair.csv")
    alone = crossgraft.replay_selection(path, budget="50%").record
    assert alone.row("prior", "50%").mean_regret == 0.0  # by name: nothing is known of either
    turned = write(tmp_path, [line.replace("x,", "z,") for line in lines], "model,target,value,group", name="turned.csv")
    assert crossgraft.replay_selection(turned, budget="50%").record.row("prior", "50%").mean_regret == pytest.approx(0.8)


def test_further_results_are_known_and_a_cold_start_knows_no_other_target(tmp_path):
    wrong = [f"{m},{t},{v}" for t in "ab" for m, v in zip("xyz", (0.9, 0.5, 0.1), strict=True)]
    path = write(tmp_path, [f"{m},c,{v}" for m, v in zip("xyz", (0.1, 0.5, 0.9), strict=True)], "model,target,value")
    right = write(tmp_path, [f"{m},d,{v}" for m, v in zip("xyz", (0.2, 0.5, 0.8), strict=True)], "model,target,value", "o.csv")
    alone = crossgraft.replay_selection(path, budget="34%").record
    told = crossgraft.replay_selection(path, budget="34%", known=right).record
    assert alone.row("prior", "34%").mean_regret == pytest.approx(0.8) and told.row("prior", "34%").mean_regret == 0.0
    both = write(
        tmp_path, [*wrong, *(f"{m},c,{v}" for m, v in zip("xyz", (0.1, 0.5, 0.9), strict=True))], "model,target,value", "b.csv"
    )
    warm, cold = (crossgraft.replay_selection(both, budget="34%", cold=cold).record for cold in (False, True))
    assert warm.row("prior", "34%").worst_regret == pytest.approx(0.8) and cold.is_cold
    assert cold.row("prior", "34%").mean_regret == pytest.approx(0.8 / 3)  # x, by its name, which is right twice


def test_equal_results_and_missing_cells(tmp_path):
    lines = ["x,a,0.5,", "y,a,0.5,", "z,a,0.5,", "x,b,0.5,0.4", "y,b,,", "z,b,0.7,0.6"]
    path = write(tmp_path, lines, "model,target,value,val")
    record = crossgraft.replay_selection(path, budget="50%").record
    row = record.row("select", "50%")
    assert row.num_targets == 1 and row.mean_regret == pytest.approx(0.2) and row.low is None  # no val on a: no choice there
    assert record.row("prior", "50%").num_targets == 2


@pytest.mark.parametrize(
    ("lines", "header", "message"),
    [
        (["x,a,0.5", "x,b,0.5"], "model,target,value", "fewer than two results on a"),
        (["x,a,0.5,-3", "y,a,0.5,3"], "model,target,value,seconds", "row 2: seconds is -3"),
        (["x,a,0.5,0", "y,a,0.5,3"], "model,target,value,seconds", "longer than nothing"),
        (["x,a,0.5", "x,a,0.6"], "model,target,value", "row 3: x on a appears twice"),
        (["x,a,0.5,0.5", "y,a,0.5,0.5"], "model,target,value,value", "two columns called value"),
        (["x,a,0.5"], "model,target,auc", "needs the columns target, model, value"),
        (["x,a,1e400", "y,a,0.5"], "model,target,value", "Leave the cell empty"),
        (["x,a,0.5,0.5", "y,a,0.5,0.5"], "model,target,value,low:size=half", "low:size=half has no share"),
        (["x,a,0.5,0.5", "y,a,0.5,0.5"], "model,target,value,low:epochs=0", "above 0 and at most 1"),
        (["resnet18,a,0.5", "resnet18.a1_in1k,a,0.5"], "model,target,value", "resnet18 and resnet18.a1_in1k are the same"),
    ],
)
def test_wrong_tables_are_named(tmp_path, lines, header, message):
    with pytest.raises(DataError, match=message):
        crossgraft.replay_selection(write(tmp_path, lines, header))


def test_one_target_is_replayed_as_a_cold_start_without_interval(tmp_path):
    path = write(tmp_path, ["x,a,0.5", "y,a,0.9"], "model,target,value")
    row = crossgraft.replay_selection(path, budget="100%").record.row("select", "100%")
    assert (row.mean_regret, row.low, row.high, row.num_targets) == (0.0, None, None, 1)


def test_budgets_and_names_that_cannot_work_are_refused(tmp_path):
    path = write(tmp_path, ["x,a,0.5", "y,a,0.9"], "model,target,value")
    with pytest.raises(UsageError, match="has no column seconds"):
        crossgraft.replay_selection(path, budget="30min")
    with pytest.raises(UsageError, match="is below one training on every target"):
        crossgraft.replay_selection(path, budget="1%")
    with pytest.raises(UsageError, match="--budget soon"):
        crossgraft.replay_selection(path, budget="soon")
    with pytest.raises(UnknownNameError, match="tmlr"):
        crossgraft.replay_selection("tmlrr")


def test_no_interval_has_width_zero(tmp_path):
    record = crossgraft.replay_selection(drawn(tmp_path, targets=8), budget="20%,50%,100%").record
    means = [(row.low, row.high) for row in record.rows]
    means += [(row.beyond_select.low, row.beyond_select.high) for row in record.rows if row.beyond_select]
    means += [(row.weighted_kendall.low, row.weighted_kendall.high) for row in record.orders]
    assert all(low is None or low < high for low, high in means)
    assert any(low is not None for low, _ in means)


def test_a_published_table_is_replayed_without_its_publication():
    budgets = [parse_budget("25%")]
    cold, warm = (replay_published("dart", budgets, is_cold=is_cold) for is_cold in (True, False))
    assert cold.row("select", "25%").num_targets == 3 and cold.orders != warm.orders
    table = read_like_own("dart")
    known = replay(table, budgets, is_cold=True)  # its publication is known, but for each target at hand
    assert known.name == cold.name


def read_like_own(name):
    from crossgraft.rank.published.tables import published_table

    return published_table(name)


def test_select_is_never_worse_than_the_plain_list_where_val_is_below_its_limit(tmp_path):
    for seed in range(3):
        record = crossgraft.replay_selection(drawn(tmp_path, seed=seed), budget="20%,40%,80%").record
        for budget in record.budgets:
            assert record.row("select", budget).mean_regret == record.row("prior_order_best_val", budget).mean_regret


def test_what_is_written(tmp_path):
    found = crossgraft.replay_selection(drawn(tmp_path), budget="30%", out=tmp_path / "run")
    record = json.loads((tmp_path / "run" / "report.json").read_text())
    assert record["kind"] == "selection-replay" and set(record["rows"][0]) >= {
        "method", "budget", "mean_regret", "low", "high", "worst_regret",
    }  # fmt: skip
    assert [row["method"] for row in record["rows"]] == [
        "select", "prior", "prior_order_best_val", "imagenet", "halving", "random", "all_trained",
    ]  # fmt: skip
    page = (tmp_path / "run" / "report.html").read_text()
    assert "in the order, best on val" in page and "Regret at 30%" in page
    frame = found.to_frame()
    assert (tmp_path / "run" / "replay.csv").read_text().splitlines()[0] == ",".join(frame.columns)
    again = crossgraft.replay_selection(drawn(tmp_path), budget="30%", out=tmp_path / "run")
    assert again.record == found.record
    assert all(a == b for a, b in itertools.pairwise([found.summary(), again.summary()]))
