"""The frozen commands, and how one is run: by itself, in a fresh folder, without network, on one thread."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from freeze.collecting import collect
from freeze.scene import make_scene

REPOSITORY = Path(__file__).parents[2]
FINISHED_RUN = Path(__file__).parent / "finished_run"
"""What the frozen code leaves of a training when everything but the training is lost."""
RESUMED = "tune-resumed"
_KEPT_OF_A_RUN = ("run.json", ".files", "jobs")
_MOST_SECONDS = 600
_CODE = ("--code", "tiny_models.py")
_ONE = ("--workers", "1", "--device", "cpu", "--quiet")
_TUNE = ("tune", "images", "--model")
_FULL = (*_TUNE, "narrow.yaml", *_CODE, "--epochs", "4", *_ONE)


@dataclass(frozen=True)
class Command:
    """One command line.

    Attributes:
        name: Also of its run directory.
        words: What stands behind ``crossgraft``, without ``--out``.
        needs: Commands whose run directories it reads.
        program: What Python runs.
        out: How the run directory is named on the command line.
        is_quick: Is it part of ``--smoke``?
        beginning: A folder that is copied to the run directory before.
        is_sensitive: Are its numbers others on another machine? torch draws whole networks in another way for each instruction
            set; and a loss of thousands lets rounding grow.
    """

    name: str
    words: tuple[str, ...]
    needs: tuple[str, ...] = ()
    program: tuple[str, ...] = ("-m", "crossgraft")
    out: tuple[str, ...] = ("--out",)
    is_quick: bool = False
    beginning: Path | None = None
    is_sensitive: bool = False


_BATCH = ("--batch-size", "16")
_RANK = ("rank", "digits", "--limit", "60", "--models", "zoo.yaml", *_CODE, "--image-size", "32", *_BATCH)
_DIGITS = ("tune", "digits", "--limit", "120", "--model", "narrow.yaml", *_CODE, "--epochs", "3")
_RESIDUAL = (*_TUNE, "residual.yaml", "--image-size", "32", "--epochs", "2")

_NARROW = ("digits", "--limit", "100", "--model", "narrow.yaml", *_CODE)
_DISTIL = ("distil", "tune-full", "tune-linear", "--data", "images,images", "--names", "a,b", "--model", "narrow.yaml")
_TAGGED = ("--data", "images", "--confounder", "tag", *_CODE)

COMMANDS = (
    Command("rank", (*_RANK, "--ground-truth", "results.csv", *_ONE), is_quick=True, is_sensitive=True),
    Command(
        "rank-all",
        ("rank", "images", "--models", "narrow.yaml,wide.yaml", *_CODE, "--scores", "all", *_BATCH, *_ONE),
        is_sensitive=True,
    ),
    Command("published", ("rank", "--published", "thesis")),
    Command("check", ("check", "digits", "--holdout", "0.2", "--workers", "1", "--quiet")),
    Command("tune-full", _FULL, is_quick=True),
    Command(RESUMED, _FULL, beginning=FINISHED_RUN),
    Command("tune-linear", (*_TUNE, "narrow.yaml", *_CODE, "--method", "linear", "--epochs", "4", *_ONE)),
    Command("tune-lora", (*_TUNE, "attending.yaml", "--method", "lora", "--epochs", "2", *_ONE)),
    Command("tune-repsim", (*_RESIDUAL, "--regularizer", "repsim", "--batch-transform", "mixup", *_ONE), is_sensitive=True),
    Command("tune-folds-grid", (*_DIGITS, "--folds", "2", "--grid", "learning_rate=1e-2,1e-3", *_ONE)),
    Command("tune-compare", (*_TUNE, "narrow.yaml", *_CODE, "--epochs", "2", "--compare", "full,linear,l2_sp:1", *_ONE)),
    Command("interpolation", (), needs=("tune-full", "tune-linear"), program=("interpolate.py",), out=()),
    Command("predict", ("predict", "tune-full", "new", *_CODE, *_ONE), needs=("tune-full",)),
    Command("export", ("export", "tune-repsim", "--quiet"), needs=("tune-repsim",), is_sensitive=True),
    Command("export-onnx", ("export", "tune-full", *_CODE, "--format", "onnx", "--quiet"), needs=("tune-full",)),
    Command("export-peft", ("export", "tune-lora", "--format", "peft", "--quiet"), needs=("tune-lora",)),
    Command("edit", ("edit", "images", "--with", "tag:0.5", "--quiet")),
    Command(
        "compare", ("compare", "tune-full", "tune-linear", "--data", "images", *_CODE, *_ONE), needs=("tune-full", "tune-linear")
    ),
    Command("audit", ("audit", "narrow.yaml", *_TAGGED, *_ONE)),
    Command("audit-tuned", ("audit", "tune-full", *_TAGGED, *_ONE), needs=("tune-full",)),
    Command("fewshot", ("fewshot", *_NARROW, "--heads", "ncc,copa,logistic", "--episodes", "5", *_ONE)),
    Command("fewshot-support", ("fewshot", "--support", "images", "--query", "new", *_NARROW[3:], "--head", "ncc", *_ONE)),
    Command("distil", (*_DISTIL, "--steps", "2", *_CODE, *_BATCH, *_ONE), needs=("tune-full", "tune-linear")),
    Command(
        "select", ("select", "images", "--models", "narrow.yaml,wide.yaml", *_CODE, "--budget", "20min", "--epochs", "1", *_ONE)
    ),
    Command("demo", ("demo", "--toy", "--fast", "--quiet"), is_sensitive=True),
)


def command_named(name: str) -> Command:
    """The frozen command of this name."""
    return next(each for each in COMMANDS if each.name == name)


@dataclass
class Runner:
    """Runs commands, each once, and keeps what they leave until the folder is removed.

    Attributes:
        folder: Empty; everything happens in it.
        cpu_seconds: Of each command that was run.
    """

    folder: Path
    cpu_seconds: dict[str, float] = field(default_factory=dict)
    _done: dict[str, dict] = field(default_factory=dict)

    def values(self, name: str) -> dict:
        """Everything about the run of one command that may not change.

        Args:
            name: Of the command.

        Returns:
            ``exit``, and ``files``: name → content as ``collect`` reads it; for a resumed run also whether it trained again.
        """
        if name not in self._done:
            self._done[name] = self._run(command_named(name))
        return self._done[name]

    def run_directory(self, name: str) -> Path:
        """Where the command writes."""
        return self.folder / name / "place" / name

    def _run(self, command: Command) -> dict:
        place, home = self.folder / command.name / "place", self.folder / command.name / "home"
        shutil.copytree(self._scene(), place)
        home.mkdir()
        for needed in command.needs:
            self.values(needed)
            shutil.copytree(self.run_directory(needed), place / needed)
        run = self.run_directory(command.name)
        if command.beginning is not None:
            shutil.copytree(command.beginning, run)
        words = [sys.executable, *command.program, *command.words, *command.out, command.name]
        before = os.times()
        done = subprocess.run(
            words, cwd=place, env=_environment(home), capture_output=True, text=True, timeout=_MOST_SECONDS, check=False
        )
        after = os.times()
        self.cpu_seconds[command.name] = sum(after[2:4]) - sum(before[2:4])
        found: dict = {"exit": done.returncode}
        if done.returncode:
            print(f"{command.name} ended with code {done.returncode}:\n{done.stderr[-2000:]}", file=sys.stderr)
        found["files"] = collect(run) | {f"cache/{file}": value for file, value in collect(home / "crossgraft").items()}
        if command.beginning is not None:
            found["untouched"] = untouched(command.beginning / "jobs", run / "jobs")
        return found

    def _scene(self) -> Path:
        scene = self.folder / "scene"
        if not scene.is_dir():
            scene.mkdir()
            make_scene(scene)
        return scene


def keep_finished_run(runner: Runner) -> None:
    """Replace the kept run directory by what the present code leaves."""
    runner.values("tune-full")
    run = runner.run_directory("tune-full")
    shutil.rmtree(FINISHED_RUN, ignore_errors=True)
    FINISHED_RUN.mkdir()
    for name in _KEPT_OF_A_RUN:
        copy = shutil.copytree if (run / name).is_dir() else shutil.copyfile
        copy(run / name, FINISHED_RUN / name)


def untouched(before: Path, after: Path) -> dict[str, bool]:
    """Whether each file of a finished training is still the same to the byte: one that trains again writes other seconds."""
    names = sorted(str(path.relative_to(before)) for path in before.rglob("*") if path.is_file())
    return {name: (after / name).is_file() and (after / name).read_bytes() == (before / name).read_bytes() for name in names}


def _environment(home: Path) -> dict[str, str]:
    """Of a person who has nothing: no cache, no settings, no network, one thread."""
    not_theirs = ("CROSSGRAFT_", "HF_", "TORCH_HOME", "PYTHONDONTWRITEBYTECODE")
    theirs = {name: value for name, value in os.environ.items() if not name.startswith(not_theirs)}
    places = {"HOME": home, "CROSSGRAFT_CACHE": home / "crossgraft", "HF_HOME": home / "hf", "TORCH_HOME": home / "torch"}
    places |= {f"XDG_{kind}_HOME": home / kind.lower() for kind in ("CACHE", "CONFIG", "DATA", "STATE")}
    places |= {"NETWORK_LOG": home / "network.log"}
    places |= {"MPLCONFIGDIR": home.parents[1] / "matplotlib"}  # its list of fonts takes a second to make
    threads = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    imports = os.pathsep.join([str(REPOSITORY / "src"), str(REPOSITORY / "tests" / "support" / "no_network")])
    return {
        **theirs,
        **{name: str(place) for name, place in places.items()},
        **threads,
        "PYTHONPATH": imports,
        "PYTHONHASHSEED": "0",
        "HF_HUB_OFFLINE": "1",
        "CUDA_VISIBLE_DEVICES": "",
    }
