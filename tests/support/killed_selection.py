"""Selections that are killed while they write their n-th file, each in a fork of one process that imports torch once."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path


def select(folder, out):
    import crossgraft

    return crossgraft.select_model(
        folder / "images",
        models=str(folder / "zoo.yaml"),
        allow_code=str(folder / "tiny_models.py"),
        budget="90%",
        epochs=4,
        workers=1,
        device="cpu",
        store=False,
        ledger=False,
        no_images=True,
        out=out,
    )


def die_at(number):
    """SIGKILL instead of the n-th file that is put into its place."""
    from crossgraft.storage import atomic

    genuine, count = atomic.replace_file, [0]

    def replace_file(*arguments):
        count[0] += 1
        if count[0] == number:
            os.kill(os.getpid(), signal.SIGKILL)
        return genuine(*arguments)

    atomic.replace_file = replace_file


def main():
    import crossgraft.select.verb  # noqa: F401 - imported once, for all forks

    folder = Path(sys.argv[1])
    sys.path.insert(0, str(folder))
    os.chdir(folder)
    for out, number in json.loads(sys.argv[2]):
        child = os.fork()
        if child == 0:
            if number:
                die_at(number)
            select(folder, Path(out))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        print(os.WTERMSIG(status) if os.WIFSIGNALED(status) else -os.WEXITSTATUS(status), flush=True)


if __name__ == "__main__":
    main()
