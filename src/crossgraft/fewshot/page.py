"""The report of few-shot episodes: which head is best, how surely, and against what."""

from __future__ import annotations

from functools import partial

from crossgraft.data.page import data_facts, data_gallery, unreadable_files
from crossgraft.fewshot.averages_page import AVERAGES
from crossgraft.fewshot.plots import episode_look_figure, gaps_figure
from crossgraft.fewshot.record import (
    NUMBERS,
    EpisodeLookRecord,
    FewshotRecord,
    GapSummary,
    HeadLookRecord,
    HeadRow,
    answer_in_words,
    episodes_in_words,
)
from crossgraft.options.command import DATA
from crossgraft.report.blocks import Block, Facts, Figure, Folded, Heading, Items, Paragraph, Section, figure_for_screens
from crossgraft.report.kinds import Kind
from crossgraft.report.plots.intervals import IntervalRow, intervals_figure
from crossgraft.report.plots.layers import MOST_NAMED_CLASSES
from crossgraft.report.plots.scatter import Interval
from crossgraft.report.source import Source
from crossgraft.report.tables import Column, Table, columns_of, number, table_of, words, yes_or_no
from crossgraft.report.verdict import (
    Caveat,
    CaveatOf,
    Following,
    Gravity,
    caveats_of,
    checks_section,
    found_by_checks,
    in_one_line,
    provenance_section,
    references_section,
    unsound_data,
    verdict_section,
    warned_of_data,
)
from crossgraft.words.formatting import NumberFormat, counted


def look_section(source: Source[FewshotRecord]) -> Section | None:
    """One figure per head with prototypes; None where no head has some."""
    look = source.record.look
    if look is None:
        return None
    blocks: list[Block] = [
        Paragraph(
            "What heads make of one support set. A picture explains; it decides nothing: that is for the means over episodes."
        )
    ]
    for place, head in enumerate(look.heads):
        draw = partial(episode_look_figure, look, head)
        blocks.append(figure_for_screens(draw, identifier=f"{source.prefix}look-{place}", caption=_caption(look, head)))
    return Section(name="look", title="One episode, looked at", part="evidence", blocks=[*blocks, _gaps(look), _bounds(look)])


def _caption(look: EpisodeLookRecord, head: HeadLookRecord) -> str:
    unnamed = "" if len(look.class_names) <= MOST_NAMED_CLASSES else " The classes are too many to be named."
    least = head.shifts[min(range(len(head.losses)), key=head.losses.__getitem__)]
    best = f"{least:+.1f}".replace("-", "−")
    return (
        f"{head.head} on episode {look.number}, {counted(len(look.classes), 'image')}. First: unit vectors along two "
        f"principal components. Second: rows are images, columns prototypes. Third: the loss of CoPA when images and prototypes "
        f"are moved apart along their gap; it is least (hollow) at {best}.{unnamed}"
    )


def _gaps(look: EpisodeLookRecord) -> Table:
    return table_of(
        look.heads,
        columns_of(HeadLookRecord, "head", "gap_by_instance", "gap_by_class"),
        caption="Gap between images and prototypes",
        file_name="gaps",
        notes=[
            "Length of the mean unit vector of images less that of prototypes. By image: a prototype counts once per image, as "
            "in published figures; by class: once, as in the published formula."
        ],
    )


def _bounds(look: EpisodeLookRecord) -> Table:
    return table_of(
        [(head.head, bound) for head in look.heads for bound in head.bounds],
        [
            (Column("Head"), lambda row: words(row[0])),
            (Column("Theorem"), lambda row: words(row[1].name)),
            (Column("Lower bound", numeric=True), lambda row: number(row[1].lower, NUMBERS)),
            (Column("Value", numeric=True), lambda row: number(row[1].value, NUMBERS)),
            (Column("Upper bound", numeric=True), lambda row: number(row[1].upper, NUMBERS)),
        ],
        caption="Both sides of the theorems of CoPA",
        file_name="bounds",
        notes=["Cosines are not scaled in these losses. 3.2 is about one map for both, so that CoPA has no such row."],
    )


def gaps_section(source: Source[FewshotRecord]) -> Section | None:
    """Accuracy with the gap set, and the bound of theorem 3.2 over training; None where the gap was left as it is."""
    points = source.record.gaps
    if not points:
        return None
    draw = partial(gaps_figure, [point for point in points if point.moved != "training"])
    caption = (
        f"Accuracy with the gap set, means of {episodes_in_words(source.record)}. Hollow: the head as it is. First: unit vectors "
        "of images and queries are moved along the gap, prototypes against it; nothing is trained anew. Second: the two maps of "
        "CoPA from one map for both (their mean) to twice as far apart as they were trained."
    )
    moved = table_of(
        [point for point in points if point.moved != "training"],
        [
            *columns_of(GapSummary, "head", "moved"),
            (Column("At", numeric=True), lambda row: number(row.at, NumberFormat(decimals=2))),
            *columns_of(GapSummary, "gap", "accuracy", "difference", "difference_half_width"),
        ],
        caption="Accuracy with the gap set",
        file_name="accuracy_with_gap",
        notes=[
            "At: features, multiples of the gap that are added (−1 closes it); maps, share of their difference (1: as trained, "
            "0: one map). Difference: to the head as it is, paired by episode, with half of its interval over episodes."
        ],
    )
    trained = table_of(
        [point for point in points if point.moved == "training"],
        [
            *columns_of(GapSummary, "head"),
            (Column("Steps", numeric=True), lambda row: number(row.at, NumberFormat(decimals=0))),
            *columns_of(GapSummary, "gap", "coefficient", "squared_ratio", "accuracy"),
        ],
        caption="Theorem 3.2 over training: what one map for both does to the gap",
        file_name="coefficients",
        notes=[
            "The theorem bounds the last but one column by M‖Θ‖²: of the features as they come, not of unit length, prototypes "
            "counted once. Where all classes have as many images that gap is 0, and there is nothing to bound."
        ],
    )
    figure = figure_for_screens(draw, identifier=f"{source.prefix}gaps", caption=caption)
    blocks: list[Block] = [figure, Folded("All places", [moved]), *([trained] if trained.rows else [])]
    return Section(name="gaps", title="The gap, set", part="evidence", blocks=blocks)


_FEW_EPISODES = 100


def fewshot_heading(source: Source[FewshotRecord]) -> Heading:
    """The model, the data and the tasks."""
    record = source.record
    facts = [episodes_in_words(record), record.sampler, counted(len(record.heads), "head")]
    return Heading(
        title=f"{record.model.name} on few-shot tasks of {record.dataset.name}",
        summary=" · ".join(facts),
        advice=in_one_line(answer_in_words(record), caveats_of(source, FEWSHOT_CAVEATS)),
    )


def fewshot_verdict_section(source: Source[FewshotRecord]) -> Section:
    """The best head with what limits it, and all heads as a figure."""
    record = source.record
    caveats = caveats_of(source, FEWSHOT_CAVEATS)
    rows = [
        IntervalRow(row.head, Interval(row.accuracy, row.accuracy - half_width, row.accuracy + half_width))
        for row in record.heads
        for half_width in (row.half_width or 0.0,)
    ]
    figure = intervals_figure(rows, x_label="Accuracy on queries, mean over episodes", identifier=f"{source.prefix}fewshot-heads")
    caption = (
        "Accuracy on queries, mean over episodes, with its interval of 95 %. All heads had the same episodes, so that their "
        "differences are surer than these intervals look; they are in the table."
    )
    return verdict_section(answer_in_words(record), caveats, after_episodes(source), Figure([figure], caption=caption))


def heads_section(source: Source[FewshotRecord]) -> Section:
    """Every head with its interval, its difference to the baseline and its ranks."""
    record = source.record
    has_seeds = record.num_seeds > 1
    table = table_of(
        record.heads,
        [
            *columns_of(HeadRow, "head", "accuracy", "half_width"),
            *(columns_of(HeadRow, "seeds_half_width") if has_seeds else []),
            (Column(f"Difference to {record.baseline}", numeric=True), lambda row: number(row.difference, NUMBERS)),
            *columns_of(HeadRow, "difference_half_width"),
            *(columns_of(HeadRow, "difference_seeds_half_width") if has_seeds else []),
            (Column("Separable"), lambda row: words("baseline") if row.head == record.baseline else yes_or_no(row.is_separable)),
            *columns_of(HeadRow, "rank", "plain_rank", "seconds"),
        ],
        caption=f"Heads on {episodes_in_words(record)}, best first",
        file_name="heads",
        notes=[
            "± is half of an interval of 95 % over episodes: it tells how sure the mean over episodes of these images is, and "
            "nothing of other images. Differences are paired by episode.",
            *(_of_seeds(record) if has_seeds else []),
            *_without_interval(record.heads),
            "Rank: heads within each other's intervals share one, as on the leaderboard of Meta-Dataset. Plain rank: equal means "
            "alone share one.",
            *(f"{name} is left out of all heads: it {why}." for name, why in record.left_out.items()),
        ],
    )
    warnings = [f"{row.head}: {text} ({counted(n, 'episode')})" for row in record.heads for text, n in row.warnings.items()]
    warned: list[Block] = [Folded(counted(len(warnings), "warning"), [Items(warnings)])] if warnings else []
    return Section(name="heads", title="Heads", part="evidence", blocks=[table, *warned])


_MOST_TEMPLATES = 8
"""So many are read; more are folded."""


def prompts_section(source: Source[FewshotRecord]) -> Section | None:
    """What was said of each class; None where class weights, if any, come from elsewhere."""
    prompts = source.record.prompts
    if prompts is None:
        return None
    facts = Facts(
        [
            ("Text tower", f"{prompts.text_tower}, {prompts.num_parameters:,} parameters"),
            ("Its weights", prompts.weights_fingerprint[:12]),
            ("Space of images and texts", f"{prompts.num_features} numbers, which heads on features see"),
        ]
    )
    templates: list[Block] = [Items(prompts.templates)]
    if len(prompts.templates) > _MOST_TEMPLATES:
        templates = [Folded(counted(len(prompts.templates), "template"), templates)]
    table = table_of(
        list(prompts.texts.items()),
        [(Column("Class"), lambda row: words(row[0])), (Column("Stands for {class}"), lambda row: words(" · ".join(row[1])))],
        caption="What each class is called",
        file_name="prompts",
        notes=["A class weight is the mean of the unit vectors of all prompts of the class, of unit length again."],
    )
    said = Paragraph("Each name of a class is put into each of these templates, and the text tower reads them.")
    return Section(name="prompts", title="Class weights from text", part="evidence", blocks=[facts, said, *templates, table])


def _of_seeds(record: FewshotRecord) -> list[str]:
    """What the interval over seeds is about, and the means that it is of."""
    means = [f"{row.head} {', '.join(f'{each:.3f}' for each in row.by_seed)}" for row in record.heads]
    return [
        "± seeds is half of an interval of 95 % over seeds (Student's t), from one mean per seed: each seed draws other episodes "
        "of the same images, and other random numbers in heads that have some. It tells how far the whole run would move.",
        f"Means by seed: {'; '.join(means)}.",
    ]


def _without_interval(heads: list[HeadRow]) -> list[str]:
    """Why values have no interval, each reason once."""
    reasons = [reason for row in heads for reason in (row.no_interval_reason, row.difference_no_interval_reason)]
    reasons += [None if (why := row.no_seeds_interval_reason) is None else f"over seeds, {why}" for row in heads]
    return [f"No interval: {reason}." for reason in dict.fromkeys(reasons) if reason is not None]


def episodes_section(source: Source[FewshotRecord]) -> Section:
    """How tasks were drawn, and how large they are."""
    record = source.record
    whole = NumberFormat(decimals=1)
    table = table_of(
        record.sizes,
        [
            (Column("Of an episode"), lambda row: words(row.name)),
            (Column("Fewest", numeric=True), lambda row: number(float(row.least), NumberFormat(decimals=0))),
            (Column("Mean", numeric=True), lambda row: number(row.mean, whole)),
            (Column("Most", numeric=True), lambda row: number(float(row.most), NumberFormat(decimals=0))),
        ],
        caption="Sizes that were drawn",
        file_name="sizes",
    )
    apart = "no group is in both" if record.groups_apart else "there are no groups, so that images of one patient may be in both"
    facts = Facts(
        [
            ("Sampler", f"{record.sampler_title} ({record.sampler})"),
            ("Support and queries", apart),
            *([("Domain", "seen: the backbone was trained on it, as the user said")] if record.seen else []),
            *([("Base classes", ", ".join(record.base_classes))] if record.base_classes else []),
            *([("Superclasses", f"one per episode, from {column}")] if (column := record.superclass_column) else []),
        ]
    )
    return Section(name="episodes", title="Episodes", part="checks", blocks=[facts, table])


def fewshot_images_section(source: Source[FewshotRecord]) -> Section:
    """The images, and the backbone that looked at them."""
    model = source.record.model
    backbone = Facts([("Backbone", f"{model.name} ({model.architecture})"), ("Features", str(model.num_features))])
    blocks: list[Block] = [Facts(data_facts(source.record.dataset)), backbone, *data_gallery(source.thumbnails)]
    return Section(name="data", title="Data and backbone", part="checks", blocks=blocks)


def few_episodes(source: Source[FewshotRecord]) -> Caveat | None:
    """Too few for an interval to be one."""
    count = source.record.num_episodes
    if count >= _FEW_EPISODES:
        return None
    return Caveat(f"{counted(count, 'episode')} are few; tables of this field have 600. Use --episodes 600.", Gravity.LIMITED)


def baseline_leans(source: Source[FewshotRecord]) -> Caveat | None:
    """What is above a baseline that favours large classes may be no better than a fair one."""
    record = source.record
    ahead = [row.head for row in record.heads if row.is_separable and (row.difference or 0) > 0]
    if not (record.baseline_leans and ahead):
        return None
    fair = f"{record.baseline}{',' if ':' in record.baseline else ':'}balanced=true"
    return Caveat(
        f"Classes of a support set differ in size, those of the queries do not, and {record.baseline} favours large classes: a "
        f"gain over it may be that alone. Add a fair baseline: {fair} to --heads, and name it with --baseline.",
        Gravity.FLATTERED,
    )


def patients_may_be_in_both(source: Source[FewshotRecord]) -> Caveat | None:
    """Without groups."""
    if source.record.groups_apart:
        return None
    return Caveat(
        "There are no groups, so that images of one patient may be in the support set and among the queries. If patients have "
        "several images, name the column: --group-column.",
        Gravity.UNCHECKED,
    )


FEWSHOT_CAVEATS: tuple[CaveatOf[FewshotRecord], ...] = (
    unsound_data,
    unreadable_files,
    warned_of_data,
    baseline_leans,
    few_episodes,
    patients_may_be_in_both,
)
"""The most severe first, in the order of ``report.verdict``."""


def after_episodes(source: Source[FewshotRecord]) -> Following:
    """To see whether fine-tuning gives more; or to look at the data."""
    typed, record = source.typed, source.record
    data = next(iter(typed.inputs), DATA) if typed.verb == "fewshot" else DATA
    if found_by_checks(record.checks, "unsound") is not None:
        return Following(typed.then("check", data), "to see what is unsound")
    model = typed.value("--model") or record.model.name
    line = typed.then("tune", data, flags=[("--model", model)])
    return Following(line, "to see what fine-tuning on all images gives")


EPISODES = Kind(
    FewshotRecord,
    fewshot_heading,
    (
        fewshot_verdict_section,
        heads_section,
        prompts_section,
        gaps_section,
        look_section,
        episodes_section,
        checks_section,
        fewshot_images_section,
        provenance_section,
        references_section,
    ),
    terminal=(heads_section, fewshot_verdict_section),
)
REPORT = (EPISODES, AVERAGES)
