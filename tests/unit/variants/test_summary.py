"""What limits variants, in words."""

from pathlib import Path

import pytest

from crossgraft.tune.record import BatchNormRecord, KeepRecord
from crossgraft.variants.record import ComparedTrainingRecord
from crossgraft.variants.study import DoneTraining
from crossgraft.variants.summary import Measured, missed_targets
from crossgraft.variants.variant import Variant
from support.tuning_records import tuning_record

NORMS = BatchNormRecord(mode="train", num_layers=2, num_moving=2)


def measured(name, *similarities):
    """A variant with one training for each debiased CKA that ``--keep 0.8`` ended at; None: it was not asked for."""
    variant = Variant(name, {})
    done: list[DoneTraining] = []
    for seed, value in enumerate(similarities):
        keep = None if value is None else KeepRecord(target=0.8, found=[value], factors=[1.0], tolerance=0.03)
        row = ComparedTrainingRecord(variant=name, seed=seed, state="done", seconds=1.0)
        record = tuning_record(keep=keep, batch_norm=NORMS)
        done.append(DoneTraining(variant, seed, row, record, Path(name)))
    return Measured(variant, done, [], 0)


@pytest.mark.parametrize("similarities", [(None, None), (0.79, 0.82)])
def test_nothing_is_said_where_nothing_was_asked_for_or_all_was_reached(similarities):
    assert missed_targets([measured("repsim", *similarities)]) == []


def test_a_variant_that_missed_its_target_says_so_once_with_the_seeds_that_did():
    said = missed_targets([measured("full", None), measured("repsim", 0.61, 0.8, 0.523), measured("hcs", 0.95)])
    assert [each.split(":")[0] for each in said] == ["repsim", "hcs"]
    assert said[0].startswith(
        "repsim: --keep 0.8 was not reached: 2 of 2 models that were kept have a debiased CKA of 0.523 to 0.610"
    )
    assert "--batch-norm frozen" in said[0] and "a higher --learning-rate" in said[1]
