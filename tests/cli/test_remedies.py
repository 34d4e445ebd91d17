"""What an error says to do is done as it says, and leads on."""

import re
import shlex
import shutil

import pytest

from cli.test_advice import CALLED, NETWORK, TRAINING, ZOO, scene, typed

FIXTURES = (scene, typed)
TUNE = ("tune", "{images}", *NETWORK, *TRAINING, "--no-store")
RANK = ("rank", "{images}", *ZOO, *CALLED, "--scores", "logme")
AUDIT = ("audit", "{zoo}:narrow", "--data", "{data}", "--code", "{code}", *CALLED, "--plan")

LEFT_OUT = {
    "folds beside a split": (("split", "{data}", "--folds", "3"), ["--folds"]),
    "val beside val": (("split", "{data}", "--val-fraction", "0.4"), ["--val-fraction"]),
    "nothing held out": (("split", "{images}", "--holdout", "0"), ["--holdout"]),
    "one label only": (("split", "{home}/table.csv", "--none-label", "x"), ["--none-label"]),
    "a group of two": (("split", "{home}/table.csv", "--group-column", "patient", "--group-from", "(.)"), ["--group-from"]),
    "two ways to choose": (("split", "{images}", "--holdout", "0.3", "--folds", "3"), ["--folds"]),
    "an edit of nothing": ((*TUNE, "--edit-share", "0.5"), ["--edit-share"]),
    "momentum of Adam": ((*TUNE, "--momentum", "0.9"), ["--momentum"]),
    "truth of nothing": ((*RANK, "--ground-truth-column", "auc"), ["--ground-truth-column"]),
    "a full audit": ((*AUDIT, "--epochs", "3"), ["--epochs"]),
    "public and nowhere": (("export", "{run}", "--code", "{code}", "--public", "--overwrite"), ["--public"]),
    "filters of results": (("list", "scores", "--only-model", "x"), ["--only-model"]),
    "weights of scores": (("list", "scores", "--available"), ["--available"]),
}
"""Commands, and the options that the message says to leave out."""

ADDED = {
    "folds without a number": (("split", "{images}", "--fold", "1"), ["--folds", "3"]),
    "an edit": ((*TUNE, "--edit-share", "0.5"), ["--with", "tag"]),
    "code": (("predict", "{run}", "{new}", "--out", "{home}/with code"), ["--code"]),
    "no GPU": ((*TUNE, "--precision", "16"), ["--precision", "bf16"]),
    "no CUDA": ((*RANK, "--device", "cuda"), ["--device"]),
    "an export again": (("export", "{run}", "--code", "{code}", "--out", "{home}/exported"), ["--overwrite"]),
    "another split there": (("split", "{images}", "--seed", "1", "--out", "{home}/another.json"), ["--overwrite"]),
    "where paths start": (("split", "{home}/tables/moved.csv"), ["--image-root"]),
    "images outside": (("split", "{home}/tables/outside.csv"), ["--allow-outside"]),
    "several columns of patients": (("split", "{home}/two.csv"), ["--group-column", "patient"]),
    "a fine-tuning that is not there": (("compare", "{run}", "{probe}", "--code", "{code}"), ["--data", "{data}"]),
    "a full audit": ((*AUDIT, "--epochs", "3"), ["--mode", "full"]),
    "confounders on nothing": (("list", "confounders", "--out", "{home}/shown"), ["--data", "digits"]),
    "labels that are not known": (("split", "{home}/unknown.csv"), ["--uncertain", "leave-out"]),
    "a domain smaller than a batch": (
        ("distil", "{run}", "{probe}", "--data", "{data},{data}", *NETWORK, *CALLED, "--steps", "3", "--names", "A,B"),
        ["--batch-size", "8"],
    ),
    "one name for two": (
        ("distil", "{run}", "{probe}", "--data", "{data},{data}", *NETWORK, *CALLED, "--steps", "3", "--batch-size", "8"),
        ["--names", "A,B"],
    ),
    "classes of an episode": (("fewshot", "{data}", *NETWORK, "--heads", "ncc", "--episodes", "5"), ["--sampler"]),
    "no budget": (("select", "{images}", *ZOO, *TRAINING, "--no-store", "--budget", "2trainings"), ["--budget", "30min"]),
    "no start": (("interpolate", "{run}", "{data}", "--code", "{code}"), ["--model", "tiny_models:tiny"]),
    "an audit of nothing": (("audit", "{zoo}:narrow", "--code", "{code}", "--plan"), ["--data", "{data}"]),
    "no network": (("tune", "{images}", "--code", "{code}", *TRAINING, "--no-store"), ["--model", "tiny_models:tiny"]),
    "no networks": (("rank", "{images}", "--code", "{code}", *CALLED, "--scores", "logme"), ["--models", "{zoo}"]),
    "a page of two": (("report", "{run}", "{probe}"), ["--out", "{home}/both.html"]),
    "seeds of one": ((*TUNE, "--seeds", "2"), ["--compare", "linear,full"]),
}
"""Commands, and the options that the message says to give; without a value that of the message."""


@pytest.fixture(scope="module")
def tables(scene):
    """Tables whose images lie elsewhere, or whose columns do not say all."""
    home = scene["home"]
    rows = [(f"images/{name}/{n:02}.png", name, f"p{n // 2}") for name in ("benign", "malignant") for n in range(12)]
    (home / "tables").mkdir()
    for file, header, lines in (
        ("table.csv", "path,label,patient", [",".join(row) for row in rows]),
        ("two.csv", "path,label,patient,patient_id", [",".join([*row, row[2]]) for row in rows]),
        ("unknown.csv", "path,label", [f"{path},{label}" for path, label, _ in rows[1:]] + [f"{rows[0][0]},"]),
        ("tables/moved.csv", "path,label", [f"{path},{label}" for path, label, _ in rows]),
        ("tables/outside.csv", "path,label", [f"../{path},{label}" for path, label, _ in rows]),
    ):
        (home / file).write_text("\n".join([header, *lines]) + "\n")


@pytest.mark.usefixtures("tables")
@pytest.mark.parametrize("name", LEFT_OUT)
def test_what_is_to_be_left_out_is_left_out_and_leads_on(name, typed, scene):
    (scene["home"] / "split.json").unlink(missing_ok=True)
    words, options = LEFT_OUT[name]
    refused = typed(words)
    assert refused.code in (2, 3), (refused.code, refused.out)
    for option in options:
        assert option in refused.err, refused.err
        place = words.index(option)
        has_value = place + 1 < len(words) and not words[place + 1].startswith("--")
        words = (*words[:place], *words[place + 1 + has_value :])
    then = typed(words)
    assert then.code == 0, (refused.err, then.err)


@pytest.mark.usefixtures("tables")
@pytest.mark.parametrize("name", ADDED)
def test_what_is_to_be_given_is_given_and_leads_on(name, typed, scene):
    (scene["home"] / "split.json").unlink(missing_ok=True)
    words, given = ADDED[name]
    if "--overwrite" in given:
        shutil.rmtree(scene["home"] / "exported", ignore_errors=True)
        assert typed([word for word in words if word not in ("--seed", "1")]).code == 0
    refused = typed(words)
    assert refused.code in (2, 3, 4), (refused.code, refused.out)
    (option, *value) = given
    assert option in refused.err, refused.err
    if not value and option != "--overwrite" and option != "--allow-outside":
        value = [shlex.split(re.search(rf"(?s){option} (.*)", refused.err)[1].rstrip().removesuffix("."))[0].rstrip(".;,")]
    if option in words:
        place = words.index(option)
        words = (*words[:place], *words[place + 2 :])
    then = typed([*words, option, *value])
    assert then.code == 0, (refused.err, then.err)
