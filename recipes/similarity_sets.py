"""Sets and sources of the study of docs/results/similarity.md."""

from __future__ import annotations

import argparse
from dataclasses import replace

from studies import EXAMPLES, MEDICAL_TARGETS, smoke_specs

from crossgraft.models import ModelSpec, read_zoo

TARGETS = MEDICAL_TARGETS[:2]
SOURCES = {"imagenet": "ImageNet", "birds": "birds", "insects": "insects"}
ARCHITECTURE = "mobilenetv2_100"
RANDOM = "random"
"""Name of the network without weights of any source."""


def sources(arguments: argparse.Namespace) -> list[ModelSpec]:
    """One architecture with weights of three sources; as built, two of them, with ``--smoke``."""
    if arguments.smoke:
        return [replace(smoke_specs()[0], name=name) for name in list(SOURCES)[:2]]
    zoo = read_zoo(EXAMPLES / "mobilenets.yaml", weights_dir=arguments.weights_dir, allow_code=EXAMPLES)
    found = {spec.name: spec for spec in zoo}
    return [replace(found[f"{ARCHITECTURE} · {words}"], name=name) for name, words in SOURCES.items()]
