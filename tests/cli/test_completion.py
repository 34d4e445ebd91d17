"""Shells complete what the options classes say."""

import shutil
import subprocess
from typing import get_args

import pytest

from crossgraft.options.command import COMMANDS, Shell

CALL = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}
function=$(complete -p crossgraft | sed 's/.*-F \\([^ ]*\\).*/\\1/')
$function crossgraft "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture
def script(tmp_path, crossgraft):
    def write(shell):
        printed = crossgraft("completion", shell)
        assert printed.code == 0, printed.err
        (tmp_path / shell).write_text(printed.out, encoding="utf-8")
        return tmp_path / shell

    return write


@pytest.mark.parametrize("shell", get_args(Shell))
def test_a_script_knows_every_flag(script, shell):
    text = script(shell).read_text(encoding="utf-8")
    for _, command in COMMANDS:
        for option in command.flags.values():
            assert option.flag.removeprefix("--") in text


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is needed")
def test_bash_completes_commands_flags_and_values(script):
    path = script("bash")

    def completed(*words):
        done = subprocess.run(["bash", "-c", CALL, "bash", str(path), "crossgraft", *words], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout.split()

    assert completed("li") == ["list"]
    assert completed("tune", "--lear") == ["--learning-rate"]
    assert completed("tune", "--no-f") == ["--no-flip"]
    assert completed("list", "me") == ["methods"]
    assert completed("tune", "x", "--optimizer", "") == ["adamw", "adam", "sgd"]
    assert "--help-all" in completed("rank", "--help")


def test_another_shell_is_refused(crossgraft):
    outcome = crossgraft("completion", "tcsh")
    assert outcome.code == 2
    assert "Known: bash, fish, zsh." in outcome.err
