"""What pages on the trained table, scores, few-shot heads, sources and artefacts compute, and the images of their studies."""

import importlib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from crossgraft import run_study
from crossgraft.statistics import weighted_kendall
from support.tiny import make_workspace
from unit.bench.test_rounds import Here

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture
def recipe(monkeypatch):
    for folder in ("recipes", "studies"):
        monkeypatch.syspath_prepend(str(REPOSITORY / folder))
    return importlib.import_module


def trainings(areas, **more):
    """A whole training at two rates of each network; the first rate is better on val, and the first network has two seeds."""
    rows = [
        {"model": model, "fidelity": fidelity, "seed": seed, "learning_rate": rate, "auc": area + 0.02 * seed, "accuracy": area}
        | {"val_auc": area - (0 if rate == 1e-3 else 0.2), "val_loss": 0.5, "cpu_seconds": 10.0, "family": "f"}
        for place, (model, area) in enumerate(areas.items())
        for fidelity in ("full", "low:epochs=0.2", "low:size=0.5")
        for seed in ((0, 1) if place == 0 and fidelity == "full" else (0,))
        for rate in (3e-4, 1e-3)
    ]
    return pd.DataFrame(rows).assign(**more)


def test_val_picks_the_rate_and_seeds_are_averaged(recipe):
    first, second = recipe("drawing.ground_truth").networks(trainings({"a": 0.8, "b": 0.7}))
    assert (first.name, first.result("auc"), first.deviation("auc")) == ("a", pytest.approx(0.81), pytest.approx(0.02 / 2**0.5))
    assert first.first["learning_rate"] == 1e-3 and second.deviation("auc") is None
    assert first.seconds["full"] == 20.0  # of the first seed, both rates


def test_one_failed_seed_does_not_decide_how_much_seeds_differ(recipe):
    module = recipe("drawing.ground_truth")

    def network(*values):
        return module.Network("m", pd.DataFrame({"auc": values}), pd.DataFrame(), pd.Series(dtype=float))

    calm = [network(0.80, 0.81, 0.82), network(0.70, 0.71, 0.72)]
    assert module.seed_deviation([*calm, network(0.9, 0.1, 0.9)], "auc") == pytest.approx(0.01 * 1.2**0.5)


def test_scores_that_are_all_equal_order_nothing(recipe):
    tau, areas = recipe("drawing.itm").tau, pd.Series([0.9, 0.8, 0.6])
    assert tau(pd.Series([1.0, 1.0, 1.0]), areas) == 0
    assert tau(pd.Series([3.0, 1.0, 2.0]), areas) == weighted_kendall(np.array([3.0, 1.0, 2.0]), areas.to_numpy())


def test_an_order_joins_equal_values_and_counts_what_intervals_separate(recipe):
    module = recipe("drawing.real_scores")
    names = list(module.SHORT)[:4]
    cells = pd.DataFrame({"value": [2.0, 3.0, 2.0, 1.0], "low": 0.0, "level": [1, 0, 1, 0]}, index=names)
    cells["above_shuffled"] = [True, True, False, np.nan]
    first, second, third, fourth = map(module.SHORT.get, names)
    assert module.in_order(cells["value"]) == f"{second} {first}={third} {fourth}"
    assert module.separable(cells) == ["0", "5 of 6", "1"]
    assert module.separable(cells.assign(low=np.nan))[:2] == ["—", "—"]
    other = pd.Series([30.0, 20.0, 10.0], index=[names[1], names[0], "elsewhere"])
    assert module.spearman(cells["value"], other) == pytest.approx(1)


def test_tables_of_a_study_of_rankings_have_each_value_with_what_is_level_with_it(recipe, tmp_path, monkeypatch):
    make_workspace(tmp_path)
    monkeypatch.chdir(tmp_path)
    fixed = {"models": "zoo.yaml", "scores": ["logme", "h_score"], "device": "cpu"}
    asked = {"command": "rank", "fixed": fixed, "grid": {"data": {"pictures": "images"}}}
    found = run_study(asked, out=tmp_path / "out", executor=Here(), allow_code="tiny_models.py")
    recipe("kept_ranks").main([str(tmp_path / "out"), str(tmp_path)])
    rows, cells = pd.read_csv(tmp_path / "values.csv"), found.to_frame()
    cells = cells[cells["role"] == "candidate"]
    assert sorted(rows["value"]) == pytest.approx(sorted(cells["value"])) and {*rows["score"]} == {"LogME", "H-score"}
    for _, own in rows.groupby("score"):
        assert own["level"].sum() % 2 == 0 and own["level"].between(0, len(own) - 1).all()
    assert {*pd.read_csv(tmp_path / "checks.csv")["severity"]} <= {"warning", "notice"}


def heads(*rows):
    """(set, network, head, difference to both baselines), with an interval of ± 0.005."""
    known = {"kind": "heads", "sampler": "n_way_k_shot:ways=5,shots=1", "accuracy": 0.5, "milliseconds": 3.0, "device": "cpu"}
    less = [{f"less_{each}": row[3] for each in ("logistic", "ridge")} for row in rows]
    half = {f"less_{each}_half": 0.005 for each in ("logistic", "ridge")}
    named = [dict(zip(("set", "network", "head"), row[:3], strict=True)) for row in rows]
    return pd.DataFrame([known | half | one | other for one, other in zip(named, less, strict=True)])


def test_networks_on_the_same_images_are_one_set(recipe):
    """Nine networks that agree on one set are no evidence against one on another."""
    rows = heads(
        *(("one", f"{number}", "url", 0.02) for number in range(9)), ("two", "0", "url", -0.01), ("three", "0", "url", -0.01)
    )
    found = recipe("drawing.fewshot").gain(rows, "heads", "n_way_k_shot:ways=5,shots=1", "url", "logistic")
    assert found.over_sets.mean == pytest.approx(0) and found.over_sets.low < 0 < found.over_sets.high
    assert (found.over_sets.pairs, found.pairs, found.above, found.below) == (3, 11, 9, 2)


def test_a_head_is_told_where_its_whole_interval_is_on_one_side(recipe):
    places = range(4)
    rows = heads(
        *((f"{place}", "one", "url", 0.02 + 0.001 * place) for place in places),
        *((f"{place}", "one", "copa", 0.002 * (-1) ** place) for place in places),
        *((f"{place}", "one", "ncc", -0.03 + 0.001 * place) for place in places),
    )
    asked = [(head, "heads", "n_way_k_shot:ways=5,shots=1") for head in ("url", "copa", "ncc")]
    told = recipe("drawing.fewshot").ahead_or_behind(rows, "Here", asked)
    assert told == "**Here**, above both baselines: URL, rate 0.1 (1 shot). Below at least one of them: NCC (1 shot)."


@pytest.mark.parametrize(
    ("patients", "folds", "sign", "expected"),
    [
        ((-0.25, -0.15), (-0.3, -0.1), -1, "as claimed"),
        ((-0.25, -0.15), (-0.9, 0.5), -1, "as claimed over patients, not decided over folds"),
        ((0.15, 0.25), (0.1, 0.3), -1, "the opposite"),
        ((-0.15, 0.55), (0.1, 0.3), -1, "not decided"),
        ((-0.15, 0.55), (0.1, 0.3), 0, "no difference shown"),
    ],
)
def test_a_claim_stands_beside_what_the_rows_show(recipe, patients, folds, sign, expected):
    row = pd.Series([*patients, *folds], index=["patients_low", "patients_high", "low", "high"])
    assert recipe("drawing.shortcut_sources").verdict(row, sign) == expected


def test_ranks_within_families_are_centred_in_each(recipe):
    """Families far apart from each other decide ρ over all networks, and not within them."""
    module = recipe("drawing.frequency")
    rows = pd.DataFrame({
        "family": ["A"] * 4 + ["B"] * 3 + ["C"],
        "overlap": [0.1, 0.3, 0.2, 0.4, 0.9, 0.8, 0.7, 0.5],
        "sri": [0.05, 0.1, 0.2, 0.3, 0.01, 0.03, 0.02, 0.5],
    })  # fmt: skip
    within = module.within_families(rows)
    assert within.number == 7 and module.order(rows, "overlap").rho < 0 < within.rho
    perfect = module.within_families(rows.assign(overlap=rows["sri"]))
    assert perfect.rho == pytest.approx(1) and perfect.p_value < 0.05


def test_an_image_of_test_is_not_trained_on_and_classes_are_cut(recipe):
    images = np.random.default_rng(0).integers(0, 256, (60, 8, 8), dtype=np.uint8)
    images[0] = images[59]
    splits = np.repeat(["train", "val", "test"], [40, 10, 10])
    whole = pd.DataFrame({"image": list(images), "label": [str(row % 2) for row in range(60)], "split": splits})
    found = recipe("sets").small(whole, 15)
    train = found[found["split"] == "train"]
    assert train["label"].value_counts().to_dict() == {"0": 15, "1": 15}
    assert images[59].tobytes() not in {image.tobytes() for image in train["image"]}
    assert (found["split"] == "test").sum() == 10


def test_frames_that_look_alike_are_one_group_and_sounds_are_pictures(recipe):
    sets = recipe("sets")
    coarse = np.random.default_rng(0).integers(0, 256, (3, 8, 8), dtype=np.uint8)
    frames = [np.asarray(Image.fromarray(each).resize((64, 64))) for each in coarse]
    groups = sets.alike([frames[0], frames[1], np.clip(frames[0].astype(int) + 3, 0, 255).astype(np.uint8), frames[2]])
    assert groups[0] == groups[2] and len(set(groups.tolist())) == 3
    seconds = np.arange(4000) / 8000
    low, high = (sets.spectrogram(np.sin(2 * np.pi * hertz * seconds), 8000) for hertz in (300, 2500))
    assert low.shape == (64, 64) and low.mean(axis=1).argmax() > high.mean(axis=1).argmax()  # high tones stand above


def test_sources_are_drawn_evenly(recipe, monkeypatch):
    sets = recipe("sets")
    monkeypatch.setattr(sets, "SOURCE_IMAGES", 50)
    found = sets.evenly({name: pd.DataFrame({"image": range(number)}) for name, number in {"a": 58, "b": 2, "c": 16}.items()})
    assert {name: len(rows) for name, rows in found.items()} == {"b": 2, "c": 16, "a": 32}


def test_a_set_is_written_as_a_table_with_images(recipe, tmp_path):
    sets = recipe("sets")
    images = [np.full((4, 4), 7, np.uint8), np.full((4, 4, 3), 9, np.uint8)]
    sets.write(pd.DataFrame({"image": images, "label": ["x", "y"]}), tmp_path, "some")
    written = pd.read_csv(tmp_path / "some.csv")
    assert list(written["label"]) == ["x", "y"]
    assert [np.asarray(Image.open(tmp_path / file)).max() for file in written["image"]] == [7, 9]


@pytest.mark.slow
def test_rows_of_trainings_are_read_from_the_run_folders_of_a_study(recipe, tmp_path, monkeypatch):
    monkeypatch.chdir(REPOSITORY)
    found = run_study("studies/ground-truth.yaml", out=tmp_path / "out", smoke=True, executor=Here())
    recipe("trained").main([str(tmp_path), str(tmp_path / "out")])
    rows = pd.read_csv(tmp_path / "digits.csv")
    assert list(rows["fidelity"]) == ["full", "low:epochs=0.2"] and list(rows["epochs"]) == [1, 2]
    numbers = found.to_frame()
    tested = numbers[(numbers["metric"] == "auc") & (numbers["split"] == "test") & numbers["class_name"].isna()]
    assert sorted(rows["auc"]) == pytest.approx(sorted(tested["value"]), abs=1e-5)
    committed = pd.read_csv(REPOSITORY / "docs" / "results" / "ground_truth" / "busi.csv").columns
    not_kept = {"val_error", "val_accuracy", "val_balanced_accuracy", "settings", "cka", "cka_debiased"}  # from scratch no CKA
    assert {*committed} - {*rows} <= not_kept
    assert rows["val_curve"].map(str).str.split(" ").map(len).tolist() == [1, 2]
