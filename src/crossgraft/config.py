"""Configuration = defaults < YAML file < what was given on the command line or in the call.

The keys of a configuration file are the options of the verb (see ``crossgraft.options``), so that there is one list to keep.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, ConfigDict, PlainValidator, ValidationError, create_model

from crossgraft.errors import UnknownNameError, UsageError, located
from crossgraft.options._option import Options, options_of
from crossgraft.options._values import value_of
from crossgraft.options.running import Terminal
from crossgraft.paths import shortened

CONSENTS = {"allow_code": "--code", "allow_outside": "--allow-outside"}
"""What only a person can allow, on the command line or in a call, and the flag for it. It changes no number."""


def settings_model(kind: type[Options], *, leave_out: Iterable[str] = ()) -> type[BaseModel]:
    """A pydantic model with one field per option.

    Args:
        kind: Options of a verb.
        leave_out: Names of options that a file does not have.
    """
    return _model_of(kind, frozenset(leave_out))


@cache
def _model_of(kind: type[Options], left_out: frozenset[str]) -> type[BaseModel]:
    fields: dict[str, Any] = {
        name: (Annotated[Any, PlainValidator(partial(value_of, each))], ... if each.is_required else each.default)
        for name, each in options_of(kind).items()
        if each.about.is_typed and name not in left_out
    }
    config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)
    return create_model(kind.__name__, __config__=config, **fields)


def read_config_file(path: Path, known: Iterable[str]) -> dict[str, Any]:
    """Read a YAML mapping and refuse unknown keys with the nearest known ones.

    Raises:
        UsageError: The file is missing, is not YAML, or is not a mapping.
        UnknownNameError: A key is not known.
    """
    if not path.is_file():
        raise UsageError(f"No such configuration file: {path}")
    try:
        content = parse_yaml(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UsageError(f"{path} is not a YAML file: {error}.") from error
    if content is None:
        raise UsageError(f"{path} is empty. Write one option in each line, such as `seed: 1`, or leave --config out.")
    if not isinstance(content, dict):
        raise UsageError(f"{path} must hold a mapping such as `seed: 1`, but holds a {type(content).__name__}.")
    values: dict[str, Any] = {}
    for written, value in content.items():
        key = str(written).replace("-", "_")
        if key in values:
            raise UsageError(f"{path}: the key {key} is given twice, with a hyphen and with an underscore. Keep one.")
        values[key] = value
    known, terminal = list(known), options_of(Terminal)
    for key in values:
        if key in terminal:
            raise UsageError(f"{path} sets {key}, which is a flag of the terminal only. Remove it there, and type --{key}.")
        if key in CONSENTS:
            raise UsageError(f"{path} sets {key}, which a file cannot allow. Remove it there, and type {CONSENTS[key]}.")
        if key not in known:
            raise UnknownNameError("key", key, known, hint=f"In {path}.")
    return values


def parse_yaml(text: str) -> object:
    """What a YAML document says: plain values only.

    Raises:
        ValueError: It is no YAML, contains itself, unfolds into too many values by its aliases, or has a value that cannot
            be; the message says which, in a few words.
    """
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        if root is not None and _count_unfolded(root, {}) > _MOST_VALUES:
            raise ValueError(f"its aliases unfold into more than {_MOST_VALUES:,} values")
        return yaml.load(text, Loader=_PlainLoader)
    except yaml.YAMLError as error:
        raise ValueError(_describe_yaml_error(error)) from error
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


_MOST_VALUES = 100_000
_LONGEST_NUMBER = 10_000
"""Characters; the seconds for 1:00:00:00… grow with their square."""


class _PlainLoader(yaml.SafeLoader):
    """PyYAML's, which raises nearly anything for a value that is not of the type that its tag says."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> object:
        """One value.

        Raises:
            ConstructorError: It is not of its type, or too long for a number.
            ValueError: It is a number or date that cannot be; the message of Python says why.
        """
        kind = str(node.tag).rpartition(":")[2]
        if isinstance(node, yaml.ScalarNode) and kind != "str" and len(node.value) > _LONGEST_NUMBER:
            problem = f"a value of the type {kind} has {len(node.value):,} characters"
            raise yaml.constructor.ConstructorError(problem=problem, problem_mark=node.start_mark)
        if isinstance(node, yaml.ScalarNode) and kind in ("int", "float") and (what := _another_number(node.value)):
            raise yaml.constructor.ConstructorError(problem=what, problem_mark=node.start_mark)
        try:
            return super().construct_object(node, deep=deep)
        except (LookupError, AttributeError, OverflowError, TypeError) as error:
            problem = f"a value is not of the type {kind}"
            raise yaml.constructor.ConstructorError(problem=problem, problem_mark=node.start_mark) from error

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Names and values, each name once and as it is written: a class may be called no, null or 1.50.

        Raises:
            ConstructorError: A name is there twice, of which PyYAML would take the last without a word.
        """
        names = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode) and key.value != "<<"]
        twice = next((name for name, number in Counter(names).items() if number > 1), None)
        if twice is not None:
            problem = f"the key {shortened(twice)} is given twice"
            raise yaml.constructor.ConstructorError(problem=problem, problem_mark=node.start_mark)
        self.flatten_mapping(node)
        node.value = [(_as_text(key), value) for key, value in node.value]
        return super().construct_mapping(node, deep=deep)


def _as_text(key: yaml.Node) -> yaml.Node:
    """A node of its own: that of an anchor may be a value elsewhere, with its type."""
    is_name = isinstance(key, yaml.ScalarNode)
    return yaml.ScalarNode("tag:yaml.org,2002:str", key.value, key.start_mark, key.end_mark) if is_name else key


def _another_number(text: str) -> str | None:
    """Why a number of YAML is not the one that a person reads, or is none that anything here can be; None where it is."""
    digits = text.lstrip("+-").replace("_", "")
    if ":" in text:
        return f"{shortened(text)} would be a number to the base of 60; put it in quotes"
    if len(digits) > 1 and digits.isdecimal() and digits[0] == "0":
        return f"{shortened(text)} would be a number to the base of 8; leave out the 0, or put it in quotes"
    if digits.isdecimal() and len(digits) > _MOST_DIGITS:
        return f"a number has {len(digits)} digits, more than any here can have"
    return None


_MOST_DIGITS = 18


def _count_unfolded(node: yaml.Node, counts: dict[int, int | None]) -> int:
    """How many values a node stands for when every alias in it is written out."""
    if not isinstance(node, yaml.CollectionNode):
        str(node.value).encode()  # halves of a pair are no text
        return 1
    if id(node) not in counts:
        counts[id(node)] = None
        inside = (part for item in node.value for part in (item if isinstance(item, tuple) else (item,)))
        counts[id(node)] = 1 + sum(_count_unfolded(part, counts) for part in inside)
    count = counts[id(node)]
    if count is None:
        raise ValueError("an alias in it contains itself")
    return count


def _describe_yaml_error(error: yaml.YAMLError) -> str:
    """The problem and its line in a few words; the parser's own message takes up to seven lines."""
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark:
        return f"{error.problem} (line {error.problem_mark.line + 1}, column {error.problem_mark.column + 1})"
    return " ".join(str(error).split())


def resolve(model: type[BaseModel], *, file: Path | None, given: Mapping[str, Any]) -> dict[str, Any]:
    """Merge defaults, a file and given values, in this order, and validate the result.

    Args:
        model: Model from ``settings_model``.
        file: Optional YAML file.
        given: Values that the user typed; they win.

    Raises:
        UsageError: A value has the wrong type; the message names the key.
    """
    read = read_config_file(file, model.model_fields) if file else {}
    return validated(model, {**read, **given}, file=file, given=given)


def validated(model: type[BaseModel], values: Mapping[str, Any], *, file: Path | None, given: Collection[str]) -> dict[str, Any]:
    """``values`` with their right types, and defaults for all others.

    Args:
        model: From ``settings_model``.
        values: As read and typed.
        file: Where they were read.
        given: Names of those that the user typed.

    Raises:
        UsageError: A value has the wrong type; the message names the key.
    """
    try:
        settings = model.model_validate(values)
    except ValidationError as error:
        refusal, key = first_refusal(error)
        raise (located(refusal, str(file)) if file is not None and key not in given else refusal) from error
    return {name: getattr(settings, name) for name in model.model_fields}


def first_refusal(error: ValidationError) -> tuple[UsageError, str]:
    """What a model of ``settings_model`` says first, and the name of the option."""
    first = error.errors()[0]
    key = ".".join(str(part) for part in first["loc"])
    said = first.get("ctx", {}).get("error")
    return (said if isinstance(said, UsageError) else UsageError(f"{key}: {first['msg']}.")), key


def config_hash(values: Mapping[str, object]) -> str:
    """A short hash of everything that is meant to change the numbers."""
    text = json.dumps(values, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
