"""recipes/repsim_few_steps.py runs without data and trains nothing twice; its lines say what its rows say."""

import sys
from types import SimpleNamespace

import pytest


@pytest.fixture
def recipe(load_recipe):
    return load_recipe("repsim_few_steps")


@pytest.mark.slow
def test_without_data_it_trains_and_resumes(recipe, tmp_path, capsys, monkeypatch):
    command = ["--smoke", "--rows", str(tmp_path), "--variants", "full", "repsim"]
    recipe.main(command)
    first = capsys.readouterr().out.splitlines()[-2:]
    assert [line.partition(":")[0] for line in first] == ["repsim − FULL, resnet20", "repsim − FULL, all networks"]
    assert all(line.endswith(", 1 pairs") for line in first)
    trainings = sys.modules["study_trainings"]
    monkeypatch.setattr(trainings, "tune", lambda *_, **__: pytest.fail("a finished training was made again"))
    recipe.main(command)
    assert capsys.readouterr().out.splitlines() == first


def test_what_judges_comes_before_what_was_chosen_on_and_nothing_twice(recipe, monkeypatch, tmp_path):
    networks = [SimpleNamespace(name=f"{name} · x") for name in recipe.NETWORKS]
    monkeypatch.setattr(recipe, "networks", lambda _: networks)
    asked = recipe.parse_arguments(["--data-dir", str(tmp_path), "--weights-dir", str(tmp_path)])
    jobs = list(recipe.trainings(asked))
    assert len({(job.target.name, job.spec.name, job.variant, job.seed) for job in jobs}) == len(jobs) == 7 * 3 * 4 * 2 * 3
    assert [job.seed for job in jobs] == sorted(job.seed for job in jobs)
    assert [job.target.name for job in jobs[:: len(networks) * 2][:7]] == [*recipe.JUDGED, *recipe.CHOSEN_ON]
    assert not set(recipe.JUDGED) & set(recipe.CHOSEN_ON)
    assert {job.options.get("image_size") for job in jobs if job.spec.name.startswith("resnet20")} == {32}
    assert all(job.options["batch_size"] is None for job in jobs)


def test_differences_are_of_equal_length_set_network_and_seed_on_what_judges(recipe, tmp_path, capsys):
    rows = sys.modules["study_rows"]
    for name in ("ham10000", "breastmnist"):
        table = rows.Table()
        for form, gain in (("full", 0.0), ("repsim", 0.1)):
            for epochs in (2, 6):
                table = table.with_training(
                    rows.TrainingRow(
                        model="net", variant=f"{form}, {epochs} epochs", seed=0, settings="s", versions="v",
                        cka_debiased=0.3 + gain * epochs, accuracy=0.5 - gain, cka=0.5,
                    )
                )  # fmt: skip
        alone = rows.TrainingRow(model="net", variant="repsim, 2 epochs", seed=1, settings="s", versions="v", accuracy=0.0)
        table.with_training(alone).write(tmp_path, name)
    recipe.main(["--only", "none", "--rows", str(tmp_path)])
    said = capsys.readouterr().out.splitlines()
    assert len(said) == 2
    assert "debiased CKA +0.400 [-2.141, +2.941], accuracy -0.100 [-0.100, -0.100], 2 pairs" in said[0]
