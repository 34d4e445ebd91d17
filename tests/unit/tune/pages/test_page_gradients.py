"""What the report says about gradients by block."""

import re

import pytest

from crossgraft.report.blocks import Figure, Folded
from crossgraft.tune.page_curves import gradients_section
from crossgraft.tune.plots import MOST_NAMED_BLOCKS
from crossgraft.tune.record import BlockGradientRecord, GradientNormsRecord
from support.tuning_records import tuning_record


def norms(num_blocks, job="only"):
    blocks = [
        BlockGradientRecord(
            block=f"blocks.{place}", median=0.5 + place, largest=2.0, num_spikes=place, averages=[1.0, None, 0.1 + place]
        )
        for place in range(num_blocks)
    ]
    return GradientNormsRecord(job=job, num_steps=90, smoothing=0.95, steps=[1, 45, 90], blocks=blocks)


def section_of(source_of, *records):
    return gradients_section(source_of(tuning_record().model_copy(update={"gradient_norms": list(records)})))


def curves(svg):
    return len(re.findall(r'<g id="[^"]*-line2d_\d+">\s*<path d="[^"]*" clip-path', svg))


def test_nothing_is_said_where_nothing_was_logged(source_of):
    assert section_of(source_of) is None


@pytest.mark.parametrize("number", [1, 9, 24, 40])
def test_there_is_one_curve_per_block_and_a_name_for_each_that_has_room(source_of, number):
    figure, folded = section_of(source_of, norms(number)).blocks
    assert isinstance(figure, Figure) and isinstance(folded, Folded)
    for svg in (*figure.drawings, *figure.narrow):
        assert curves(svg) == number
        named = [place for place in range(number) if f">blocks.{place}<" in svg]
        assert len(named) == (number if number <= MOST_NAMED_BLOCKS else 20) and named[0] == 0
    assert ("regular distances" in figure.caption) == (number > MOST_NAMED_BLOCKS)
    assert "0.95 times" in figure.caption and "before clipping" in figure.caption
    (table,) = folded.blocks
    assert [cell.text for cell in table.rows[-1]][::3] == [f"blocks.{number - 1}", str(number - 1)]


def test_of_several_trainings_the_first_is_drawn_and_all_are_listed(source_of):
    figure, folded = section_of(source_of, norms(2, "fold-0"), norms(2, "fold-1")).blocks
    assert "Of 2 trainings that were picked, this is fold-0" in figure.caption
    assert [table.file_name for table in folded.blocks] == ["gradients-fold-0", "gradients-fold-1"]
