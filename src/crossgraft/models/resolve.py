"""Fill in what a spec leaves open, by the header of its checkpoint and by the names of files. Reads no tensor."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from timm.models import list_pretrained

from crossgraft.errors import DataError, UnknownNameError, UsageError, nearest_names
from crossgraft.models.sources.architecture_arguments import refuse_loading_arguments, refuse_other_arguments
from crossgraft.models.sources.factory import locate_factory
from crossgraft.models.sources.libraries import library_of
from crossgraft.models.sources.library import Places
from crossgraft.models.sources.local_checkpoint import CheckpointHeader, find_checkpoint, read_header
from crossgraft.models.sources.torchvision_models import published_name, torchvision_names, weights_of
from crossgraft.models.spec import (
    CHECKPOINT_SUFFIXES,
    PRETRAINED,
    TORCHVISION_PREFIX,
    ModelSpec,
    family_of,
    is_factory_source,
    library_name,
)
from crossgraft.models.trusted_code import NOTHING
from crossgraft.paths import is_file
from crossgraft.progress import Reporter

_ALL_SUFFIXES = sorted(CHECKPOINT_SUFFIXES, key=len, reverse=True)  # .pth.tar before .tar
_MOST_LISTED = 8


def resolve_spec(
    spec: ModelSpec, *, weights_dir: Path | None = None, allow_download: bool = False, reporter: Reporter | None = None
) -> ModelSpec:
    """The same model with nothing left open: source, arguments, preprocessing and absolute paths.

    What the entry says wins over what the header says, and that over what the name of a file says. An architecture without
    weights takes the one file of ``weights_dir`` that is called like it, where the library's own weights are not on this
    machine. Resolving twice changes nothing.

    Raises:
        UntrustedCodeError: A file names a function that nobody allowed.
        UnknownNameError: timm or torchvision has no such architecture, or a header states an argument that shapes no network.
        MissingWeightsError: A file is not where the spec says.
        UsageError: The spec contradicts itself, or names no architecture.
        DataError: The checkpoint's header is damaged, or the source features are missing.
    """
    folders = [Path(folder) for folder in (weights_dir, spec.folder, Path.cwd()) if folder is not None]
    if spec.source and not spec.is_factory:
        places = Places(weights_dir, folders, allow_download, reporter or Reporter(quiet=True))
        spec = library_of(spec.source).locate(spec, places)
    spec = _with_file_by_name(spec, weights_dir)
    if spec.has_checkpoint:
        path = find_checkpoint(str(spec.weights), folders, model=spec.name)
        spec = _fill_from_header(replace(spec, weights=str(path)), read_header(path), path)
    if spec.is_factory:
        locate_factory(spec.source, trusted=spec.code, folders=[folder for folder in folders if folder != weights_dir])
        if spec.weights == PRETRAINED:
            raise UsageError(
                f"The model {spec.name}: `weights: pretrained` means the own weights of timm or torchvision, but {spec.source} "
                "is a function. Name a file, or leave weights out if the function loads them."
            )
    else:
        library_of(spec.source).check(spec.source)
        spec = replace(spec, weights=spec.weights or PRETRAINED)
    return replace(
        spec,
        family=spec.family or family_of(spec.source),
        source_features=_find_source_features(spec, folders),
        weights_dir=spec.weights_dir if weights_dir is None else weights_dir.resolve(),
    )


def _with_file_by_name(spec: ModelSpec, weights_dir: Path | None) -> ModelSpec:
    """With ``source`` and ``weights`` of the only file that is called like the architecture; of several, none is chosen."""
    if weights_dir is None or spec.weights is not None or spec.is_factory:
        return spec
    library = library_of(spec.source)
    if not library.knows(spec.source) or (_is_published(spec.source) and library.find_weights(spec.source, weights_dir)):
        return spec
    files = files_called(spec.source, weights_dir)
    if len(files) != 1:
        return spec
    named = source_in_name(files[0]) or spec.source
    if _is_published(named) and library.find_weights(named, weights_dir) == files[0]:
        return replace(spec, source=named)  # the library's own weights of another tag
    return replace(spec, source=spec.source.partition(".")[0], weights=str(files[0]))


def _is_published(source: str) -> bool:
    """Whether the library knows the architecture and, where there is a tag, weights of this tag."""
    try:
        library_of(source).check(source)
    except UnknownNameError:
        return False
    return True


def _fill_from_header(spec: ModelSpec, header: CheckpointHeader, path: Path) -> ModelSpec:
    source = spec.source or header.architecture or source_in_name(path)
    if not source:
        raise UsageError(
            f"{path.name} does not say its architecture. Write a zoo file with the entry name: {spec.name}, source: a "
            f"timm architecture, torchvision:NAME or package.module:factory, weights: {path.name}."
        )
    if not spec.source and not is_factory_source(source) and not library_of(source).knows(source):
        raise UsageError(
            f"{path.name} says that its architecture is {source}, which {library_name(source)} does not have. Write a zoo "
            f"file with the entry name: {spec.name}, source: package.module:factory (a function that builds it), weights: "
            f"{path.name}."
        )
    kwargs = dict(spec.kwargs)
    if source == header.architecture:
        stated = dict(header.kwargs)
        refuse = refuse_loading_arguments if is_factory_source(source) else refuse_other_arguments
        refuse(stated, where=f"the header of {path.name}")
        if header.num_classes is not None:
            stated["num_classes"] = header.num_classes
        kwargs = {**stated, **kwargs}
    return replace(
        spec,
        source=source,
        # a file allows nothing: None would trust the function that it names
        trusted=spec.trusted if spec.source or spec.trusted is not None else NOTHING,
        kwargs=kwargs,
        licence=spec.licence or header.licence,
        preprocessing={**header.preprocessing, **spec.preprocessing},
    )


def _find_source_features(spec: ModelSpec, folders: list[Path]) -> str | None:
    if spec.source_features is None:
        return None
    path = Path(spec.source_features).expanduser()
    for candidate in [path] if path.is_absolute() else [folder / path for folder in folders]:
        if is_file(candidate):
            return str(candidate.resolve())
    raise DataError(
        f"The source_features of the model {spec.name} are missing: {path.name} is in none of "
        f"{', '.join(str(folder) for folder in folders)}."
    )


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
