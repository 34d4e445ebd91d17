"""What ``crossgraft fewshot`` writes."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from crossgraft.data.checks.record import copies_are_known
from crossgraft.data.record import DatasetRecord
from crossgraft.models.record import ModelRecord
from crossgraft.records.base import SCHEMA_VERSION, CheckRecord, Count, Record, Reference, Share, SparseRecord
from crossgraft.report.tables import Shown
from crossgraft.words.formatting import NumberFormat, counted

NUMBERS = NumberFormat(decimals=3)
_RANK = NumberFormat(decimals=1)


Moved = Literal["features", "maps", "training"]


class GapPoint(Record):
    """One head with its gap set to another value, on one episode or as a mean over episodes."""

    head: Annotated[str, Shown("Head")]
    moved: Annotated[Moved, Shown("Moved")] = Field(
        description="features: both clouds along the gap; maps: both maps of CoPA from their mean; training: after some steps."
    )
    at: float = Field(
        description="Shift in gaps (0: as it is, -1: closed), share of the difference of both maps (1: as trained), or steps."
    )
    gap: Annotated[float, Shown("Gap", NUMBERS)] = Field(description="Of the support set, each prototype once per image.")
    gap_by_class: float
    accuracy: Annotated[float, Shown("Accuracy", NUMBERS)] = Field(description="On the queries.")
    coefficient: Annotated[float | None, Shown("M‖Θ‖²", NUMBERS)] = Field(
        default=None, description="M‖Θ‖²_F of theorem 3.2, of one map for both."
    )
    squared_ratio: Annotated[float | None, Shown("Squared gap, over that before", NUMBERS)] = Field(
        default=None, description="What it bounds: squared gap behind the map over that before, not normalised, by class."
    )


class GapSummary(GapPoint):
    """Its mean over episodes."""

    difference: Annotated[float, Shown("Difference", NUMBERS)] = Field(
        description="Accuracy less that of the head as it is, paired by episode."
    )
    difference_half_width: Annotated[float | None, Shown("±", NUMBERS, csv_titles=("difference_half_width",))] = Field(
        description="Half of its interval of 95 % over episodes."
    )


class EpisodesPart(SparseRecord):
    """A few episodes, kept so that a stopped run goes on."""

    sparse: ClassVar[frozenset[str]] = frozenset({"gaps"})

    key: str = Field(description="Hash of everything that decides the numbers.")
    accuracies: list[list[Share]] = Field(description="By episode and head.")
    seconds: list[float] = Field(description="Mean time of a head, for fit and predict.")
    num_ways: list[Count]
    num_support: list[Count]
    num_query: list[Count]
    warnings: dict[str, Count] = Field(description="What heads warned of → in how many episodes.")
    gaps: list[list[GapPoint]] = Field(default=[], description="By episode; empty where the gap was left as it is.")


class HeadRow(SparseRecord):
    """One head on all episodes."""

    sparse: ClassVar[frozenset[str]] = frozenset(
        {"by_seed", "seeds_half_width", "difference_seeds_half_width", "no_seeds_interval_reason"}
    )

    head: Annotated[str, Shown("Head")] = Field(description="As it was written, with its options.")
    title: str
    accuracy: Annotated[Share, Shown("Accuracy", NUMBERS)] = Field(
        description="Mean over episodes of the share of queries that are right."
    )
    half_width: Annotated[float | None, Shown("±", NUMBERS, csv_titles=("half_width",))] = Field(
        description="Half of the width of its interval of 95 %, over episodes."
    )
    no_interval_reason: str | None = None
    difference: float | None = Field(description="To the baseline, paired by episode; None for itself.")
    difference_half_width: Annotated[float | None, Shown("±", NUMBERS, csv_titles=("difference_half_width",))] = None
    difference_no_interval_reason: str | None = None
    rank: Annotated[float, Shown("Rank", _RANK)] = Field(
        description="Heads within each other's intervals share one (Meta-Dataset's leaderboard)."
    )
    plain_rank: Annotated[float, Shown("Plain rank", _RANK, page_only=True)] = Field(description="Only equal means share one.")
    by_seed: list[Share] = Field(default=[], description="Mean over the episodes of each seed; empty for one seed.")
    seeds_half_width: Annotated[float | None, Shown("± seeds", NUMBERS, csv_titles=("seeds_half_width",))] = Field(
        default=None, description="Half of the width of the interval of 95 % of the mean over seeds, from the means of the seeds."
    )
    difference_seeds_half_width: Annotated[
        float | None, Shown("± seeds", NUMBERS, csv_titles=("difference_seeds_half_width",))
    ] = Field(default=None, description="The same of the difference to the baseline.")
    no_seeds_interval_reason: str | None = None
    seconds: Annotated[float, Shown("Seconds an episode", NumberFormat(decimals=4))] = Field(
        description="Mean time of an episode, for fit and predict, on one thread."
    )
    warnings: dict[str, Count] = {}

    @property
    def is_separable(self) -> bool:
        """Whether the interval of the difference to the baseline leaves out 0."""
        if self.difference is None or self.difference_half_width is None:
            return False
        return abs(self.difference) > self.difference_half_width


class BoundRecord(Record):
    """An inequality of CoPA's paper with the numbers of one episode in it."""

    name: str
    lower: float
    value: float
    upper: float | None = Field(default=None, description="None: the theorem has none.")

    @property
    def holds(self) -> bool:
        """Whether ``lower ≤ value ≤ upper``, up to rounding."""
        slack = 1e-9 * max(1.0, abs(self.value))
        return self.lower <= self.value + slack and (self.upper is None or self.value <= self.upper + slack)


class HeadLookRecord(Record):
    """What one head makes of the support set of one episode."""

    head: Annotated[str, Shown("Head")]
    shares: tuple[float, float] = Field(description="Of the variance of images and prototypes, along both axes.")
    images: list[tuple[float, float]] = Field(description="Principal components of the unit vectors of images.")
    prototypes: list[tuple[float, float]]
    similarities: list[list[float]] = Field(description="Cosine of each image to each prototype.")
    gap_by_instance: Annotated[float, Shown("By image", NUMBERS)]
    gap_by_class: Annotated[float, Shown("By class", NUMBERS)]
    shifts: list[float] = Field(description="Multiples of half of the gap that both clouds are moved apart by.")
    losses: list[float] = Field(description="Symmetric cross-entropy after each shift.")
    bounds: list[BoundRecord] = []


class EpisodeLookRecord(Record):
    """The support set of one episode, as the heads see it."""

    number: Count
    class_names: list[str]
    classes: list[int] = Field(description="Place of the class of each image in class_names.")
    heads: list[HeadLookRecord]


class SizeRow(Record):
    """What the sampler drew: a size over the episodes."""

    name: str
    least: Count
    mean: float
    most: Count


class PromptsRecord(Record):
    """Class weights from text."""

    templates: list[str]
    texts: dict[str, list[str]] = Field(description="Label → what stands for {class} in the templates.")
    text_tower: str = Field(description="Its architecture.")
    num_parameters: Count
    num_features: Count = Field(description="Width of the space of images and texts, which heads see.")
    weights_fingerprint: str = Field(description="Of the text tower.")
    tokens_fingerprint: str = Field(description="Of the tokens of all prompts.")
    logit_scale: float = Field(description="What the network itself multiplies cosines by; heads take 100.")
    logit_bias: float


class FewshotRecord(SparseRecord):
    """Heads on the same episodes of one data set."""

    sparse: ClassVar[frozenset[str]] = frozenset({"num_seeds", "seen", "gaps", "prompts"})

    schema_version: int = SCHEMA_VERSION
    kind: Literal["fewshot"] = "fewshot"
    dataset: DatasetRecord
    model: ModelRecord
    heads: list[HeadRow] = Field(description="Best first.")
    left_out: dict[str, str] = Field(default={}, description="Head that ``all`` does not stand for → why.")
    baseline: str
    baseline_leans: bool = Field(
        default=False,
        description="Whether it favours large classes while support sets have classes of different size and queries have not.",
    )
    sampler: str = Field(description="As it was written, with its options.")
    sampler_title: str
    num_episodes: Count = Field(description="Of each seed.")
    num_seeds: Count = Field(default=1, description="Repeats with other episodes, and other random numbers in heads.")
    seen: bool = Field(default=False, description="The user said that the backbone was trained on this domain.")
    sizes: list[SizeRow]
    look: EpisodeLookRecord | None = Field(default=None, description="None: no head has images and prototypes.")
    gaps: list[GapSummary] = Field(default=[], description="The gap, set; empty where it was left as it is.")
    prompts: PromptsRecord | None = Field(default=None, description="None: class weights, if any, come from elsewhere.")
    groups_apart: bool = Field(description="Whether support and queries share no group.")
    base_classes: list[str] = []
    superclass_column: str | None = Field(default=None, description="An episode has classes of one of its values.")
    checks: list[CheckRecord]
    references: list[Reference]

    def head(self, name: str) -> HeadRow:
        """The row of one head."""
        return next(row for row in self.heads if row.head == name)


class AverageRow(Record):
    """One head over data sets."""

    head: Annotated[str, Shown("Head")]
    seen: Annotated[Share | None, Shown("Seen", NUMBERS)] = Field(
        description="Mean over the data sets that are marked as seen; None: there is none."
    )
    seen_half_width: Annotated[float | None, Shown("±", NUMBERS, csv_titles=("seen_half_width",))] = Field(
        description="Half of the width of the interval of 95 % over data sets."
    )
    unseen: Annotated[Share | None, Shown("Unseen", NUMBERS)]
    unseen_half_width: Annotated[float | None, Shown("±", NUMBERS, csv_titles=("unseen_half_width",))]
    average: Annotated[Share, Shown("All", NUMBERS)] = Field(description="Over all data sets.")
    half_width: Annotated[float | None, Shown("±", NUMBERS, csv_titles=("half_width",))]
    rank: Annotated[float, Shown("Rank", NumberFormat(decimals=2))] = Field(
        description="Mean over data sets of its rank, which heads within each other's intervals share."
    )


class AveragedSet(Record):
    """One data set with all heads."""

    name: str
    seen: bool
    num_episodes: Count = Field(description="Of all its runs and seeds.")
    accuracies: dict[str, Share] = Field(description="By head.")
    half_widths: dict[str, float | None] = Field(description="Over its episodes, by head.")


class AveragesRecord(Record):
    """Heads on several data sets, each from a run of ``crossgraft fewshot``."""

    schema_version: int = SCHEMA_VERSION
    kind: Literal["fewshot-averages"] = "fewshot-averages"
    model: str
    heads: list[AverageRow] = Field(description="Best average first.")
    sets: list[AveragedSet] = Field(description="Those that are seen first, as they were given.")
    samplers: list[str]
    references: list[Reference]


def accuracy_in_words(row: HeadRow) -> str:
    """Mean and interval, if there is one.

    >>> found = {"accuracy": 0.71234, "half_width": 0.0061, "difference": None}
    >>> accuracy_in_words(HeadRow(head="ncc", title="NCC", rank=1, plain_rank=1, seconds=0.1, **found))
    '0.712 ± 0.006'
    """
    return f"{row.accuracy:.3f}{_interval(row.half_width)}"


def answer_in_words(record: FewshotRecord) -> str:
    """The best head, and how it stands to the baseline."""
    best = record.heads[0]
    sure = "" if best.half_width is None else " (95\N{NO-BREAK SPACE}% interval)"
    images = "query images" if copies_are_known(record.checks) else "images that it did not learn from"
    right = f"{best.head} is right on {accuracy_in_words(best)}{sure} of {images}"
    sentence = f"{right}, mean of {episodes_in_words(record)}"
    if best.seeds_half_width is not None:
        sentence += f" (over seeds ± {best.seeds_half_width:.3f})"
    if len(record.heads) == 1:
        return f"{sentence}."
    baseline = record.head(record.baseline)
    if best.difference is None:
        others = [row for row in record.heads[1:] if not row.is_separable]
        near = ", ".join(row.head for row in others)
        return f"{sentence}: no head is above the baseline." + (f" Not separable from it: {near}." if near else "")
    difference = f"{best.difference:+.3f}{_interval(best.difference_half_width)}"
    verdict = "above" if best.is_separable else "not separable from"
    return f"{sentence}, {verdict} {baseline.head} ({accuracy_in_words(baseline)}; paired difference {difference})."


def episodes_in_words(record: FewshotRecord) -> str:
    """600 episodes, or so many of each seed."""
    episodes = counted(record.num_episodes, "episode")
    return episodes if record.num_seeds == 1 else f"{counted(record.num_seeds, 'seed')} of {episodes} each"


def _interval(half_width: float | None) -> str:
    """Where episodes are too few, or all the same, there is none."""
    return "" if half_width is None else f" ± {half_width:.3f}"
