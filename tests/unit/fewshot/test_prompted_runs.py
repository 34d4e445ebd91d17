"""Whole runs with prompts: published settings, and weights that changed under a run."""

import numpy as np
import pytest
from safetensors.torch import load_file, save_file

from crossgraft import run_episodes
from crossgraft.data import dataset_from_arrays
from crossgraft.errors import RunDirectoryError
from crossgraft.fewshot import verb
from crossgraft.progress import Reporter
from support import text_towers


@pytest.fixture
def asked(tmp_path):
    text_towers.write_transformers_clip(tmp_path / "clip")
    images = np.random.default_rng(0).integers(0, 255, (36, 32, 32, 3)).astype(np.uint8)
    data = dataset_from_arrays(images, np.array(["cat", "dog"] * 18), name="pets")
    return data, {"model": f"transformers:{tmp_path / 'clip'}", "prompts": "a {class}", "holdout": 0, "workers": 1}


def test_a_preset_takes_its_class_weights_from_prompts(asked):
    data, options = asked
    few = run_episodes(data, **options, preset="sim_few_shot:ways=2", episodes=1)
    assert [row.title for row in few.record.heads].count("Zero-shot") == 1
    assert len(few.record.heads) == 3 and few.record.baseline == "tip_adapter:fine_tune=True"
    assert few.record.prompts.texts == {"cat": ["cat"], "dog": ["dog"]}


def test_texts_that_changed_under_a_run_are_said_and_computed_anew(asked, tmp_path, monkeypatch):
    data, options = asked
    options |= {"heads": "zero_shot", "sampler": "n_way_k_shot:ways=2,shots=2", "episodes": 3, "out": tmp_path / "run"}
    read, load = [], verb.load_text_tower
    monkeypatch.setattr(verb, "load_text_tower", lambda *a, **k: read.append(1) or load(*a, **k))
    said = []
    monkeypatch.setattr(Reporter, "warn", lambda _, message: said.append(message))
    before = run_episodes(data, **options).record.prompts
    assert not any("Weights have changed" in each for each in said)
    file = tmp_path / "clip" / "model.safetensors"
    state = load_file(file)
    save_file({**state, "text_projection.weight": -state["text_projection.weight"]}, file)
    after = run_episodes(data, **options).record.prompts
    (changed,) = [each for each in said if "Weights have changed" in each]
    assert f"(texts) {before.weights_fingerprint[:12]}, now {after.weights_fingerprint[:12]}" in changed
    with pytest.raises(RunDirectoryError, match="different: prompts"):
        run_episodes(data, **options | {"prompts": "the {class}"})
    assert len(read) == 2  # a folder of another run is refused before a text tower is read
