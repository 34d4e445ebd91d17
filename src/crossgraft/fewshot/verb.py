"""``run_episodes``: which head learns best from a handful of images, with a frozen backbone."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np

from crossgraft.choice import choose, spell
from crossgraft.compute import available_cores, limit_threads, resolve_device
from crossgraft.data import Dataset
from crossgraft.data.checks import check_rows
from crossgraft.data.describe import describe_dataset, make_thumbnails
from crossgraft.data.opening import data_errors_first, open_divided
from crossgraft.errors import CrossgraftWarning, UsageError
from crossgraft.features import extract_features
from crossgraft.features.extract import foresee_extraction
from crossgraft.fewshot.choice import choose_heads, heads_left_out, name_of_baseline, names_without_folders
from crossgraft.fewshot.class_split import ClassSplit, class_split_of
from crossgraft.fewshot.class_weights import encode_prompts, read_prompts, refuse_unnamed
from crossgraft.fewshot.episode_work import Chosen, Drawn, base_classes_of, draw_from, episode_work, learns_on_base_classes
from crossgraft.fewshot.episodes import SAMPLERS, Sampler
from crossgraft.fewshot.evaluate import episode_of, joined
from crossgraft.fewshot.heads import ZeroShotHead, reads_images
from crossgraft.fewshot.look import look_at_episode, sets_gaps
from crossgraft.fewshot.options import FewshotOptions
from crossgraft.fewshot.parts import (
    EPISODES,
    EpisodeImages,
    EpisodeWork,
    evaluate_in_parts,
    finished_parts,
    foresee_episodes,
    made_up_features,
)
from crossgraft.fewshot.record import EpisodeLookRecord, FewshotRecord
from crossgraft.fewshot.result import (
    FewshotResult,
    cite_heads,
    describe_gaps,
    describe_heads,
    describe_sizes,
    leans_towards_large_classes,
    notes_of_head,
)
from crossgraft.models import Backbone, load_as_asked, load_text_tower
from crossgraft.models.backbone import describe_model
from crossgraft.models.taps import state_kept
from crossgraft.models.zoo import one_model
from crossgraft.options._option import configuration, narrowed
from crossgraft.options.data import DatasetOptions
from crossgraft.progress import Piece, Reporter
from crossgraft.records.base import CheckRecord
from crossgraft.running.publishing import publish
from crossgraft.running.run_directory import RunDirectory
from crossgraft.running.verb import Run, verb
from crossgraft.tune.presets import PRESETS
from crossgraft.words.formatting import counted

_LOOKING = "looking"


@verb("fewshot", FewshotOptions)
def run_episodes(data: str | Path | Dataset, options: FewshotOptions, run: Run) -> FewshotResult:
    """Adapt several heads to the same few-shot tasks, drawn from labelled images, with a frozen backbone.

    Reads the training rows and never opens any other row, as ``rank_models`` does; ``holdout=0`` makes every row a training
    row. Where there are groups, no patient is in the support set and among the queries of an episode. Heads are compared
    with a baseline, by differences that are paired by episode.

    Args:
        data: Folder, table, ``.npz`` file, ``digits``, or an open ``Dataset``.
        {options}

    Returns:
        Means with intervals; with ``out`` also ``report.html``, ``report.json``, ``run.json``, ``heads.csv`` and
        ``episodes.csv`` there.

    Raises:
        DataError: Something is wrong with the images or labels; or an episode needs more classes, images or patients.
        UsageError: An argument is wrong or contradicts another.
        UnknownNameError: A name is not known, for example of a head.
        MissingWeightsError: Weights are not on this machine.
        RunDirectoryError: ``out`` is in use or holds another run.

    Cost:
        One forward pass per image, then per episode and head milliseconds (NCC) to half a second (CoPA, 500 images); for a head
        that trains inside the network as many forward and backward passes of the support set as it has steps.
    """
    reporter = run.reporter
    class_split = class_split_of(data, options)
    if class_split is not None:
        options = _with_base_classes(options, class_split)
    elif options.classes_of != "test":
        raise UsageError("--classes-of is a part of a class split, and there is none. Give one: --class-split FILE.")
    prompts = None if options.prompts is None else read_prompts(options.prompts)
    chosen = _choose(options, reporter)
    with data_errors_first(data, options):
        spec = one_model(options, reporter)
    device, threads = resolve_device(options.device), options.workers or available_cores()
    resolved: dict[str, object] = {"model": spec.describe(), "heads": chosen.written, "sampler": spell(chosen.sampler)}
    if prompts is not None:
        resolved["prompts"] = prompts.describe()
    typed = {**configuration(options), **resolved, "model": getattr(options.model, "typed", str(options.model))}
    location = data.name if isinstance(data, Dataset) else data
    with run.directory(location, typed=typed, resolved=resolved, out=options.out) as directory:
        tower = None
        if prompts is not None:
            tower = load_text_tower(
                spec, device=device, weights_dir=options.weights_dir, allow_download=options.allow_download, reporter=reporter
            )
        dataset = _open(data, options, class_split, reporter)
        if directory:
            directory.describe_data(dataset.fingerprint)
            directory.describe_machine(reporter, threads=threads, device=device)
        findings = check_rows(dataset, strict=options.strict, reporter=reporter)
        drawn = draw_from(dataset, options)
        prompted = None
        if prompts is not None and tower is not None:
            prompted = encode_prompts(tower, prompts, dataset.class_names)
            reporter.say(prompted.note)
            chosen = replace(chosen, heads={name: prompted.given_to(head) for name, head in chosen.heads.items()})
        refuse_unnamed(chosen.heads, () if drawn.is_base.any() else dataset.class_names)
        drawn.first_episode(chosen.sampler, options.seed)  # whether there is one at all, before the network looks
        backbone = load_as_asked(spec, options, device=device)
        if directory:
            texts = {} if tower is None else {f"{tower.name} (texts)": tower.weights_fingerprint}
            directory.describe_weights(reporter, {backbone.name: backbone.weights_fingerprint, **texts})
        width = backbone.num_features if prompted is None else prompted.record.num_features
        _foresee(dataset, drawn, backbone, chosen, options, width=width, threads=threads, run=directory, reporter=reporter)
        with reporter.part(_LOOKING):
            extracted = extract_features(
                dataset,
                backbone,
                cache_dir=options.cache_dir,
                batch_size=options.batch_size,
                num_threads=threads,
                reporter=reporter,
                is_announced=not reporter.wants_forecast,
            )
        features = extracted.features if prompted is None else prompted.tower.project(extracted.features, backbone)
        works = [
            episode_work(dataset, drawn, features, backbone, chosen, options, repeat=repeat) for repeat in range(options.seeds)
        ]
        total = options.episodes * options.seeds
        with reporter.part(EPISODES), reporter.stage("Adapting heads to episodes", total=total, unit="episodes") as stage:
            of_seeds = [
                evaluate_in_parts(
                    work,
                    options.episodes,
                    images=_images(dataset, backbone, work),
                    num_workers=threads,
                    run=directory,
                    told=stage.advance,
                )
                for work in works
            ]
        table, look = joined(of_seeds), _look(works[0])
        record = FewshotRecord(
            dataset=describe_dataset(dataset, show_names=options.show_names),
            model=describe_model(backbone, "candidate", seconds=extracted.seconds, from_cache=extracted.from_cache),
            heads=describe_heads(of_seeds, chosen.heads, chosen.baseline),
            left_out=heads_left_out(options.heads, base_classes=base_classes_of(options), has_prompts=prompted is not None),
            baseline=chosen.baseline,
            baseline_leans=leans_towards_large_classes(chosen.heads[chosen.baseline], chosen.sampler),
            sampler=spell(chosen.sampler),
            sampler_title=chosen.sampler.title,
            num_episodes=options.episodes,
            num_seeds=options.seeds,
            seen=options.seen,
            sizes=describe_sizes(table),
            gaps=describe_gaps(table.gaps),
            look=look,
            prompts=None if prompted is None else prompted.record,
            groups_apart=dataset.groups is not None,
            base_classes=base_classes_of(options),
            superclass_column=options.superclass_column,
            checks=list[CheckRecord](findings),
            references=cite_heads(chosen.heads, chosen.sampler),
        )
        result = FewshotResult(record, table=table)
        if directory is None:
            return result
        of_gaps = {"gaps.csv": result.gaps()} if record.gaps else {}
        page = publish(
            directory,
            record,
            reporter,
            tables={"heads.csv": result.to_frame(), "episodes.csv": result.episodes(), **of_gaps},
            split=dataset.split,
            thumbnails=None if options.no_images else lambda: make_thumbnails(dataset),
        )
        return replace(result, out=directory.path, report=page)


def _open(data: str | Path | Dataset, options: FewshotOptions, split: ClassSplit | None, reporter: Reporter) -> Dataset:
    """Training rows; with a class split those of its classes alone, where only parts that come with the data count."""
    reading = narrowed(DatasetOptions, options)
    dataset = open_divided(data, reading, use_split="train", default_split=split is None, reporter=reporter)
    if not dataset.task.partitions:
        raise UsageError("Episodes need one class per image, and these images have several labels.")
    if split is None:
        return dataset
    dataset = split.taken_from(dataset, options.classes_of, with_base=bool(base_classes_of(options)))
    counts = ", ".join(f"{len(names)} {part}" for part, names in split.parts.items())
    reporter.say(f"Classes are divided by {split.file.name}: {counts}. Episodes are drawn from {options.classes_of}.")
    return dataset


def _with_base_classes(options: FewshotOptions, split: ClassSplit) -> FewshotOptions:
    """Heads that learn on base classes do so on those of train, where none were named."""
    if options.base_classes is not None:
        raise UsageError(f"--base-classes and {split.file.name} both say what heads learn on first. Leave one of them out.")
    heads = choose_heads(options.heads, has_prompts=options.prompts is not None).values()
    return replace(options, base_classes=list(split.names_of("train"))) if any(map(learns_on_base_classes, heads)) else options


def _choose(options: FewshotOptions, reporter: Reporter) -> Chosen:
    """Heads, sampler and baseline; what the options of heads mean for their results is said.

    Raises:
        UnknownNameError: With the nearest names.
        UsageError: A head needs base classes and there are none; or as of the heads.
    """
    base_classes, has_prompts = base_classes_of(options), options.prompts is not None
    written = choose_heads(options.heads, base_classes=base_classes, has_prompts=has_prompts)
    if has_prompts and not any(isinstance(head, ZeroShotHead) for head in written.values()):
        written[ZeroShotHead.name] = ZeroShotHead()  # what the texts give alone
    for name, why in heads_left_out(options.heads, base_classes=base_classes, has_prompts=has_prompts).items():
        reporter.say(f"{name} is left out: it {why}.")
    shown = names_without_folders(written)
    heads = {shown[name]: head for name, head in written.items()}
    learners = [name for name, head in heads.items() if learns_on_base_classes(head)]
    if learners and not base_classes:
        raise UsageError(f"{learners[0]} has to learn on base classes first. Name some: --base-classes a,b,c.")
    if base_classes and not learners:
        raise UsageError("--base-classes is for heads that learn on base classes, as meta_adapter, and none of these does.")
    if options.gaps and not any(map(sets_gaps, heads.values())):
        raise UsageError("--gaps needs a head with prototypes: ncc, url or copa. None of these heads has some.")
    baseline = shown[name_of_baseline(written, options.baseline)]
    if options.preset is not None:
        reporter.say(f"--preset {options.preset}: {choose(PRESETS, options.preset).differs}")
    for name, head in heads.items():
        for note in [] if has_prompts else notes_of_head(head):
            reporter.say(f"{name}: {note}")
        if has_prompts and reads_images(head):
            reporter.say(f"{name}: It trains inside the network and sees its own features, not those of the space of texts.")
    sampler = choose(SAMPLERS, options.sampler)
    if not isinstance(sampler, Sampler):
        raise UsageError(f"sampler must be a name or a Sampler of crossgraft.fewshot, got {type(sampler).__name__}.")
    return Chosen(heads, list(written), sampler, baseline)


def _foresee(
    dataset: Dataset,
    drawn: Drawn,
    backbone: Backbone,
    chosen: Chosen,
    options: FewshotOptions,
    *,
    width: int,
    threads: int,
    run: RunDirectory | None,
    reporter: Reporter,
) -> None:
    """Say how long what is left will take, but where heads learn on base classes first, which takes as long as they need."""
    if not reporter.wants_forecast or drawn.is_base.any():
        return
    made_up = made_up_features(drawn.labels, width, seed=options.seed)
    works = [episode_work(dataset, drawn, made_up, backbone, chosen, options, repeat=repeat) for repeat in range(options.seeds)]
    finished = (span.size for work in works for span in finished_parts(work, options.episodes, run=run))
    num_episodes = options.episodes * options.seeds - sum(finished)
    if num_episodes == 0:
        return
    images = _images(dataset, backbone, works[0])
    with state_kept(backbone.module):
        episodes = foresee_episodes(works[0], num_episodes, images=images, num_workers=threads)
    look = foresee_extraction(dataset, backbone, cache_dir=options.cache_dir, batch_size=options.batch_size, reporter=reporter)
    seen, adapted = counted(len(dataset), "image"), counted(num_episodes, "episode")
    heads = counted(len(chosen.heads), "head")
    reporter.expect([Piece((_LOOKING,), look, _LOOKING), episodes], f"{seen}, then {adapted} × {heads}")


def _look(work: EpisodeWork) -> EpisodeLookRecord | None:
    """The first episode, as the first heads with prototypes see it."""
    episode = episode_of(work.labels, work.sampler, work.seed, 0, groups=work.groups, superclasses=work.superclasses)
    with limit_threads(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", CrossgraftWarning)  # told with the episodes
        return look_at_episode(work.features, work.labels, work.heads, episode, number=0)


def _images(dataset: Dataset, backbone: Backbone, work: EpisodeWork) -> EpisodeImages | None:
    """Images of the rows that episodes are drawn from, if a head reads images."""
    if not any(map(reads_images, work.heads.values())):
        return None
    rows = np.flatnonzero(np.isin(np.array(dataset.class_names)[dataset.targets], np.unique(work.labels)))
    return EpisodeImages(lambda row: dataset.read(int(rows[row])), backbone.preprocessing)
