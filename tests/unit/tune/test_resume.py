"""A run that is killed, at any point, and started again ends with the same bits as one that was not."""

import json
import os
import random
import signal
from pathlib import Path

import pytest

from support import forked

pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group(forked.GROUP),  # all trainings are made at once, for all tests of this file
    pytest.mark.skipif(not hasattr(os, "fork"), reason="kills forks of one process"),
]

STEPS = 9  # 22 images in batches of 7, 7 and 8, for three epochs
DRAWN = random.Random(5)


def drawn_steps(number):
    return sorted(DRAWN.sample(range(1, STEPS + 1), number))


SCENARIOS = {
    "batch norm, at random steps": ("cnn", [{"after step": ["all", step]} for step in drawn_steps(3)]),
    "dropout, at random steps": ("dropout", [{"after step": ["all", step]} for step in drawn_steps(3)]),
    "drop path, at random steps": ("vit", [{"after step": ["all", step]} for step in drawn_steps(1)]),
    "batch norm, in checkpoints": ("cnn", [{"half of write": 3}, {"before rename": 1}, {"after rename": 2}]),
    "dropout, in the first checkpoint": ("dropout", [{"half of write": 1}, {"before rename": 1}]),
    "in and between both phases": (
        "cnn",
        [{"after step": ["head", 3]}, {"after rename": 3}, {"after step": ["all", 7]}],
        {"head_first": True},
        "full",
    ),
    "sgd with clipping and parts": (
        "dropout",
        [{"after step": ["all", 5]}],
        {"optimizer": "sgd", "clip_norm": 0.1, "accumulate": 2},
        "full",
    ),
    "lora with dropout": ("cnn", [{"after step": ["all", 4]}, {"half of write": 2}], {}, "lora"),
    "kept statistics of batch norm": (
        "cnn",
        [{"after step": ["all", 2]}, {"after rename": 2}, {"after step": ["all", 8]}],
        {},
        "kept statistics",
    ),
    "a similarity to keep, in and between epochs": (
        "dropout",
        [{"after step": ["all", 5]}, {"after rename": 2}, {"after step": ["all", 8]}],
        {"keep": 0.9, "learning_rate": 0.05},
        "kept statistics",
    ),
    "reconstructors of rho_sim, head first": (
        "cnn",
        [{"after step": ["head", 3]}, {"after rename": 3}, {"after step": ["all", 5]}, {"half of write": 2}],
        {"rho_sim": True, "head_first": True},
        "full",
    ),
    "at pauses, and between them": ("dropout", [{"after step": ["all", 5]}, {"half of write": 1}]),
    "norms of gradients, between and in their files": (
        "dropout",
        [{"after step": ["all", 4]}, {"half of write": 2}, {"after rename": 1}, {"after rename": 2}],
        {"log_gradient_norms": True},
        "full",
    ),
    "irm with mixstyle, before and after its weight jumps": (
        "cnn",
        [{"after step": ["all", 3]}, {"after step": ["all", 5]}, {"after step": ["all", 8]}],
        {"objective": "irm:weight=5,anneal_steps=4", "mixstyle": True},
        "full",
    ),
    "group_dro, whose weights are in checkpoints, head first": (
        "dropout",
        [{"after step": ["head", 3]}, {"after step": ["all", 5]}, {"half of write": 2}],
        {"objective": "group_dro:eta=0.5,groups=domains_and_classes", "head_first": True},
        "full",
    ),
    "adaptformer with dropout, head first": (
        "vit",
        [{"after step": ["head", 2]}, {"after step": ["all", 5]}],
        {"head_first": True},
        "adaptformer",
    ),
}


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """Signal of each attempt, by folder; all attempts of all scenarios in one process that imports torch once."""
    root = tmp_path_factory.mktemp("killed")
    attempts = []
    for name, (network, kills, *more) in SCENARIOS.items():
        settings, method = more or ({}, "full")
        common = {"network": network, "settings": settings, "method": method}
        attempts.append({**common, "folder": str(root / name / "whole")})
        attempts += [{**common, **kill, "folder": str(root / name / "killed")} for kill in kills]
        attempts.append({**common, "folder": str(root / name / "killed")})
    for attempt in attempts:
        Path(attempt["folder"]).mkdir(parents=True, exist_ok=True)
    (root / "scenarios.json").write_text(json.dumps(attempts))
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    scenarios = str(root / "scenarios.json")
    done = forked.run("support.killed_training", scenarios, environment=environment, cwd=root, timeout=300)
    assert done.returncode == 0, done.stderr
    signals = [int(line) for line in done.stdout.split()]
    assert len(signals) == len(attempts), done.stderr
    return root, list(zip(attempts, signals, strict=True)), done.stderr


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_killed_run_ends_like_a_whole_one(outcomes, name):
    root, attempts, said = outcomes
    kills = [code for attempt, code in attempts if Path(attempt["folder"]) == root / name / "killed"]
    assert kills == [signal.SIGKILL] * len(SCENARIOS[name][1]) + [0], said
    norms = ["gradient_norms.csv"] if "log_gradient_norms" in str(SCENARIOS[name]) else []
    for file in ("final.safetensors", "final.json", *norms):
        assert (root / name / "whole" / file).read_bytes() == (root / name / "killed" / file).read_bytes()


def test_nothing_half_written_is_left(outcomes):
    root, _, _ = outcomes
    for folder in root.glob("*/killed"):
        assert sorted(path.name for path in folder.iterdir()) == [
            "checkpoint.safetensors",
            "final.json",
            "final.safetensors",
            *(["gradient_norms.csv"] if "norms of gradients" in folder.parent.name else []),
        ]
