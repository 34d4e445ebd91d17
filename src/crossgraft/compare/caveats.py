"""What limits a comparison of two models, the most severe first, in the order of ``sections._verdict``; and what to type next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from crossgraft.compare.record import ComparedModel, ModelComparisonRecord
from crossgraft.metrics.looks_words import looks_in_words
from crossgraft.options.typed_command import DATA, RUN, Flag, TypedCommand
from crossgraft.report.source import Source
from crossgraft.report.verdict import Caveat, CaveatOf, Following, unsound_data
from crossgraft.words.formatting import count

_FEW_IMAGES = 50


def may_have_learned(source: Source[ModelComparisonRecord]) -> Caveat | None:
    """Images of which nobody knows whether a fine-tuned model learned from them."""
    said = [note for note in source.record.notes if note.startswith("A fine-tuned model may have learned")]
    return Caveat(said[0]) if said else None


def prepared_otherwise(source: Source[ModelComparisonRecord]) -> Caveat | None:
    """A start and its fine-tuning that see the images in two ways."""
    by_label = {each.label: each for each in source.record.models}
    for pair in source.record.pairs:
        first, second = by_label[pair.first], by_label[pair.second]
        if pair.is_a_change and first.images_become != second.images_become:
            return Caveat(
                f"{first.label} and {second.label} take images in two ways ({first.images_become}; {second.images_become}), so "
                "not all that differs is what fine-tuning changed."
            )
    return None


def no_more_than_untrained(source: Source[ModelComparisonRecord]) -> Caveat | None:
    """Untrained networks are as alike."""
    found = source.record.pairs[0].measured("cka_debiased")
    if found is None or found.value is None or found.untrained is None or found.untrained < found.value:
        return None
    return Caveat(
        "Two untrained networks of these architectures are at least as alike, so the value says little by itself."
    )


def by_linear_probes(source: Source[ModelComparisonRecord]) -> Caveat | None:
    """Predictions that are no model's own."""
    mistakes = source.record.pairs[0].mistakes
    if mistakes is None or not mistakes.by_probe:
        return None
    return Caveat("Mistakes are those of linear probes where a model has no head for these classes.")


def looked_before(source: Source[ModelComparisonRecord]) -> Caveat | None:
    """A choice among models by these images."""
    text = looks_in_words(source.record.looks, "accuracy")
    return None if text is None else Caveat(text)


def probed_before(source: Source[ModelComparisonRecord]) -> Caveat | None:
    """A choice among models by the images of linear probes."""
    geometry = source.record.geometry
    text = looks_in_words(source.record.probe_looks, "accuracy")
    if text is None or geometry is None or geometry.forgetting is None:
        return None
    return Caveat(f"Linear probes on {geometry.forgetting.data}: {text[0].lower()}{text[1:]}")


def few_images(source: Source[ModelComparisonRecord]) -> Caveat | None:
    """Noise is large."""
    num_images = source.record.num_images
    if num_images >= _FEW_IMAGES:
        return None
    return Caveat(f"{count(num_images)} images are few: similarity of so few is noisy, and CCA tends to 1.")


def without_patients(source: Source[ModelComparisonRecord]) -> Caveat | None:
    """Images of one patient count as independent."""
    data = source.record.dataset
    if data is None or data.num_groups is not None or source.record.pairs[0].mistakes is None:
        return None
    return Caveat("Without a column of patients, intervals take images as independent: --group-column.")


def after_comparison(source: Source[ModelComparisonRecord]) -> Following | None:
    """What fine-tuning changed, what lies between, or which of some pretrained models suits the images."""
    record, typed = source.record, source.typed
    if record.dataset is None:
        return None
    tuned = [each for each in record.models if each.kind == "fine-tuned"]
    if not tuned:
        names = ",".join(typed.inputs) or "MODELS"
        line = typed.then("rank", typed.value("--data") or DATA, flags=[("--models", names)])
        return Following(line, "to rank them for these images")
    if len(record.models) > 2:
        return None
    if record.pairs[0].is_a_change:
        return _between(typed)
    starts = [each.started_with.get("--model", f"PRETRAINED_{each.label}") for each in tuned]
    flags = [flag for flag in _named_in(tuned) if not typed.has(flag[0])]
    if len(tuned) == 2:
        line = typed.again(("--before", ",".join(dict.fromkeys(starts))), *flags)
        return Following(line, "to see what fine-tuning changed in each model")
    run = typed.inputs[record.models.index(tuned[0])] if len(typed.inputs) == 2 else RUN
    line = replace(typed, inputs=(starts[0], run)).again(*flags)
    return Following(line, f"to see what fine-tuning changed in {tuned[0].name}")


def _between(typed: TypedCommand) -> Following:
    """To mix the weights of a model before and after fine-tuning."""
    start, run = typed.inputs if len(typed.inputs) == 2 else ("PRETRAINED", RUN)
    data = typed.value("--data") or DATA
    line = typed.then("interpolate", run, data, flags=[("--model", start)])
    return Following(line, "to measure the networks between the two")


def _named_in(models: Sequence[ComparedModel]) -> list[Flag]:
    """Flags that the names of their starts need beside them."""
    found = {flag: value for each in models for flag, value in each.started_with.items() if flag != "--model"}
    return list(found.items())


MODEL_COMPARISON_CAVEATS: tuple[CaveatOf[ModelComparisonRecord], ...] = (
    unsound_data,
    may_have_learned,
    prepared_otherwise,
    no_more_than_untrained,
    by_linear_probes,
    looked_before,
    probed_before,
    few_images,
    without_patients,
)
