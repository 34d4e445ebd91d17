"""``predict_from_support``: a head learns classes from a few labelled images, and predicts others."""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from crossgraft.compute import available_cores, limit_threads, resolve_device, reuse_freed_memory
from crossgraft.data import Dataset, open_dataset
from crossgraft.data.describe import describe_files_of
from crossgraft.data.given_images import is_open, location_of, open_images, refuse_opening, rows_given
from crossgraft.data.opening import data_errors_first
from crossgraft.data.rows import ImageRows
from crossgraft.errors import CrossgraftError, UsageError
from crossgraft.features import extract_features
from crossgraft.fewshot.choice import choose_heads, names_without_folders
from crossgraft.fewshot.class_weights import Prompted, encode_prompts, read_prompts, refuse_unnamed, with_rows_of_pretrained_head
from crossgraft.fewshot.evaluate import refuse_faulty
from crossgraft.fewshot.heads import reads_images
from crossgraft.fewshot.options import SupportOptions
from crossgraft.fewshot.parts import EpisodeImages
from crossgraft.fewshot.result import cite, notes_of_head
from crossgraft.models import Backbone, load_as_asked, load_text_tower
from crossgraft.models.preprocessing import describe_preprocessing
from crossgraft.models.zoo import one_model
from crossgraft.options._option import configuration, options_of
from crossgraft.options.data import Rows, SourceOptions, TableOptions, Unreadable
from crossgraft.predict.predicted import finish, refuse_to_lose, rows_of, totals_of, with_look
from crossgraft.progress import Reporter
from crossgraft.running.verb import Run, verb
from crossgraft.tasks import recorded_task
from crossgraft.tune.known_targets import measure, seen_in_support, true_classes
from crossgraft.tune.predictions import Predictions
from crossgraft.tune.record import PredictionRecord, TunedModelRecord
from crossgraft.tune.saving.saved_model import Answers

QUERIES_AT_ONCE = 256
"""Prepared images in memory together, where a head reads images."""


class Learned(NamedTuple):
    """Probabilities and their logarithms for the queries, and what the head warned of."""

    probabilities: np.ndarray
    logits: np.ndarray
    warnings: list[str]


def learn_and_predict(
    head: Any,
    support: Dataset,
    queries: ImageRows,
    backbone: Backbone,
    options: SupportOptions,
    reporter: Reporter,
    *,
    prompted: Prompted | None = None,
) -> Learned:
    """Columns in the order of the classes of ``support``.

    The head learns names of classes, by which class weights are given, and not their numbers.
    """
    fresh: Any = with_rows_of_pretrained_head(clone(head), backbone)
    labels = np.array(support.class_names)[support.targets]
    if fresh.get_params().get("seed") == 0 and not _names_seed(options.head):
        fresh.set_params(seed=options.seed)
    warned: list[str] = []
    if reads_images(fresh):
        fresh.set_params(backbone=backbone)
        with _heard_warnings(warned):
            of_known_classes = _learn_from_images(fresh, support, labels, queries, backbone, at_once=options.batch_size)
    else:
        of_support, of_queries = (
            extract_features(
                images, backbone, cache_dir=options.cache_dir, batch_size=options.batch_size, reporter=reporter
            ).features
            for images in (support, queries)
        )
        if prompted is not None:
            of_support, of_queries = (prompted.tower.project(each, backbone) for each in (of_support, of_queries))
        with _heard_warnings(warned):
            of_known_classes = _probabilities(fresh, of_support, labels, of_queries)
    probabilities = np.zeros((len(of_known_classes), len(support.class_names)))
    probabilities[:, [support.class_names.index(name) for name in fresh.classes_]] = of_known_classes
    return Learned(probabilities, np.log(np.maximum(probabilities, np.finfo(np.float64).tiny)), warned)


@contextmanager
def _heard_warnings(texts: list[str]) -> Generator[None]:
    """Add to ``texts`` what is warned of inside, each text once; afterwards it is warned of as it would have been.

    Args:
        texts: Texts of all ``UserWarning``; those for developers are left out.
    """
    caught: list[warnings.WarningMessage] = []
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            yield
    finally:
        for warning in {(str(each.message), each.category): each for each in caught}.values():
            if issubclass(warning.category, UserWarning):
                texts.append(str(warning.message))
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)


def _probabilities(head: Any, support: np.ndarray, labels: np.ndarray, queries: np.ndarray) -> np.ndarray:
    """Probabilities of the classes that the head knows.

    Raises:
        UsageError: A head of another package raised an error, which is the cause of this one.
    """
    try:
        return head.fit(support, labels).predict_proba(queries)
    except CrossgraftError:
        raise
    except Exception as error:  # heads of others raise many kinds
        refuse_faulty(head, f"Head {type(head).__name__}", error)
        raise


def _names_seed(head: Any) -> bool:
    """Whether a seed was written with the head; that of an object counts unless it is 0, the default."""
    if isinstance(head, str):
        return re.search(r"[:,]\s*seed\s*=", head) is not None
    return isinstance(head, Mapping) and "seed" in head


def _learn_from_images(
    head: Any, support: Dataset, labels: np.ndarray, queries: ImageRows, backbone: Backbone, *, at_once: int | None
) -> np.ndarray:
    """Probabilities of the queries, of which few are in memory together; all of the support set is."""
    prepared = EpisodeImages(support.read, backbone.preprocessing)
    head.fit(prepared(range(len(support))).numpy(), labels)
    of_queries, number = EpisodeImages(queries.read, backbone.preprocessing), len(queries)
    size = at_once or QUERIES_AT_ONCE
    chunks = (range(first, min(first + size, number)) for first in range(0, number, size))
    return np.concatenate([head.predict_proba(of_queries(chunk).numpy()) for chunk in chunks])


@verb("fewshot", SupportOptions)
def predict_from_support(options: SupportOptions, call: Run) -> Predictions:
    """Learn classes from a few labelled images with a few-shot head, and predict the class of others.

    Probabilities are those of the head's softmax and not calibrated. Where the true classes of the queries are known, metrics
    with intervals are measured, and the look at them is counted.

    Args:
        {options}

    Returns:
        The predictions, as of ``predict``; with ``out`` also ``predictions.csv``, ``report.html``, ``report.json`` and
        ``run.json`` there.

    Raises:
        DataError: Something is wrong with the images or labels, or there are fewer than two classes.
        UnreadableImageError: An image cannot be decoded, and ``skip_unreadable`` is off.
        UsageError: An argument is wrong or contradicts another.
        UnknownNameError: A name is not known, for example of the head.
        MissingWeightsError: Weights are not on this machine.
        RunDirectoryError: ``out`` is in use or holds another run, or predictions of other images.

    Cost: one forward pass per image, then milliseconds to half a second for a head on features, and ``steps`` forward and
    backward passes of the support set for one that trains inside the network.
    """
    reporter = call.reporter
    prompts = None if options.prompts is None else read_prompts(options.prompts)
    name, head = _one_head(options.head, has_prompts=prompts is not None)
    with data_errors_first(options.support, options):
        spec = one_model(options, reporter)
    device, threads = resolve_device(options.device), options.workers or available_cores()
    resolved: dict[str, object] = {"model": spec.describe(), "head": name}
    tower = None
    if prompts is not None:
        resolved["prompts"] = prompts.describe()
        tower = load_text_tower(
            spec, device=device, weights_dir=options.weights_dir, allow_download=options.allow_download, reporter=reporter
        )
    given = {"support": location_of(options.support), "query": location_of(options.query)}
    typed = {**configuration(options), **given, **resolved, "model": getattr(options.model, "typed", str(options.model))}
    with (
        limit_threads(threads),
        reuse_freed_memory(),
        call.directory(given["support"], typed=typed, resolved=resolved, out=options.out) as directory,
    ):
        support = _open_support(options, reporter)
        prompted = None
        if prompts is not None and tower is not None:
            prompted = encode_prompts(tower, prompts, support.class_names)
            head = prompted.given_to(head)
        refuse_unnamed({name: head}, support.class_names)
        queries = _open_queries(options, support, reporter)
        readable = queries.readable()
        if directory:
            refuse_to_lose(directory, readable)
            directory.describe_data(support.fingerprint)
            directory.describe_machine(reporter, threads=threads, device=device)
        backbone = load_as_asked(spec, options, device=device)
        start = time.perf_counter()
        probabilities, logits, warned = learn_and_predict(head, support, readable, backbone, options, reporter, prompted=prompted)
        seconds = time.perf_counter() - start
        shown = names_without_folders([name])[name]
        record = _bare_record(shown, head, support, queries, backbone, seconds)
        seen = seen_in_support(support, readable)
        has_test = readable.splits is not None and "test" in readable.splits
        known = true_classes(readable, record, reporter, seen=seen, has_test=has_test)
        task = recorded_task(record)
        decided = task.decide(probabilities, None)
        answers = Answers(
            probabilities, [task.names_of(row, record.class_names) for row in decided], task.certainty(probabilities)
        )
        rows = rows_of(queries, logits, answers, known, seen)
        complete = record.model_copy(
            update={
                "notes": [*record.notes, *([] if prompted is None else [prompted.note])],
                **totals_of(queries, rows, answers, record.class_names),
                "rows": rows,
                "metrics": measure(probabilities, known, record, readable.groups),
                "warnings": [*warned, *known.warnings],
                "num_seen": seen.number,
            }
        )
        if options.ledger:
            texts = [] if prompted is None else [prompted.record.model_dump_json()]
            measured = [backbone.weights_fingerprint, name, str(options.seed), support.fingerprint, *texts]
            complete = with_look(complete, readable, known, measured, reporter)
        return finish(complete, queries, directory, reporter, no_images=options.no_images, show_names=options.show_names)


def _one_head(named: Any, *, has_prompts: bool) -> tuple[str, Any]:
    """The head and how it is written.

    Raises:
        UsageError: There are several, it needs classes to learn on first, it has no probabilities, or takes no class weights
            where there are prompts.
    """
    heads = choose_heads(named if isinstance(named, str) else [named], has_prompts=has_prompts)
    if len(heads) > 1:
        raise UsageError(f"One task has one head; {', '.join(heads)} are {len(heads)}. To compare heads, use --heads.")
    ((name, head),) = heads.items()
    if has_prompts and getattr(head, "class_weights", "") is not None:
        raise UsageError(f"--prompts give class weights, and {name} takes none. Take --head tip_adapter or zero_shot.")
    if hasattr(head, "meta_fit") and head.adapter_weights is None:
        raise UsageError(f"{name} has to learn on base classes first, which one task has not. Choose another head.")
    if not hasattr(head, "predict_proba"):
        raise UsageError(
            f"{name} gives no probabilities, which predictions consist of. Choose another head, or wrap it in scikit-learn's "
            "CalibratedClassifierCV."
        )
    return name, head


def _open_support(options: SupportOptions, reporter: Reporter) -> Dataset:
    """Labelled images, one class each.

    Raises:
        UsageError: An image may have several labels.
    """
    opened: Any = options.support
    if not isinstance(opened, Dataset):
        how_opened = _told_of(options, opened, options.query)
        how = {name: getattr(how_opened, name) for kind in (SourceOptions, Unreadable) for name in options_of(kind)}
        opened = open_dataset(opened, reporter=reporter, **how)
    if not opened.task.partitions:
        raise UsageError("A head needs one class per image, and the images of --support have several labels.")
    return opened


def _open_queries(options: SupportOptions, support: Dataset, reporter: Reporter) -> ImageRows:
    """Images with or without labels.

    Raises:
        UsageError: Options say how files are opened, and there are none to open.
    """
    images: Any = list(options.query) if isinstance(options.query, Iterator) else options.query
    if is_open(images) and not isinstance(options.support, Dataset):
        refuse_opening(options, Rows)  # all else says how the support set is opened
        return rows_given(images)
    how_opened = _told_of(options, images, options.support)
    has_labels = not isinstance(options.support, Dataset) and not _is_folder(options.support)
    return open_images(
        images,
        how_opened,
        reporter,
        known_classes=support.class_names,
        may_lack_labels=how_opened.label_column is not None and has_labels,  # it is a column of the support set
    )


def _told_of(options: SupportOptions, images: object, others: object) -> SupportOptions:
    """Without what is said of columns, for a folder beside a table: they are those of the table."""
    is_folder, has_table = _is_folder(images), not _is_folder(others) and not isinstance(others, Dataset)
    if not (is_folder and has_table):
        return options
    return replace(options, **{name: option.default for name, option in options_of(TableOptions).items()})


def _is_folder(images: object) -> bool:
    return isinstance(images, str | Path) and Path(images).is_dir()


def _bare_record(
    name: str, head: Any, support: Dataset, queries: ImageRows, backbone: Backbone, seconds: float
) -> PredictionRecord:
    """What is known before anything was decided."""
    return PredictionRecord(
        model=TunedModelRecord(
            name=backbone.name,
            architecture=backbone.architecture,
            source=backbone.source,
            family=backbone.family,
            licence=backbone.licence,
            num_parameters=backbone.num_parameters,
            num_features=backbone.num_features,
            num_outputs=len(support.class_names),
            weights_fingerprint=backbone.weights_fingerprint,
            preprocessing=describe_preprocessing(backbone.preprocessing),
        ),
        model_trained_on=support.name,
        model_fingerprint=backbone.weights_fingerprint,
        head=name,
        num_support=len(support),
        task="multi-class",
        class_names=list(support.class_names),
        data_name=queries.name,
        num_images=len(queries.readable_rows),
        num_unreadable=len(queries.unreadable),
        files=describe_files_of(queries),
        temperature=None,
        rows=[],
        images_per_second=len(queries.readable_rows) / max(seconds, 1e-9),
        seconds=seconds,
        notes=[*queries.reading, *notes_of_head(head)],
        references=cite({name: head}),
    )
