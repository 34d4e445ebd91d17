"""Every command says its first line before it imports what takes seconds."""

import subprocess
import sys

RUN_ALL = """
import shlex, sys
from crossgraft.cli.main import main
from crossgraft.options.command import COMMANDS

HEAVY = ("torch", "timm", "torchvision", "pandas", "sklearn", "scipy", "matplotlib")

class Seen(BaseException):
    pass

class Stream:
    encoding = "utf-8"
    def __init__(self, name):
        self.name = name
    def isatty(self):
        return TERMINAL
    def write(self, text):
        if text.strip():
            raise Seen(self.name, text)
    def flush(self):
        pass

out = sys.stdout
lines = {name: shlex.split(command.example) for name, command in COMMANDS}
lines |= {f"list {kind}": ["list", kind] for kind in ("models", "scores", "methods", "heads")}
lines |= {"tune --config": ["tune", "images", "--config", "tune.yaml"], "rank --published": ["rank", "--published", "thesis"]}
for name, words, TERMINAL in [(*line, where) for line in lines.items() for where in (False, True)]:
    sys.stdout, sys.stderr = Stream("stdout"), Stream("stderr")
    try:
        main(words)
        seen = ("nothing", "")
    except Seen as first:
        seen = first.args
    heavy = [package for package in HEAVY if package in sys.modules]
    print(name, seen, heavy, sep="\\t", file=out)
"""


def test_the_first_line_comes_before_what_takes_seconds(tmp_path):
    (tmp_path / "tune.yaml").write_text("model: resnet18\n", encoding="utf-8")
    words = [sys.executable, "-c", RUN_ALL]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert {"rank", "tune", "check", "demo", "list scores", "report"} <= {name for name, *_ in rows}
    for name, seen, heavy in rows:
        assert heavy == "[]", (name, seen)
        assert seen.startswith("('stderr', 'Starting ") or name in ("list", "completion"), (name, seen)
    assert ["tune", r"('stderr', 'Starting tune.\n')", "[]"] in rows
    assert list(tmp_path.iterdir()) == [tmp_path / "tune.yaml"]
