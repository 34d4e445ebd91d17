"""recipes/repsim_few_steps.py runs without data, and its lines say what its trainings said."""

from types import SimpleNamespace

import pytest


@pytest.fixture
def recipe(load_recipe):
    return load_recipe("repsim_few_steps")


@pytest.mark.slow
def test_without_data_it_trains_both_modes(recipe, capsys):
    recipe.main(["--smoke"])
    said = capsys.readouterr().out
    assert "| noise | resnet20 | 1 |" in said and "over 1 pairs" in said


def test_differences_are_frozen_minus_train_and_of_equal_seeds(recipe, monkeypatch, capsys):
    asked = []

    def tuned(data, *, model, batch_norm, epochs, seed, regularizer, **_):
        asked.append((data, model, batch_norm, epochs, seed, regularizer))
        accuracy = 0.5 + 0.1 * seed + (0.03 * epochs / 15 - 0.05 if batch_norm == "frozen" else 0.0)
        record = SimpleNamespace(
            metric=lambda _: SimpleNamespace(value=accuracy), plan=SimpleNamespace(steps_per_epoch=4)
        )
        return SimpleNamespace(record=record)

    monkeypatch.setattr(recipe, "fine_tune", tuned)
    monkeypatch.setattr(recipe, "parts_of", lambda target, _: target.name)
    monkeypatch.setattr(recipe, "networks", lambda _: [SimpleNamespace(name=f"{each} · x") for each in ("one", "two")])
    recipe.main(["--data-dir", ".", "--weights-dir", "."])
    lines = capsys.readouterr().out.splitlines()
    assert "| busi | two | 60 | 0.580 | 0.600 | -0.020 |" in lines
    assert lines[-2:] == [
        "15 epochs, 60 to 60 steps: -0.020 [-0.020, -0.020] over 6 pairs",
        "45 epochs, 180 to 180 steps: +0.040 [+0.040, +0.040] over 6 pairs",
    ]
    assert len(asked) == len(set(map(str, asked))) == 72 and {each[-1] for each in asked} == {"repsim"}
