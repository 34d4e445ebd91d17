"""Where features live between runs: one folder for each (data, weights, structure, preprocessing).

While images are being looked at, every ``ROWS_PER_SHARD`` of them become one shard, written atomically, so a
killed run loses at most one shard. At the end the shards become one file that is read as a memory map. Two
processes with one key may work side by side: both write the same rows under names of their own, and whoever
is first gives them their place.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

import numpy as np
import platformdirs
from numpy.typing import NDArray

from crossgraft.errors import StorageError
from crossgraft.models import Backbone
from crossgraft.storage.atomic import atomic_file, remove_if_free, remove_leftovers
from crossgraft.types import Features, SourceLogits


@dataclass(frozen=True)
class FeatureSet:
    """One row per image, in the order of the data set; read-only arrays that live in a memory-mapped file.

    Attributes:
        features: Penultimate features (n, d), float32.
        source_logits: Logits of the pretrained head (n, Z), float32; None for a backbone without a head.
        seconds: What looking at all images took when it was done, also if this call only read the result.
        from_cache: Whether everything was in the cache already.
    """

    features: Features
    source_logits: SourceLogits | None
    seconds: float
    from_cache: bool

    def __len__(self) -> int:
        return len(self.features)

    def in_memory(self) -> FeatureSet:
        """The same without the file."""
        logits = None if self.source_logits is None else np.array(self.source_logits)
        return replace(self, features=np.array(self.features), source_logits=logits)


# float32 arrays in one safetensors file: written in pieces, read as a memory map, checked by a sum.
#
# The layout is the safetensors standard (8 bytes of header length, a JSON header, the data), so any other tool
# can open the files. Writing it here allows arrays larger than memory; reading it here gives a map instead of a
# copy.

FloatArray = NDArray[np.float32]

_DTYPE = np.dtype("<f4")
_ALIGNMENT = 64
_LENGTH_BYTES = 8
_LONGEST_HEADER = 2**20
"""Bytes; far above what ``write_tensors`` writes."""


class TensorFile(NamedTuple):
    """A memory-mapped file."""

    tensors: dict[str, FloatArray]
    metadata: dict[str, str]


def checksum(array: FloatArray) -> int:
    """Sum of all 32-bit words modulo 2⁶⁴: a whole has the sum of its parts.

    Runs at the speed of memory. It finds truncated, zeroed and flipped bytes, which is what disks and kills
    do; it is no protection against intent.
    """
    words = np.ascontiguousarray(array, dtype=_DTYPE).reshape(-1).view(np.uint32)
    return int(np.add.reduce(words, dtype=np.uint64))


def write_tensors(
    file: BinaryIO, shapes: Mapping[str, tuple[int, ...]], pieces: Iterable[FloatArray], metadata: Mapping[str, str]
) -> None:
    """Write arrays of ``shapes``, one after the other, from consecutive ``pieces`` of their rows."""
    header: dict[str, object] = {"__metadata__": dict(metadata)}
    offset = 0
    for name, shape in shapes.items():
        end = offset + math.prod(shape) * _DTYPE.itemsize
        header[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header).encode()
    text += b" " * (-(_LENGTH_BYTES + len(text)) % _ALIGNMENT)
    file.write(len(text).to_bytes(_LENGTH_BYTES, "little") + text)
    for piece in pieces:
        file.write(np.ascontiguousarray(piece, dtype=_DTYPE).data)


def map_tensors(path: Path) -> TensorFile | None:
    """Memory-map a file of ``write_tensors``; None when it is missing, truncated or not such a file.

    Raises:
        StorageError: The file is there but may not be read.
    """
    try:
        status = path.stat()
        if stat.S_ISFIFO(status.st_mode):  # opening one waits for somebody who writes
            return None
        size = status.st_size
        with path.open("rb") as file:
            length = int.from_bytes(file.read(_LENGTH_BYTES), "little")
            if length > min(size, _LONGEST_HEADER):
                return None
            header = json.loads(file.read(length))
    except (FileNotFoundError, NotADirectoryError, ValueError, RecursionError):
        return None
    except OSError as error:
        raise StorageError(
            f"Cannot read {path}: {error.strerror or error}. Allow reading it, or set CROSSGRAFT_CACHE to another folder."
        ) from error
    start = _LENGTH_BYTES + length
    try:
        metadata = {str(key): str(value) for key, value in header.pop("__metadata__").items()}
        entries = cast("dict[str, dict[str, Any]]", header)
        if start + max(entry["data_offsets"][1] for entry in entries.values()) != size:
            return None
        if any(math.prod(entry["shape"]) * _DTYPE.itemsize != _length(entry) for entry in entries.values()):
            return None
        tensors = {
            name: np.memmap(path, _DTYPE, "r", offset=start + entry["data_offsets"][0], shape=tuple(entry["shape"]))
            for name, entry in entries.items()
        }
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError):
        return None
    # plain views: numpy's memmap subclass makes every small operation slower
    return TensorFile({name: np.asarray(array) for name, array in tensors.items()}, metadata)


def _length(entry: Mapping[str, Any]) -> int:
    begin, end = entry["data_offsets"]
    return end - begin


FORMAT_VERSION = 1
ROWS_PER_SHARD = 512

_FEATURES = "features"
_LOGITS = "source_logits"


def cache_folder(cache_dir: str | Path | None = None) -> Path:
    """``cache_dir``, else ``$CROSSGRAFT_CACHE/features``, else the user's cache folder."""
    if cache_dir is not None:
        return Path(cache_dir)
    stated = os.environ.get("CROSSGRAFT_CACHE")
    return (Path(stated) if stated else platformdirs.user_cache_path("crossgraft")) / "features"


def feature_key(data_fingerprint: str, backbone: Backbone) -> str:
    """SHA-256 over everything that is meant to change the numbers, and nothing else.

    Batch size, threads, device and package versions can change the last digits; they are recorded, not part
    of the key.
    """
    facts = {
        "format": FORMAT_VERSION,
        "data": data_fingerprint,
        "weights": backbone.weights_fingerprint,
        "structure": backbone.structure_fingerprint,
        "preprocessing": asdict(backbone.preprocessing),
    }
    if backbone.precision != "32":  # in which features of earlier versions are
        facts["precision"] = backbone.precision
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


class FeatureStore:
    """The folder of one key.

    Args:
        folder: Folder of this key alone.
        num_samples: Rows of the data set.
        num_features: Columns of the features.
        num_source_classes: Columns of the source logits; None where there are none.
    """

    def __init__(self, folder: Path, num_samples: int, num_features: int, num_source_classes: int | None) -> None:
        self.folder = folder
        self.num_samples = num_samples
        self.widths = {_FEATURES: num_features}
        if num_source_classes is not None:
            self.widths[_LOGITS] = num_source_classes
        self.num_shards = -(-num_samples // ROWS_PER_SHARD)
        self.damaged: list[str] = []

    def moved_to(self, folder: Path) -> FeatureStore:
        """The same features in another folder."""
        return FeatureStore(folder, self.num_samples, self.widths[_FEATURES], self.widths.get(_LOGITS))

    @property
    def path(self) -> Path:
        """The finished file."""
        return self.folder / "features.safetensors"

    def rows(self, shard: int) -> range:
        """The images of one shard."""
        return range(shard * ROWS_PER_SHARD, min((shard + 1) * ROWS_PER_SHARD, self.num_samples))

    def read(self) -> FeatureSet | None:
        """The finished features as a memory map; None when they are not there or fail their checksum.

        Cost: one pass over the file, at the speed of memory once the system holds it.
        """
        stored = self._read_checked(self.path, self.num_samples)
        if stored is None:
            return None
        return FeatureSet(
            features=stored.tensors[_FEATURES],
            source_logits=stored.tensors.get(_LOGITS),
            seconds=float(stored.metadata["seconds"]),
            from_cache=True,
        )

    def missing_shards(self) -> list[int]:
        """Shards that are not there or fail their checksum."""
        return [shard for shard in range(self.num_shards) if self._read_shard(shard) is None]

    def write_manifest(self, facts: dict[str, object]) -> None:
        """Say in words what this folder holds; for people, nothing reads it back.

        Raises:
            StorageError: Disk full, no permission …
        """
        with atomic_file(self.folder / "manifest.json") as file:
            file.write(json.dumps(facts, indent=2, ensure_ascii=False).encode())

    def write_shard(self, shard: int, features: FloatArray, source_logits: FloatArray | None, *, seconds: float) -> None:
        """Keep the rows of one shard.

        Raises:
            StorageError: Disk full, no permission …; nothing half-written stays.
        """
        tensors = {_FEATURES: features} if source_logits is None else {_FEATURES: features, _LOGITS: source_logits}
        metadata = {name: str(checksum(array)) for name, array in tensors.items()} | {"seconds": repr(seconds)}
        with atomic_file(self._shard_path(shard)) as file:
            shapes = {name: array.shape for name, array in tensors.items()}
            write_tensors(file, shapes, tensors.values(), metadata)

    def finish(self) -> FeatureSet | None:
        """Join the shards into one file and map it; None when a shard is missing and nobody else finished.

        Raises:
            StorageError: Disk full, no permission …; the shards stay.
        """
        try:
            self._join()
        except _ShardLostError:
            return self.read()
        self.tidy()
        return self.read()

    def tidy(self) -> None:
        """Remove what the finished file makes superfluous: shards, and what killed processes left half-written."""
        for shard in self.folder.glob("shard-*.safetensors"):
            remove_if_free(shard)  # a second process may have it mapped, which Windows respects
        remove_leftovers(self.folder)

    def _join(self) -> None:
        shapes, sums, seconds = self._totals()
        metadata = {name: str(total) for name, total in sums.items()} | {"seconds": repr(seconds)}
        with atomic_file(self.path) as file:
            write_tensors(file, shapes, self._pieces(list(shapes)), metadata)

    def _totals(self) -> tuple[dict[str, tuple[int, ...]], dict[str, int], float]:
        """Shapes and checksums of the joined arrays, and the seconds of all shards."""
        widths: dict[str, int] = {}
        sums: dict[str, int] = {}
        seconds = 0.0
        for shard in range(self.num_shards):
            stored = self._shard_or_lost(shard)
            seconds += float(stored.metadata["seconds"])
            for name, array in stored.tensors.items():
                widths[name] = array.shape[1]
                sums[name] = (sums.get(name, 0) + int(stored.metadata[name])) % 2**64
        return {name: (self.num_samples, width) for name, width in widths.items()}, sums, seconds

    def _pieces(self, names: list[str]) -> Iterator[FloatArray]:
        for name in names:
            for shard in range(self.num_shards):
                yield self._shard_or_lost(shard).tensors[name]

    def _shard_or_lost(self, shard: int) -> TensorFile:
        stored = map_tensors(self._shard_path(shard))
        if stored is None:
            raise _ShardLostError
        return stored

    def _shard_path(self, shard: int) -> Path:
        return self.folder / f"shard-{shard:05d}.safetensors"

    def _read_shard(self, shard: int) -> TensorFile | None:
        return self._read_checked(self._shard_path(shard), len(self.rows(shard)))

    def _read_checked(self, path: Path, num_rows: int) -> TensorFile | None:
        stored = map_tensors(path)
        if stored is not None and _is_sound(stored, {name: (num_rows, width) for name, width in self.widths.items()}):
            return stored
        if path.exists():
            self.damaged.append(path.name)
        return None


class _ShardLostError(Exception):
    """Another process finished and removed the shards, or one was damaged meanwhile."""


def _is_sound(stored: TensorFile, shapes: Mapping[str, tuple[int, int]]) -> bool:
    """Whether it is what ``write_shard`` or ``finish`` wrote; the cache may be shared, and disks fail."""
    try:
        seconds = float(stored.metadata.get("seconds", ""))
    except ValueError:
        return False
    return (
        math.isfinite(seconds)
        and {name: array.shape for name, array in stored.tensors.items()} == shapes
        and all(stored.metadata.get(name) == str(checksum(array)) and _is_finite(array) for name, array in stored.tensors.items())
    )


def _is_finite(array: FloatArray) -> bool:
    """NaN goes through both; nothing as large as the array is made."""
    return bool(np.isfinite([array.min(), array.max()]).all())
