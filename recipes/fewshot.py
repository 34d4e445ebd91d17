"""Few-shot heads on real images: at which ways and shots each earns its cost; docs/results/fewshot.md.

    python recipes/fewshot.py --data-dir datasets --weights-dir weights --out docs/results/fewshot.md
    python recipes/fewshot.py --only busi --networks mobilenetv1_050 --kinds heads     # a piece
    python recipes/fewshot.py --only none --out docs/results/fewshot.md                # the page alone
    python recipes/fewshot.py --smoke                # an as-built network and noise; the numbers mean nothing

The environment variable CROSSGRAFT_DATA may name a folder that holds both, ``datasets`` and ``weights``. Each piece (a set, a
network, a rule for the episodes) ends as rows of ``--rows``, one table per set, and what is there is not done again, so the study
can be done in pieces, and by two processes at once that work on different sets.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from data_folders import add_folders, check_folders
from fewshot_page import write_page
from fewshot_rows import BALANCED, baselines_of, keep_episodes, read_rows, results, write_rows
from fewshot_sets import SETS, SMOKE_SETS, FewshotSet, Images
from fewshot_student import STUDENT, make_student
from studies import EXAMPLES, device_name, short, smoke_specs

from crossgraft.choice import choose
from crossgraft.compute import limit_threads
from crossgraft.features import extract_features
from crossgraft.fewshot import EpisodeTable, TipAdapterHead, class_weights_from_head, evaluate
from crossgraft.fewshot.choice import choose_heads
from crossgraft.fewshot.episodes import SAMPLERS
from crossgraft.fewshot.heads import reads_images
from crossgraft.fewshot.parts import EpisodeImages
from crossgraft.models import Backbone, ModelSpec, load_backbone, read_zoo

ROWS = Path(__file__).parents[1] / "docs" / "results" / "fewshot"
NETWORKS = {
    "mobilenetv1_050 · ImageNet": "mobilenets.yaml",
    "conv4 · miniImageNet, 5-shot": "small_networks.yaml",
    "resnet20 · CIFAR-10": "small_networks.yaml",
    "conv4 · Omniglot": "small_networks.yaml",
}
FIRST_WORDS = sorted({name.partition(" ")[0] for name in (*NETWORKS, STUDENT)})
SEEN = "conv4 · Omniglot"
"""Trained on Omniglot, and used there alone."""
STUDENT_INSIDE = "spoken_digits"
"""Where heads also train inside the distilled network: the set that is furthest from what it was distilled on."""
ON_FEATURES = "ncc,url,url:learning_rate=unseen,copa,copa:learning_rate=0.005,weight_decay=0,tip_adapter,logistic,ridge"
IN_BACKBONE = f"{ON_FEATURES},tsa:learning_rate=unseen,copa_tsa,fine_tuning"
"""TSA at its rate for seen domains joins where a network has seen the domain."""
BALANCED_TOO = "logistic,logistic:balanced=true,ridge,ridge:balanced=true,ncc,url:learning_rate=unseen,copa"
RATES_OF_TSA = "logistic,ridge,tsa:learning_rate=unseen,tsa:learning_rate=unseen,form=vector,tsa"
HEADS, INSIDE, NAMED, RATES = "heads", "inside", "named", "rates"
RATES_ON = ("cifar10", "busi")
"""Sets on which the two rates of TSA are set beside each other in a network of depthwise convolutions."""
EPISODES = {HEADS: 600, INSIDE: 60, NAMED: 600, BALANCED: 60, RATES: 20}
ON_KIND = {HEADS: ON_FEATURES, INSIDE: IN_BACKBONE, BALANCED: BALANCED_TOO, RATES: RATES_OF_TSA}
IMAGENET_HEAD = "mobilenetv1_050 · ImageNet"


class Piece(NamedTuple):
    """One network on one set under one rule."""

    of: FewshotSet
    spec: ModelSpec
    kind: str
    sampler: str


def main(command_line: Sequence[str] | None = None) -> None:
    arguments = parse_arguments(command_line)
    sets = SMOKE_SETS if arguments.smoke else SETS
    if arguments.only != ["none"]:
        with limit_threads(1):
            for piece in pieces(sets, networks(arguments), arguments):
                do(piece, arguments)
    tables = {each.name: read_rows(arguments.rows, each.name) for each in sets}
    if arguments.out is not None:
        write_page(arguments.out, tables, {each.name: each.title for each in sets})
    print(f"{sum(map(len, tables.values()))} rows are there")


def networks(arguments: argparse.Namespace) -> list[ModelSpec]:
    if arguments.smoke:
        return smoke_specs()
    wanted = arguments.networks or FIRST_WORDS
    found: list[ModelSpec] = []
    for name, zoo in NETWORKS.items():
        if name.partition(" ")[0] in wanted:
            specs = read_zoo(EXAMPLES / zoo, weights_dir=arguments.weights_dir, allow_code=EXAMPLES)
            found.append(next(spec for spec in specs if spec.name == name))
    if STUDENT.partition(" ")[0] in wanted and set(arguments.kinds) - {NAMED, RATES}:  # minutes where its file is missing
        found.append(student(arguments))
    return found


def student(arguments: argparse.Namespace) -> ModelSpec:
    """The distilled network; it is made where its file is missing."""
    specs = read_zoo(EXAMPLES / "small_networks.yaml", weights_dir=arguments.weights_dir, allow_code=EXAMPLES)
    if not arguments.student.is_file():
        make_student(arguments.student, {spec.name: spec for spec in specs}, arguments.data_dir)
    start = next(spec for spec in specs if spec.name == "resnet20 · CIFAR-10")
    return replace(start, name=STUDENT, weights=str(arguments.student.resolve()))


def pieces(sets: Sequence[FewshotSet], specs: Sequence[ModelSpec], arguments: argparse.Namespace) -> Iterator[Piece]:
    """All that is asked for: what is quick first."""
    for kind in arguments.kinds:
        for of in [each for each in sets if not arguments.only or each.name in arguments.only]:
            for spec in specs:
                if short(spec) in of.unfit or (spec.name == SEEN and of.name != "omniglot"):
                    continue
                if kind == INSIDE and spec.name == STUDENT and of.name != STUDENT_INSIDE:
                    continue
                if kind == NAMED and not (of.named and spec.name == IMAGENET_HEAD):
                    continue
                if kind == RATES and not (of.name in RATES_ON and spec.name == IMAGENET_HEAD):
                    continue
                rules = [f"n_way_k_shot:ways=5,shots={shots}" for shots in of.shots] + ["meta_dataset"]
                for rule in {INSIDE: [rules[1]], RATES: [rules[1]], BALANCED: [rules[-1]]}.get(kind, rules):
                    yield Piece(of, spec, kind, rule)


def do(piece: Piece, arguments: argparse.Namespace) -> None:
    """Adapt the heads to all episodes, but those that have done so; the baselines are needed for differences."""
    key = (piece.spec.name, piece.kind, piece.sampler)
    done = [row for row in read_rows(arguments.rows, piece.of.name) if (row.network, row.kind, row.sampler) == key]
    start = time.perf_counter()
    backbone = loaded(piece.spec, arguments)
    heads = heads_of_piece(piece, backbone)
    missing = heads.keys() - {row.head for row in done}
    if not missing:
        return
    wanted = {name: head for name, head in heads.items() if name in missing or name in baselines_of(piece.kind)}
    num_episodes = 2 if arguments.smoke else done[0].episodes if done else EPISODES[piece.kind]
    table = evaluated(piece, opened(piece.of.opened, arguments.data_dir), backbone, wanted, num_episodes)
    new = [row for row in results(*key, table, device_name(arguments.device)) if row.head in missing]
    keep_episodes(arguments.rows, piece.of.name, new, table)
    write_rows(arguments.rows, piece.of.name, [*read_rows(arguments.rows, piece.of.name), *new])
    print(f"{piece.of.name} {' '.join(key)}: {time.perf_counter() - start:.0f} s", flush=True)


@cache
def opened(reads: Callable[[Path], Images], folder: Path) -> Images:
    return reads(folder)


def loaded(spec: ModelSpec, arguments: argparse.Namespace) -> Backbone:
    folder, device = arguments.weights_dir, arguments.device
    return load_backbone(spec, weights_dir=folder, image_size=32 if folder is None else None, device=device)


def evaluated(piece: Piece, images: Images, backbone: Backbone, heads: Mapping[str, Any], num_episodes: int) -> EpisodeTable:
    """Fewer ways than five where a set has fewer classes."""
    dataset = images.dataset
    ways = min(5, len(dataset.class_names))
    rule = piece.sampler.replace("ways=5", f"ways={ways}").replace("meta_dataset", f"meta_dataset:min_ways={ways}")
    for head in heads.values():
        if reads_images(head):
            head.set_params(backbone=backbone)
    return evaluate(
        extract_features(dataset, backbone).features,
        np.array(dataset.class_names)[dataset.targets],
        heads,
        sampler=choose(SAMPLERS, rule),
        num_episodes=num_episodes,
        groups=dataset.groups,
        superclasses=images.superclasses if piece.sampler == "meta_dataset" else None,
        images=EpisodeImages(dataset.read, backbone.preprocessing) if piece.kind in (INSIDE, RATES) else None,
    )


def heads_of_piece(piece: Piece, backbone: Backbone) -> dict[str, Any]:
    """Heads by name; with names of classes, those that start from rows of the ImageNet head, and what stands beside them."""
    if piece.kind != NAMED:
        is_seen = piece.kind == INSIDE and piece.spec.name == SEEN
        return choose_heads(f"{ON_KIND[piece.kind]},tsa" if is_seen else ON_KIND[piece.kind])
    weights = class_weights_from_head(backbone, piece.of.named)
    return {
        "class weights alone": TipAdapterHead(class_weights=weights, alpha=0.0),
        "tip_adapter of names": TipAdapterHead(class_weights=weights),
        "tip_adapter of names, trained": TipAdapterHead(class_weights=weights, fine_tune=True),
        "tip_adapter of names, trained with rho_sim": TipAdapterHead(class_weights=weights, fine_tune=True, rho_sim_weight=5e-3),
        **choose_heads("tip_adapter,copa,logistic,ridge"),
    }


def parse_arguments(command_line: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_folders(parser)
    parser.add_argument("--rows", type=Path, default=ROWS, help="tables of what is done")
    parser.add_argument("--out", type=Path, help="the page to write")
    parser.add_argument("--only", nargs="+", choices=[*(s.name for s in SETS), "none"], help="these sets; none: the page")
    parser.add_argument("--networks", nargs="+", choices=FIRST_WORDS)
    parser.add_argument("--student", type=Path, default=Path("universal_resnet20.safetensors"), help="distilled network")
    parser.add_argument("--kinds", nargs="+", choices=sorted(EPISODES), default=[BALANCED, HEADS, NAMED, RATES, INSIDE])
    parser.add_argument("--device", default="cpu", help="where the networks are: cpu, cuda, cuda:N or mps")
    parser.add_argument("--smoke", action="store_true", help="an as-built network and noise; the numbers mean nothing")
    parsed = parser.parse_args(command_line)
    check_folders(parser, parsed)
    return parsed


if __name__ == "__main__":
    main()
