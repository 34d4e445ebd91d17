"""recipes/repsim.py runs without data and trains nothing twice; its tables and its page say what its rows say."""

import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

RECIPES = Path(__file__).parents[2] / "recipes"


@pytest.fixture
def recipe(load_recipe):
    return load_recipe("repsim")


@pytest.fixture
def page(recipe):
    return sys.modules["repsim_page"]


@pytest.fixture
def rows(recipe):
    return sys.modules["study_rows"]


@pytest.mark.slow
def test_without_data_it_runs_resumes_and_writes_a_page(recipe, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(recipe, "VARIANTS", {name: recipe.VARIANTS[name] for name in ("linear", "full", "repsim")})
    monkeypatch.setattr(recipe, "BATCH_SIZES", (32,))
    out = tmp_path / "page.md"
    command = ["--smoke", "--rows", str(tmp_path / "rows"), "--results", str(tmp_path / "runs"), "--out", str(out)]
    recipe.main(command)
    assert "5 trainings are there" in capsys.readouterr().out
    first = out.read_text(encoding="utf-8")
    assert "not finished" not in first
    assert (tmp_path / "page" / "trade-off.svg").read_text(encoding="utf-8").startswith("<?xml")
    table = recipe.read_table(tmp_path / "rows", "noise")
    ends = {row.variant: row for row in table.trainings}
    for row in table.curve:
        if row.alpha in (0, 1):
            end = ends["full" if row.alpha else "linear"]
            assert (row.accuracy, row.auc, row.cka) == (end.accuracy, end.auc, end.cka)
    assert {(row.batch_norm, row.alpha) for row in table.curve} == {
        (rule, alpha) for rule in recipe.BATCH_NORMS for alpha in recipe.ALPHAS
    }
    trainings = sys.modules["study_trainings"]
    for module in (recipe, trainings):
        monkeypatch.setattr(module, "tune", lambda *_, **__: pytest.fail("a finished training was made again"))
    recipe.main(command)
    assert out.read_text(encoding="utf-8") == first
    monkeypatch.setattr(trainings, "EPOCHS", 99)
    asked = []
    monkeypatch.setattr(recipe.RowsWithCurves, "do", lambda _, job: asked.append(job.key))
    recipe.main([*command, "--variants", "repsim"])
    assert asked == ["smoke batch_size=64 epochs=99 regularizer=repsim side=64"]


def arguments(recipe, *more):
    return recipe.parse_arguments(["--smoke", "--rows", "elsewhere", *more])


def test_seed_0_of_everything_comes_first_and_pieces_can_be_asked_for(recipe, monkeypatch):
    specs = [SimpleNamespace(name="mobilenetv1_050 · x"), SimpleNamespace(name="mobilenetv2_035 · x")]
    asked = arguments(recipe)
    asked.smoke = False
    jobs = list(recipe.jobs(recipe.MEDICAL_TARGETS, specs, asked))
    once = recipe.LOOKED_AT_ONCE
    places = 3 * (len(recipe.VARIANTS) - len(once)) + len(once)
    assert len(jobs) == recipe.wanted(recipe.MEDICAL_TARGETS, asked) == 6 * places + 3 * 6
    assert {job.seed for job in jobs if job.variant in once} == {0}
    assert [job.seed for job in jobs] == sorted(job.seed for job in jobs)
    variants = [job.variant for job in jobs if job.seed == 0]
    assert list(dict.fromkeys(variants))[:3] == ["linear", "full", "repsim"]
    of_sizes = {(job.target.name, job.spec.name, job.variant) for job in jobs if "b=" in job.variant}
    assert {place[:2] for place in of_sizes} == {("breastmnist", "mobilenetv1_050 · x")}
    asked.only, asked.variants, asked.seeds = ["retinamnist"], ["hcs 0.8"], [2]
    found = [(job.target.name, job.variant, job.seed) for job in recipe.jobs(recipe.MEDICAL_TARGETS, specs, asked)]
    assert found == [("retinamnist", "hcs 0.8", 2)] * 2


def test_a_training_that_fails_stops_no_other(recipe, monkeypatch, tmp_path):
    from crossgraft.errors import UsageError

    def train(job, arguments, settings, out):
        if job.variant == "linear":
            raise UsageError("no")
        return made_up_row(sys.modules["study_rows"], "net", job.variant, 0, settings=settings, accuracy=0.5)

    monkeypatch.setattr(sys.modules["study_trainings"], "train", train)
    monkeypatch.setattr(recipe, "make_curve", lambda *_: None)
    with pytest.raises(SystemExit, match="1 trainings failed"):
        recipe.main(["--smoke", "--rows", str(tmp_path), "--variants", "linear", "l2_sp"])
    assert [row.variant for row in recipe.read_table(tmp_path, "noise").trainings] == ["l2_sp"]


def made_up_row(rows, model, variant, seed, **fields):
    known = {"settings": "s", "versions": "v", "cpu_seconds": 10.0, "seconds": 8.0, "best_epoch": 3}
    return rows.TrainingRow(**{**known, "model": model, "variant": variant, "seed": seed, **fields})


def table_of(rows, made):
    table = rows.Table()
    for row in made:
        table = table.with_training(row)
    return table


def test_tables_come_back_as_they_were_written_and_a_row_replaces_its_own(rows, tmp_path):
    old = made_up_row(rows, "net", "repsim, b=4", 1, accuracy=0.5, state='diverged: "loss", step 3')
    new = replace(old, accuracy=0.25, state="done", cka=None)
    other = made_up_row(rows, "net", "full", 1, accuracy=0.75)
    point = rows.CurveRow(
        model="net", seed=1, batch_norm="mix", alpha=0.2, picked=1, settings="s", versions="v", auc=0.5
    )
    table = table_of(rows, [old, other, new]).with_curve([point])
    table.write(tmp_path, "set")
    assert rows.read_table(tmp_path, "set") == table
    assert table.trainings == (other, new)
    assert table.has_training("net", "full", 1, "s")
    assert not table.has_training("net", "full", 1, "other settings")
    assert table.has_curve("net", 1, "s")
    assert not table.has_curve("net", 1, "t")
    assert rows.read_table(tmp_path, "nothing") == rows.Table()
    moved = replace(point, alpha=0.4)
    assert table.with_curve([moved]).curve == (moved,)


def test_the_most_probable_class_counts(rows):
    logits = np.array([[2.0, 1], [0, 3], [1, 0], [1, 0]])
    found = rows.most_probable(logits, np.array([0, 1, 1, 0]))
    assert found["accuracy"].value == 0.75
    assert found["balanced_accuracy"].value == pytest.approx((1 + 0.5) / 2)


def made_up_study(rows):
    """Two sets with one network each; accuracy falls by 0.1 a variant in set a and by 0.2 in set b."""
    tables = {}
    for name, step in (("a", 0.1), ("b", 0.2)):
        made = [
            made_up_row(
                rows, "net", variant, seed, accuracy=0.9 - step * place + 0.01 * seed, cka=0.4 + 0.2 * place, auc=0.5,
                cka_debiased=0.3, cpu_seconds=10.0 * (1 + place),
            )
            for place, variant in enumerate(("full", "repsim", "hcs 0.8"))
            for seed in (0, 1)
        ]  # fmt: skip
        curve = [
            rows.CurveRow(
                model="net", seed=seed, batch_norm="estimate", alpha=alpha, picked=int(alpha == 1), settings="s",
                versions="v", accuracy=0.5 + 0.4 * alpha, cka=1 - 0.6 * alpha,
            )
            for seed in (0, 1)
            for alpha in (0.0, 0.5, 1.0)
        ]  # fmt: skip
        tables[name] = table_of(rows, made).with_curve(curve[:3]).with_curve(curve[3:])
    return tables


def test_orderings_are_paired_over_sets_and_networks(page, rows):
    tables = made_up_study(rows)
    gaps = sys.modules["study_tables"].gaps_of(tables, page.ORDERINGS[0])
    assert gaps == pytest.approx(dict.fromkeys((("a", "net", 0), ("a", "net", 1)), 0.1) | {
        ("b", "net", seed): 0.2 for seed in (0, 1)
    })  # fmt: skip
    expected = stats.ttest_1samp([0.1, 0.2], 0).confidence_interval(0.95)
    text = page.page_of(tables, titles={"a": "Set A", "b": "Set B"}, wanted=99, figure="f.svg")
    row = f"| full | repsim | Accuracy | +0.150 [{expected.low:+.3f}, {expected.high:+.3f}] | 2 of 2 | 4 of 4 |"
    assert row in text
    assert "12 of 99 trainings are there" in text
    assert "**full over repsim in Accuracy** (Table 1): not decided, ahead in 2 of 2 pairs" in text
    assert "| repsim | 71.03 | 0.68 |" in text
    assert "| hcs 0.8 | linear | Accuracy | – | – | 0 of 0 | Table 1: 68.79 and 61.41 |" in text


def test_pooled_numbers_are_means_of_seeds_with_their_interval_and_time_is_a_multiple_of_full(page, rows):
    text = page.page_of(made_up_study(rows), titles={"a": "Set A", "b": "Set B"}, wanted=12, figure="f.svg")
    of_seeds = [0.75, 0.76]
    interval = stats.t.interval(0.95, 1, np.mean(of_seeds), stats.sem(of_seeds))
    line = next(line for line in text.splitlines() if line.startswith("| repsim | 0."))
    assert line.startswith(f"| repsim | 0.755 [{interval[0]:.3f}, {interval[1]:.3f}] |")
    assert line.endswith("| 2.00 |")
    assert "not finished" not in text


def test_a_variant_that_is_not_on_every_set_has_no_pooled_number(page, rows):
    tables = made_up_study(rows)
    kept = [row for row in tables["a"].trainings if row.variant != "repsim"]
    tables["a"] = table_of(rows, kept)
    text = page.page_of(tables, titles={"a": "Set A", "b": "Set B"}, wanted=12, figure="f.svg")
    pooled = text.partition("## All sets")[2].partition("##")[0]
    assert next(line for line in pooled.splitlines() if line.startswith("| repsim |")).startswith("| repsim | – | – |")
    assert next(line for line in pooled.splitlines() if line.startswith("| full |")).startswith("| full | 0.")


def test_a_variant_is_compared_with_the_line_at_its_own_similarity(page, rows):
    tables = made_up_study(rows)
    above = page.above_line(tables, "repsim", "interpolation")
    on_line = 0.5 + 0.4 * (1 - 0.6) / 0.6
    assert above == pytest.approx({
        (name, "net", seed): 0.9 - step + 0.01 * seed - on_line for name, step in (("a", 0.1), ("b", 0.2)) for seed in (0, 1)
    })  # fmt: skip
    assert page.above_line(tables, "repsim", "mix") == {}
    assert page.above_line(tables, "repsim", "hcs") == {}


def test_the_figure_is_the_same_from_the_same_rows(page, rows, tmp_path):
    tables, titles = made_up_study(rows), {"a": "Set A", "b": "Set B"}
    for name in ("one", "two"):
        page.write_page(tmp_path / f"{name}.md", tables, titles=titles, wanted=12)
    figures = [(tmp_path / name / "trade-off.svg").read_bytes() for name in ("one", "two")]
    assert figures[0] == figures[1]
    assert "Set B" in figures[0].decode()
    assert "(one/trade-off.svg)" in (tmp_path / "one.md").read_text(encoding="utf-8")
