"""The order of models before anything looks at a target."""

import numpy as np
import pytest
from scipy import stats

from crossgraft.errors import DataError
from crossgraft.rank import expected_order as module
from crossgraft.rank.aggregate import static_prior
from crossgraft.rank.expected_order import ColdStart, cold_start, expected_order, related_targets
from crossgraft.rank.record import KnownResult
from crossgraft.rank.results_store import published_results

KNOWN = ("resnet50.tv_in1k", "densenet121.tv_in1k", "mobilenetv2_100.ra_in1k")


def row(model, target, value, *, group="", origin="mine", protocol="p", metric="auc"):
    return KnownResult(
        model=model, weights="", source="", target=target, target_group=group, protocol=protocol, metric=metric,
        value=value, origin=origin,
    )  # fmt: skip


def own(results, groups=None):
    """Rows of own results, targets × models named as in ``KNOWN``."""
    return [
        row(KNOWN[m], f"t{t}", value, group=groups[t] if groups else "")
        for t, values in enumerate(results)
        for m, value in enumerate(values)
        if np.isfinite(value)
    ]


def test_own_results_on_other_data_decide_alone_and_are_the_static_prior():
    results = np.array([[0.7, 0.9, 0.8], [0.6, 0.5, 0.9], [0.7, 0.8, np.nan]])
    found = expected_order(KNOWN, own=own(results))
    prior = static_prior(results)
    np.testing.assert_allclose(found.values, stats.norm.ppf(1 - prior.mean_ranks), rtol=1e-12)
    assert found.num_own.tolist() == [3, 3, 2] and all(who[0] == "mine" for who in found.spoke)


def test_the_target_at_hand_and_its_relatives_tell_nothing():
    results = np.array([[0.1, 0.5, 0.9], [0.2, 0.5, 0.8], [0.9, 0.5, 0.1]])
    rows = own(results, groups=["organ", "organ", ""])
    for name in ("t0", "t1"):
        found = expected_order(KNOWN, own=rows, target=name)
        assert np.argmax(found.values) == 0 and found.num_own.tolist() == [1, 1, 1], name
    assert np.argmax(expected_order(KNOWN, own=rows, target="t2").values) == 2
    assert np.argmax(expected_order(KNOWN, own=rows, target="new", group="organ").values) == 0


def test_relatives_of_ones_own_target_are_unknown_in_publications_too():
    rows = [row(KNOWN[0], "bloodmnist_64", 0.5, group="cells"), row(KNOWN[0], "PathMNIST", 0.5, group="cells")]
    related = related_targets("bloodmnist_64", None, rows)
    assert {"cells", "Blood", "PathMNIST"} <= related and "Breast" not in related


def test_a_model_without_own_results_stands_where_the_cold_start_puts_it():
    results = np.array([[0.7, 0.9, np.nan]] * 3)
    found = expected_order(KNOWN, own=own(results), metric="auc")
    alone = cold_start("auc", frozenset(), ()).values(KNOWN)
    assert found.num_own.tolist() == [3, 3, 0] and found.values[2] == pytest.approx(alone[2], abs=1e-12)


def literal_cold_start(rows):
    """Slope, agreement and values of every network, written out."""
    tables = {}
    for each in rows:
        tables.setdefault(each.origin, {}).setdefault(each.target, {})[each.model] = each.value
    top1 = {name: (value - 80) / 5 for name, value in zip(KNOWN, module.imagenet_top1(KNOWN), strict=True)}
    means = {}
    for origin, targets in tables.items():
        scores = {}
        for values in targets.values():
            for name, value in values.items():
                place = sum(other > value for other in values.values()) + 1
                scores.setdefault(name, []).append(stats.norm.ppf(1 - (place - 0.5) / len(values)))
        means[origin] = {name: np.mean(each) for name, each in scores.items()}
    above = below = 0.0
    for table in means.values():
        x = np.array([top1[name] for name in table])
        above += np.sum((x - x.mean()) * np.array(list(table.values())))
        below += np.sum((x - x.mean()) ** 2)
    slope = max(above / below, 0.0)
    beyond = {}
    for origin, table in means.items():
        left = {name: z - slope * top1[name] for name, z in table.items()}
        level = np.mean(list(left.values()))
        beyond[origin] = {name: value - level for name, value in left.items()}
    return slope, beyond, top1


def test_slope_and_what_publications_say_beyond_it_are_those_written_out(monkeypatch):
    rows = [
        row(name, f"{origin}{t}", value, origin=origin, protocol=origin)
        for origin, table in {"A, 1": [[0.9, 0.8, 0.7], [0.8, 0.9, 0.3]], "B": [[0.7, 0.75, 0.5]]}.items()
        for t, values in enumerate(table)
        for name, value in zip(KNOWN, values, strict=True)
    ]
    monkeypatch.setattr(module, "published_results", lambda: rows)
    monkeypatch.setattr(module, "names_of", lambda some: {each.key: each.model for each in some})
    monkeypatch.setattr(module, "LEAST_SHARED", 3)
    module._published_scores.cache_clear()
    found = cold_start.__wrapped__(None, frozenset(), ())
    module._published_scores.cache_clear()
    slope, beyond, top1 = literal_cold_start(rows)
    assert found.slope == pytest.approx(slope, rel=1e-12) and slope > 0
    a, b = (np.array([beyond[origin][name] for name in KNOWN]) for origin in ("A, 1", "B"))
    rho = np.clip(np.corrcoef(a, b)[0, 1], 0, 1)
    assert found.agreement == pytest.approx(rho, abs=1e-12)
    expected = [slope * top1[n] + 2 * rho / (1 + rho) * (x + y) / 2 for n, x, y in zip(KNOWN, a, b, strict=True)]
    np.testing.assert_allclose(found.values(KNOWN), expected, rtol=1e-12)
    assert set(found.beyond) == {"A", "B"}


def test_publications_that_do_not_agree_leave_imagenet_alone():
    beyond = {"A": {KNOWN[0]: 2.0}, "B": {KNOWN[0]: 1.0}}
    top1 = module.standard_top1(KNOWN)
    np.testing.assert_allclose(ColdStart(0.5, 0.0, beyond).values(KNOWN), 0.5 * top1)
    full = ColdStart(0.5, 1.0, beyond).values(KNOWN)
    assert full[0] == pytest.approx(0.5 * top1[0] + 1.5) and full[1] == pytest.approx(0.5 * top1[1])


def test_a_network_that_imagenet_does_not_know_counts_as_the_mean_of_the_others():
    found = ColdStart(1.0, 0.0, {}).values(["resnet50.tv_in1k", "nobody", "densenet121.tv_in1k"])
    assert found[1] == pytest.approx((found[0] + found[2]) / 2)
    assert ColdStart(1.0, 0.0, {}).values(["nobody", "nothing"]).tolist() == [0.0, 0.0]


def test_a_publication_that_is_left_out_says_nothing():
    origin = "SFDA, group 1"
    assert "SFDA" in cold_start(None, frozenset(), ()).beyond
    without = expected_order(KNOWN, without=[origin])
    assert not any("SFDA" in who for who in without.spoke)
    assert any(each.origin == origin for each in published_results())


def test_with_few_weights_in_common_publications_count_for_nothing():
    shared = {f"m{i}": float(i) for i in range(9)}
    assert module._agreement({"A": shared, "B": shared}) == 0.0
    assert module._agreement({"A": shared | {"m9": 9.0}, "B": shared | {"m9": 9.0}}) == pytest.approx(1.0)


@pytest.mark.parametrize("names", [[], ["a", "a"]])
def test_no_model_and_a_name_twice_are_refused(names):
    with pytest.raises(DataError, match="at least one model, and each name once"):
        expected_order(names)
