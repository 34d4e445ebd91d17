"""The README is one screen, and its picture and its answers are those of the demo that was run for it."""

import importlib.util
import re
from pathlib import Path

from support.story_records import SHOWN, story_record

REPOSITORY = Path(__file__).parents[2]
README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
MOST_LINES = 120
DOORS = ("choose", "tune", "few images", "compare", "audit")


def terminal_picture():
    spec = importlib.util.spec_from_file_location("terminal_picture", REPOSITORY / "docs" / "terminal_picture.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_it_is_one_screen_with_eight_lines_to_type_and_five_doors():
    assert len(README.splitlines()) <= MOST_LINES
    block = README.partition("```console\n")[2].partition("```")[0]
    lines = block.strip().splitlines()
    assert len(lines) == 8 and all(line.startswith("$ ") for line in lines)
    assert re.findall(r"^\| .*?\*\*(.+?)\*\*.*?\| \[", README, re.MULTILINE) == list(DOORS)


def test_the_picture_is_what_the_demo_prints(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    drawn = terminal_picture().picture_of(SHOWN, "crossgraft demo")
    assert drawn == SHOWN.with_suffix(".svg").read_text(encoding="utf-8"), (
        "python docs/terminal_picture.py docs/images/demo docs/images/demo.svg writes it again"
    )
    assert not re.search(r"https?://(?!www\.w3\.org/)", drawn)
    assert "<script" not in drawn and "@font-face" not in drawn


def test_the_answers_are_those_of_the_demo():
    said = " ".join(README.split())  # a narrow space becomes a plain one
    record = story_record()
    for step in record.steps:
        if step.folder in ("tune", "audit"):
            assert " ".join(step.answer.split()) in said, step.folder
    assert record.caveat in said
    typed = {step.folder: step.command.partition(" --out ")[0] for step in record.steps}
    for folder in ("check", "tune", "audit"):
        words = {*typed[folder].split()} - {"--no-store", "--no-ledger"}
        line = next(line for line in README.splitlines() if line.startswith(f"$ crossgraft {folder} "))
        assert words <= {*line.split()}, folder
