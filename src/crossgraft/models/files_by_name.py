"""What the names of checkpoint files say: which architecture is in a file, and which files are of an architecture."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from timm.models import list_pretrained

from crossgraft.errors import DataError, nearest_names
from crossgraft.models.sources.libraries import library_of
from crossgraft.models.sources.local_checkpoint import read_header
from crossgraft.models.sources.torchvision_models import published_name, torchvision_names, weights_of
from crossgraft.models.spec import CHECKPOINT_SUFFIXES, TORCHVISION_PREFIX, library_name
from crossgraft.paths import is_file

_ALL_SUFFIXES = sorted(CHECKPOINT_SUFFIXES, key=len, reverse=True)  # .pth.tar before .tar
_MOST_LISTED = 8


def checkpoint_files(folder: Path) -> list[Path]:
    """The files of a folder, but not of its folders, that are called like checkpoints; by name."""
    return sorted(path for path in folder.iterdir() if path.name.lower().endswith(CHECKPOINT_SUFFIXES) and is_file(path))


def checkpoint_stem(path: Path) -> str:
    """Its name without the extension of a checkpoint.

    >>> checkpoint_stem(Path("weights/resnet18.a1_in1k.pth.tar"))
    'resnet18.a1_in1k'
    """
    suffix = next((ending for ending in _ALL_SUFFIXES if path.name.lower().endswith(ending)), "")
    return path.name.removesuffix(path.name[len(path.name) - len(suffix) :]) if suffix else path.name


def source_in_name(path: Path) -> str | None:
    """The architecture that the name of a file names, with its tag where weights of this tag are published.

    That is ``architecture`` or ``architecture.anything``, or a file name of torchvision. Reads nothing.

    >>> [source_in_name(Path(name)) for name in ("resnet18.birds.pth", "resnet18.a1_in1k.safetensors", "mine.pth")]
    ['resnet18', 'resnet18.a1_in1k', None]
    >>> [source_in_name(Path(name)) for name in ("resnet18-f37072fd.pth", "mobilenet_v2.birds.pt")]
    ['torchvision:resnet18.IMAGENET1K_V1', 'torchvision:mobilenet_v2']
    """
    stem = checkpoint_stem(path)
    architecture = stem.partition(".")[0]
    for known in (path.name, stem):
        if known in _of_torchvision():
            return _of_torchvision()[known]
    if library_of(architecture).knows(architecture):
        return stem if stem in list_pretrained(f"{architecture}.*") else architecture
    torchvision = TORCHVISION_PREFIX + architecture
    return torchvision if library_of(torchvision).knows(torchvision) else None


@cache
def _of_torchvision() -> dict[str, str]:
    """Source by the name under which a file was published, and by ``architecture.TAG``."""
    sources: dict[str, str] = {}
    for architecture in torchvision_names():
        for weights in weights_of(architecture):
            source = f"{TORCHVISION_PREFIX}{architecture}.{weights.name}"
            sources |= {published_name(weights): source, f"{architecture}.{weights.name}": source}
    return sources


def why_no_architecture(path: Path) -> str | None:
    """Why nobody knows which network a file is of, in words; None where its header or its name says it.

    Raises:
        DataError: The file is damaged.
    """
    stated = read_header(path).architecture
    if stated:
        return None if library_of(stated).knows(stated) else f"the architecture {stated} is not in {library_name(stated)}"
    return None if source_in_name(path) else "neither header nor name says a known architecture"


def sort_out(files: Sequence[Path]) -> tuple[list[Path], str]:
    """Files of which the architecture is known, and the others with their reasons, in words."""
    known: list[Path] = []
    others: defaultdict[str, list[str]] = defaultdict(list)
    for path in files:
        try:
            reason = why_no_architecture(path)
        except DataError as error:
            reason = str(error).removeprefix(f"{path.name} ").rstrip(".")
        if reason is None:
            known.append(path)
        else:
            others[reason].append(path.name)
    return known, "; ".join(f"{', '.join(names)} ({reason})" for reason, names in others.items())


def files_called(source: str, folder: Path) -> list[Path]:
    """The checkpoints that are called like an architecture (``resnet18.birds.pth`` for ``resnet18``), or exactly like a tag.

    A file whose header names another architecture is none of them.
    """
    return [path for path in checkpoint_files(folder) if _is_called(path, source)]


def _is_called(path: Path, source: str) -> bool:
    wanted = source.partition(".")[0]
    name, stem = source.removeprefix(TORCHVISION_PREFIX), checkpoint_stem(path)
    named = (source_in_name(path) or "").partition(".")[0]  # torchvision's files are not timm's
    if stem != name and ("." in name or (named != wanted and stem.partition(".")[0] != name)):
        return False
    return (read_header(path).architecture or named).partition(".")[0] == wanted


def explain_missing(message: str, source: str, folder: Path | None) -> str:
    """The message about missing weights, with what of a folder could be meant."""
    if folder is None:
        return message
    if files := [path.name for path in files_called(source, folder)]:
        more = f" and {len(files) - _MOST_LISTED} more" if len(files) > _MOST_LISTED else ""
        return (
            f"{source} could mean {len(files)} files of {folder}: {', '.join(files[:_MOST_LISTED])}{more}. Name one of them. "
            f"{message}"
        )
    near = nearest_names(source, [path.name for path in checkpoint_files(folder)])
    return f"{message} {folder} has files of similar names: {', '.join(near)}." if near else message
