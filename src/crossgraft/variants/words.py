"""A comparison of fine-tunings in sentences, for the report and the terminal alike; they claim what intervals allow."""

from __future__ import annotations

from pathlib import PurePosixPath
from statistics import fmean

from crossgraft.data.page import unreadable_files
from crossgraft.edit.page import edited_caveat
from crossgraft.metrics.page import looked_at_before
from crossgraft.metrics.record import MetricRecord
from crossgraft.metrics.words import doubt_in_words, guessing, metric_name_in_words
from crossgraft.options.command import RUN
from crossgraft.options.models import CodeOptions
from crossgraft.report.source import Source
from crossgraft.report.verdict import (
    PREDICT_IMAGES,
    Caveat,
    CaveatOf,
    Following,
    Gravity,
    leakage_not_checked,
    unsound_data,
    warned_of_data,
)
from crossgraft.tasks import num_choices
from crossgraft.tune.planning.leave_out import ORACLE
from crossgraft.tune.words import untouched_in_words
from crossgraft.variants.record import ComparedVariantRecord, FineTuningComparisonRecord, ValueRecord
from crossgraft.words.formatting import NumberFormat, counted, joined

NUMBERS = NumberFormat(decimals=3)


def answer_in_words(record: FineTuningComparisonRecord) -> str:
    """Which variant is best, whether that is more than chance, and which of those that may be as good keeps most."""
    done = [row for row in record.variants if row.metric.value is not None]
    if not done:
        return "No variant has a value, so nothing can be said."
    best = done[0]
    name = metric_name_in_words(record.primary_metric)
    sentences = [f"The best {name} {where_measured(record)} is that of {best.named}: {value_in_words(best.metric)}."]
    doubt = best_may_be_guessing(record)
    if doubt is not None:
        sentences.append(doubt)
    return " ".join([*sentences, *_of_the_others(done, record)])


def best_in_words(record: FineTuningComparisonRecord) -> str:
    """The best variant beside what guessing gives, and what its intervals allow to say of the others, in one sentence."""
    done = [row for row in record.variants if row.metric.value is not None]
    if not done:
        return "No variant has a value, so nothing can be said."
    best, name = done[0], metric_name_in_words(record.primary_metric)
    guess = guessing(record.primary_metric, num_choices(record.dataset))
    text = f"{best.named} has the best {name} {where_measured(record)}, {value_in_words(best.metric, guess=guess)}"
    rivals = [row.variant for row in done if row.variant in best.not_separable_from]
    unknown = [row.variant for row in done[1:] if _is_unknown(row, best)]
    if rivals:
        return f"{text}; {joined(rivals)} may be as good."
    if unknown:
        return f"{text}; nothing is known about whether {joined(unknown)} {'is' if len(unknown) == 1 else 'are'} worse."
    if len(done) == 1:
        return f"{text}."
    seed = "" if len(record.seeds) > 1 else " with this one seed"
    return f"{text}; separably better than {joined([row.variant for row in done[1:]])}{seed}."


def where_measured(record: FineTuningComparisonRecord) -> str:
    """The images of the primary metric, after its name.

    >>> where_measured(FineTuningComparisonRecord.model_construct(domains=None))
    'on test'
    """
    about = record.domains
    if about is None:
        return "on test"
    where = f"as the mean over {about.column}s that" if about.is_each else f"on {about.column} {about.left_out[0]}, which"
    return f"{where} training never saw{' (oracle)' if about.is_oracle else ''}"


def details_in_words(record: FineTuningComparisonRecord) -> str:
    """Which of the others are worse, and which of those that may be best keeps most."""
    done = [row for row in record.variants if row.metric.value is not None]
    return " ".join(_of_the_others(done, record)) if done else ""


def _of_the_others(done: list[ComparedVariantRecord], record: FineTuningComparisonRecord) -> list[str]:
    best, sentences = done[0], list[str]()
    rivals = [row for row in done if row.variant in best.not_separable_from]
    if len(done) > 1:
        it_is = f"{best.variant} is" if len(record.seeds) > 1 else f"With this one seed {best.variant} is"
        sentences.append(_rivals_in_words(best, rivals, done, it_is))
    keeper = _keeper([best, *rivals])
    if keeper is not None and rivals:
        sentences.append(_kept_in_words(keeper, best, record))
    return sentences


def value_in_words(value: ValueRecord, *, guess: float | None = None) -> str:
    """The number with its interval, and what guessing gives where that is said.

    >>> value_in_words(ValueRecord(value=0.8, low=0.7, high=0.9, interval_of="seeds")).replace("\N{NO-BREAK SPACE}", " ")
    '0.800 (95 % interval over seeds 0.700 to 0.900)'
    """
    chance = "" if guess is None else f"; guessing gives {guess:.2f}"
    if value.low is None or value.high is None:
        return f"{NUMBERS(value.value)} (no interval{chance})"
    ends = f"95\N{NO-BREAK SPACE}% interval over {value.interval_of} {NUMBERS(value.low)} to {NUMBERS(value.high)}"
    return f"{NUMBERS(value.value)} ({ends}{chance})"


def curve_in_words(row: ComparedVariantRecord) -> str:
    """Where a variant lies relative to the curve of weight interpolation, as far as its interval says.

    >>> from crossgraft.variants.record import DifferenceRecord
    >>> row = ComparedVariantRecord.model_construct(above_curve=DifferenceRecord(value=0.02, low=-0.01, high=0.05))
    >>> curve_in_words(row)
    'above, may be chance'
    """
    to_curve = row.above_curve
    if to_curve is None:
        return NUMBERS(None)
    if to_curve.value is None:
        return "not measured there"
    side = "above" if to_curve.value > 0 else "below" if to_curve.value < 0 else "on it"
    return side if to_curve.is_separable or to_curve.value == 0 else f"{side}, may be chance"


def _rivals_in_words(
    best: ComparedVariantRecord, rivals: list[ComparedVariantRecord], done: list[ComparedVariantRecord], it_is: str
) -> str:
    """``it_is`` claims no more than was drawn: the interval of one seed is that of test images alone."""
    unknown = [row.variant for row in done[1:] if _is_unknown(row, best)]
    if unknown and len(unknown) == len(done) - 1:
        return "Nothing is known about whether the others are worse: there are no intervals of the differences."
    if not rivals:
        others = joined([row.variant for row in done[1:] if row.variant not in unknown])
        known = f"{it_is} better than {others}: the 95\N{NO-BREAK SPACE}% interval of each difference excludes 0."
        return f"{known} Nothing is known about {joined(unknown)}." if unknown else known
    others = joined([row.variant for row in rivals])
    rest = [row.variant for row in done[1:] if row not in rivals and row.variant not in unknown]
    excluded = f" {it_is} better than {joined(rest)}: the 95\N{NO-BREAK SPACE}% interval of each difference excludes 0."
    better = excluded if rest else ""
    verb = "is" if len(rivals) == 1 else "are"
    return f"{others} {verb} not separable from {best.variant}: the difference may be chance.{better}"


def best_may_be_guessing(record: FineTuningComparisonRecord) -> str | None:
    """Said where even the best may be guessing."""
    best = next((row.metric for row in record.variants if row.metric.value is not None), None)
    if best is None:
        return None
    row = MetricRecord(metric=record.primary_metric, title="", value=best.value, low=best.low, high=best.high, num_images=0)
    return doubt_in_words(row, num_choices(record.dataset))


def _is_unknown(row: ComparedVariantRecord, best: ComparedVariantRecord) -> bool:
    """Whether nothing is known about its difference to the best: it, or that of either to full, has no interval."""
    return any(each.difference is not None and each.difference.low is None for each in (row, best))


def _keeper(rows: list[ComparedVariantRecord]) -> ComparedVariantRecord | None:
    """The variant whose features changed least, among the best and those that may be as good."""
    known = [row for row in rows if _kept(row) is not None]
    return max(known, key=lambda row: _kept(row) or 0.0) if known else None


def _kept(row: ComparedVariantRecord) -> float | None:
    """Debiased CKA to the network that training started from, which has statistics of these images with ``adapt``."""
    cka = row.cka_debiased_adapted if row.batch_norm == "adapt" else row.cka_debiased
    return None if cka is None else cka.value


def _kept_in_words(keeper: ComparedVariantRecord, best: ComparedVariantRecord, record: FineTuningComparisonRecord) -> str:
    adapted = " to the adapted network" if keeper.batch_norm == "adapt" else ""
    alike = f"debiased CKA{adapted} {NUMBERS(_kept(keeper))}"
    full = record.full
    if full is not None and full is not keeper and _kept(full) is not None:
        alike += f" against {NUMBERS(_kept(full))} of {full.variant}{_moved_statistics(keeper, full)}"
    if keeper is best:
        return f"Of those that may be best, {best.named} also keeps most of the pretrained features ({alike})."
    return f"Of those that may be best, {keeper.named} keeps most of the pretrained features ({alike})."


def _moved_statistics(keeper: ComparedVariantRecord, full: ComparedVariantRecord) -> str:
    """Said where ``full`` has also moved statistics, which the variant that keeps most has not."""
    if keeper.batch_norm != "frozen" or full.batch_norm in (None, "frozen"):
        return ""
    return ", whose BatchNorm statistics moved, too"


def batch_norms_differ(record: FineTuningComparisonRecord) -> str | None:
    """What different modes of BatchNorm mean for comparing the CKA of variants; None where all are alike."""
    known = {row.variant: row.batch_norm for row in record.variants if row.batch_norm is not None}
    if len(set(known.values())) < 2:
        return None
    of_modes = [
        f"{joined([name for name, own in known.items() if own == mode])}: {mode}" for mode in dict.fromkeys(known.values())
    ]
    alone = untouched_in_words(untouched_similarity(record))
    size = "" if alone is None else f" {alone}."
    return (
        f"BatchNorm differs ({'; '.join(of_modes)}), so a difference in CKA between these is not only what training kept.{size} "
        "The same --batch-norm for all makes them comparable."
    )


def untouched_similarity(record: FineTuningComparisonRecord) -> dict[str, float]:
    """Similarity of untouched weights with re-estimated statistics, mean over trainings; empty without BatchNorm."""
    similarities: dict[str, list[float]] = {}
    for row in record.trainings:
        for name, value in row.similarity.items():
            if name.endswith("_untouched"):
                similarities.setdefault(name, []).append(value)
    return {name: fmean(values) for name, values in similarities.items()}


ENOUGH_SEEDS = 3
"""From so many on the interval of a mean counts seeds; the spread of two says next to nothing."""


def may_be_guessing(source: Source[FineTuningComparisonRecord]) -> Caveat | None:
    """The interval of the best contains what guessing gives."""
    doubt = best_may_be_guessing(source.record)
    return None if doubt is None else Caveat(doubt, Gravity.EMPTY)


def few_seeds(source: Source[FineTuningComparisonRecord]) -> Caveat | None:
    """Too few trainings to see how much a seed changes."""
    record, typed = source.record, source.typed
    if len(record.seeds) >= ENOUGH_SEEDS:
        return None
    is_known = typed.verb == "tune" and typed.has("--compare")
    several = typed.again(("--seeds", str(ENOUGH_SEEDS)))
    remedy = Following(several, "to see how much another seed changes") if is_known else None
    return Caveat(record.interval_words, Gravity.FLATTERED, remedy)


def batch_norm_differs(source: Source[FineTuningComparisonRecord]) -> Caveat | None:
    """A CKA also falls with moved statistics, which some variants have and others have not."""
    text = batch_norms_differ(source.record)
    return None if text is None else Caveat(text, Gravity.LIMITED)


def failed_variants(source: Source[FineTuningComparisonRecord]) -> Caveat | None:
    """Variants without a value are in no difference."""
    failed = [row.variant for row in source.record.variants if row.num_failed]
    return Caveat(f"Not every training ended with a model: {joined(failed)}.", Gravity.HARM) if failed else None


def best_of_many(source: Source[FineTuningComparisonRecord]) -> Caveat | None:
    """The best was found on the images that its value is of; where looks were counted, that says it."""
    if looked_at_before(source) is not None:
        return None
    number = sum(row.metric.value is not None for row in source.record.variants)
    if number < 2:
        return None
    ways = counted(number, "way", "ways")
    return Caveat(f"The best of {ways} was found on these test images, so its value is a little too high.", Gravity.FLATTERED)


def edited_images(source: Source[FineTuningComparisonRecord]) -> Caveat | None:
    """Images were edited."""
    return edited_caveat(source.record.edits)


def picked_on_test(source: Source[FineTuningComparisonRecord]) -> Caveat | None:
    """Models were picked on images of the domain that they are tested on."""
    about = source.record.domains
    return None if about is None or not about.is_oracle else Caveat(ORACLE, Gravity.WRONG)


COMPARISON_CAVEATS: tuple[CaveatOf[FineTuningComparisonRecord], ...] = (
    picked_on_test,
    unsound_data,
    unreadable_files,
    warned_of_data,
    may_be_guessing,
    failed_variants,
    few_seeds,
    looked_at_before,
    best_of_many,
    batch_norm_differs,
    edited_images,
    leakage_not_checked,
)
"""The most severe first, in the order of ``report.verdict``."""


def after_comparison(source: Source[FineTuningComparisonRecord]) -> Following | None:
    """To predict with the first model of the best variant; None where no model was kept."""
    record, typed = source.record, source.typed
    if record.domains is not None and record.domains.is_each:
        return None  # each training is several models, none of which is that of all images
    best = next((row.variant for row in record.variants if row.metric.value is not None), None)
    of_best = (row.folder for row in record.trainings if row.variant == best and row.state == "done")
    folder = next((folder for folder in of_best if folder is not None), None)
    if folder is None:
        return None
    run = PurePosixPath(typed.out if typed.verb == "tune" else RUN) / folder
    return Following(typed.then("predict", str(run), PREDICT_IMAGES, carried=[CodeOptions]), f"to use {best}")
