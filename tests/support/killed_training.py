"""Train in forks of this process, which imports everything once; each may kill itself at a chosen point.

Reads scenarios as JSON from its arguments' file, runs them in order, prints for each the number of the signal that ended it
(0: none).
"""

import io
import json
import os
import signal
import sys
from dataclasses import asdict
from pathlib import Path

from safetensors.torch import save_file

from crossgraft.choice import choose
from crossgraft.storage import atomic
from crossgraft.tune.engine.selection_rule import Keep
from crossgraft.tune.feature_transforms import MixStyle
from crossgraft.tune.objectives import OBJECTIVES
from crossgraft.tune.regularizers import L2SP, RepSim, SelfIdentityMapping
from support.training import (
    PullToStart,
    build_feed,
    everything,
    similarity_evaluation,
    train_one,
    with_adaptformer,
    with_kept_statistics,
    with_lora,
)

SELECTIONS = {"full": everything, "lora": with_lora, "adaptformer": with_adaptformer, "kept statistics": with_kept_statistics}


def die():
    os.kill(os.getpid(), signal.SIGKILL)


class HalfWritten(io.FileIO):
    """Writes half of what it is given, then the process is killed."""

    def write(self, content):
        super().write(content[: len(content) // 2])
        die()


def install(scenario):
    """Die at the n-th checkpoint, at the stated point of its writing."""
    writes = 0
    opened, renamed = os.fdopen, atomic.replace_file

    def fdopen(handle, mode):
        nonlocal writes
        writes += 1
        return HalfWritten(handle, mode) if scenario.get("half of write") == writes else opened(handle, mode)

    def replace_file(temporary, path):
        if scenario.get("before rename") == writes:
            die()
        renamed(temporary, path)
        if scenario.get("after rename") == writes:
            die()

    os.fdopen, atomic.replace_file = fdopen, replace_file


def on_step(scenario):
    def called(report):
        if scenario.get("after step") == [report.phase, report.step]:
            die()

    return called


def train_as_told(scenario):
    install(scenario)
    folder, settings = Path(scenario["folder"]), dict(scenario.get("settings", {}))
    if "keep" in settings:
        settings |= {"keep": Keep(settings["keep"]), "evaluate": similarity_evaluation(scenario["network"])}
        regularizers = [PullToStart(), RepSim(0.1, mode="cka"), L2SP(decoupled=True)]
    else:
        regularizers = [PullToStart(), *([SelfIdentityMapping(0.5, 0.1)] if settings.pop("rho_sim", False) else [])]
    if "objective" in settings:
        settings |= {"objective": choose(OBJECTIVES, settings["objective"]), "num_domains": 2, "feed": build_feed(num_domains=2)}
    transforms = [MixStyle(p=0.5, alpha=1.0)] if settings.pop("mixstyle", False) else []
    classifier, result = train_one(
        scenario["network"],
        checkpoint_folder=folder,
        regularizers=regularizers,
        feature_transforms=transforms,
        on_step=on_step(scenario),
        epochs=3,
        checkpoint_every_steps=2,
        head_epochs=2,
        gradient_norms_file=folder / "gradient_norms.csv",
        selection=SELECTIONS[scenario.get("method", "full")],
        **settings,
    )
    save_file(classifier.state_dict(), folder / "final.safetensors")
    history = [{name: value for name, value in asdict(row).items() if name != "seconds"} for row in result.history]
    (folder / "final.json").write_text(json.dumps([history, result.best_epoch, result.best_value]))


def main():
    for scenario in json.loads(Path(sys.argv[1]).read_text()):
        child = os.fork()
        if child == 0:
            train_as_told(scenario)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        print(os.WTERMSIG(status) if os.WIFSIGNALED(status) else -os.WEXITSTATUS(status), flush=True)


if __name__ == "__main__":
    main()
