"""An audit of pretrained models: trained where the artefact goes with the class, tested where it goes against it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from crossgraft.audit.attribute_sweep import AttributeDesign, design_attribute
from crossgraft.audit.attributes import BinaryAttribute, binary_attribute
from crossgraft.audit.confounded import AuditRows, Confounded, confound, divide_rows, without_artefact
from crossgraft.audit.file_facts import fact_attributes, how_telling
from crossgraft.audit.frequency_work import FrequencySweep
from crossgraft.audit.model_differences import compare_models_of_audit
from crossgraft.audit.options import AuditOptions, FullTraining
from crossgraft.audit.outcomes import needed_of_artefact, needed_of_attribute
from crossgraft.audit.readable import ProbedFeatures, looks_beside, read_attribute, unread
from crossgraft.audit.record import AuditEntry, ConfounderRecord, FileFactRow, ReadableRow
from crossgraft.audit.result import AuditCall, Audited
from crossgraft.audit.sweep import Sweep, frozen_features
from crossgraft.audit.sweep_modes import FullSweep, QuickSweep
from crossgraft.choice import spell
from crossgraft.data import Dataset
from crossgraft.data.checks import check_rows
from crossgraft.data.describe import thumbnails_of_rows
from crossgraft.data.inspection import without_name
from crossgraft.data.opening import open_divided
from crossgraft.errors import DataError, UnknownNameError, UsageError
from crossgraft.models import Backbone, ModelSpec, load_as_asked
from crossgraft.models.backbone import describe_model
from crossgraft.models.trusted_code import trusted_code
from crossgraft.models.zoo import zoo_as_asked
from crossgraft.options._option import options_of
from crossgraft.options._values import refuse_given
from crossgraft.progress import Reporter
from crossgraft.records.base import CheckRecord, Reference, Thumbnail

_SAY_NOTHING = ("unknown",)
"""Texts of a column that say nothing."""
_SHOWN = 3
"""Images of each artefact on the page, without it and with it."""


def describe(model: Any, options: AuditOptions, reporter: Reporter) -> dict[str, object]:
    """What decides the result beside options.

    Raises:
        UsageError: An option is about a model that is trained already, and these are not.
    """
    refuse_given(options, ["start"], "is for a model that is trained already, and these are trained for the audit")
    if options.mode != "full":
        why = "is about the fine-tunings of --mode full; quick mode trains on frozen features"
        refuse_given(options, options_of(FullTraining), why, instead="Give --mode full too")
    specs = zoo_as_asked(model, options, reporter)
    return {"model": getattr(model, "typed", str(model)), "models": [spec.describe() for spec in specs]}


def audit(call: AuditCall) -> Audited:
    """Every model with every artefact.

    Raises:
        DataError: As of the data; or a part has too few images of a class.
        UsageError: An option has no meaning.
    """
    asked, options, reporter = call.asked, call.options, call.reporter
    specs = zoo_as_asked(call.model, options, reporter)
    dataset = open_data(options, reporter)
    checks = list[CheckRecord](check_rows(dataset, strict=options.strict, reporter=reporter))
    if options.unit == "patient" and dataset.groups is None:
        raise UsageError("--unit patient draws patients, and these images have none. Name their column: --group-column.")
    rows = divide_rows(dataset, options.positive, num_folds=options.audit_folds, seed=options.seed, method=options.fold_method)
    audited = Audited(dataset, rows.test, rows.positive, rows.is_positive, options.mode, checks=checks)
    audited.notes += _notes(rows, asked.shares, options.negatives)
    tested = dataset.take(rows.test)
    for each in asked.artefacts:
        audited.needs += needed_of_artefact(each.name, rows.is_positive[rows.test], tested.groups, rows.positive)
    for name in asked.attributes:
        of_all = find_attribute(dataset, name, options)  # a test part may have one value alone
        of_test = of_all._replace(flags=of_all.flags[rows.test], known=of_all.known[rows.test])
        audited.needs += needed_of_attribute(name, rows.is_positive[rows.test], of_test)
    for name in asked.readable:
        find_attribute(dataset, name, options)  # one that is not there is named before anything is trained
    if options.plan:
        return audited
    audited.manifest = _manifest(rows, asked.shares, options) if asked.artefacts else pd.DataFrame()
    native = _confounded(rows, call, audited, specs, dataset) if options.stage == "native" else []
    designs = _designs(rows, call, audited, specs)
    audited.attribute_rows = _attribute_rows(rows, designs)
    audited.file_facts += file_facts(dataset, options, audited)
    sweep = Sweep(rows, asked.shares, asked.mitigations, options, call.num_threads, reporter)
    frequencies = FrequencySweep.of(dataset, rows.test, call) if options.frequency else None
    shown: list[Confounded] = [*native]
    if options.stage == "input" and len(specs) > 1 and asked.artefacts:
        audited.notes.append(f"What artefacts change is given for the inputs of {specs[0].name}; pictures show these, too.")
    for spec in specs:
        backbone = load_as_asked(spec, options, device=call.device)
        audited.models.append(describe_model(backbone, "candidate"))
        confounded = native
        if options.stage == "input" and asked.artefacts:
            confounded = _confounded(rows, call, audited, [spec], dataset.resized(backbone.preprocessing))
            shown = shown or confounded
        looked_at = None if frequencies is None else frequencies.images
        of_model = (
            QuickSweep(sweep, spec.name, backbone)
            if options.mode == "quick"
            else FullSweep(sweep, spec, backbone, call.directory, looked_at)
        )
        audited.entries += of_model.entries(confounded)
        audited.entries += [entry for design in designs for entry in of_model.attribute_entries(design)]
        audited.readable += _readable(spec, backbone, sweep, call, audited)
        if frequencies is not None:
            tuned = of_model.priorities if isinstance(of_model, FullSweep) else {}
            frequencies.of_backbone(spec.name, backbone, confounded, tuned)
    audited.differences = compare_models_of_audit(sweep.swept)
    audited.frequency = None if frequencies is None else frequencies.record(audited.entries)
    audited.fingerprint = " ".join(each.weights_fingerprint for each in audited.models)
    audited.references += [Reference(key=each.edit.title, text=f"{each.edit.reference}.") for each in asked.artefacts]
    audited.references += [Reference(key=each.title, text=f"{each.reference}.") for each in asked.mitigations]
    audited.pictures = lambda: pictures(shown, rows)
    return audited


def open_data(options: AuditOptions, reporter: Reporter, *, default_split: bool = True) -> Dataset:
    """All rows with the part of each."""
    return open_divided(options.data, options, use_split=None, default_split=default_split, reporter=reporter)


def find_attribute(dataset: Dataset, text: str, options: AuditOptions) -> BinaryAttribute:
    """``sex:F``: a column, or a fact of the file, and perhaps what counts as present.

    Raises:
        UnknownNameError: There is no such column or fact.
        UsageError: The value has no meaning.
        DataError: It is the same for all images.
    """
    name, _, present = text.partition(":")
    columns = {**fact_attributes(dataset, root=_root(options)), **dataset.attributes}
    if name not in columns:
        raise UnknownNameError("column or fact of the file", name, columns)
    return binary_attribute(columns[name], present or None, name=name, missing=_SAY_NOTHING)


def _readable(spec: ModelSpec, backbone: Backbone, sweep: Sweep, call: AuditCall, audited: Audited) -> list[ReadableRow]:
    """What a probe reads from the features of one network, and from what knows nothing of its training."""
    rows, options = sweep.rows, call.options
    if not call.asked.readable:
        return []
    trusted = trusted_code(options.allow_code).and_also(spec.code)
    looks = [
        ProbedFeatures("features", frozen_features(sweep, backbone, rows.dataset)),
        *looks_beside(backbone, rows.dataset, seed=options.seed, trusted=trusted, device=call.device, reporter=call.reporter),
    ]
    learned = np.setdiff1d(np.r_[rows.folds[0].train, rows.folds[0].val], rows.test)
    return read_all(spec.name, looks, learned, rows.test, call, audited)


def read_all(
    model: str, looks: Sequence[ProbedFeatures], learned: np.ndarray, read: np.ndarray, call: AuditCall, audited: Audited
) -> list[ReadableRow]:
    """Every attribute that was asked for; one with too few images is there without a number, and with the reason."""
    found: list[ReadableRow] = []
    for name in call.asked.readable:
        attribute = find_attribute(audited.dataset, name, call.options)
        try:
            found += read_attribute(model, name, looks, attribute, learned, read, audited.dataset.groups, seed=call.options.seed)
        except DataError as error:
            found.append(unread(model, name, attribute, str(error)))
            call.reporter.warn(str(error))
    return found


def file_facts(dataset: Dataset, options: AuditOptions, audited: Audited) -> list[FileFactRow]:
    """How well facts of the file alone tell the class; where there are too few images to say, a note says so."""
    try:
        return how_telling(dataset, positive=audited.positive, root=_root(options), seed=options.seed)
    except DataError as error:
        audited.notes.append(f"Facts of the file were not looked at. {error}")
        return []


def _root(options: AuditOptions) -> Path | None:
    """The folder of the images, for what only a file knows."""
    folder = options.image_root if options.image_root is not None else options.data
    return Path(folder) if isinstance(folder, str | Path) and Path(folder).is_dir() else None


def _notes(rows: AuditRows, shares: Sequence[float], negatives: float) -> list[str]:
    names = rows.dataset.class_names
    notes = [f"{rows.positive} is told from all {len(names) - 1} other classes together."] if len(names) > 2 else []
    fewest = min(int(rows.is_positive[fold.train].sum()) for fold in rows.folds)
    empty = [f"{share:g}" for share in shares if share > 0 and round(share * fewest) == 0]
    if empty:
        notes.append(f"At the share {', '.join(empty)} no image of {fewest} positives carries the artefact.")
    sizes = [int((~rows.is_positive[fold.train]).sum()) for fold in rows.folds]
    if any(round(negatives * size) == size for size in sizes):
        notes.append(
            "Every training negative carries the artefact: at share 0 it speaks for the negative class, and no model has seen a "
            "negative without it."
        )
    return notes


def _confounded(
    rows: AuditRows, call: AuditCall, audited: Audited, specs: Sequence[ModelSpec], images: Dataset
) -> list[Confounded]:
    """The artefacts that can be put into these images; the others become entries with a reason."""
    options, done = call.options, list[Confounded]()
    of_all = without_artefact(images, call.asked.absent, seed=options.seed)
    recorded = {each.confounder for each in audited.confounders}
    with call.reporter.stage("Putting artefacts into images", total=len(call.asked.artefacts)) as stage:
        for artefact in call.asked.artefacts:
            name, against = artefact.name, artefact.against
            try:
                done.append(
                    confound(
                        rows,
                        artefact.edit,
                        of_all if against is None else without_artefact(images, [against], seed=options.seed),
                        strength=options.strength,
                        negatives=options.negatives,
                        seed=options.seed,
                        against=against,
                    )
                )
                described = done[-1].record
            except DataError as error:
                described = ConfounderRecord.of_edit(name, artefact.edit, None)
                reason = without_name(error)
                audited.entries += [AuditEntry.impossible(spec.name, name, reason, mode=options.mode) for spec in specs]
                call.reporter.warn(f"{name} cannot be put into these images: {error}")
            if name not in recorded:
                audited.confounders.append(described)
            stage.advance()
    return done


def _designs(rows: AuditRows, call: AuditCall, audited: Audited, specs: Sequence[ModelSpec]) -> list[AttributeDesign]:
    """The attributes that enough images of each cell are there for; the others become entries with a reason."""
    options, done = call.options, list[AttributeDesign]()
    for name in call.asked.attributes:
        attribute = find_attribute(rows.dataset, name, options)
        audited.confounders.append(ConfounderRecord.of_attribute(name, attribute.in_words, attribute.num_missing))
        try:
            done.append(design_attribute(name, attribute, rows, call.asked.shares, seed=options.seed))
        except DataError as error:
            audited.entries += [AuditEntry.impossible(spec.name, name, str(error), mode=options.mode) for spec in specs]
            call.reporter.warn(f"{name} cannot be audited with these images: {error}")
    return done


def _manifest(rows: AuditRows, shares: Sequence[float], options: AuditOptions) -> pd.DataFrame:
    """Row by row and fold by fold, from which share on an image carries an artefact; no names and no patients."""
    tables: list[pd.DataFrame] = []
    identities = np.array([identity[:16] for identity in rows.identities])
    for fold in rows.folds:
        first = np.full(len(rows.dataset), np.nan)
        for share in reversed(shares):
            carrying = rows.carriers(fold, share, negatives=options.negatives, unit=options.unit, seed=options.seed)
            first[carrying] = share
        parts = np.full(len(rows.dataset), "", dtype="<U5")
        parts[fold.train], parts[fold.val], parts[rows.test] = "train", "val", "test"
        columns = {"row": np.arange(1, len(first) + 1), "image": identities, "fold": fold.number, "part": parts}
        tables.append(pd.DataFrame({**columns, "positive": rows.is_positive, "carries_from_share": first}))
    return pd.concat(tables, ignore_index=True)


def _attribute_rows(rows: AuditRows, designs: Sequence[AttributeDesign]) -> pd.DataFrame:
    """Which images train and select for each share of an attribute; no names and no patients."""
    identities = np.array([identity[:16] for identity in rows.identities])
    tables = [
        pd.DataFrame(
            {
                "attribute": design.name,
                "fold": turn.fold,
                "share": turn.share,
                "part": part,
                "row": numbers + 1,
                "image": identities[numbers],
                "positive": rows.is_positive[numbers],
                "has_attribute": design.attribute.flags[numbers].astype(bool),
            }
        )
        for design in designs
        for turn in design.turns
        for part, numbers in (("train", turn.train), ("val", turn.val))
    ]
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()


def pictures(confounded: Sequence[Confounded], rows: AuditRows) -> list[Thumbnail]:
    """A few positive test images without and with each artefact."""
    shown = [row for row in rows.test.tolist() if rows.is_positive[row]][:_SHOWN]
    what: dict[str, Dataset] = {}
    for each in confounded:
        what.setdefault("without" if each.against is None else f"with {spell(each.against)}", each.clean)
        what.setdefault(f"with {spell(each.edit)}", each.edited)
    return [
        thumbnail.model_copy(update={"class_name": what, "row": None})
        for what, images in what.items()
        for thumbnail in thumbnails_of_rows(images, [row + 1 for row in shown])
    ]
