"""The report of a ranking."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import partial

from crossgraft.data.describe import describe_data
from crossgraft.data.page import data_section, unreadable_files
from crossgraft.models.published_names import licence_in_words
from crossgraft.models.record import ModelRecord
from crossgraft.options.command import DATA, ZOO, TypedCommand
from crossgraft.rank.evidence import (
    MOST_TO_TRAIN,
    advised_order,
    models_to_train,
    order_in_words,
    seconds_to_train,
    settled_in_words,
    weak_guide,
)
from crossgraft.rank.page_features import features_section, kinds_section
from crossgraft.rank.page_scores import agreement_section, rankings_section, scores_section
from crossgraft.rank.plots import ranking_figure
from crossgraft.rank.ranking import refuse_incomplete
from crossgraft.rank.record import PriorRecord, RankingByScore, RankingRecord, ScoreCell
from crossgraft.report.blocks import Block, Figure, Heading, Items, Paragraph, Section, figure_for_screens
from crossgraft.report.kinds import Kind, SectionBuilder
from crossgraft.report.source import Source
from crossgraft.report.tables import Cell, Column, Table, counts, number, table_of, whole, words
from crossgraft.report.verdict import (
    Caveat,
    CaveatOf,
    Following,
    Gravity,
    caveats_of,
    checks_section,
    found_by_checks,
    in_one_line,
    of_check,
    provenance_section,
    references_section,
    unsound_data,
    verdict_section,
)
from crossgraft.tasks import recorded_task
from crossgraft.words.formatting import NumberFormat, counted, joined, short_fingerprint


def ranking_verdict_section(source: Source[RankingRecord]) -> Section:
    """The advice with its biggest caveat and what to type next, what is known from other targets, and one figure."""
    record = source.record
    return verdict_section(
        answer_in_words(record),
        caveats_of(source, RANKING_CAVEATS),
        after_ranking(source),
        Paragraph(f"Ordered by {record.primary_title}: {_sentence(record.primary_reason)}", page_only=True),
        *([Paragraph(record.prior.summary, tone="quiet")] if record.prior else []),
        _ranking_figure(source),
    )


def _speaks_against_the_best(source: Source[RankingRecord]) -> Caveat | None:
    """A control that does as well as the best model."""
    return None if source.record.caution is None else Caveat(source.record.caution, Gravity.EMPTY)


def _warned(source: Source[RankingRecord]) -> Caveat | None:
    """The first warning of the checks that is said nowhere else."""
    unsaid = [check for check in source.record.checks if check.title not in _SAID_ELSEWHERE]
    return of_check(found_by_checks(unsaid, "warning"))


def _not_assessed(source: Source[RankingRecord]) -> Caveat | None:
    """Patient leakage that was not looked for."""
    return of_check(
        next((check for check in source.record.checks if check.title == _LEAKAGE and check.severity == "not assessed"), None)
    )


_SAID_ELSEWHERE = ("Random weights", "Shuffled labels", "Unreadable images")
_LEAKAGE = "Patient leakage"
RANKING_CAVEATS: tuple[CaveatOf[RankingRecord], ...] = (
    unsound_data,
    _speaks_against_the_best,
    unreadable_files,
    _warned,
    _not_assessed,
)
"""The most severe first, in the order of ``report.verdict``."""


def answer_in_words(record: RankingRecord) -> str:
    """What the images cannot tell apart, where to begin, how weak a guide the order is, and what settles it."""
    if not advised_order(record):
        return " ".join(filter(None, [record.advice, settled_in_words(record)]))
    return " ".join(filter(None, [record.advice, order_in_words(record), weak_guide(record), settled_in_words(record)]))


def after_ranking(source: Source[RankingRecord]) -> Following:
    """To train the advised models, or all where random weights do as well; to look at the data where shuffled labels do."""
    record, typed = source.record, source.typed
    data = typed.data if typed.verb == "rank" else DATA
    advised = models_to_train(record)
    if not advised:
        return Following(typed.then("check", data), "to look for what is wrong with the images")
    candidates = [model.name for model in record.models]
    best = typed.model_called(advised[0], among=candidates)
    others = [typed.model_called(name, among=candidates) for name in advised[1:]]
    if not others or _cannot_select(typed):
        line = typed.then("tune", data, flags=[("--model", best)])
        return Following(line, f"to fine-tune {advised[0]}", seconds_to_train(record, advised[:1]))
    models = ",".join([best, *others])
    if any("," in name or name.startswith(f"{ZOO}:") for name in [best, *others]):  # which one list cannot name
        models = typed.value("--models") or models
    is_all = len(advised) <= MOST_TO_TRAIN
    line = typed.then("select", data, flags=[("--models", models), *([("--budget", "100%")] if is_all else [])])
    which = "both" if len(advised) == 2 else f"all {len(advised)}" if is_all else "those that 30 minutes allow"
    return Following(line, f"to train {which}, and take the best on val")


def _cannot_select(typed: TypedCommand) -> bool:
    """Where rows were chosen in a way that a selection, which needs val and one split, refuses."""
    flags = dict(typed.flags)
    return bool({"--folds", "--fold"} & {*flags}) or flags.get("--holdout") in ("0", "0.0")


def ranking_heading(source: Source[RankingRecord]) -> Heading:
    """Name of the data, and what was ranked on how much."""
    record = source.record
    candidates = sum(model.role == "candidate" for model in record.models)
    controls = len(record.models) - candidates
    data = describe_data(record.dataset, labels_left_out=len(record.labels_left_out))
    summary = f"{data} · {counted(candidates, 'model')}, {counted(controls, 'control')} · {counted(len(record.scores), 'score')}"
    return Heading(
        title=record.dataset.name,
        summary=summary,
        advice=in_one_line(answer_in_words(record), caveats_of(source, RANKING_CAVEATS)),
    )


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else text + "."


def _ranking_figure(source: Source[RankingRecord]) -> Figure:
    record = source.record
    ranking = record.primary_ranking
    candidates = sum(row.role == "candidate" for row in ranking.rows)
    valueless = [row.model for row in ranking.rows if record.cell(row.model, ranking.score).value is None]
    controls = len(ranking.rows) - candidates
    caption = [
        f"{counted(candidates, 'model')} on {counted(record.dataset.num_images, 'image')}.",
        "Each dot is a value, the line through it its 95 % jackknife interval.",
        "Brackets on the right join models that the images cannot tell apart.",
    ]
    if controls:
        caption.append(f"Hollow: {counted(controls, 'control')} with random weights.")
        caption.append("An interval of a control that leaves the frame is cut off.")
    if ranking.best_shuffled is not None:
        caption.append(
            "Dashed: the best value of any of them with shuffled labels; the table of scores says which are above their own."
        )
    if valueless:
        caption.append(f"Without a value: {joined(valueless)}.")
    draw = partial(ranking_figure, record, ranking.score)
    return figure_for_screens(draw, identifier=f"{source.prefix}ranking", caption=" ".join(caption))


def controls_section(source: Source[RankingRecord]) -> Section:
    """The best control of each kind beside the best and the worst candidate, for every score."""
    record = source.record
    columns = [
        Column("Score"),
        Column("Best model", numeric=True),
        Column("Best random weights", numeric=True),
        Column("Best shuffled labels", numeric=True),
        Column("Shuffled values", numeric=True),
        Column("Not above their shuffled labels"),
    ]
    table = Table(
        caption="Best model and best controls, by each score",
        columns=columns,
        rows=[_controls_row(record, ranking) for ranking in record.rankings],
        file_name="controls",
    )
    blocks: list[Block] = [
        Paragraph(
            "A score earns trust when networks with random weights and labels shuffled at random score clearly below "
            "the models. Where they do not, the score sees something else than the classes."
        ),
        table,
    ]
    return Section(name="controls", title="Controls", part="evidence", blocks=blocks)


def _controls_row(record: RankingRecord, ranking: RankingByScore) -> list[Cell]:
    cells = record.cells_by_model(ranking.score)
    roles = {row.model: row.role for row in ranking.rows}
    candidates = [cell for cell in cells.values() if roles.get(cell.model) == "candidate"]
    random = [cell for cell in cells.values() if roles.get(cell.model) == "random weights"]
    failed = [cell.model for cell in candidates if cell.above_shuffled is False]
    as_text = record.number_format(ranking.score)
    return [
        words(record.title(ranking.score)),
        number(_largest(candidates), as_text),
        number(_largest(random), as_text),
        number(ranking.best_shuffled, as_text),
        whole(ranking.num_shuffled),
        words(joined(failed) or "none"),
    ]


def _largest(cells: list[ScoreCell]) -> float | None:
    return max((cell.value for cell in cells if cell.value is not None), default=None)


def labels_section(source: Source[RankingRecord]) -> Section | None:
    """One row per label, one column per model in the order of the ranking; None with one class per image."""
    record = source.record
    if recorded_task(record.dataset).partitions:
        return None
    title = record.primary_title
    blocks: list[Block] = [
        Paragraph(
            f"{title} of each model for one label at a time; the ranking is by the mean. Single labels have no intervals "
            "here, so small differences say nothing."
        ),
        _labels_table(record),
    ]
    return Section(name="labels", title="Each label by itself", part="evidence", blocks=blocks)


def _labels_table(record: RankingRecord) -> Table:
    cells = record.cells_by_model(record.primary_score)
    ordered = [cells[row.model] for row in record.primary_ranking.rows if cells[row.model].per_label]
    counts = dict(zip(record.dataset.class_names, record.dataset.class_counts, strict=True))
    scored = [label for label in counts if any(label in cell.per_label for cell in ordered)]
    as_text = NumberFormat.for_column([value for cell in ordered for value in cell.per_label.values()])
    rows: list[list[Cell]] = [
        [words(label), whole(counts[label]), *(number(cell.per_label.get(label), as_text) for cell in ordered)]
        for label in scored
    ]
    left_out = [f"{label}: {why}" for label, why in record.labels_left_out.items()]
    return Table(
        caption=f"{record.primary_title} of each model for each label",
        columns=[
            Column("Label"),
            Column("Images with it", numeric=True),
            *(Column(cell.model, numeric=True) for cell in ordered),
        ],
        rows=rows,
        file_name=f"labels-{record.primary_score}",
        notes=[f"Not scored: {text}" for text in left_out],
    )


def models_section(source: Source[RankingRecord]) -> Section:
    """What each model is, then how it was used; controls included."""
    models = source.record.models
    controls = frozenset(index for index, model in enumerate(models) if model.role != "candidate")
    return Section(name="models", title="Models", part="checks", blocks=[_identity(models, controls), _use(models, controls)])


def _identity(models: Sequence[ModelRecord], controls: frozenset[int]) -> Table:
    headless = any(model.num_source_classes is None for model in models)
    return table_of(
        models,
        [
            (Column("Model"), lambda model: words(model.name)),
            (Column("Family"), lambda model: words(model.family)),
            (Column("Architecture"), lambda model: words(f"{model.architecture} ({model.source})")),
            (Column("Parameters", numeric=True), lambda model: counts(model.num_parameters)),
            (Column("Features", numeric=True), lambda model: counts(model.num_features)),
            (Column("Source classes", numeric=True), lambda model: whole(model.num_source_classes)),
            (Column("Licence"), lambda model: words(licence_in_words(model.licence, model.name))),
        ],
        caption="Models and controls",
        file_name="models",
        muted_rows=controls,
        notes=["No source classes: the model has no classification head; scores that need one skip it."] * headless,
    )


def _use(models: Sequence[ModelRecord], controls: frozenset[int]) -> Table:
    seconds = NumberFormat.for_column([max((model.feature_seconds or 0.0 for model in models), default=0.0)])
    cached = sum(model.features_from_cache for model in models)
    return table_of(
        models,
        [
            (Column("Model"), lambda model: words(model.name)),
            (Column("Preprocessing"), lambda model: words(model.preprocessing.description)),
            (Column("Seconds", numeric=True), lambda model: number(model.feature_seconds, seconds)),
            (Column("Weights fingerprint"), lambda model: words(short_fingerprint(model.weights_fingerprint))),
        ],
        caption="How images became the inputs of each model, and how long it looked at them",
        file_name="preprocessing",
        muted_rows=controls,
        notes=[f"Features of {cached} of {len(models)} models were kept from an earlier run."] if cached else [],
    )


_TWO = NumberFormat(decimals=2)


def prior_section(source: Source[RankingRecord]) -> Section | None:
    """Known results as a control; None when nothing is known."""
    record = source.record
    if record.prior is None:
        return None
    return Section(
        name="prior",
        title="What is known from other targets",
        part="evidence",
        blocks=[Paragraph(record.prior.summary), _prior_table(record)],
    )


def _prior_table(record: RankingRecord) -> Table:
    places = {row.model: row.rank for row in record.primary_ranking.rows}
    return table_of(
        record.prior.rows if record.prior else [],
        [
            (Column("Model"), lambda row: words(row.model)),
            (Column("Known targets", numeric=True), lambda row: whole(row.num_targets)),
            (Column("Place by the static prior", numeric=True), lambda row: whole(row.prior_rank)),
            (Column("Mean relative rank", numeric=True), lambda row: number(row.mean_rank, _TWO)),
            (Column(f"Place by {record.primary_title}", numeric=True), lambda row: whole(places[row.model])),
        ],
        caption="Control: results of the same models on other targets",
        file_name="prior",
        notes=_notes(record),
    )


def _notes(record: RankingRecord) -> list[str]:
    prior = record.prior
    if prior is None:
        return []
    notes = [f"Other targets: {', '.join(prior.targets)}. Source: {'; '.join(prior.origins)}. Relative rank: 0 = best, 1 = last."]
    return [*notes, _who_spoke(prior)] if any(row.origins for row in prior.rows) else notes


def _who_spoke(prior: PriorRecord) -> str:
    """Every table, or command, with the models that it speaks of."""
    of_origin = {origin: [row.model for row in prior.rows if origin in row.origins] for origin in prior.origins}
    models_of_origins = [f"{origin}: {joined(models)}" for origin, models in of_origin.items() if models]
    return f"Who spoke for which model: {'; '.join(models_of_origins)}."


def warnings_section(source: Source[RankingRecord]) -> Section:
    """Warnings of single scores, each once with the models it concerns."""
    record = source.record
    models: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for cell in record.cells:
        for warning in cell.warnings:
            models[cell.score, warning].append(cell.model)
    items = [
        f"{record.title(score)}, {'every model' if len(names) == len(record.models) else joined(names)}: {text}"
        for (score, text), names in models.items()
    ]
    blocks = [Items(items)] if items else [Paragraph("No score gave a warning.", tone="quiet")]
    return Section(name="warnings", title="Warnings of scores", part="checks", blocks=blocks)


BELOW_THE_VERDICT: tuple[SectionBuilder, ...] = (
    scores_section,
    rankings_section,
    labels_section,
    controls_section,
    prior_section,
    agreement_section,
    kinds_section,
    features_section,
    checks_section,
    warnings_section,
    data_section,
    models_section,
    provenance_section,
    references_section,
)
REPORT = Kind(
    RankingRecord,
    ranking_heading,
    (ranking_verdict_section, *BELOW_THE_VERDICT),
    terminal=(rankings_section, prior_section, agreement_section, warnings_section, ranking_verdict_section),
    only_in_the_file=("points",),
    refuse=refuse_incomplete,
)
