"""Fill in what a spec leaves to its checkpoint's header, and find its files. Reads no tensor."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from crossgraft.errors import DataError, UnknownNameError, UsageError
from crossgraft.models.files_by_name import files_called, source_in_name
from crossgraft.models.sources.architecture_arguments import refuse_loading_arguments, refuse_other_arguments
from crossgraft.models.sources.factory import locate_factory
from crossgraft.models.sources.libraries import library_of
from crossgraft.models.sources.library import Places
from crossgraft.models.sources.local_checkpoint import CheckpointHeader, find_checkpoint, read_header
from crossgraft.models.spec import PRETRAINED, ModelSpec, family_of, is_factory_source, library_name
from crossgraft.models.trusted_code import NOTHING
from crossgraft.paths import is_file
from crossgraft.progress import Reporter


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
