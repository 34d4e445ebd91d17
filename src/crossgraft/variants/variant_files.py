"""Variants that a list of mappings describes, in Python or in a YAML file: a name, and the settings that differ."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from pydantic import ValidationError

from crossgraft.config import first_refusal, parse_yaml, settings_model
from crossgraft.errors import UnknownNameError, UsageError, located
from crossgraft.options._option import options_of
from crossgraft.tune.options import TuneOptions, VariantOptions


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
