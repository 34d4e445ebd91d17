"""``export_model``: a fine-tuned model for somebody who does not have crossgraft."""

from __future__ import annotations

import hashlib
import time
from pathlib import Path
from typing import Any

from crossgraft.errors import RunDirectoryError, UsageError
from crossgraft.export.formats import find_format
from crossgraft.export.options import ExportOptions
from crossgraft.export.record import ExportedFileRecord, ExportRecord
from crossgraft.export.source_model import MERGED, SourceModel, check_agreement, prepare_source
from crossgraft.export.written import (
    DESCRIPTION,
    RECORD_FILE,
    Exported,
    Format,
    Written,
    check_push,
    new_folder,
    push,
    refuse_existing,
)
from crossgraft.paths import real_path, refuse_for_weights
from crossgraft.running.verb import Run, secondary, verb
from crossgraft.storage.atomic import write_atomically
from crossgraft.tune.result import ModelResult
from crossgraft.tune.saving.save_model import model_card
from crossgraft.tune.saving.saved_model import MODEL_FOLDER, SavedModel, find_saved_model, load_saved_model
from crossgraft.version import __version__


@verb("export", ExportOptions)
def export_model(run: str | Path | SavedModel | ModelResult[Any], options: ExportOptions, call: Run) -> Exported:
    """Write a fine-tuned model in another format, load it again, and compare its outputs before it is kept.

    ``safetensors`` is the layout of the Hugging Face hub: weights under the names of timm or torchvision, which load them
    without crossgraft. ``torch`` (a program of ``torch.export``), ``onnx``, ``triton`` (a model repository of the Triton
    Inference Server, with ONNX) and ``openvino`` take images in [0, 1] of any batch size and give
    logits and calibrated probabilities; mean, standard deviation, temperature and class names are inside. ``peft`` holds LoRA
    adapters and the head alone, as PEFT loads them into the pretrained network.

    Args:
        run: Run directory of ``crossgraft tune``, the folder of one fold, the folder ``model`` of either, what ``fine_tune``
            returned, or a model from ``load_saved_model``.
        {options}

    Returns:
        What was written, and how far the outputs of the loaded file are from those of the model: on eight generated images,
        in batches of 1, 2 and 5, at most 1e-5 times the largest logit (at least 1e-5).

    Raises:
        UnknownNameError: No such format.
        UsageError: An argument is wrong or contradicts another.
        RunDirectoryError: ``run`` holds no model, or ``out`` is there already.
        MissingExtraError: The format needs a package that is not installed.
        ExportError: The network does not fit the format, the outputs differ, or the hub refuses; the message says which.
        StorageError: The folder cannot be written; nothing is left behind.

    Cost: seconds for safetensors, tens of seconds for graphs.
    """
    start = time.perf_counter()
    reporter, format, push_to = call.reporter, options.format, options.push_to
    kind = find_format(format)
    check_push(push_to, format=format)
    out = _place(run, options.out, format)
    refuse_for_weights(out)
    refuse_existing(out, overwrite=options.overwrite)
    model = run.model if isinstance(run, ModelResult) else run
    if not isinstance(model, SavedModel):
        model = load_saved_model(model, allow_code=options.allow_code, network=options.network)
    source = prepare_source(model)
    with new_folder(out) as folder:
        with reporter.stage(f"Exporting {source.facts.model.name} as {format}"):
            written = kind.write(source, folder)
        with reporter.stage(f"Comparing with {written.checked_with}"):
            record = _finish(source, kind, written, folder, start=start)
        del written  # what is still open cannot be renamed on Windows
    if push_to is not None:
        with reporter.stage(f"Sending to {push_to}"):
            record = record.model_copy(update={"pushed_to": push(out, push_to, private=options.private)})
        with secondary(
            f"{RECORD_FILE} does not say that the export was sent", reporter, advice="It was, and it is complete here too."
        ):
            write_atomically(out / RECORD_FILE, record.model_dump_json(indent=1))
    return Exported(record, out)


def _place(run: str | Path | SavedModel | ModelResult[Any], out: str | Path | None, format: str) -> Path:
    if out is not None:
        return Path(out)
    where = run.out if isinstance(run, ModelResult) else run
    if where is None or isinstance(where, SavedModel):
        raise UsageError("Say with out= where to write: a loaded model does not know its run directory.")
    folder = find_saved_model(Path(where))
    inside = folder.parent if folder.name == MODEL_FOLDER else folder
    out = inside / "export" / format
    if not real_path(out).is_relative_to(real_path(inside)):
        raise RunDirectoryError(
            f"{out} leads out of {inside} by a symbolic link, which somebody put there. Remove the link, or choose another "
            "folder with --out."
        )
    return out


def _finish(source: SourceModel, kind: Format, written: Written, folder: Path, *, start: float) -> ExportRecord:
    """Check, then write description, card and record."""
    agreement = check_agreement(source, written.answer, checked_with=written.checked_with)
    description = source.describe(as_graph=kind.as_graph)
    card = written.card_header + model_card(source.facts, how_to_use=written.how_to_use)
    write_atomically(folder / DESCRIPTION, description.model_dump_json(indent=1))
    write_atomically(folder / written.card_name, card)
    record = ExportRecord(
        crossgraft_version=__version__,
        format=kind.name,
        loads_with=written.loads_with,
        how_to_load=written.how_to_load,
        model=description,
        files=[_describe_file(path, folder) for path in sorted(folder.rglob("*")) if path.is_file()],
        agreement=agreement,
        notes=[*(note for note in source.notes if note != MERGED or not written.holds_adapters), *written.notes],
        seconds=time.perf_counter() - start,
    )
    write_atomically(folder / RECORD_FILE, record.model_dump_json(indent=1))
    return record


def _describe_file(path: Path, folder: Path) -> ExportedFileRecord:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return ExportedFileRecord(name=path.relative_to(folder).as_posix(), num_bytes=path.stat().st_size, sha256=digest)
