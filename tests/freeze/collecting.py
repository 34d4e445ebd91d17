"""What a run left, reduced to what may not change.

Rules, for every file of a run directory and of the cache:

- Numbers, booleans, nulls, lengths of lists and keys are kept everywhere, except under the keys of ``LEFT_OUT``.
- A string is kept if it has no white space (an identifier, a hash, a number), or stands under a key of ``NAMES``. Any other
  string is prose, of which only is kept that there is some. One of more than ``MOST_CHARACTERS``, a picture, is its hash.
- A list, or a column of a table, of more than ``MOST_VALUES`` such values is its length, mean and hash.
- Of tensors (safetensors, npz, npy, onnx) a hash of names, types and shapes is kept, and one of the content.
- Pages and cards are there or not; other files are their hash.
"""

from __future__ import annotations

import csv
import hashlib
import json
import math
import re
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import yaml

LEFT_OUT = re.compile(
    r"""
    (.*_)?seconds(_.*)? | .*per_second | time_ratio | (started|finished)_at   # time
    | peak_bytes | versions | machine | crossgraft_version                    # the machine
    | checksums | sha256 | num_bytes                                          # of texts that hold prose and versions
    """,
    re.VERBOSE,
)
"""Keys and columns whose values are not kept, whatever is below them."""

NAMES = {
    *("command_line", "name", "names", "model", "models", "first", "second", "score", "metric", "variant", "job"),
    *("class_name", "class_names", "target", "targets", "predicted", "decision", "split", "column", "not_separable_from"),
}
"""Keys and columns whose strings are kept even with white space."""

MOST_VALUES, MOST_CHARACTERS = 50, 200

PROSE, OUT = "<prose>", "<left out>"
_PRESENT = "<there>"
_ONLY_PRESENT = (".html", ".md", ".lock")


def collect(folder: Path) -> dict[str, object]:
    """Name of each file below ``folder`` → what is kept of it; nothing where there is no folder."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): _read(path) for path in files}


def _read(path: Path) -> object:
    kind = path.suffix or path.name
    if kind in _ONLY_PRESENT:
        return _PRESENT
    if kind == ".json":
        return reduced(json.loads(path.read_bytes()))
    if kind == ".jsonl":
        return [reduced(json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]
    if kind == ".yaml":
        return reduced(yaml.safe_load(path.read_text(encoding="utf-8")))
    if kind == ".csv":
        return _table(path)
    if kind == ".files":
        return sorted(path.read_text(encoding="utf-8").splitlines())
    if kind in _TENSORS:
        return _hashes(_TENSORS[kind](path))
    return {"content": hashlib.sha256(path.read_bytes()).hexdigest()}


def reduced(value: object, key: str = "") -> object:
    """A JSON document by the rules above.

    Args:
        value: As parsed.
        key: It stands under; that of a list is the key of its items.
    """
    if LEFT_OUT.fullmatch(key):
        return OUT
    if isinstance(value, dict):
        return {name: reduced(item, "name" if key == "config" else str(name)) for name, item in value.items()}
    if isinstance(value, list):
        return _shortened([reduced(item, key) for item in value])
    if isinstance(value, str) and key not in NAMES and re.search(r"\s", value):
        return PROSE
    if isinstance(value, str) and len(value) > MOST_CHARACTERS:
        return hashlib.sha256(value.encode()).hexdigest()
    return value


def _shortened(values: list) -> object:
    """The list itself, unless it is a long one of plain values."""
    if len(values) <= MOST_VALUES or any(isinstance(value, (dict, list)) for value in values):
        return values
    numbers = [number for number in map(_number, values) if number is not None]
    content = hashlib.sha256(json.dumps(values).encode()).hexdigest()
    return {"length": len(values), "mean": math.fsum(numbers) / max(len(numbers), 1), "content": content}


def _number(value: object) -> float | None:
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None


def _table(path: Path) -> dict[str, object]:
    with path.open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    columns = [_shortened([reduced(row[place], name) for row in rows]) for place, name in enumerate(header)]
    return {"columns": header, "rows": len(rows), "cells": dict(zip(header, columns, strict=True))}


def _safetensors(path: Path) -> Iterable[tuple[str, np.ndarray]]:
    from safetensors import safe_open

    with safe_open(path, framework="np") as file:
        yield from ((name, file.get_tensor(name)) for name in file.keys())  # noqa: SIM118 - no mapping


def _numpy(path: Path) -> Iterable[tuple[str, np.ndarray]]:
    loaded = np.load(path)
    yield from [("", loaded)] if isinstance(loaded, np.ndarray) else loaded.items()


def _onnx(path: Path) -> Iterable[tuple[str, np.ndarray]]:
    import onnx
    from onnx import numpy_helper

    graph = onnx.load(path).graph
    yield from ((tensor.name, numpy_helper.to_array(tensor)) for tensor in graph.initializer)


_TENSORS = {".safetensors": _safetensors, ".npz": _numpy, ".npy": _numpy, ".onnx": _onnx}


def _hashes(tensors: Iterable[tuple[str, np.ndarray]]) -> dict[str, object]:
    structure, content, count = hashlib.sha256(), hashlib.sha256(), 0
    for name, array in sorted(tensors, key=lambda pair: pair[0]):
        structure.update(f"{name} {array.dtype} {array.shape}\n".encode())
        content.update(np.ascontiguousarray(array).tobytes())
        count += 1
    return {"tensors": count, "structure": structure.hexdigest(), "content": content.hexdigest()}
