"""Checklists: every item of the guideline once, and nothing called answered that the run did not answer."""

import csv
import io

import pytest

from crossgraft import write_report
from crossgraft.audit.checklist_answers import AUDIT_ANSWERS
from crossgraft.errors import UnknownNameError, UsageError
from crossgraft.predict.checklist_answers import PREDICTION_ANSWERS
from crossgraft.records.base import CheckRecord
from crossgraft.report.checklists import CHECKLISTS, Checklist, ChecklistItem
from crossgraft.report.checklists.checklist import answers_of, as_markdown, fill
from crossgraft.report.checklists_of_runs import checklists_section
from crossgraft.report.kinds import KINDS
from crossgraft.report.page import blocks_as_markdown
from crossgraft.report.source import Source
from crossgraft.tune.checklist_answers import TUNING_ANSWERS
from support.audit_records import audit_entry, audit_record
from support.tuning_records import metrics, prediction_record, tuning_record

OF_PEOPLE = {  # items about the study, the patients, the annotators and the paper, by number: no run can know them
    "claim": "1 2 3 4 5 6 8 11 13 14 15 16 17 18 21 34 36 41 42 43 44",
    "tripod-ai": "1 2 3a 3b 3c 4 5b 6a 6b 6c 8a 8b 8c 9a 9c 10 12f 17 18a 18b 18c 18d 18e 18f 19 20b 24 25 27a 27b 27c",
}


def states(source, answers, name="claim"):
    return {row.item.number: row.state for row in fill(CHECKLISTS.get(name), answers_of([(source, answers)]))}


def tuned(source_of, **changes):
    return source_of(tuning_record(**changes))


@pytest.mark.parametrize(("severity", "is_new"), [("passed", True), ("unsound", False)])
def test_test_images_are_called_new_only_where_no_copies_are_known(source_of, severity, is_new):
    checks = [CheckRecord(title="Identical images across splits", severity=severity, text="Copies.")]
    answers = answers_of([(tuned(source_of, checks=checks), TUNING_ANSWERS)]).values()
    assert any("had no part in training" in answer for answer in answers) == is_new
    assert any(answer.startswith("156 images (test)") for answer in answers)


def test_every_item_of_the_guidelines_is_there_once():
    claim, tripod = (CHECKLISTS.get(name).items for name in ("claim", "tripod-ai"))
    assert [item.number for item in claim] == [str(number) for number in range(1, 45)]
    assert len({item.number for item in tripod}) == len(tripod) == 52
    assert list(dict.fromkeys(int(item.number.rstrip("abcdefg")) for item in tripod)) == list(range(1, 28))
    parts = {number: sum(item.number.rstrip("abcdefg") == str(number) for item in tripod) for number in (3, 5, 6, 8, 9, 12, 18)}
    assert parts == {3: 3, 5: 2, 6: 3, 8: 3, 9: 3, 12: 7, 18: 6}


@pytest.mark.parametrize("name", OF_PEOPLE)
def test_what_only_people_know_is_never_answered(source_of, name):
    """Not even by a record with everything that a run can have."""
    known = dict.fromkeys([*TUNING_ANSWERS, *AUDIT_ANSWERS, *PREDICTION_ANSWERS], "something")
    rows = {row.item.number: row.state for row in fill(CHECKLISTS.get(name), known)}
    assert [number for number, state in rows.items() if state == "yours to answer"] == OF_PEOPLE[name].split()


def test_a_run_without_anything_answers_nothing():
    for _, checklist in CHECKLISTS:
        assert {row.state for row in fill(checklist, {})} == {"yours to answer"}


@pytest.mark.parametrize(
    ("number", "changes"),
    [
        ("20", {"leakage_checked": False}),
        ("20", {"leakage": "Leakage: of the 5 groups of column patient, 2 have images in more than one part."}),
        ("29", {"metrics": [row.model_copy(update={"low": None, "high": None}) for row in metrics(["benign"])]}),
        ("32", {"metrics": [row for row in metrics(["benign"]) if row.split == "val"]}),
        ("37", {"metrics": [row for row in metrics(["benign"]) if row.split == "val"]}),
        ("28", {"metrics": []}),
        ("19", {"splits": [], "folds": []}),
        ("39", {"mistakes": None}),
    ],
)
def test_what_a_run_did_not_measure_is_yours(source_of, number, changes):
    source = tuned(source_of, **changes)
    expected = "answered in part" if number == "37" and any(row.low for row in changes["metrics"]) else "yours to answer"
    assert states(source, TUNING_ANSWERS)[number] == expected


def test_a_metric_on_val_is_no_performance(source_of):
    on_val = tuned(source_of, metrics=[row for row in metrics(["benign"]) if row.split == "val"])
    known = answers_of([(on_val, TUNING_ANSWERS)])
    assert not {"performance", "test on held-out images"} & {*known}


def test_a_run_on_one_source_tests_nothing_from_elsewhere(source_of):
    found = states(tuned(source_of), TUNING_ANSWERS)
    assert found["33"] == found["30"] == found["31"] == "yours to answer"
    assert found["20"] == found["22"] == found["32"] == "answered by this run"


def test_software_is_answered_by_a_run_alone():
    assert "software" not in answers_of([(Source(tuning_record()), TUNING_ANSWERS)])


def test_an_item_with_a_missing_topic_is_answered_in_part(source_of):
    whole = [row for row in metrics(["benign"]) if row.attribute is None]
    rows = fill(CHECKLISTS.get("tripod-ai"), answers_of([(tuned(source_of, metrics=whole), TUNING_ANSWERS)]))
    (performance,) = [row for row in rows if row.item.number == "23a"]
    assert performance.state == "answered in part" and performance.yours == "subgroups"


@pytest.mark.parametrize("changes", [{"num_seen": 3}, {"num_seen": None}, {"labelled": False}, {"is_of_run": True}])
def test_predictions_are_a_test_on_other_images_only_where_none_was_seen_and_labels_are_known(source_of, changes):
    assert states(source_of(prediction_record()), PREDICTION_ANSWERS)["33"] == "answered in part"
    assert states(source_of(prediction_record(**changes)), PREDICTION_ANSWERS)["33"] == "yours to answer"


def test_an_audit_that_could_assess_nothing_says_nothing_of_robustness(source_of, ranking):
    audited = {"dataset": ranking.dataset, "model": ranking.models[0]}
    assert states(source_of(audit_record(**audited)), AUDIT_ANSWERS)["30"] == "answered in part"
    for outcome in ("undetectable", "untrained", "impossible"):
        blind = audit_record(**audited, entries=[audit_entry(outcome=outcome)])
        assert states(source_of(blind), AUDIT_ANSWERS)["30"] == "yours to answer"


def test_the_page_has_the_counts_and_each_answer_once(source_of):
    section = checklists_section(source_of(tuning_record()))
    text = blocks_as_markdown(section.blocks)
    assert "CLAIM 2024: " in text and "of 44 items answered" in text and "TRIPOD+AI: " in text and "of 52 items answered" in text
    assert text.count("312 train, 78 val, 156 test") == 1
    assert checklists_section(Source(tuning_record())) is None


@pytest.mark.parametrize("kind", ["tuning", "audit", "prediction"])
def test_kinds_with_answers_show_them(kind):
    found = KINDS.get(kind)
    assert found.answers and checklists_section in found.builders


@pytest.fixture
def runs(tmp_path, examples):
    audit = audit_record(examples.ranking_record().dataset, examples.ranking_record().models[0])
    return [
        examples.write_run(tmp_path / name, record, run=examples.run_record(command=name))
        for name, record in (("tune", tuning_record()), ("audit", audit))
    ]


def test_the_file_holds_every_item_and_no_path(runs, tmp_path):
    file = write_report(runs[0], checklist="claim")
    assert file == runs[0] / "claim.md"
    text = file.read_text(encoding="utf-8")
    assert text.count("\n| ") == 44 + 2 * text.count("\n## ")
    assert "| 26 | How the final model was picked | Answered by this run: The epoch with" in text
    assert "| 44 | Funding, and the role of funders | Yours to answer. |" in text
    assert "jane" not in text and "no proof that the guideline is met" in text
    write_report(runs[0], checklist="claim")  # its own file is replaced

    rows = list(csv.DictReader(io.StringIO(write_report(runs, checklist="tripod-ai", out=tmp_path / "t.csv").read_text("utf-8"))))
    assert len(rows) == 52 and {row["state"] for row in rows} == {"yours to answer", "answered in part", "answered by this run"}


def test_several_runs_answer_together(runs, tmp_path):
    text = write_report(runs, checklist="claim", out=tmp_path / "both.md").read_text(encoding="utf-8")
    (robustness,) = [line for line in text.splitlines() if line.startswith("| 30 ")]
    assert "run 2, audit: shortcuts put into the images" in robustness and "Yours to answer: other changes" in robustness


def test_what_is_wrong_is_said_before_anything_is_written(runs, tmp_path):
    with pytest.raises(UnknownNameError, match="Did you mean claim"):
        write_report(runs[0], checklist="clam")
    with pytest.raises(UsageError, match=r"end in \.md or \.csv"):
        write_report(runs[0], checklist="claim", out=tmp_path / "claim.html")
    mine = tmp_path / "notes.md"
    mine.write_text("my own notes", encoding="utf-8")
    with pytest.raises(UsageError, match=r"notes\.md"):
        write_report(runs[0], checklist="claim", out=mine)
    assert mine.read_text(encoding="utf-8") == "my own notes"


def test_a_third_checklist_needs_no_other_file(source_of):
    """As another package declares one: items that name topics; what the run answers comes by itself."""
    third = Checklist(
        "mine", "My list", "Me.", (ChecklistItem("1", "All", "Network", ("model",)), ChecklistItem("2", "All", "Name"))
    )
    first, second = fill(third, answers_of([(tuned(source_of), TUNING_ANSWERS)]))
    assert first.state == "answered by this run" and "mobilenetv2_100 of timm" in first.answers["model"]
    assert second.state == "yours to answer"


def test_names_of_others_write_no_tags_links_or_cells():
    item = ChecklistItem("1", "Methods", "Sources of the data", ("source of the data",))
    checklist = Checklist(name="c", title="C", reference="Here.", items=(item,))
    evil = "<img src=x onerror=alert(1)> ![](http://example.org/x.png) a|b `c"
    line = as_markdown(checklist, fill(checklist, {"source of the data": evil})).splitlines()[-1]
    assert line.endswith(r"\<img src=x onerror=alert(1)> !\[\](http://example.org/x.png) a\|b \`c. |")
