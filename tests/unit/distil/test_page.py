"""The page of a distillation: student beside teachers, what limits that, and what to type next."""

import pytest

from crossgraft.records.base import LooksRecord
from crossgraft.report.blocks import Figure, Folded, Table, Verdict
from crossgraft.report.kinds import KINDS
from crossgraft.report.source import Source
from crossgraft.report.terminal import record_as_text
from support.distillation_records import distillation_record, domain

TYPED = "crossgraft distil runs/a runs/b --data a,b --model resnet18 --code net.py --out runs/both"


@pytest.fixture
def model(examples):
    return examples.ranking_record().models[0]


def parts_of(record, command_line=TYPED):
    builders = KINDS.get("distillation").builders
    return {section.name: section.blocks for build in builders if (section := build(Source(record, command_line=command_line)))}


def verdict_of(record, command_line=TYPED):
    blocks = parts_of(record, command_line)["verdict"]
    (verdict,) = [block for block in blocks if isinstance(block, Verdict)]
    return verdict, [item for block in blocks if isinstance(block, Folded) for item in block.blocks[0].items]


def test_the_answer_names_every_domain_and_the_first_caveat_the_teacher_that_is_better(model):
    record = distillation_record(model)
    verdict, others = verdict_of(record)
    assert verdict.answer == (
        f"{model.name} learned from 2 networks. Its balanced accuracy on held-out images is 0.800 (its teacher: 0.810) on skin "
        "and 0.700 (its teacher: 0.900) on fundus."
    )
    assert verdict.caveat.startswith("On fundus the teacher lies above the interval of the student")
    assert others[-1].startswith("These are the images of the teachers.")
    assert verdict.following == (
        "crossgraft fewshot --support LABELLED_IMAGES --query NEW_IMAGES --model runs/both/universal.safetensors --code net.py"
    )
    assert "--model RUN/universal.safetensors" in verdict_of(record, None)[0].following
    text = record_as_text(record, command_line=TYPED)
    assert text.index("Student and teachers") < text.index("learned from 2 networks") < text.index("Next, to learn")


def test_a_level_student_has_a_milder_caveat(model):
    level = [domain("skin", 0.81, 0.80), domain("fundus", 0.90, 0.91)]
    verdict, others = verdict_of(distillation_record(model, domains=level))
    assert verdict.caveat.startswith("These are the images of the teachers.") and others == []
    looked = [level[0], domain("x", 0.9, 0.9, looks=LooksRecord(number=3, by_command={"tune": 3}, optimism=None))]
    assert "3rd look at these test images" in verdict_of(distillation_record(model, domains=looked))[0].caveat


def test_the_table_and_the_curves_hold_the_numbers_of_the_record(model):
    parts = parts_of(distillation_record(model))
    (table,) = [block for block in parts["domains"] if isinstance(block, Table)]
    assert len(table.rows) == 2 and "[0.680, 0.720]" in str(table.rows[1])
    (figure,) = [block for block in parts["curves"] if isinstance(block, Figure)]
    assert len(figure.drawings) == 3 and "by step: skin, fundus" in str(figure.drawings[0])


def test_more_domains_than_colours_are_told_of(model):
    many = [domain(f"d{number}", 0.8, 0.8) for number in range(8)]
    history = [
        row.model_copy(update={term: [0.5] * 8 for term in ("cross_entropy", "dissimilarity", "divergence")})
        for row in distillation_record(model).history
    ]
    parts = parts_of(distillation_record(model, domains=many, history=history))
    (figure,) = [block for block in parts["curves"] if isinstance(block, Figure)]
    assert "2 further domains not drawn." in figure.caption
