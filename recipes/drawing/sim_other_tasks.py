"""Fields of docs/results/sim-other-tasks.md; each kind of task has a module of its own with its tables and its sentence."""

from __future__ import annotations

from pathlib import Path

from drawing import sim_other_images, sim_other_sequences


def fields(results: Path, figures: Path) -> dict[str, str]:
    return sim_other_images.fields(results, figures) | sim_other_sequences.fields(results, figures)
