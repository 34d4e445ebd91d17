"""What runs before a commit is what CI runs."""

import re
from pathlib import Path

import yaml

REPOSITORY = Path(__file__).parents[2]


def test_the_hook_before_a_commit_is_make_lint():
    (repository,) = yaml.safe_load((REPOSITORY / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"]
    (hook,) = repository["hooks"]
    assert repository["repo"] == "local"
    assert (hook["entry"], hook["language"], hook["pass_filenames"]) == ("make lint", "system", False)
    assert re.search(r"^lint:", (REPOSITORY / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
