"""What a command advises is run as it is printed: paths whole and quoted, and it leads on."""

import re
import shlex

import numpy as np
import pytest
from PIL import Image

from support.tiny import make_images

ADVISED = re.compile(r"^  crossgraft (.*(?:\\\n.*)*)$", re.MULTILINE)
TRAINING = ("--epochs", "1", "--workers", "1", "--device", "cpu", "--image-size", "32", "--no-store", "--no-ledger")


def advised(out: str) -> list[list[str]]:
    """The commands below "Next" and behind caveats, as a shell would split them."""
    assert "…/" not in out
    return [shlex.split(found.replace("\\\n", " ")) for found in ADVISED.findall(out)]


@pytest.fixture
def data(workspace):
    folder = workspace / "my data"
    for part, count in (("train", 14), ("val", 6), ("test", 6)):
        make_images(folder / part, {"benign": count, "malignant": count})
    return folder


@pytest.fixture
def clean(workspace):
    """Images of which no check has anything to say against."""
    folder = workspace / "my clean data"
    rng = np.random.default_rng(0)
    for name in ("benign", "malignant"):
        (folder / name).mkdir(parents=True)
        for number in range(12):
            Image.fromarray(rng.integers(0, 256, (48, 48, 3), dtype=np.uint8)).save(
                folder / name / f"{name}{number}.png"
            )
    return folder


@pytest.fixture
def follow(crossgraft):
    """`follow(command, …)`: run it, then what it advises, and so on; the names of the commands that ran."""

    def run(*words, deep=3):
        outcome = crossgraft(*words)
        if (
            words[0] == "rank" and outcome.code == 4
        ):  # the test machine has no weights, and the message says how to get some
            assert "--allow-download" in outcome.err
            return [words[0]]
        assert outcome.code in (0, 3), (words, outcome.err)
        ran = [words[0]]
        if deep:
            for line in advised(outcome.out):
                if any(word.isupper() and len(word) > 3 for word in line):  # what only a person can fill in
                    continue
                ran += run(*line, deep=deep - 1)
        return ran

    return run


def test_what_check_advises_leads_to_a_ranking(clean, follow):
    assert "rank" in follow("check", str(clean), "--out", "my check")


def test_what_split_advises_leads_on(data, follow, workspace):
    assert "rank" in follow("split", str(data), "--out", str(workspace / "my split.json"))


def test_what_rank_advises_keeps_the_folder_of_weights(data, crossgraft, workspace):
    (workspace / "my weights").mkdir()
    out = crossgraft(
        "rank",
        str(data),
        "--models",
        str(workspace / "zoo.yaml"),
        "--code",
        str(workspace / "tiny_models.py"),
        "--workers",
        "1",
        "--weights-dir",
        str(workspace / "my weights"),
        "--scores",
        "logme",
        "--out",
        "ranked",
    ).out
    for line in advised(out):
        assert crossgraft(*line).code in (0, 3), line


def test_what_tune_advises_is_run(data, follow, workspace):
    code = ("--code", str(workspace / "tiny_models.py"))
    ran = follow(
        "tune", str(data), "--model", "tiny_models:tiny", *code, *TRAINING, "--out", str(workspace / "my run"), deep=1
    )
    assert ran[0] == "tune"


def test_what_edit_advises_is_run(data, follow, workspace):
    assert follow("edit", str(data), str(workspace / "my edited"), "--with", "tag", deep=1)[0] == "edit"
