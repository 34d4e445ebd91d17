"""The page of the networks between two: verdict, what limits it, and a figure that joins what may be joined."""

import re

import pytest

from crossgraft.interpolate.record import InterpolationPoint, InterpolationRecord
from crossgraft.records.base import LooksRecord
from crossgraft.report.blocks import Figure, Folded, Verdict
from crossgraft.report.kinds import KINDS
from crossgraft.report.source import Source
from crossgraft.report.terminal import record_as_text
from support.tuning_records import metric, tuning_record

TYPED = "crossgraft interpolate runs/full images --linear runs/probe --code net.py --out runs/between"
VALUES = {0: 0.70, 0.5: 0.83, 1: 0.80}


def curve(*, values=VALUES, cka=(1.0, 0.9, 0.8), picked=0.5, half_width=0.01, **changes):
    points = [
        InterpolationPoint(
            alpha=alpha,
            metrics=[metric("balanced_accuracy", value, half_width=half_width)],
            similarity={"cka": alike, "cka_debiased": alike - 0.1},
            parameter_distance=alpha,
        )
        for (alpha, value), alike in zip(values.items(), cka, strict=True)
    ]
    fields = {
        "model": "resnet18",
        "dataset": "breast",
        "start": "the pretrained network with the head of the linear probe",
        "points": points,
        "primary_metric": "balanced_accuracy",
        "picked_alpha": picked,
        "picked_by": "best balanced accuracy on val",
        "batch_norm": "estimate",
        "num_batch_norms": 0,
        "seconds": 1.0,
        "has_probe": True,
        "images": tuning_record().dataset.model_copy(update={"num_groups": 9, "group_column": "patient"}),
        "leakage": "No group is in two parts (9 groups of column patient).",
    }
    return InterpolationRecord(**(fields | changes))


def verdict_of(record, command_line=TYPED):
    section = KINDS.get("interpolation").builders[0](Source(record, command_line=command_line))
    (verdict,) = [block for block in section.blocks if isinstance(block, Verdict)]
    others = [item for block in section.blocks if isinstance(block, Folded) for item in block.blocks[0].items]
    return verdict, others, next((block for block in section.blocks if isinstance(block, Figure)), None)


def test_the_answer_stands_beside_what_guessing_gives_and_above_the_figure():
    verdict, others, figure = verdict_of(curve())
    assert verdict.answer.startswith("Val picks the share 0.5 of the fine-tuned network. Balanced accuracy 0.83")
    assert "guessing gives 0.50" in verdict.answer
    assert verdict_of(curve(picked=1))[0].answer.startswith("Val picks the fine-tuned network itself. Balanced")
    assert verdict_of(curve(picked=0))[0].answer.startswith("Val picks the start, the pretrained network with the head of")
    assert "(CKA) 0.900" in verdict.answer
    assert (verdict.caveat, others) == (None, [])
    assert figure is not None
    text = record_as_text(curve(), command_line=TYPED)
    assert text.index("Networks on the way") < text.index("Val picks the share") < text.index("Next, to use")


@pytest.mark.parametrize(
    ("picked", "typed", "line", "purpose"),
    [
        (0.5, TYPED, "crossgraft predict runs/full NEW_IMAGES --code net.py", "mixed ones are not kept"),
        (1, TYPED, "crossgraft predict runs/full NEW_IMAGES --code net.py", "to use it"),
        (0, TYPED, "crossgraft predict runs/probe NEW_IMAGES --code net.py", "to use the linear probe"),
        (0, None, "crossgraft predict RUN NEW_IMAGES", "mixed ones are not kept"),
        (1, "crossgraft interpolate a b --model m", "crossgraft predict a NEW_IMAGES", "to use it"),
    ],
)
def test_the_next_command_uses_a_network_that_was_kept(picked, typed, line, purpose):
    verdict, _, _ = verdict_of(curve(picked=picked), typed)
    assert verdict.following == line
    assert purpose in verdict.purpose


def test_of_a_network_with_batch_norm_every_similarity_stands_beside_the_adapted_one():
    plain = curve()
    (without,) = KINDS.get("interpolation").builders[1](Source(plain, command_line=TYPED)).blocks
    assert "CKA, debiased, adapted" not in [column.title for column in without.columns] and not without.notes
    more = {"cka_adapted": 0.5, "cka_debiased_adapted": 0.4321, "cka_untouched": 0.3, "cka_debiased_untouched": 0.2}
    points = [point.model_copy(update={"similarity": point.similarity | more}) for point in plain.points]
    record = plain.model_copy(update={"points": points})
    (table,) = KINDS.get("interpolation").builders[1](Source(record, command_line=TYPED)).blocks
    titles = [column.title for column in table.columns]
    assert titles[4:8] == ["CKA", "CKA, debiased", "CKA, adapted", "CKA, debiased, adapted"]
    assert [row[7].text for row in table.rows] == ["0.432"] * 3
    assert "with no weight changed, give a debiased CKA of 0.200" in table.notes[0]
    assert "0.432" in record_as_text(record, command_line=TYPED)


def test_what_limits_the_answer_stands_below_it_the_most_severe_first():
    known = curve().images
    record = curve(
        half_width=0.4,
        has_probe=False,
        num_batch_norms=3,
        images=known.model_copy(update={"num_groups": None}),
        leakage="Patient leakage not checked.",
        looks=LooksRecord(number=2, by_command={"tune": 1, "interpolate": 1}, optimism=0.01),
    )
    verdict, others, _ = verdict_of(record)
    assert verdict.caveat.startswith("156 images are too few to tell. Guessing gives 0.50")
    assert [text.partition(" ")[0] for text in others] == ["There", "The", "This", "3", "Patient"]
    assert others[2].startswith("This is the 2nd look at these test images (1 × tune, 1 × interpolate)")
    shared = record.model_copy(update={"num_shared_groups": 2, "leakage": "Leakage: 2 groups."})
    assert verdict_of(shared)[0].caveat == "Leakage: 2 groups."


def test_the_end_may_be_as_good_only_where_its_value_lies_in_the_interval():
    assert verdict_of(curve(half_width=0.03))[0].caveat.startswith("The fine-tuned network has 0.800, inside")
    assert verdict_of(curve(half_width=0.03, picked=1))[0].caveat is None
    assert verdict_of(curve(half_width=0.02))[0].caveat is None
    mixed = curve(num_batch_norms=3, batch_norm="mix")
    assert verdict_of(mixed)[0].caveat is None


def num_pieces(figure):
    """Strokes of the curve, of which a dot that is joined to none is one, and one in the legend where any are joined."""
    return len(re.findall(r"stroke-dasharray", str(figure.drawings[0])))


def test_neighbours_are_joined_where_the_similarity_changes_little_and_nothing_else():
    joined, gap, none = (verdict_of(curve(cka=cka))[2] for cka in ((1, 0.9, 0.8), (1, 0.9, 0.5), (1, 0.6, 0.2)))
    assert [num_pieces(each) for each in (joined, gap, none)] == [2, 3, 3]
    said = "A dashed line joins two dots", "nothing is known of what lies between"
    assert [[text in each.caption for text in said] for each in (joined, gap, none)] == [
        [True, False],
        [True, True],
        [False, True],
    ]
    assert "0, 0.5 (picked on val) and 1." in joined.caption


def test_the_page_says_which_split_it_is_and_a_comparison_says_it_itself():
    def sections(record):
        return [builder(Source(record)) for builder in KINDS.get("interpolation").builders]

    images = curve().images.model_copy(update={"split_fingerprint": "50ac68173c71"})
    (data,) = [each for each in sections(curve(images=images)) if each is not None and each.name == "data"]
    (facts,) = [block for block in data.blocks if hasattr(block, "rows")]
    assert dict(facts.rows)["Split"].startswith("50ac68173c71 – ")
    inside = curve(images=None, leakage=None, has_probe=None)
    assert all(each is None or each.name != "data" for each in sections(inside))
    assert verdict_of(inside)[0].caveat is None
