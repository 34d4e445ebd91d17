"""What is compared: ``full,linear,hcs:0.8,0.6,partial:3+repsim,ablations.yaml`` as a list of variants with names."""

from __future__ import annotations

import dataclasses
import json
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, cast

from pydantic import ValidationError

from crossgraft.choice import choose, spell
from crossgraft.config import first_refusal, parse_yaml, settings_model
from crossgraft.errors import UnknownNameError, UsageError, located
from crossgraft.options._option import options_of
from crossgraft.registry import Registry
from crossgraft.tune.feature_transforms import FEATURE_TRANSFORMS
from crossgraft.tune.methods import METHODS, Method
from crossgraft.tune.objectives import OBJECTIVES
from crossgraft.tune.options import TuneOptions, VariantOptions
from crossgraft.tune.planning.choices import split_choices
from crossgraft.tune.protocols import Regularizer, form_of, keeps_reference
from crossgraft.tune.regularizers import REGULARIZERS
from crossgraft.words.formatting import joined


def read_variant_file(path: Path) -> list[Mapping[str, object]]:
    """The mappings of a YAML file.

    Raises:
        UsageError: The file is missing, is not YAML, or is no list of mappings.
    """
    if not path.is_file():
        raise UsageError(f"--compare: no such file of variants: {path}")
    try:
        content = parse_yaml(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UsageError(f"{path} is not a YAML file: {error}.") from error
    entries = cast(list[object], content) if isinstance(content, list) else []
    if not entries or not all(isinstance(entry, Mapping) for entry in entries):
        raise UsageError(
            f"{path} must hold a list of variants, each with a name and its settings: - {{name: small, batch_size: 4}}"
        )
    return [cast(Mapping[str, object], entry) for entry in entries]


def settings_of_entry(entry: Mapping[str, object], where: str) -> tuple[str, dict[str, Any]]:
    """Name and settings of one mapping, with their types checked.

    Raises:
        UsageError: There is no name, a setting cannot differ between variants, or a value has the wrong type.
        UnknownNameError: A setting is not known.
    """
    values = {str(key).replace("-", "_"): value for key, value in entry.items()}
    name = values.pop("name", None)
    if not isinstance(name, str | int | float) or not str(name).strip():
        raise UsageError(f"{where}: a variant has no name. Write for example - {{name: small batches, batch_size: 4}}.")
    may_differ = options_of(VariantOptions)
    for setting in values:
        if setting not in options_of(TuneOptions):
            raise UnknownNameError("setting", setting, may_differ, hint=f"In the variant {name} of {where}.")
        if setting not in may_differ:
            raise UsageError(
                f"{where}: the variant {name} sets {setting}, which is the same for all variants. Give it beside --compare."
            )
    try:
        settings = settings_model(VariantOptions).model_validate(values)
    except ValidationError as error:
        raise located(first_refusal(error)[0], f"{where}: variant {name}") from error
    return str(name).strip(), {setting: getattr(settings, setting) for setting in values}


Entry = str | Path | Mapping[str, object]

_AND = re.compile(r"\+(?=\s*[A-Za-z_])")
"""Between plug-ins; the plus of ``1e+3`` is none."""
_FILES = (".yaml", ".yml")
_SLOTS: Mapping[str, Registry[Any]] = {
    "method": METHODS,
    "objective": OBJECTIVES,
    "regularizer": REGULARIZERS,
    "feature_transform": FEATURE_TRANSFORMS,
}
"""Slots whose plug-ins make a variant by their names, in the order in which they are told."""
_OF_ONE = ("method", "objective")
"""Slots with room for one plug-in."""


@dataclass(frozen=True)
class Variant:
    """One way to fine-tune.

    Attributes:
        name: As it was written; in tables, figures and the names of folders.
        settings: Arguments of ``fine_tune`` that it sets, ``method`` and ``regularizer`` among them, and ``objective`` and
            ``feature_transform`` where it has some.
        sweep: What it shares with the others that differ from it in one strength alone; None without others.
        strength: The value of that first option of its last plug-in; None without a sweep.
    """

    name: str
    settings: Mapping[str, Any]
    sweep: str | None = None
    strength: float | None = None

    @property
    def method(self) -> Method:
        """What is trained."""
        return choose(METHODS, self.settings["method"])

    @property
    def plugins(self) -> list[Any]:
        """Method, objective (but for the plain mean), regularisers and feature transforms, as they were written."""
        objective = choose(OBJECTIVES, self.settings.get("objective", "erm"))
        others = [] if objective.is_plain_mean else [objective]
        transforms = [choose(FEATURE_TRANSFORMS, each) for each in self.settings.get("feature_transform", ())]
        return [self.method, *others, *self.regularizers, *transforms]

    @property
    def regularizers(self) -> list[Regularizer]:
        """Regularisers, in the order in which they were written."""
        return [choose(REGULARIZERS, each) for each in self.settings["regularizer"]]

    @property
    def form(self) -> str | None:
        """Forms of those of its plug-ins that have several, in print."""
        return " + ".join(form for each in self.plugins if (form := form_of(each)) is not None) or None

    @property
    def further(self) -> dict[str, Any]:
        """Its settings but for these plug-ins."""
        return {name: value for name, value in self.settings.items() if name not in _SLOTS}

    @property
    def is_full(self) -> bool:
        """Whether the whole network is trained, with nothing added and every setting as for the others."""
        return self.method.name == "full" and len(self.plugins) == 1 and not self.further

    @property
    def is_linear(self) -> bool:
        """Whether the head is trained alone."""
        return self.method.name == "linear"

    @property
    def starts_from_scratch(self) -> bool:
        """Whether training starts from random weights."""
        return self.method.starts_from_scratch


def read_variants(compare: Entry | Sequence[Entry]) -> list[Variant]:
    """Every variant of ``compare``, in the order in which they were written.

    A text names them with commas. One is a method (``full``, ``partial:3``), an objective, a regulariser or a feature transform,
    which is added to ``full``, or several plug-ins with ``+`` (``partial:3+repsim``, ``irm+rho_sim``). A number repeats the
    plug-in before it with another value of its first option: ``hcs:0.8,0.6``. ``name.yaml`` stands for the list of variants in
    that file, each a mapping with a ``name`` and the settings of ``fine_tune`` that it changes; such mappings may also be given
    as they are.

    Args:
        compare: Such a text, the path of a file, a mapping, or a sequence of these.

    Raises:
        UnknownNameError: A plug-in or a setting is not known; the message gives the nearest names.
        UsageError: A variant is given twice, is empty, or a value is refused.

    >>> [variant.name for variant in read_variants("full,l2_sp:0.1,0.01,partial:3+l2_sp:alpha=0.1,beta=0.2")]
    ['full', 'l2_sp:0.1', 'l2_sp:0.01', 'partial:3+l2_sp:alpha=0.1,beta=0.2']
    """
    entries: list[Entry] = [compare] if isinstance(compare, str | Path | Mapping) else list(compare)
    variants: list[Variant] = []
    for entry in entries:
        if isinstance(entry, Mapping):
            variants.append(_of_mapping(entry, "--compare"))
        else:
            variants += _of_text(str(entry))
    if len(variants) < 2:
        raise UsageError("A comparison needs at least two variants, for example --compare full,linear,l2_sp.")
    _refuse_equal(variants)
    return _with_sweeps(variants)


def _of_text(text: str) -> list[Variant]:
    variants: list[Variant] = []
    for item in _items(text):
        if _is_file(item):
            variants += [_of_mapping(entry, item) for entry in read_variant_file(Path(item))]
        else:
            variants.append(Variant(item, _plugins_of(item)))
    return variants


def _items(text: str) -> list[str]:
    """What stands between commas, with options at the plug-in that they belong to, and numbers as plug-ins."""
    items: list[str] = []
    if not text.strip():
        raise UsageError("--compare is empty. Name at least two ways to fine-tune, for example full,linear,l2_sp.")
    for part in (part.strip() for part in text.split(",")):
        if not part:
            raise UsageError(f"--compare {text}: a name is missing at a comma. Write it, or remove the comma.")
        is_option = not _is_file(part) and "=" in part.partition(":")[0]
        if (is_option or _is_number(part)) and (not items or _is_file(items[-1])):
            raise UsageError(f"--compare {text}: there is no plug-in before {part} that it belongs to.")
        if is_option:
            items[-1] += f",{part}"
        else:
            items.append(_with_value(items[-1], part) if _is_number(part) else part)
    return items


def _with_value(item: str, value: str) -> str:
    """``item`` with another value of the first option of its last plug-in; all other options stay.

    >>> _with_value("partial:3+hcs:0.8,eps=1", "0.6"), _with_value("hcs", "0.6")
    ('partial:3+hcs:0.6,eps=1', 'hcs:0.6')
    """
    *before, last = _AND.split(item)
    name, _, options = last.partition(":")
    first = _first_option(name.strip())
    parts = [part.strip() for part in options.split(",") if part.strip()]
    others = [part for part in parts if "=" in part and part.partition("=")[0].strip() != first]
    return "+".join([*before, f"{name.strip()}:{','.join([value, *others])}"])


def _first_option(name: str) -> str | None:
    plugin = next((dict(registry)[name] for registry in _SLOTS.values() if name in registry), None)
    fields = () if plugin is None else dataclasses.fields(plugin)
    return next((field.name for field in fields if field.init), None)


def _plugins_of(item: str) -> dict[str, Any]:
    """Plug-ins of one item by slot; all are known and take their options."""
    found: dict[str, list[str]] = {slot: [] for slot in _SLOTS}
    for choice in (choice.strip() for choice in _AND.split(item)):
        name = choice.partition(":")[0].strip()
        slot = next((slot for slot, registry in _SLOTS.items() if name in registry), None)
        if slot is None and Path(choice).is_dir():
            raise UsageError(
                f"--compare trains what it names (methods, objectives, regularizers), and {choice} is a folder. To put finished "
                f"runs beside each other: crossgraft compare {shlex.quote(choice)} OTHER_RUN --data DATA."
            )
        if slot is None:
            known = [each for registry in _SLOTS.values() for each in registry.names()]
            raise UnknownNameError("method, objective, regularizer or feature transform", name, known)
        choose(_SLOTS[slot], choice)
        if slot in _OF_ONE and found[slot]:
            raise UsageError(f"--compare {item}: {found[slot][0]} and {choice} are both {slot}s. Give one, and what is added.")
        found[slot].append(choice)
    settings = {slot: choices[0] if slot in _OF_ONE else tuple(choices) for slot, choices in found.items() if choices}
    return {"method": "full", "regularizer": (), **settings}


def _of_mapping(entry: Mapping[str, object], where: str) -> Variant:
    name, settings = settings_of_entry(entry, where)
    settings = {**settings, "method": settings.get("method", "full"), "regularizer": settings.get("regularizer", ())}
    for slot in (slot for slot in _SLOTS if slot in settings):
        if slot not in _OF_ONE:
            settings[slot] = _listed(settings[slot])
        for each in [settings[slot]] if slot in _OF_ONE else settings[slot]:
            choose(_SLOTS[slot], each)
    return Variant(name, settings)


def _listed(plugins: Any) -> tuple[Any, ...]:
    several = split_choices(plugins) if isinstance(plugins, str) else plugins
    return tuple(several) if isinstance(several, Sequence) else (several,)


def _refuse_equal(variants: Sequence[Variant]) -> None:
    """Two that would be trained alike, or that have one name."""
    names: set[str] = set()
    by_meaning: dict[str, str] = {}
    for variant in variants:
        if variant.name.casefold() in names:
            raise UsageError(f"--compare: the variant {variant.name} is given twice. Give each name once.")
        names.add(variant.name.casefold())
        meaning = json.dumps([list(map(spell, variant.plugins)), variant.further], sort_keys=True, default=str)
        twin = by_meaning.setdefault(meaning, variant.name)
        if twin != variant.name:
            raise UsageError(f"--compare: {twin} and {variant.name} are the same fine-tuning. Leave one of them out.")


def _with_sweeps(variants: Iterable[Variant]) -> list[Variant]:
    """Those that differ in one strength alone, marked as points of one sweep."""
    sweeps = [(variant, *_sweep_of(variant)) for variant in variants]
    keys = [key for _, key, _ in sweeps]
    return [
        replace(variant, sweep=key, strength=strength) if key is not None and keys.count(key) > 1 else variant
        for variant, key, strength in sweeps
    ]


def _sweep_of(variant: Variant) -> tuple[str | None, float | None]:
    """What a variant shares with others of its sweep, and its strength; None where its last plug-in has no number."""
    *before, last = variant.plugins
    fields = [field for field in dataclasses.fields(last) if field.init]
    value = getattr(last, fields[0].name) if fields else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None, None
    others = {field.name: getattr(last, field.name) for field in fields[1:]}
    shared = [list(map(spell, before)), last.name, others, variant.further]
    return json.dumps(shared, sort_keys=True, default=str), float(value)


def _is_file(part: str) -> bool:
    return part.lower().endswith(_FILES)


def _is_number(part: str) -> bool:
    try:
        float(part)
    except ValueError:
        return False
    return True


class _Fitting(NamedTuple):
    """One such option, which the others do not get.

    Attributes:
        name: Its name.
        is_given: Whether it has a value that does not mean something to everybody.
        fits: Whether that means something to a variant.
        reason: Reason why it means nothing to one of the others, after its name.
        advice: What to do where it fits none.
    """

    name: str
    is_given: Callable[[object], bool]
    fits: Callable[[Variant], bool]
    reason: str
    advice: str


def _has_keeper(variant: Variant) -> bool:
    return any(keeps_reference(each) and getattr(each, "pulls", True) for each in variant.regularizers)


_FITTING = (
    _Fitting(
        "keep",
        lambda value: value is not None,
        _has_keeper,
        "has no regulariser that compares with the start",
        "Add one, for example --compare full,linear,repsim",
    ),
    _Fitting(
        "batch_norm",
        lambda value: value in ("frozen", "adapt"),
        lambda variant: not variant.starts_from_scratch,
        "starts from random weights, which have no statistics that are worth keeping",
        "Add one that starts from the pretrained network, for example full",
    ),
)


def without_meaning(options: TuneOptions, variant: Variant) -> dict[str, None]:
    """Options of all variants that mean nothing to this one, to be left open; what it says itself counts."""
    return {
        each.name: None
        for each in _FITTING
        if each.name not in variant.settings and each.is_given(getattr(options, each.name)) and not each.fits(variant)
    }


def left_out(options: TuneOptions, variants: Sequence[Variant]) -> list[str]:
    """One sentence for each option that some variants are trained without.

    Raises:
        UsageError: All of them are, but for those that say it themselves.
    """
    sentences: list[str] = []
    for each in _FITTING:
        asking = [variant for variant in variants if each.name not in variant.settings]
        others = [variant for variant in asking if each.name in without_meaning(options, variant)]
        if not others:
            continue
        typed = f"--{each.name.replace('_', '-')} {getattr(options, each.name)}"
        if len(others) == len(asking):
            raise UsageError(
                f"{typed} means nothing to any variant of --compare that it is given for: {_names(others)} {each.reason}. "
                f"{each.advice}, or leave {typed} out."
            )
        own = joined([variant.name for variant in asking if variant not in others])
        sentences.append(f"{typed} is for {own}. Trained without it: {_names(others)} {each.reason}.")
    return sentences


def _names(variants: Sequence[Variant]) -> str:
    """The names, and the beginning of what is said of each."""
    first, *more = [variant.name for variant in variants]
    return f"{joined([first, *more])}, each of which" if more else f"{first}, which"
