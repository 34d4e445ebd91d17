"""Published benchmarks: every method beside the ranking that never looks at the target, printed tables beside recomputed."""

from __future__ import annotations

from functools import partial

from crossgraft.published.record import PublishedRecord
from crossgraft.rank.plots import critical_difference_figure
from crossgraft.rank.published.record import (
    CitedTable,
    FriedmanRecord,
    MeanRecord,
    MethodRecord,
    ReproductionRecord,
    ScenarioRecord,
)
from crossgraft.report.blocks import Block, Figure, Folded, Heading, Items, Paragraph, Section, figure_for_screens
from crossgraft.report.kinds import Kind
from crossgraft.report.source import Source
from crossgraft.report.tables import Cell, Column, Table, number, table_of, words
from crossgraft.report.verdict import BEGIN, provenance_section, references_section, verdict_blocks
from crossgraft.select.replay.page import chosen_within, regret_table
from crossgraft.words.formatting import MISSING, NumberFormat, counted

_TWO, _THREE = NumberFormat(decimals=2), NumberFormat(decimals=3)


def published_heading(source: Source[PublishedRecord]) -> Heading:
    """Title, sizes, and one conclusion a scenario."""
    record = source.record
    sizes = [f"{counted(len(s.models), 'model')} × {counted(len(s.targets), 'target')}" for s in record.scenarios]
    advice = " ".join(scenario.conclusion for scenario in record.scenarios)
    return Heading(title=record.title, summary=" · ".join([record.source, *sizes]), advice=advice)


def published_verdict_section(source: Source[PublishedRecord]) -> Section:
    """What each scenario supports, in one sentence, and how to rank for images of one's own."""
    *before, last = [f"{each.title}: {each.conclusion}" for each in source.record.scenarios]
    blocks = [*(Paragraph(text, tone="lead") for text in before), *verdict_blocks(last, [], BEGIN)]
    return Section(name="verdict", title="What the data support", part="verdict", blocks=blocks)


def scenarios_section(source: Source[PublishedRecord]) -> Section:
    """Every method on every benchmark, with intervals over targets."""
    blocks: list[Block] = []
    for scenario in source.record.scenarios:
        if scenario.reproduction:
            blocks.append(Paragraph(_reproduction(scenario.reproduction)))
        blocks.append(method_table(scenario))
        blocks.append(Folded("Every target", [target_table(scenario)]))
        if scenario.friedman:
            identifier = f"{source.prefix}{scenario.name}-friedman"
            blocks += [Paragraph(friedman_in_words(scenario.friedman)), friedman_figure(scenario.friedman, identifier=identifier)]
    return Section(name="methods", title="Which ranking foresees fine-tuning?", part="evidence", blocks=blocks)


def replays_section(source: Source[PublishedRecord]) -> Section | None:
    """What ``select`` and simpler ways would have handed over; None in older records."""
    blocks: list[Block] = []
    for record in source.record.replays:
        blocks += [*(regret_table(record, budget) for budget in chosen_within(record)), Items(record.notes)]
    if not blocks:
        return None
    return Section(name="replays", title="What a budget would have bought", part="evidence", blocks=blocks)


def answers_section(source: Source[PublishedRecord]) -> Section | None:
    """The paper's own questions."""
    if not source.record.answers:
        return None
    items = [f"{answer.question} {answer.answer}" for answer in source.record.answers]
    return Section(name="questions", title="Questions of the paper", part="evidence", blocks=[Items(items)])


def errata_section(source: Source[PublishedRecord]) -> Section | None:
    """Printed numbers that do not follow from the data."""
    if not source.record.slips:
        return None
    table = table_of(
        source.record.slips,
        [
            (Column("Where"), lambda slip: words(slip.where)),
            (Column("Printed"), lambda slip: words(slip.printed)),
            (Column("Recomputed"), lambda slip: words(slip.recomputed)),
            (Column("What follows", page_only=True), lambda slip: words(slip.consequence)),
        ],
        caption="Printed numbers that do not follow from the paper's own data",
        file_name="slips",
    )
    return Section(name="slips", title="Errata", part="checks", blocks=[table])


def cited_section(source: Source[PublishedRecord]) -> Section | None:
    """Tables as printed."""
    if not source.record.cited:
        return None
    blocks: list[Block] = [cited_table(table, index) for index, table in enumerate(source.record.cited, start=1)]
    return Section(name="cited", title="Tables of the paper", part="evidence", blocks=blocks)


def published_sections(source: Source[PublishedRecord]) -> list[Section]:
    """The sections that hold numbers, for a page that is not a report."""
    builders = (published_verdict_section, scenarios_section, answers_section, errata_section, cited_section)
    return [section for builder in builders if (section := builder(source)) is not None]


def _reproduction(reproduction: ReproductionRecord) -> str:
    """How much of a printed table the shipped numbers give again."""
    undefined = f"; {reproduction.num_undefined} cells are undefined in both" if reproduction.num_undefined else ""
    return (
        f"{reproduction.table}: {reproduction.num_equal} of {reproduction.num_cells} printed cells follow from the shipped "
        f"scores and results at {reproduction.decimals} decimals{undefined}."
    )


def method_table(scenario: ScenarioRecord) -> Table:
    """One row per method, best first."""
    methods = sorted(scenario.methods, key=lambda method: -_value(method.mean))
    return table_of(
        methods,
        [
            (Column("Method"), lambda method: words(method.title)),
            (Column("Kind", page_only=True), lambda method: words(method.role)),
            (_column("Weighted Kendall", "weighted Kendall"), lambda method: _mean(method.mean, _TWO)),
            (_column("Minus static prior", "gain"), _gain),
            (_column("Regret of the first choice", "regret"), lambda method: _mean(method.regret, _THREE)),
            (_column("Residual of the prior", "residual", page_only=True), lambda method: _mean(method.residual, _TWO)),
        ],
        caption=f"{scenario.title}: means over {counted(len(scenario.targets), 'target')} with 95 % intervals",
        file_name=f"{scenario.name}-methods",
        muted_rows=frozenset(i for i, method in enumerate(methods) if method.role == "control"),
        notes=[_ceiling(scenario), *_notes(scenario), *scenario.notes],
    )


def _ceiling(scenario: ScenarioRecord) -> str:
    """What a weighted Kendall can reach at all, beside every one that is shown."""
    if scenario.ceiling is None or scenario.ceiling.value is None:
        return "Noise ceiling: not known, because no standard deviations between seeds are printed."
    found = _mean(scenario.ceiling, _TWO).text
    return f"Noise ceiling: the results of one seed rank the models like those of another with a weighted Kendall of {found}."


def _column(title: str, field: str, *, page_only: bool = False) -> Column:
    """A value with the ends of its interval, which the CSV file has in fields of their own."""
    low, high = ("low", "high") if field == "weighted Kendall" else (f"{field} low", f"{field} high")
    return Column(title, numeric=True, csv_titles=(field, low, high), page_only=page_only)


def _gain(method: MethodRecord) -> Cell:
    return _mean(method.gain, _TWO, none="control" if method.role == "control" else MISSING)


def target_table(scenario: ScenarioRecord) -> Table:
    """Weighted Kendall of every method on every target."""
    return Table(
        caption=f"{scenario.title}: weighted Kendall on each target",
        columns=[Column("Method"), *(Column(target, numeric=True) for target in scenario.targets)],
        rows=[[words(m.title), *(number(tau, _TWO) for tau in m.weighted_kendall)] for m in scenario.methods],
        file_name=f"{scenario.name}-targets",
    )


def cited_table(table: CitedTable, index: int) -> Table:
    """A printed table."""
    as_text = NumberFormat(decimals=table.decimals)
    columns = [
        Column(title, numeric=not any(isinstance(row[place], str) for row in table.rows))
        for place, title in enumerate(table.columns)
    ]
    rows = [[words(cell) if isinstance(cell, str) else number(cell, as_text) for cell in row] for row in table.rows]
    notes = [*table.notes, f"Source: {table.source}."]
    return Table(caption=table.title, columns=columns, rows=rows, file_name=f"table-{index}", notes=notes)


def friedman_in_words(test: FriedmanRecord) -> str:
    """The test and its critical difference."""
    return (
        f"Friedman's test over {test.num_targets} targets: χ² = {_TWO(test.statistic)}, p = {test.p_value:.2g}; Nemenyi's "
        f"critical difference at 0.05 is {_THREE(test.critical_difference)}."
    )


def friedman_figure(test: FriedmanRecord, *, identifier: str) -> Figure:
    """The diagram of Demšar (2006)."""
    drawn = test.methods, test.mean_ranks, test.cliques, test.critical_difference
    caption = f"Mean ranks over {test.num_targets} targets. A bar joins methods that differ by less than the critical difference."
    return figure_for_screens(partial(critical_difference_figure, *drawn), identifier=identifier, caption=caption)


def _mean(mean: MeanRecord | None, as_text: NumberFormat, *, none: str = MISSING) -> Cell:
    if mean is None or mean.value is None:
        return Cell(text=none, values=(None, None, None))
    shown = as_text(mean.value) + ("" if mean.low is None else f" {as_text.interval(mean.low, mean.high)}")
    return Cell(text=shown, values=(mean.value, mean.low, mean.high))


def _notes(scenario: ScenarioRecord) -> list[str]:
    members = dict(zip(scenario.targets, scenario.target_groups, strict=True))
    together = [group for group in dict.fromkeys(members.values()) if scenario.target_groups.count(group) > 1]
    notes = [
        f"Regret: best result minus the result of the first choice, in {scenario.result}. Residual: weighted Kendall of a score "
        "with what the static prior does not explain."
    ]
    notes += [f"Held out together: {', '.join(target for target in members if members[target] == group)}." for group in together]
    for method in scenario.methods:
        if missing := len(scenario.targets) - method.mean.num_targets:
            notes.append(f"{method.title} is undefined on {counted(missing, 'target')}, which its mean leaves out.")
    return notes


def _value(mean: MeanRecord) -> float:
    return float("-inf") if mean.value is None else mean.value


REPORT = Kind(
    PublishedRecord,
    published_heading,
    (
        published_verdict_section,
        scenarios_section,
        replays_section,
        answers_section,
        cited_section,
        errata_section,
        provenance_section,
        references_section,
    ),
    tables_answer=True,
    terminal=(scenarios_section, replays_section, errata_section, answers_section, published_verdict_section),
)
