"""A study: what its YAML file says, and the jobs that this comes to."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, cast

import yaml

from crossgraft.bench.job import StudyJob
from crossgraft.bench.making import JobMaker
from crossgraft.config import parse_yaml
from crossgraft.errors import CrossgraftError, UnknownNameError, UsageError, located
from crossgraft.plain_types import AllowedCode
from crossgraft.running.command_line import display_value

KEYS = (
    *("command", "title", "fixed", "grid", "settings", "seeds", "exclude", "include", "threads", "rows", "compare", "over"),
    *("metric", "better", "smoke"),
)
SETTINGS, SEED = "settings", "seed"
MOST_JOBS = 100_000

Cell = Mapping[str, str]
"""Factor → level."""


@dataclass(frozen=True)
class Study:
    """Jobs, and what they are compared by.

    Attributes:
        name: Name of the file.
        title: What the page is called.
        command: The command of every job.
        factors: Factor → levels, in order: those of the grid, ``settings``, ``seed``.
        cells: The levels of each job.
        jobs: As many as cells.
        rows: Column of the jobs' results → those of its values that are compared, where a job has several results.
        compare: The factor whose levels are compared.
        over: The factor of the targets that they are compared over.
        metric: The number of a job that is compared; None: the one that stands for its result.
        about: Column → word that the row of this number has in the table of the result.
        larger_is_better: Whether more of it is better, where the study says so.
        content: What the file says.
    """

    name: str
    title: str
    command: str
    factors: Mapping[str, Sequence[str]]
    cells: Sequence[Cell]
    jobs: Sequence[StudyJob]
    rows: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    compare: str | None = None
    over: str | None = None
    metric: str | None = None
    about: Mapping[str, str] = field(default_factory=dict[str, str])
    larger_is_better: bool | None = None
    content: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def only(self, keys: frozenset[str]) -> Study:
        """The same with the jobs of these keys alone."""
        kept = [(cell, job) for cell, job in zip(self.cells, self.jobs, strict=True) if job.key in keys]
        return replace(self, cells=[cell for cell, _ in kept], jobs=[job for _, job in kept])


def read_study(source: str | Path | Mapping[str, Any], *, smoke: bool = False, allow_code: AllowedCode = None) -> Study:
    """Read a study.

    Args:
        source: YAML file, or what one holds.
        smoke: Whether to take what its key ``smoke`` says instead: the same protocol, small.
        allow_code: Code that the person named, which no study can.

    Raises:
        UsageError: The file is missing or no YAML, or a key, a value or a level is wrong; the message says in which line.
        UnknownNameError: A key, an option or a command is not known.
    """
    if isinstance(source, Mapping):
        try:
            return _checked(dict(source), "study", smoke=smoke, allow_code=allow_code)
        except InPlaceError as error:
            raise error.cause from error.cause.__cause__
    path = Path(source)
    if not path.is_file():
        raise UsageError(f"There is no file {path}. A study is a YAML file; see the how-to on studies.")
    try:
        text = path.read_text(encoding="utf-8")
        content = parse_yaml(text)
    except (ValueError, OSError) as error:
        raise UsageError(f"{path} is not a YAML file: {error}.") from error
    if not isinstance(content, dict):
        raise UsageError(f"{path} must hold a mapping such as `command: tune`, but holds a {type(content).__name__}.")
    try:
        return _checked(cast("dict[str, Any]", content), path.stem, smoke=smoke, allow_code=allow_code)
    except InPlaceError as error:
        small = cast("dict[str, Any]", content.get("smoke")) if smoke and isinstance(content.get("smoke"), dict) else {}
        keys = ("smoke", *error.keys) if error.keys[0] in small else error.keys
        raise located(error.cause, _place(path, text, keys)) from error.cause


class InPlaceError(Exception):
    """An error, and the keys that lead to what is wrong."""

    def __init__(self, cause: CrossgraftError, *keys: str) -> None:
        super().__init__(str(cause))
        self.cause, self.keys = cause, keys


def _place(path: Path, text: str, keys: Sequence[str]) -> str:
    """File, and line of the innermost of ``keys`` that it has."""
    node: yaml.Node | None = yaml.compose(text, Loader=yaml.SafeLoader)
    line = None
    for key in keys:
        pairs = node.value if isinstance(node, yaml.MappingNode) else []
        match = next(((name, value) for name, value in pairs if str(name.value).replace("-", "_") == key.replace("-", "_")), None)
        if match is None:
            break
        line, node = match[0].start_mark.line + 1, match[1]
    return str(path) if line is None else f"{path}, line {line}"


def _checked(content: dict[str, Any], name: str, *, smoke: bool, allow_code: AllowedCode) -> Study:
    small = _mapping(content, "smoke")
    for key, of in [*((key, ()) for key in content), *((key, ("smoke",)) for key in small)]:
        if key not in KEYS:
            raise InPlaceError(UnknownNameError("key", str(key), KEYS), *of, str(key))
    if smoke:
        if not small:
            raise UsageError(f"The study {name} has no key `smoke`, which says what is small enough to be tried.")
        content = {**content, **small}
    if not isinstance(content.get("title", ""), str | int | float | None):
        raise InPlaceError(UsageError("`title` is a text."), "title")
    command = content.get("command")
    if not isinstance(command, str):
        raise UsageError(
            "A study needs `command`: the name of the command that each of its jobs is, for example `command: tune`."
        )
    num_threads = _number(content, "threads", 1)
    levels = _levels(content)
    fixed = _mapping(content, "fixed")
    if (num_cells := math.prod(map(len, levels.values()))) > MOST_JOBS:
        raise UsageError(f"The study {name} has {num_cells:,} combinations; at most {MOST_JOBS:,} are done in one folder.")
    cells = list(_cells(content, levels))
    if not cells:
        raise UsageError(f"The study {name} has no job: what it excludes is all there is.")
    try:
        maker = JobMaker(command, num_threads=num_threads, allow_code=allow_code)
    except CrossgraftError as error:
        raise InPlaceError(error, "command") from error
    jobs = _jobs(content, maker, fixed, cells, levels)
    rows = _rows(content, levels)
    factors = {factor: list(dict.fromkeys(cell[factor] for cell in cells if factor in cell)) for factor in levels}
    return Study(
        name=name,
        title=str(content.get("title") or name),
        command=command,
        factors=factors,
        cells=cells,
        jobs=jobs,
        rows=rows,
        content=content,
        **_comparison(content, {**factors, **rows}, next(iter(rows), None)),
    )


def _jobs(
    content: Mapping[str, Any],
    maker: JobMaker,
    fixed: Mapping[str, Any],
    cells: Sequence[Cell],
    levels: Mapping[str, Mapping[str, Any]],
) -> list[StudyJob]:
    """The job of each cell; two cells of one job would be counted twice."""
    included = list(_patterns(content, "include", levels))
    jobs: dict[str, tuple[StudyJob, Cell]] = {}
    for cell in cells:
        values, own = dict(fixed), {}
        for factor, level in cell.items():
            values |= levels[factor][level]
        for pattern in included:
            own |= pattern.options if _matches(cell, pattern.cell) else {}
        try:
            job = maker.job(values | own)
        except CrossgraftError as error:
            raise _blamed(error, fixed, cell, levels, own) from error
        _, twin = jobs.setdefault(job.key, (job, cell))
        if twin is not cell:
            differ = [factor for factor, level in cell.items() if level != twin.get(factor)]
            one, other = (", ".join(f"{factor} {each[factor]}" for factor in differ) for each in (twin, cell))
            error = UsageError(
                f"The cells {one} and {other} are the same job: nothing that decides its numbers differs. Leave one out."
            )
            raise InPlaceError(error, *((SETTINGS,) if SETTINGS in differ else ("grid", differ[0])))
    return [job for job, _ in jobs.values()]


def _comparison(content: Mapping[str, Any], factors: Mapping[str, Sequence[str]], rows: str | None) -> dict[str, Any]:
    """What is compared over what, by which number: as written, else the rows of results, or the settings, over the data."""
    several = [factor for factor, levels in factors.items() if len(levels) > 1 and factor != SEED]
    chosen: dict[str, Any] = {}
    for key in ("compare", "over"):
        factor = content.get(key)
        if isinstance(factor, str) and factor not in factors:
            factor = factor.replace("-", "_")
        if factor is not None and (not isinstance(factor, str) or factor not in factors):
            raise InPlaceError(UnknownNameError("factor", str(factor), factors), key)
        chosen[key] = factor
    if chosen["compare"] is None:
        settings = SETTINGS if SETTINGS in several else next((each for each in several if each != "data"), None)
        chosen["compare"] = rows or settings
    if chosen["over"] is None:
        others = [factor for factor in several if factor != chosen["compare"]]
        chosen["over"] = "data" if "data" in others else next(iter(others), None)
    if chosen["over"] is not None and chosen["over"] == chosen["compare"]:
        raise InPlaceError(UsageError(f"The levels of {chosen['over']} cannot be compared over themselves."), "over")
    better = content.get("better")
    if better not in (None, "larger", "smaller"):
        raise InPlaceError(UsageError(f"`better` is larger or smaller, not {better}."), "better")
    metric, about = content.get("metric"), dict[str, str]()
    if isinstance(metric, dict):
        about = {str(name): str(word) for name, word in cast("dict[Any, Any]", metric).items()}
        metric = about.pop("metric", None)
    if metric is not None and not isinstance(metric, str):
        error = UsageError(f"`metric` is the name of a number, or a mapping such as {{metric: auc, split: test}}, not {metric}.")
        raise InPlaceError(error, "metric")
    return {**chosen, "metric": metric, "about": about, "larger_is_better": better and better == "larger"}


def _levels(content: Mapping[str, Any]) -> dict[str, dict[str, dict[str, Any]]]:
    """Factor → name of each level → the options that it sets."""
    levels: dict[str, dict[str, dict[str, Any]]] = {}
    for factor, values in _mapping(content, "grid").items():
        levels[factor] = _named_levels(factor, values)
    if settings := _mapping(content, SETTINGS):
        _refuse_twice(levels, SETTINGS, SETTINGS)
        levels[SETTINGS] = {}
        for level, options in settings.items():
            if options is not None and not isinstance(options, dict):
                error = UsageError(f"The settings {level} must be a mapping of options, such as `method: linear`.")
                raise InPlaceError(error, SETTINGS, level)
            levels[SETTINGS][level] = _mapping(settings, level)
    if (seeds := content.get("seeds")) is not None:
        _refuse_twice(levels, SEED, "seeds")
        if type(seeds) is int:
            seeds = list(range(min(seeds, MOST_JOBS + 1)))
        if not isinstance(seeds, list) or not seeds or not all(type(seed) is int for seed in cast("list[object]", seeds)):
            raise InPlaceError(UsageError("`seeds` is a list of whole numbers, or how many there are from 0."), "seeds")
        levels[SEED] = {str(seed): {SEED: seed} for seed in cast("list[int]", seeds)}
        if len(levels[SEED]) < len(cast("list[int]", seeds)):
            raise InPlaceError(
                UsageError("A seed is there twice in `seeds`; its jobs would be counted twice. Write it once."), "seeds"
            )
    return levels


def _refuse_twice(levels: Mapping[str, Any], factor: str, key: str) -> None:
    if factor in levels:
        raise InPlaceError(UsageError(f"`grid` has the levels of {factor} already, beside `{key}`. Leave one out."), key)


def _named_levels(factor: str, values: Any) -> dict[str, dict[str, Any]]:
    """A list of values, which name themselves, or a mapping of names and values."""
    if isinstance(values, dict) and values:
        named = {str(level): value for level, value in cast("dict[Any, Any]", values).items()}
    elif isinstance(values, list) and values:
        named = {str(display_value(value)): value for value in cast("list[Any]", values)}
        if len(named) < len(cast("list[Any]", values)):
            error = UsageError(
                f"Two levels of {factor} are called alike. Name them: `{factor}: {{first: …, second: …}}`, or write each once."
            )
            raise InPlaceError(error, "grid", factor)
    else:
        raise InPlaceError(UsageError(f"The levels of {factor} are a list, or a mapping of names and values."), "grid", factor)
    return {level: _options(value) if isinstance(value, dict) else {factor: value} for level, value in named.items()}


def _options(mapping: Mapping[Any, Any]) -> dict[str, Any]:
    """Options as they are called in Python."""
    return {str(name).replace("-", "_"): value for name, value in mapping.items()}


def _rows(content: Mapping[str, Any], factors: Mapping[str, object]) -> dict[str, list[str]]:
    """The column of results whose values are compared, and these values; nothing where a job has one result."""
    rows = _mapping(content, "rows")
    for column, values in rows.items():
        if column in factors:
            error = UsageError(f"{column} is a factor of the jobs already, so it is no column of their results.")
            raise InPlaceError(error, "rows", column)
        if len(rows) > 1 or not isinstance(values, list) or not values:
            error = UsageError("`rows` is one column of the results and its values in order, such as `head: [ncc, copa]`.")
            raise InPlaceError(error, "rows", column)
        rows[column] = [str(display_value(value)) for value in cast("list[Any]", values)]
    return rows


def _cells(content: Mapping[str, Any], levels: Mapping[str, Mapping[str, Any]]) -> Iterator[Cell]:
    """Every combination that is not excluded, and then what is included; each once."""
    seen: set[tuple[tuple[str, str], ...]] = set()
    excluded = [pattern.cell for pattern in _patterns(content, "exclude", levels)]
    product = (dict(zip(levels, each, strict=True)) for each in itertools.product(*levels.values()))
    kept = (cell for cell in product if not any(_matches(cell, pattern) for pattern in excluded))
    included = (cell for pattern in _patterns(content, "include", levels) for cell in _completed(pattern.cell, levels))
    for cell in itertools.chain(kept, included):
        if (items := tuple(sorted(cell.items()))) not in seen:
            seen.add(items)
            yield cell


def _matches(cell: Cell, pattern: Cell) -> bool:
    return all(cell[factor] == level for factor, level in pattern.items())


def _completed(pattern: Cell, levels: Mapping[str, Mapping[str, Any]]) -> Iterator[Cell]:
    """A pattern with all levels of the factors that it leaves open."""
    open_levels = [[pattern[factor]] if factor in pattern else list(levels[factor]) for factor in levels]
    yield from (dict(zip(levels, each, strict=True)) for each in itertools.product(*open_levels))


class _Pattern(NamedTuple):
    """Cells, and what options they have beside those of their levels."""

    cell: Cell
    options: Mapping[str, Any]


def _patterns(content: Mapping[str, Any], key: str, levels: Mapping[str, Mapping[str, Any]]) -> Iterator[_Pattern]:
    patterns = content.get(key) or []
    for written in cast("list[Any]", patterns) if isinstance(patterns, list) else [None]:
        if not isinstance(written, dict) or not written:
            raise InPlaceError(
                UsageError(f"`{key}` is a list of mappings of factors and levels, such as `- {{data: digits}}`."), key
            )
        pattern = {
            factor if factor in levels else str(factor).replace("-", "_"): level
            for factor, level in cast("dict[Any, Any]", written).items()
        }
        others = [name for name in pattern if name not in levels]
        if others and (key == "exclude" or len(others) == len(pattern)):
            raise InPlaceError(UnknownNameError("factor", others[0], levels), key)
        cell = {factor: str(display_value(level)) for factor, level in pattern.items() if factor in levels}
        for factor, level in cell.items():
            if level not in levels[factor]:
                raise InPlaceError(UnknownNameError(f"level of {factor}", level, levels[factor]), key)
        yield _Pattern(cell, {name: pattern[name] for name in others})


def _blamed(
    error: CrossgraftError, fixed: Mapping[str, Any], cell: Cell, levels: Mapping[str, Mapping[str, Any]], own: Mapping[str, Any]
) -> InPlaceError:
    """The place of what is wrong: the first option that the message names, else the command."""
    text = str(error).replace("-", "_")
    if any(name in text for name in own):
        return InPlaceError(error, "include")
    for name in fixed:
        if name in text:
            return InPlaceError(error, "fixed", name)
    for factor, level in cell.items():
        for name in levels[factor][level]:
            if name in text:
                return InPlaceError(error, *((SETTINGS, level, name) if factor == SETTINGS else ("grid", factor, level, name)))
    return InPlaceError(error, "command")


def _mapping(content: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = {} if content.get(key) is None else content[key]
    if not isinstance(value, dict):
        raise InPlaceError(UsageError(f"`{key}` must be a mapping of names and values, not {type(value).__name__}."), key)
    given = cast("dict[Any, Any]", value)
    named = {str(name).replace("-", "_") if key != SETTINGS else str(name): each for name, each in given.items()}
    if len(named) < len(given):
        raise InPlaceError(UsageError(f"`{key}` has a name twice, where a hyphen is an underscore. Write it once."), key)
    return named


def _number(content: Mapping[str, Any], key: str, default: int) -> int:
    value = content.get(key, default)
    if type(value) is not int or value < 1:
        raise InPlaceError(UsageError(f"`{key}` is a whole number from 1, not {value!r}."), key)
    return value
