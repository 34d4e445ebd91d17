"""recipes/repsim.py runs without data and trains nothing twice; its tables and its page say what its rows say."""

import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from crossgraft.data.dataset import dataset_from_arrays

VIT = "vit_d96"


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
    out = tmp_path / "page.md"
    command = ["--smoke", "--rows", str(tmp_path / "rows"), "--results", str(tmp_path / "runs"), "--out", str(out)]
    command += ["--variants", "linear", "full", "repsim", "--networks", "resnet20"]
    recipe.main(command)
    assert "3 trainings are there" in capsys.readouterr().out
    first = out.read_text(encoding="utf-8")
    assert "The study is not finished: 3 of" in first
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
    assert {row.variant for row in table.kept} == {"linear", "full", "repsim"}
    assert {row.cka_debiased_untouched is None for row in table.kept} == {True, False}  # LINEAR has no such number
    trainings = sys.modules["study_trainings"]
    for module in (recipe, trainings):
        monkeypatch.setattr(module, "tune", lambda *_, **__: pytest.fail("a finished training was made again"))
    recipe.main(command)
    assert out.read_text(encoding="utf-8") == first


def arguments(recipe, *more):
    asked = recipe.parse_arguments(["--smoke", "--rows", "elsewhere", *more])
    asked.smoke = False
    return asked


def specs():
    return [SimpleNamespace(name=f"{name} · x") for name in (VIT, "resnet20", "mobilenetv2_035", "mobilenetv2_100")]


def test_weight_1_of_everything_comes_first_and_pieces_can_be_asked_for(recipe):
    asked = arguments(recipe)
    jobs = list(recipe.jobs(recipe.MEDICAL_TARGETS, specs(), asked))
    ablations = list(recipe.ablation_jobs(specs(), asked))
    assert len(jobs) + len(ablations) == recipe.wanted(recipe.MEDICAL_TARGETS, asked)
    assert len({(job.target.name, job.spec.name, job.variant, job.seed) for job in jobs}) == len(jobs)
    swept = ["×" in job.variant for job in jobs]
    assert swept == sorted(swept)
    for part in (False, True):
        seeds = [job.seed for job in jobs if ("×" in job.variant) is part]
        assert seeds == sorted(seeds) and set(seeds) == ({0} if part else {0, 1, 2})
    asked.only, asked.variants, asked.seeds = ["retinamnist"], ["hcs 0.8"], [2]
    found = [
        (job.target.name, job.spec.name, job.variant, job.seed) for job in recipe.jobs(recipe.MEDICAL_TARGETS, specs(), asked)
    ]
    assert found == [("retinamnist", spec.name, "hcs 0.8", 2) for spec in specs()]


def test_each_mode_of_batch_norm_is_tried_where_there_is_one(recipe):
    with_norm, without = (sys.modules["repsim_variants"].variants(has_batch_norm=has) for has in (True, False))
    assert {variant.options.get("batch_norm") for variant in with_norm.values()} == {"train", "frozen", "adapt"}
    assert with_norm["repsim, adapt"].options == {"regularizer": "repsim", "batch_norm": "adapt"}
    assert all("batch_norm" not in variant.options for variant in without.values())
    assert set(without) == {name for name in with_norm if "," not in name}
    assert not any("×" in name and "," in name for name in with_norm)  # other weights with the default alone
    assert "full, adapt" not in with_norm and "full, frozen" in with_norm


def test_a_training_that_fails_stops_no_other(recipe, monkeypatch, tmp_path):
    from crossgraft.errors import UsageError

    def train(job, arguments, settings, out, also):
        if job.variant == "linear":
            raise UsageError("no")
        return made_up_row(sys.modules["study_rows"], "net", job.variant, 0, settings=settings, accuracy=0.5)

    monkeypatch.setattr(sys.modules["study_trainings"], "train", train)
    monkeypatch.setattr(recipe, "make_curve", lambda *_: None)
    with pytest.raises(SystemExit, match="1 trainings failed"):
        recipe.main(["--smoke", "--rows", str(tmp_path), "--networks", "resnet20", "--variants", "linear", "l2_sp"])
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
    old = made_up_row(rows, "net", "repsim, frozen", 1, accuracy=0.5, state='diverged: "loss", step 3')
    new = replace(old, accuracy=0.25, state="done", cka=None)
    other = made_up_row(rows, "net", "full", 1, accuracy=0.75)
    point = rows.CurveRow(model="net", seed=1, batch_norm="mix", alpha=0.2, picked=1, settings="s", versions="v", auc=0.5)
    kept = rows.KeptRow(model="net", variant="full", seed=1, probe_natural=0.25)
    table = table_of(rows, [old, other, new]).with_curve([point]).with_kept(replace(kept, probe_natural=None)).with_kept(kept)
    table.write(tmp_path, "set")
    assert rows.read_table(tmp_path, "set") == table
    assert table.trainings == (other, new) and table.kept == (kept,)
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
    """Two sets with a ViT each; accuracy falls by 0.1 a variant in set a and by 0.2 in set b."""
    tables = {}
    for name, step in (("a", 0.1), ("b", 0.2)):
        made = [
            made_up_row(
                rows, VIT, variant, seed, accuracy=0.9 - step * place + 0.01 * seed, auc=0.5, cka=0.4 + 0.2 * place,
                cka_debiased=0.3 + 0.2 * place,
            )
            for place, variant in enumerate(("full", "repsim", "hcs 0.8", "linear"))
            for seed in (0, 1)
        ]  # fmt: skip
        curve = [
            rows.CurveRow(
                model=VIT, seed=seed, batch_norm="mix", alpha=alpha, picked=int(alpha == 1), settings="s", versions="v",
                accuracy=0.5 + 0.4 * alpha, cka_debiased=1 - 0.6 * alpha,
            )
            for seed in (0, 1)
            for alpha in (0.0, 0.5, 1.0)
        ]  # fmt: skip
        tables[name] = table_of(rows, made).with_curve(curve[:3]).with_curve(curve[3:])
    return tables


def written(page, tables, tmp_path, *, wanted=16, rows_of_ablations=None, few=None):
    out = tmp_path / "page.md"
    page.write_page(
        out,
        tables,
        rows_of_ablations or sys.modules["study_rows"].Table(),
        few=few or {},
        titles={"a": "Set A", "b": "Set B"},
        vit=VIT,
        wanted=wanted,
    )
    return out.read_text(encoding="utf-8")


def test_the_default_is_compared_with_full_on_every_set_and_network(page, rows, tmp_path):
    text = written(page, made_up_study(rows), tmp_path)
    line = next(line for line in text.splitlines() if line.startswith(f"| a | {VIT} | 0.300 ["))
    assert "| 0.300 [0.300, 0.300] | 0.500 [0.500, 0.500] | 0.200 [0.200, 0.200] | -0.100 [" in line
    interval = stats.ttest_1samp([-0.1, -0.2], 0).confidence_interval(0.95)
    assert (
        f"Accuracy, mean over all pairs: -0.150 [{interval.low:+.3f}, {interval.high:+.3f}] of FULL's, ahead in 0 of 2." in text
    )
    assert "not finished" not in text
    assert "16 of 99 trainings" in written(page, made_up_study(rows), tmp_path, wanted=99)


def test_short_and_long_trainings_stand_beside_each_other_by_form_of_the_loss(page, rows, tmp_path):
    def of(variants, gain):
        made = [
            made_up_row(rows, "net", variant, seed, accuracy=0.5 + gain * place, cka_debiased=0.2 + 0.1 * place)
            for place, variant in enumerate(variants)
            for seed in (0, 1)
        ]
        return table_of(rows, made)

    short = [f"{form}, {epochs} epochs" for epochs in (2, 6) for form in ("full", "repsim")]
    few = {"a": of(short, 0.1), "ham10000": of(short, -0.1)}
    long = {"a": of(["full", "repsim, frozen", "repsim"], 0.2), "b": rows.Table()}
    text = written(page, long, tmp_path, few=few)
    of_a, of_ham = (
        next(line for line in text.splitlines() if line.startswith(f"| {name} | net |")) for name in ("a", "ham10000")
    )
    titles = ["FULL", "`repsim`: 1 − CKA", "`repsim:preset=paper`: eq. 13–14"]
    columns = [f"{title}, {length}" for length in ("2 epochs", "6 epochs", "15 epochs") for title in titles]
    assert f"| Set | Network | {' | '.join(columns)} |" in text
    short_ones = "0.200 / 0.500 | 0.300 / 0.600 | – | 0.400 / 0.700 | 0.500 / 0.800 | –"
    assert of_a == f"| a | net | {short_ones} | 0.200 / 0.500 | 0.300 / 0.700 | – |"
    assert of_ham == "| ham10000 | net | 0.200 / 0.500 | 0.300 / 0.400 | – | 0.400 / 0.300 | 0.500 / 0.200 | – | – | – | – |"
    assert "| few steps | `repsim`: 1 − CKA | net | 2 | +0.100 [+0.100, +0.100] | -0.100 [-0.100, -0.100] |" in text


def test_ablations_are_on_the_page_and_counted(page, rows, tmp_path):
    made = [
        made_up_row(rows, VIT, f"paper, batches of {size}", seed, accuracy=0.5, cka_debiased=kept)
        for size, kept in ((4, 0.2), (128, 0.9))
        for seed in range(2)
    ]
    text = written(page, made_up_study(rows), tmp_path, wanted=99, rows_of_ablations=table_of(rows, made))
    assert "20 of 99 trainings" in text and "| paper | batches of 128 − of 4 | +0.00 [+0.00, +0.00] | +0.700 [" in text


def test_a_variant_that_is_not_on_every_set_of_full_has_differences_but_no_mean(page, rows, tmp_path):
    tables = made_up_study(rows)
    tables["a"] = table_of(rows, [row for row in tables["a"].trainings if row.variant != "repsim"])
    lines = written(page, tables, tmp_path).partition("### LayerNorm")[2].partition("###")[0].splitlines()
    assert not any(line.startswith("| repsim |") for line in lines)  # of one pair there is no interval either
    assert any(line.startswith("| hcs 0.8 | 0.") for line in lines)


def test_a_variant_is_compared_with_the_lines_at_its_own_similarity(page, rows):
    tables = made_up_study(rows)
    found = page.above(tables, "repsim", "mix", metric="accuracy", by="cka_debiased")
    # at a similarity of 0.5 the mixed networks have 0.5 + 0.4 · (1 − 0.5) / 0.6
    assert found[("a", VIT, 0)] == pytest.approx(0.8 - (0.5 + 0.4 * 0.5 / 0.6))
    straight = page.above(tables, "repsim", "straight", metric="accuracy", by="cka_debiased")
    assert straight[("a", VIT, 0)] == pytest.approx(0.0)


def test_weights_are_compared_on_what_all_of_them_were_trained_on(page, rows, tmp_path):
    made = [made_up_row(rows, VIT, name, 0, accuracy=0.5, cka_debiased=0.5) for name in ("repsim", "repsim × 1")]
    tables = {
        "a": table_of(rows, made),
        "b": table_of(rows, [made_up_row(rows, VIT, "repsim", 0, accuracy=0.1, cka_debiased=0.1)]),
    }
    lines = [line for line in written(page, tables, tmp_path).splitlines() if line.startswith("| LayerNorm (ViT) | repsim |")]
    assert [line for line in lines if "| 0.3 √" in line] == ["| LayerNorm (ViT) | repsim | 0.3 √(d / 64) | 1 | 0.500 | 0.500 |"]
    assert [line for line in lines if "| 1 | 1 |" in line] == ["| LayerNorm (ViT) | repsim | 1 | 1 | 0.500 | 0.500 |"]


@pytest.mark.parametrize(
    ("natural", "said"),
    [(0.1, "buys less forgetting of natural images."), (-0.1, "buys nothing that shows; costs less forgetting"), (None, "")],
)
def test_what_keeping_buys_is_said(page, rows, tmp_path, natural, said):
    tables = {}
    for name, more in (("a", 0.0), ("b", 0.001)):
        table = table_of(rows, [made_up_row(rows, VIT, variant, 0, accuracy=0.5) for variant in ("full", "repsim")])
        for variant, gain in (("full", 0.0), ("repsim", natural)):
            value = None if gain is None else 0.5 + gain + (more if gain else 0)
            table = table.with_kept(rows.KeptRow(model=VIT, variant=variant, seed=0, probe_natural=value))
        tables[name] = table
    text = written(page, tables, tmp_path)
    assert (f"- LayerNorm (ViT): {said}" in text) if said else ("- LayerNorm (ViT):" not in text)


def test_networks_of_one_kind_lose_the_ending_of_their_variants(page, rows):
    made = [
        made_up_row(rows, "net", name, 0, accuracy=0.5)
        for name in ("full", "full, frozen", "repsim", "repsim, adapt", "l2_sp", "linear")
    ]
    tables = {"a": table_of(rows, [*made, made_up_row(rows, VIT, "repsim", 0, accuracy=0.1)])}
    found = {kind.title: [row.variant for row in page.of_kind(tables, kind, VIT)["a"].trainings] for kind in page.KINDS}
    assert found == {
        "LayerNorm (ViT)": ["repsim"],
        "BatchNorm, train": ["full", "l2_sp", "linear", "repsim"],
        "BatchNorm, frozen": ["full", "linear"],
        "BatchNorm, adapt": ["full", "l2_sp", "repsim"],
    }


def test_images_are_corrupted_the_same_way_every_time_and_differ(load_recipe):
    kept = load_recipe("study_kept")
    images = np.random.default_rng(0).integers(0, 256, (3, 28, 28), dtype=np.uint8)
    test = dataset_from_arrays(images, np.array([0, 1, 0]), name="x")
    first, again = kept.ChangedImages(test), kept.ChangedImages(test)
    for kind in kept.CORRUPTIONS:
        one, other = first._corrupted[kind], again._corrupted[kind]
        for row in range(3):
            pixels = one.read(row).squeeze()
            assert pixels.shape == (28, 28) and pixels.dtype == np.uint8
            assert np.array_equal(pixels, other.read(row).squeeze())
            assert not np.array_equal(pixels, images[row])


def test_studies_share_no_rows_by_accident(recipe, tmp_path):
    with pytest.raises(SystemExit):
        recipe.parse_arguments(["--smoke"])
    assert recipe.parse_arguments(["--smoke", "--rows", str(tmp_path)]).rows == Path(tmp_path)
