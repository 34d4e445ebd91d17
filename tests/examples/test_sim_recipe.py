"""recipes/sim.py runs without data and trains nothing twice; its page says what its rows say."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from crossgraft.models import ModelSpec
from crossgraft.tune.engine.gradient_norms import GradientNorms


@pytest.fixture
def recipe(load_recipe):
    return load_recipe("sim")


@pytest.fixture
def variants(recipe):
    return sys.modules["sim_variants"]


def arguments(recipe, monkeypatch, *more):
    """As with all data there, and with the regulariser."""
    monkeypatch.setattr(recipe, "REGULARIZERS", {"rho_sim"})
    asked = recipe.parse_arguments(["--smoke", "--rows", "elsewhere", *more])
    asked.smoke = False
    monkeypatch.setattr(recipe, "mobilenets", lambda _: [ModelSpec(f"{n} · x", "conv4:conv4") for n in ("one", "two")])
    ratio = {"one": 1.7, "two": 1.2, "resnet20": 1.31}
    monkeypatch.setattr(recipe, "cost_of", lambda _, spec, __: SimpleNamespace(ratio=ratio[spec.name.partition(" ")[0]]))
    return asked


def row_of(model, variant, seed, **fields):
    rows = sys.modules["study_rows"]
    known = {"settings": "epochs=20", "versions": "v", "cpu_seconds": 10.0, "seconds": 8.0, "best_epoch": 20}
    return rows.TrainingRow(**{**known, "model": model, "variant": variant, "seed": seed, **fields})


def keep(folder, name, made):
    table = sys.modules["study_rows"].Table()
    for row in made:
        table = table.with_training(row)
    table.write(folder, name)


@pytest.mark.slow
def test_without_data_it_runs_resumes_and_writes_a_page(recipe, tmp_path, capsys, monkeypatch):
    out = tmp_path / "page.md"
    command = ["--smoke", "--rows", str(tmp_path / "rows"), "--out", str(out), "--only", "cifar10"]
    command += ["--variants", "baseline", "dropout 0.2", "longer"]
    recipe.main(command)
    said = capsys.readouterr().out
    assert "3 trainings are there" in said and "cifar10 resnet20: a step takes" in said
    first = out.read_text(encoding="utf-8")
    assert "3 of 270 trainings are there" in first and "ResNet-20, and what costs as much | 3 of 35 |" in first
    costs = sys.modules["sim_steps"].read_step_costs(tmp_path / "rows", "cifar10")
    assert [model for model, _ in costs] == ["resnet20"] and all(row.ratio > 0 for row in costs.values())
    assert {path.name for path in (tmp_path / "page").iterdir()} == {"gradients.svg", "sweeps.svg"}
    looks = {row.variant: row for row in sys.modules["sim_looks"].read_looks(tmp_path / "rows", "cifar10")}
    assert looks["baseline"].num_steps == 3 and looks["dropout 0.2"].num_steps is None
    assert looks["baseline"].nll > 0 and looks["baseline"].peak_bytes > 0 and looks["baseline"].num_own_parameters == 0
    assert [row.step for row in sys.modules["sim_looks"].read_steps(tmp_path / "rows", "cifar10")] == [1, 2, 3]
    trainings = sys.modules["study_trainings"]
    monkeypatch.setattr(trainings, "tune", lambda *_, **__: pytest.fail("a finished training was made again"))
    monkeypatch.setattr(sys.modules["sim_steps"], "make_step", lambda *_, **__: pytest.fail("steps were made again"))
    recipe.main(command)
    assert out.read_text(encoding="utf-8") == first


def test_what_needs_the_regulariser_is_refused_where_there_is_none(recipe, monkeypatch, capsys):
    monkeypatch.setattr(recipe, "REGULARIZERS", {"repsim"})
    smoke = ["--smoke", "--rows", "elsewhere"]
    for piece in (["--only", "cifar10"], ["--variants", "baseline", "placebo"]):
        with pytest.raises(SystemExit):
            recipe.parse_arguments([*smoke, *piece])
        assert "has no regulariser rho_sim, which " in (said := capsys.readouterr().err)
        assert "placebo" in said and "baseline need" not in said
    recipe.parse_arguments([*smoke, "--variants", "baseline", "mixup"])
    recipe.parse_arguments([*smoke, "--only", "none"])
    monkeypatch.setattr(recipe, "REGULARIZERS", {"rho_sim"})
    recipe.parse_arguments(smoke)


def all_jobs(recipe, asked):
    return [
        job
        for piece in recipe.chosen_pieces(asked)
        for seed in recipe.seeds_of(asked, piece.seeds)
        for job in recipe.jobs(piece, seed, asked)
    ]


def test_the_whole_study_is_that_of_its_design_the_most_informative_first(recipe, variants, monkeypatch):
    asked = arguments(recipe, monkeypatch)
    jobs = all_jobs(recipe, asked)
    assert len(jobs) == sum(piece.num_trainings for piece in variants.pieces().values()) == 270
    names = [(job.target.name, job.spec.name.partition(" ")[0], job.variant, job.seed) for job in jobs]
    assert len(set(names)) == len(names)
    first = [job for job in jobs if job.target.name == "cifar10"]
    assert [job.variant for job in first[:3]] == ["baseline", "rho_sim", "placebo"]
    assert jobs[: len(first)] == first and [job.seed for job in first] == sorted(job.seed for job in first)
    assert {job.seed for job in first} == set(range(5))
    assert {job.variant: job.options.get("weight_decay") for job in first if "decay" in job.variant} == {
        "weight decay × 3": pytest.approx(3e-4),
        "weight decay × 10": pytest.approx(1e-3),
    }
    (longer,) = {job.options["epochs"] for job in first if job.variant == "longer"}
    assert longer == 27
    (dropout,) = {job.spec.kwargs["dropout"] for job in first if job.variant == "dropout 0.2"}
    assert dropout == 0.2 and all(not job.spec.kwargs for job in first if job.variant != "dropout 0.2")
    of_depth = [job for job in jobs if job.target.name == "cifar10_depth"]
    assert {(job.spec.source, job.seed) for job in of_depth} == {
        (f"cifar_resnet:resnet{depth}", seed) for depth in (32, 56) for seed in range(3)
    }
    settings = sys.modules["study_trainings"].settings_of(first[2], asked)
    assert "regularizer=rho_sim:rho=0.2,weight=0.005,distance=norm_l2,placebo=true" in settings
    assert "epochs=20" in settings and "side=32" in settings and "val_fraction=0.0" in settings
    swept = [job for job in jobs if job.target.name == "cifar10_sweeps"]
    assert {job.target.options["epochs"] for job in swept} == {10} and {job.seed for job in swept} == {0, 1}


def test_what_joins_rho_sim_differs_by_it_alone(variants):
    for name in variants.REGULARIZERS:
        without, with_it = (variants.joined()[each] for each in (name, variants.with_sim(name)))
        assert {**without, **variants.rho_sim()} == with_it
        assert {**without, **variants.rho_sim(placebo=True)} == variants.joined()[variants.with_placebo(name)]


def test_pretrained_networks_have_the_same_controls(recipe, monkeypatch):
    jobs = all_jobs(recipe, arguments(recipe, monkeypatch, "--only", "retinamnist", "--seeds", "0"))
    assert {(job.spec.name, job.options["epochs"]) for job in jobs if job.variant == "longer"} == {
        ("one · x", 26),
        ("two · x", 18),
    }
    assert sorted({job.options.get("weight_decay", 0.05) for job in jobs}) == pytest.approx([0.05, 0.15, 0.5])
    assert {job.variant for job in jobs if job.spec.kwargs} == {"dropout 0.2"}
    assert [job.spec.kwargs for job in jobs if job.variant == "dropout 0.2"] == [{"drop_rate": 0.2}] * 2


@pytest.mark.parametrize(("ratio", "epochs"), [(1.31, 27), (1.35, 27), (1.0, 20), (0.9, 20), (1.3000000001, 26)])
def test_as_many_epochs_as_cost_the_same_are_rounded_up(variants, ratio, epochs):
    assert variants.longer_epochs(ratio) == epochs


def test_a_step_with_rho_sim_and_one_without_are_made_in_turn(recipe, tmp_path, monkeypatch):
    steps, made = sys.modules["sim_steps"], []
    clock = iter(np.cumsum([0, 2, 0, 3, 0, 30, 0, 20]).tolist())  # the second round on a machine that has other work
    monkeypatch.setattr(steps.time, "process_time", lambda: next(clock))
    monkeypatch.setattr(steps, "make_step", lambda _, choice, **__: lambda: made.append(choice))
    spec = ModelSpec("one · x", "conv4:conv4")
    found = [steps.step_cost(tmp_path, "set", spec, "rho_sim", rounds=2, side=8) for _ in range(2)]
    assert made == ["", "rho_sim", "rho_sim", "", "", "rho_sim"]
    assert found[0] == found[1] and (found[0].plain_seconds, found[0].sim_seconds, found[0].ratio) == (16.5, 11.0, 0.6667)
    (kept,) = steps.read_step_costs(tmp_path, "set").values()
    assert kept == found[0]


def test_a_training_is_looked_at_before_its_row_is_kept(recipe, tmp_path):
    looks = sys.modules["sim_looks"]
    values = np.array([[1.0, 1.0], [1.0, 4.0], [3.0, 1.0]])
    plan = SimpleNamespace(num_own_parameters=7, peak_bytes=100)
    metrics = {"negative_log_likelihood": SimpleNamespace(value=0.123456789)}
    tuned = SimpleNamespace(
        record=SimpleNamespace(plan=plan, metric=metrics.get), norms={"only": GradientNorms(("a", "b"), values)}
    )
    work = recipe.LookedAt(SimpleNamespace(rows=tmp_path))
    spec, target = SimpleNamespace(name="resnet20 · as built"), SimpleNamespace(name="cifar10")
    for seed in (0, 1):
        work.also(SimpleNamespace(target=target, spec=spec, variant="rho_sim", seed=seed), tuned)
    first, second = looks.read_looks(tmp_path, "cifar10")
    assert (first.seed, second.seed, first.num_own_parameters, first.peak_bytes) == (0, 1, 7, 100)
    assert first.nll == 0.12346
    assert (first.num_steps, first.median_norm, first.largest_norm, first.num_spikes) == (3, 1.0, 3.5, 1.0)
    averages = tuned.norms["only"].averages
    assert first.roughness == pytest.approx(np.log(values[1:] / averages[:-1]).std(axis=0).mean(), rel=1e-3)
    steps = looks.read_steps(tmp_path, "cifar10")  # of seed 0 alone
    assert [row.norm for row in steps] == pytest.approx(np.sqrt((values**2).sum(axis=1)), rel=1e-4)


def made_up_study(folder):
    """ρSIM is 2 points better than the baseline, and so is the placebo; the longer baseline is 3 points better."""
    gains = {"baseline": 0.0, "rho_sim": 0.02, "placebo": 0.02, "longer": 0.03}
    noise = [0.0, 0.004, -0.002, 0.001, 0.003]

    def rows(model, seeds, **times):
        return [
            row_of(
                model, variant, seed, accuracy=0.6 + gain + noise[seed] * (1 + gain), balanced_accuracy=0.5, auc=0.7 + gain,
                cpu_seconds=times.get(variant, 10.0), settings="epochs=26" if variant == "longer" else "epochs=20",
            )
            for variant, gain in gains.items()
            for seed in seeds
        ]  # fmt: skip

    keep(folder, "cifar10", rows("resnet20", range(5), rho_sim=12.6, placebo=12.6, longer=13.0))
    steps = sys.modules["sim_steps"]
    costs = steps.StepCostRow(model="resnet20", settings="s", plain_seconds=1.0, sim_seconds=1.3, ratio=1.28)
    (folder / "cifar10-step-costs.csv").write_text(steps.as_csv(steps.StepCostRow, [costs]), encoding="utf-8")
    keep(folder, "cifar10_depth", [row for row in rows("resnet56", range(3)) if row.variant in ("baseline", "rho_sim")])
    joined = [
        row_of("resnet20", name, seed, accuracy=0.5 + gain)
        for name, gain in (("mixup", 0.0), ("mixup + rho_sim", 0.01))
        for seed in (0, 1)
    ]
    keep(folder, "cifar10_regularisers", joined)
    swept = [("baseline", 0.5), ("rho_sim", 0.51), ("rho 0.6", 0.48), ("weight 1", 0.4), ("loss kl", 0.52)]
    keep(folder, "cifar10_sweeps", [row_of("resnet20", name, s, accuracy=a + s / 100) for name, a in swept for s in (0, 1)])
    keep(folder, "breastmnist", [row for row in rows("mobilenetv1_050", range(5)) if row.variant != "longer"])
    looks = sys.modules["sim_looks"]
    for variant, roughness, memory in (("baseline", 0.5, 100), ("rho_sim", 0.4, 110)):
        for seed in (0, 1):
            looks.keep_look(
                folder,
                "cifar10",
                looks.LookRow(
                    model="resnet20", variant=variant, seed=seed, nll=1 - (memory > 100) / 10, num_own_parameters=1234,
                    peak_bytes=memory, num_steps=9, median_norm=0.1, largest_norm=0.5, num_spikes=2.0,
                    roughness=roughness + 0.01 * seed,
                ),
            )  # fmt: skip
        steps = [looks.StepRow(model="resnet20", variant=variant, step=n, norm=1 / n) for n in range(1, 10)]
        looks.keep_steps(folder, "cifar10", steps)


@pytest.fixture
def page(recipe, tmp_path):
    made_up_study(tmp_path)
    recipe.main(["--only", "none", "--rows", str(tmp_path), "--out", str(tmp_path / "page.md")])
    return (tmp_path / "page.md").read_text(encoding="utf-8")


def line_of(text, start, after=""):
    rest = text.partition(after)[2] if after else text
    return next(line for line in rest.splitlines() if line.startswith(start))


def test_differences_are_paired_over_seeds_and_stand_beside_time_and_placebo(page):
    noise = np.array([0.0, 0.004, -0.002, 0.001, 0.003])
    each = 100 * (0.02 + 0.02 * noise)
    low, high = stats.ttest_1samp(each, 0).confidence_interval(0.95)
    line = line_of(page, "| rho_sim |", "## Does it help?")
    said = f"**{each.mean():+.2f} [{low:+.2f}, {high:+.2f}]**"
    assert line.endswith(f"| {said} | 5 of 5 |  |  |  |")
    line = line_of(page, "| baseline |", "ResNet-20 alone, and")
    assert line.endswith(f"|  |  | {said} | **+2.00 [+2.00, +2.00]** | **+10.00 [+10.00, +10.00]** |")
    assert "| 5 of 5 | +0.00 [+0.00, +0.00] | +0.00 [+0.00, +0.00] | – |" in line_of(page, "| placebo |")
    assert "| 5 of 5 | **-1.0" in line_of(page, "| longer |")
    assert "| cifar10 | resnet20 | 1.28 times as long | 20 | 26 | 1.26, 1.30 | –, – |" in page


def test_all_pairs_from_scratch_give_the_verdict(page):
    """5 of ResNet-20, 3 of ResNet-56, 2 with mixup; of ResNet-56 and mixup there is no placebo."""
    text = page.partition("## Does it help?")[2].partition("ResNet-20 alone")[0]
    each = [2 + 0.02 * noise for noise in [0.0, 0.4, -0.2, 0.1, 0.3, 0.0, 0.4, -0.2]] + [1.0, 1.0]
    low, high = stats.ttest_1samp(each, 0).confidence_interval(0.95)
    said = f"{np.mean(each):+.2f} [{low:+.2f}, {high:+.2f}]"
    assert f"| all | ρSIM − the same training without it | **{said}** | **+2.00 [+2.00, +2.00]** | **+10.00" in text
    assert "| all | ρSIM − its placebo | +0.00 [+0.00, +0.00] | +0.00 [+0.00, +0.00] | – | 5 |" in text
    assert "on a GPU or both on a CPU" not in text  # where all are
    pretrained = page.partition("## Fine-tuning")[2]
    assert "| breastmnist | ρSIM − the same training without it | **+2.00" in pretrained
    assert "| both sets | ρSIM − the baseline for longer |" not in pretrained  # not trained


def test_the_answer_stands_on_top_with_the_placebo_and_the_epochs_of_the_same_cost(page):
    """In the made-up study the placebo gains as much as ρSIM, and nothing was fine-tuned with one."""
    top = page.partition("`--regularizer rho_sim`")[0]
    said = line_of(top, "- **From scratch**")
    assert said.startswith(
        "- **From scratch**: a gain shows that the placebo may share. Its difference to the same training without it is +1.80 ["
    )
    assert " (10 pairs), to its placebo +0.00 [+0.00, +0.00] (5 pairs), to the baseline trained for longer" in said
    assert " (5 pairs). Also, against the same training without it: AUC × 100 +2.00 [+2.00, +2.00]; NLL saved" in said
    line = line_of(top, "- **Trainings from scratch are short here**")
    assert "the ResNet-20 by +3.0" in line and "mixup -10." in line and "cutmix" not in line


def test_what_shows_in_one_set_alone_is_said(recipe, tmp_path):
    """ρSIM is 2 points better in one set and 2 worse in the other, which together shows nothing."""
    for name, gain in (("breastmnist", 0.02), ("retinamnist", -0.02)):
        made = [
            row_of("mobilenetv1_050", variant, seed, accuracy=0.5 + seed / 100 + of_it)
            for variant, of_it in (("baseline", 0.0), ("rho_sim", gain))
            for seed in range(3)
        ]
        keep(tmp_path, name, made)
    recipe.main(["--only", "none", "--rows", str(tmp_path), "--out", str(tmp_path / "page.md")])
    said = line_of((tmp_path / "page.md").read_text(encoding="utf-8"), "- **Fine-tuning**: no gain of ρSIM shows.")
    assert said.endswith(
        "By set, with intervals that exclude 0: breastmnist, ρSIM − the same training without it, Accuracy, points +2.00 "
        "[+2.00, +2.00]; retinamnist, ρSIM − the same training without it, Accuracy, points -2.00 [-2.00, -2.00]."
    )


@pytest.mark.parametrize(
    ("over", "placebo", "said"),
    [
        ((0.1, 0.3), (0.1, 0.3), "ρSIM helps"),
        ((0.1, 0.3), (-0.1, 0.3), "a gain shows that the placebo may share"),
        ((0.1, 0.3), None, "a gain shows that the placebo may share"),
        ((-0.1, 0.3), (0.1, 0.3), "no gain of ρSIM shows"),
        ((-0.3, -0.1), None, "ρSIM harms"),
    ],
)
def test_a_gain_counts_where_the_placebo_has_less(recipe, over, placebo, said):
    short, difference = sys.modules["sim_short"], sys.modules["studies"].Difference
    made = [each and difference(sum(each) / 2, *each, 1, 2) for each in (over, placebo)]
    assert short._what_shows(*made) == said


def test_pairs_of_different_machines_are_counted(page, recipe, tmp_path):
    assert "different machines" not in page
    rows = [
        row_of("resnet20", variant, seed, accuracy=0.5, versions=versions)
        for variant, versions in (("baseline", "torch 2 on NVIDIA H200"), ("rho_sim", "torch 2 on NVIDIA H200"), ("placebo", "v"))
        for seed in (0, 1)
    ]
    keep(
        tmp_path / "mixed", "cifar10", [*rows, row_of("resnet20", "baseline", 2, accuracy=0.5), row_of("resnet20", "rho_sim", 2)]
    )
    found = {name: sys.modules["sim_tables"].StudyTables.read(tmp_path / "mixed", name) for name in recipe.pieces()}
    pooled = sys.modules["sim_pooled"]
    assert pooled.machines_told(found, pooled.places_from_scratch()) == (
        " The two trainings ran on different machines in 2 of 2 pairs of ρSIM − its placebo; in 2 of 2 pairs of "
        "placebo − the same training without it."
    )
    alike = pooled.comparisons_from_scratch()[2]
    assert alike.on_one_machine and alike.first == "with_sim" and alike.second == "with_placebo"
    assert pooled.difference_in(found, pooled.places_from_scratch(), "accuracy", alike) is None
    made = [
        row_of("resnet20", variant, seed, accuracy=accuracy, versions=versions)
        for seed, (here, there) in enumerate([("v", "v"), ("v", "v"), ("v", "torch 2 on NVIDIA H200")])
        for variant, versions, accuracy in (("rho_sim", here, 0.5), ("placebo", there, 0.4 if seed < 2 else 0.1))
    ]
    keep(tmp_path / "one", "cifar10", made)
    found = {name: sys.modules["sim_tables"].StudyTables.read(tmp_path / "one", name) for name in recipe.pieces()}
    table = pooled.differences_table(
        found, {"all": pooled.places_from_scratch()}, pooled.comparisons_from_scratch(), ["accuracy"]
    )
    assert [line.rpartition("placebo")[2] for line in table.splitlines()[2:]] == [
        " | +20.00 [-23.03, +63.03] | 3 |",
        ", both on a GPU or both on a CPU | **+10.00 [+10.00, +10.00]** | 2 |",
    ]


def test_costs_are_of_pairs_on_one_machine(recipe):
    """Seeds 1 and 2 on a CPU; 0, 3 and 4 on a GPU, where the clock of 0 has the start of the process; of 5 one on each."""
    costs, looks, tables = (sys.modules[name] for name in ("sim_costs", "sim_looks", "sim_tables"))

    def on(machine, variant, seed, seconds, memory):
        gpu = machine == "gpu"
        row = row_of(
            "resnet20", variant, seed, accuracy=0.5, num_parameters=200, seconds=seconds, cpu_seconds=None if gpu else seconds,
            versions="torch 2 on NVIDIA H200" if gpu else "torch 2",
        )  # fmt: skip
        own = 0 if variant == "baseline" else 50
        return row, looks.LookRow(model="resnet20", variant=variant, seed=seed, num_own_parameters=own, peak_bytes=memory)

    made = [on("cpu", "baseline", seed, 10.0, 100) for seed in (1, 2, 5)]
    made += [on("gpu", "baseline", seed, 20.0, 300) for seed in (3, 4)]
    made += [on("cpu", "rho_sim", 1, 12.0, 110), on("cpu", "rho_sim", 2, 13.0, 120), on("gpu", "rho_sim", 5, 99.0, 999)]
    made += [on("gpu", "rho_sim", 3, 30.0, 330), on("gpu", "rho_sim", 4, 50.0, 330)]
    made += [on("gpu", "baseline", 0, 200.0, 300), on("gpu", "rho_sim", 0, 220.0, 330)]
    made += [on("gpu", "longer", seed, 24.0, 300) for seed in (0, 3, 4)]
    table = sys.modules["study_rows"].Table(tuple(row for row, _ in made))
    found = tables.StudyTables(table, [look for _, look in made], [], {}, "cifar10")
    places = [place for place in sys.modules["sim_pooled"].places_from_scratch() if place.piece == "cifar10"]
    assert costs._cells({"cifar10": found}, places, "with_sim") == [
        "1.25 (1.20 to 1.30)",
        "–",
        "2.00 (1.50 to 2.50)",
        "1.15 (1.10 to 1.20)",
        "1.10",
        "50 (0.25)",
    ]
    assert costs._cells({"cifar10": found}, places, "with_placebo")[:2] == ["–", "–"]
    started = found._replace(name="cifar10_depth")
    assert costs._cells({"cifar10": started}, places, "with_sim")[2] == "+20 s"  # 10, 20 and 30
    empty = tables.StudyTables(sys.modules["study_rows"].Table(()), [], [], {}, "none")
    every = dict.fromkeys(recipe.pieces(), empty) | {"cifar10": found}
    assert costs.whole_trainings(every, "cifar10", "resnet20", costs.clock_seconds) == "2.00, 1.20"
    assert costs.whole_trainings(every, "cifar10", "resnet20", costs.cpu_seconds) == "1.25, –"


def test_what_is_published_stands_beside(page):
    assert line_of(page, "| resnet20 | baseline |", "Table 2").endswith("| 5 of 5 | +0.00 [+0.00, +0.00] | ResNet-18: 0.29 |")
    assert line_of(page, "| resnet20 | mixup |", "Table 2").endswith("| 2 of 2 | – | ResNet-50: 0.23 |")
    assert line_of(page, "| resnet56 | baseline |", "Table 2").endswith("| 3 of 3 | – | ResNet-101: 0.25, ResNet-152: 0.13 |")
    assert line_of(page, "| breastmnist | mobilenetv1_050 | rho_sim |").endswith("| **+2.00 [+2.00, +2.00]** |")
    assert line_of(page, "| rho | 0.6 |") == "| rho | 0.6 | 0.485 | **-2.00 [-2.00, -2.00]** | 0 of 2 | – |"
    assert line_of(page, "| rho | 0.2 |") == "| rho | 0.2 | 0.515 | **+1.00 [+1.00, +1.00]** | 2 of 2 | – |"
    assert line_of(page, "| weight | 1 |") == "| weight | 1 | 0.405 | **-10.00 [-10.00, -10.00]** | 0 of 2 | – |"
    assert line_of(page, "| `kl` |") == "| `kl` | 0.525 | **+2.00 [+2.00, +2.00]** | 2 of 2 | 94.85 | +0.20 |"
    assert line_of(page, "| cifar10 | resnet20 | rho_sim |") == (
        "| cifar10 | resnet20 | rho_sim | 1.26 (1.00 to 1.26) | 1.28 | – | 1.10 | – | 1,234 | ResNet-18: 1.11, 1.04 |"
    )
    line = line_of(page, "| resnet20 | rho_sim |", "## Gradients")
    assert line.endswith("| 2 | +0.00 [+0.00, +0.00] | 0.405 | **-0.100 [-0.100, -0.100]** |")
    assert "there is less in 1 and more in 0 of 3 comparisons" in page


def test_intervals_of_the_sweeps_are_those_of_a_regression_on_variant_and_seed(recipe):
    """A dummy for each variant and each seed; the difference of two variants has the error that least squares gives it."""
    sweeps, table = sys.modules["sim_sweeps"], sys.modules["study_rows"].Table
    accuracy = {"baseline": (0.50, 0.47, 0.49), "rho_sim": (0.52, 0.47, 0.48), "weight 1": (0.40, 0.42, 0.41)}
    made = [row_of("resnet20", name, s, accuracy=each[s]) for name, each in accuracy.items() for s in range(3)]
    made.append(row_of("resnet20", "rho 0.6", 0, accuracy=0.9))  # not finished
    found = sweeps.difference_to_baseline(table(tuple(made)), "rho_sim")
    design = np.array([[1, v == 1, v == 2, s == 1, s == 2] for v in range(3) for s in range(3)], dtype=float)
    seen = 100 * np.array(list(accuracy.values())).ravel()
    fitted = np.linalg.lstsq(design, seen, rcond=None)[0]
    variance = ((seen - design @ fitted) ** 2).sum() / (9 - 5) * np.linalg.inv(design.T @ design)[1, 1]
    half = stats.t.ppf(0.975, 4) * np.sqrt(variance)
    assert (found.mean, found.low, found.high) == pytest.approx((fitted[1], fitted[1] - half, fitted[1] + half))
    assert (found.ahead, found.pairs) == (1, 3)
    assert sweeps.difference_to_baseline(table(tuple(made)), "rho 0.6") is None
    assert sweeps.half_width_of_all(table(tuple(made[:3]))) is None
    assert sweeps.beyond_chance(table(tuple(made))).startswith("weight 1 (-7.67 [")
    without = sweeps.half_width_of_all(table(tuple(made)), without="weight 1")
    assert f", and ±{without:.2f} without weight 1, which varies most" in sweeps.widths_told(table(tuple(made)))


def test_memory_of_a_swept_step_is_a_multiple_of_that_of_the_baseline(recipe):
    look, sweeps, tables = sys.modules["sim_looks"].LookRow, sys.modules["sim_sweeps"], sys.modules["sim_tables"]
    peaks = (("baseline", 0, 100), ("rho 0.6", 0, 180), ("baseline", 1, 200), ("rho 0.6", 1, 400))
    looks = [look(model="resnet20", variant=name, seed=seed, peak_bytes=peak) for name, seed, peak in peaks]
    made = [row_of("resnet20", name, seed, accuracy=0.5) for name, seed, _ in peaks]
    found = tables.StudyTables(sys.modules["study_rows"].Table(tuple(made)), looks, [], {}, "cifar10_sweeps")
    assert sweeps.sweeps_table(found).splitlines()[-1].endswith("| 1.90 |")


def test_how_much_is_there_is_said_until_all_is(page, recipe, variants, tmp_path, monkeypatch):
    assert "**The study is not finished: 55 of 270 trainings are there.**" in page
    assert "| CIFAR-10 subset: ResNet-20, and what costs as much | 20 of 35 |" in page
    for name, piece in variants.pieces().items():
        made = [row_of(model, variant, seed, accuracy=0.5) for model in piece.networks for variant in piece.variants
                for seed in piece.seeds]  # fmt: skip
        keep(tmp_path / "all", name, made)
    recipe.main(["--only", "none", "--rows", str(tmp_path / "all"), "--out", str(tmp_path / "all.md")])
    assert "not finished" not in (tmp_path / "all.md").read_text(encoding="utf-8")


def test_what_a_gpu_has_trained_is_said_and_has_no_processor_time(page, recipe, tmp_path):
    assert "Trained on one" not in page
    made = [row_of("resnet20", "baseline", seed, accuracy=0.5, versions="torch 2 on NVIDIA H200") for seed in (2, 0)]
    keep(tmp_path / "gpu", "cifar10", [*made, row_of("resnet20", "baseline", 1, accuracy=0.5)])
    recipe.main(["--only", "none", "--rows", str(tmp_path / "gpu"), "--out", str(tmp_path / "gpu.md")])
    text = (tmp_path / "gpu.md").read_text(encoding="utf-8")
    assert "Trained on one NVIDIA H200 (torch 2): CIFAR-10 subset: ResNet-20, and what costs as much (2 of 3). The" in text


def test_a_page_is_written_when_the_sweeps_have_their_baseline_alone(recipe, tmp_path):
    keep(tmp_path / "few", "cifar10_sweeps", [row_of("resnet20", "baseline", 0, accuracy=0.5)])
    recipe.main(["--only", "none", "--rows", str(tmp_path / "few"), "--out", str(tmp_path / "few.md")])
    assert "1 of 270 trainings" in (tmp_path / "few.md").read_text(encoding="utf-8")


def test_trainings_of_a_gpu_alone_are_listed(recipe, tmp_path):
    on_gpu = {"versions": "torch 2 on NVIDIA H200", "cpu_seconds": None}
    keep(tmp_path / "gpu", "cifar10", [row_of("resnet20", "baseline", seed, accuracy=0.5, **on_gpu) for seed in (2, 0)])
    recipe.main(["--only", "none", "--rows", str(tmp_path / "gpu"), "--out", str(tmp_path / "gpu.md")])
    listed = (tmp_path / "gpu.md").read_text(encoding="utf-8").partition("## Every training")[2]
    assert "| resnet20 | baseline | 0.500 [0.500, 0.500] | – |" in listed


def test_spikes_at_the_end_of_epochs_are_counted(recipe):
    norms = [1.0] * 40
    norms[9] = norms[19] = norms[24] = 9.0  # steps 10, 20 and 25
    looks, gradients = sys.modules["sim_looks"], sys.modules["sim_gradients"]
    steps = [looks.StepRow(model="one", variant="baseline", step=step, norm=norm) for step, norm in enumerate(norms, 1)]
    assert gradients.spikes_told(steps, 4) == "2 of 3 (baseline)" and gradients.spikes_told([], 4) == "–"


def test_without_rows_the_page_says_so(recipe, tmp_path):
    recipe.main(["--only", "none", "--rows", str(tmp_path), "--out", str(tmp_path / "page.md")])
    text = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert "0 of 270 trainings" in text and text.count("Not trained yet.") >= 7


def test_the_figures_show_every_variant_and_value(page, tmp_path):
    gradients = (tmp_path / "page" / "gradients.svg").read_text(encoding="utf-8")
    assert ">baseline<" in gradients and ">rho_sim<" in gradients and ">placebo<" not in gradients
    sweeps = (tmp_path / "page" / "sweeps.svg").read_text(encoding="utf-8")
    assert ">Share of tokens ρ<" in sweeps and ">Weight<" in sweeps
    assert "](page/gradients.svg)" in page and "](page/sweeps.svg)" in page
