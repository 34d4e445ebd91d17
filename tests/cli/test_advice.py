"""What a command advises is run as it is printed: paths whole and quoted, and it leads on."""

import re
import shlex
import shutil
import sys

import numpy as np
import pytest
from PIL import Image

from crossgraft.cli.main import main
from crossgraft.options.command import COMMANDS
from support.here import Here
from support.short_demo import shorten
from support.tiny import make_workspace

ADVISED = re.compile(r"^  crossgraft (.*)$", re.MULTILINE)
CALLED = ("--workers", "1", "--device", "cpu")
TRAINING = (*CALLED, "--epochs", "1", "--image-size", "32", "--no-ledger")
TO_FILL_IN = {"DATA": "{images}", "NEW_IMAGES": "{new}", "OTHER_IMAGES": "{new}", "LABELLED_IMAGES": "{data}/test"}
"""What only a person knows, and where it lies here."""
NETWORK = ("--model", "tiny_models:tiny", "--code", "{code}")
ZOO = ("--models", "{zoo}", "--code", "{code}")


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    """Folders with blanks in their names, of which two have the same last part, and two runs."""
    home = tmp_path_factory.mktemp("some body") / "my work"
    home.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        patch.syspath_prepend(str(home))
        patch.delitem(sys.modules, "tiny_models", raising=False)
        make_workspace(home)
        rng = np.random.default_rng(0)
        for part, count in (("train", 14), ("val", 6), ("test", 6)):
            for level, name in enumerate(("benign", "malignant")):
                noisy_images(home / "my data" / part / name, count, rng, brighter=60 * level)
        noisy_images(home / "other" / "my data", 4, rng)
        study = f"command: check\ngrid: {{data: {{images: '{home / 'images'}'}}}}\n"
        (home / "study.yaml").write_text(study, encoding="utf-8")
        places = {
            "data": home / "my data",
            "images": home / "images",
            "new": home / "other" / "my data",
            "zoo": home / "zoo.yaml",
            "code": home / "tiny_models.py",
            "home": home,
        }
        for run, method in (("my run", "full"), ("my probe", "linear")):
            words = ["tune", "{data}", *NETWORK, *TRAINING, "--no-store", "--method", method, "--out", f"{{home}}/{run}"]
            assert main([word.format(**places) for word in words]) == 0
        yield {**places, "run": home / "my run", "probe": home / "my probe"}
        sys.modules.pop("tiny_models", None)


def noisy_images(folder, count, rng, brighter=0):
    folder.mkdir(parents=True)
    for number in range(count):
        pixels = rng.integers(0, 180, (48, 48, 3)) + brighter
        Image.fromarray(pixels.astype(np.uint8)).save(folder / f"{folder.name}{number}.png")


@pytest.fixture
def typed(scene, crossgraft):
    """`typed(words)`: run a command, whose places are those of the scene, as a person does: without ``--verbose``."""
    return lambda words: crossgraft(*(str(word).format(**scene) for word in words), in_brief=True)


COMMANDS_WITH_ADVICE = {
    "check": ["check", "{data}", "--out", "{home}/a check"],
    "check of one folder": ["check", "{images}"],
    "split": ["split", "{images}", "--out", "{home}/a split.json"],
    "rank": ["rank", "{images}", *ZOO, *CALLED, "--scores", "logme", "--out", "{home}/a ranking"],
    "rank --published": ["rank", "--published", "itm"],
    "select": ["select", "{images}", *ZOO, *TRAINING, "--no-store", "--budget", "100%"],
    "select --replay": ["select", "--replay", "thesis-architectures"],
    "tune": ["tune", "{data}", *NETWORK, *TRAINING, "--no-store"],
    "tune --folds": ["tune", "{images}", *NETWORK, *TRAINING, "--no-store", "--folds", "3"],
    "tune --compare": ["tune", "{data}", *NETWORK, *TRAINING, "--no-store", "--compare", "linear,full"],
    "predict": ["predict", "{run}", "{new}", "--code", "{code}", "--out", "{home}/a prediction"],
    "predict of training": ["predict", "{run}", "{data}", "--code", "{code}"],
    "predict of test": ["predict", "{run}", "{data}", "--code", "{code}", "--use-split", "test"],
    "fewshot": [*("fewshot", "{data}", *NETWORK, "--heads", "ncc", "--episodes", "5"), *("--sampler", "meta_dataset:min_ways=2")],
    "fewshot --support": ["fewshot", "--support", "{data}", "--query", "{new}", "--head", "ncc", *NETWORK],
    "distil": [
        *("distil", "{run}", "{probe}", "--data", "{data},{data}", *NETWORK, *CALLED, "--steps", "3", "--batch-size", "8"),
        *("--names", "one,two", "--out", "{home}/a student"),
    ],
    "interpolate": ["interpolate", "{run}", "{data}", *NETWORK],
    "interpolate --linear": ["interpolate", "{run}", "{data}", "--linear", "{probe}", "--code", "{code}"],
    "compare": ["compare", "{run}", "{probe}", "--data", "{data}", "--code", "{code}"],
    "compare a start": ["compare", "tiny_models:tiny", "{run}", "--data", "{data}", "--code", "{code}"],
    "compare two starts": ["compare", "{zoo}:narrow", "{zoo}:wide", "--data", "{data}", "--code", "{code}"],
    "audit": ["audit", "{run}", "--data", "{data}", "--confounder", "tag", "--code", "{code}"],
    "audit of models": [
        *("audit", "{zoo}:narrow", "--data", "{data}", "--code", "{code}", *CALLED, "--confounder", "tag"),
        *("--folds", "1", "--shares", "0,0.5,1"),
    ],
    "edit": ["edit", "{data}", "{home}/an edited set", "--with", "tag"],
    "export": ["export", "{run}", "--code", "{code}"],
    "report": ["report", "{run}"],
    "list models": ["list", "models"],
    "list confounders": ["list", "confounders", "--data", "{data}", "--out", "{home}/sheets"],
    "list scores": ["list", "scores"],
    "completion": ["completion", "bash"],
    "bench": ["bench", "{home}/study.yaml", "--workers", "1", "--out", "{home}/a study"],
    "demo": ["demo", "--toy", "--fast", "--out", "{home}/a demo"],
}
WITHOUT_ADVICE = ("bench", "export", "report", "list scores", "completion")
"""What ends with an answer after which nothing is to be done here."""
SAYS_WHAT_IS_MISSING = 4
"""Models that are not on this machine; the message says what may be downloaded, and how."""


def test_every_command_has_its_turn():
    ours = {name for name, _ in COMMANDS if COMMANDS.origin(name) == "crossgraft"}
    assert ours <= {words[0] for words in COMMANDS_WITH_ADVICE.values()}


def has_ended_well(outcome):
    """Whether there is a result; 3 is also that of a check that found something."""
    return outcome.code == 0 or (outcome.code == 3 and "Error:" not in outcome.err)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name == "demo" else ()) for name in COMMANDS_WITH_ADVICE]
)
def test_what_a_command_advises_is_run_as_it_is_printed_and_leads_on(name, typed, scene, monkeypatch):
    shorten(monkeypatch, Here())
    shutil.rmtree(scene["run"] / "export", ignore_errors=True)  # of an advice before
    first = typed(COMMANDS_WITH_ADVICE[name])
    assert has_ended_well(first), first.err
    assert "…/" not in first.out
    advised = ADVISED.findall(first.out)
    assert bool(advised) != (name in WITHOUT_ADVICE), first.out
    for line in advised:
        words = [TO_FILL_IN.get(word, word) for word in shlex.split(line)]
        then = typed([word for word in words if word != "--allow-download"])  # no test downloads
        if "--allow-download" in words:
            assert "57 MB from huggingface.co" in " ".join(first.out.split()), first.out
            assert then.code == SAYS_WHAT_IS_MISSING, then.err
            assert "--allow-download" in then.err and "huggingface.co" in then.err
        else:
            assert has_ended_well(then), (line, then.err)
        assert "…/" not in then.out


@pytest.mark.parametrize("name", ["check of one folder", "split", "edit"])
def test_models_on_this_machine_are_ranked_next(name, typed, monkeypatch):
    monkeypatch.setattr("crossgraft.models.on_this_machine._are_here", lambda: True)
    said = typed([*COMMANDS_WITH_ADVICE[name], "--overwrite"])
    (line,) = ADVISED.findall(said.out)
    assert shlex.split(line)[0] == "rank"
    assert typed([*shlex.split(line), *ZOO, *CALLED, "--scores", "logme", "--out", f"{{home}}/ranked {name}"]).code == 0
