"""Whoever names a file, a class or a model does not get hold of the terminal of the person who looks at it."""

import ast
import io
import json
import os
import re
import subprocess
import sys
import textwrap
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import save_file

import crossgraft
from crossgraft.cli.main import main
from crossgraft.progress import Reporter
from crossgraft.rank.record import KnownResult
from crossgraft.rank.results_store import add_known_results, read_known_results
from crossgraft.words.visible import storable, visible
from support.hostile import PLANTED, RAW, SHOWN
from support.tiny import TINY_MODELS, make_images

ANYTHING = st.text(st.characters(exclude_categories=()), max_size=30)
FOLDER = Path(crossgraft.__file__).parent
QUICK = ("--workers", "1", "--device", "cpu")


def run(*arguments):
    """Exit code, stdout and stderr of a command in this process."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main([str(argument) for argument in arguments])
    return code, out.getvalue(), err.getvalue()


# The function


@given(ANYTHING)
def test_nothing_that_steers_is_left(text):
    assert RAW.search(visible(text, keep="\n")) is None
    assert "\n" not in visible(text)


@given(ANYTHING)
def test_what_is_shown_can_be_shown_again(text):
    assert visible(visible(text)) == visible(text)
    visible(text).encode()


@pytest.mark.parametrize("blank", ["\u034f", "\u3164", "\uffa0", "\u17b4", "\U000e0041", "\ufffe"])
def test_characters_that_nobody_sees_are_shown(blank):
    assert visible(f"be{blank}nign") == f"be{blank.encode('unicode_escape').decode()}nign"


def test_many_joiners_take_no_time():
    """Quadratic work would take minutes; the limit of all tests stops that."""
    assert visible("\u200d" * 300_000).count("200d") == 300_000


@given(st.text(st.characters(categories=["L", "M", "N", "P", "S", "Zs"]), max_size=30))
def test_letters_of_every_script_stay(text):
    fillers = "\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0"
    assert visible(text) == "".join(visible(letter) if letter in fillers else letter for letter in text)


@pytest.mark.parametrize(
    "name",
    [
        "0.5 × 3 · a – b “é” −1 10 000 5 %",
        "悪性 胸部 가슴 ثدي Ωμέγα",
        "👩🏽‍⚕️ 🏳️‍🌈 👨‍👩‍👧 ❤️",  # ZWJ inside emoji
        "می‌خواهم",  # ZWNJ of Persian
        "क्‍ष ශ්‍රී র‍্য ന്‍",  # ZWJ after a virama, or before one
        r"C:\new\x1b",
    ],
)
def test_legitimate_names_stay(name):
    assert visible(name) == name


@pytest.mark.parametrize("name", ["be\u200dnign", "be\u200cnign", "\u200dx", "x\u200d", "👩\u200dx", "悪\u200d性"])
def test_joiners_that_join_nothing_are_shown(name):
    assert re.search(r"\\u200[cd]", visible(name))


@given(ANYTHING)
def test_what_is_stored_is_utf8_and_differs_only_where_it_must(text):
    assert storable(text).encode().decode() == storable(text)
    assert storable(text) == text or any("\ud800" <= character <= "\udfff" for character in text)


# Where text is written


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("terminal", [False, True])
def test_progress_and_warnings_show_names_escaped_and_never_as_markup(monkeypatch, terminal):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "400")
    stream = Terminal() if terminal else io.StringIO()
    reporter = Reporter(stream)
    reporter.say(f"Reading {PLANTED}")
    reporter.warn(f"About {PLANTED}")
    with reporter.stage(f"Scoring {PLANTED}", total=2) as stage:
        stage.note(f"at {PLANTED}")
        stage.advance(2)
    said = stream.getvalue()
    for words in (f"Reading {SHOWN}\n", f"Warning: About {SHOWN}\n", f"Scoring {SHOWN}"):
        assert words in said
    assert (f"at {SHOWN}" in said) is terminal
    bars = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")  # of rich itself: cursor, colour, clearing a line
    assert RAW.search(bars.sub("", said)) is None
    assert "\x1b[31m" not in said.replace("\x1b[31m\x1b]", "")


def test_warnings_and_logs_of_libraries_are_escaped_while_a_command_runs():
    """In a process of its own, because pytest shows both in its own way."""
    program = f"""
import logging, warnings
from crossgraft.cli.output import harmless_messages

before = warnings.formatwarning, logging.getLogRecordFactory()
with harmless_messages():
    warnings.warn({PLANTED!r})
    logging.getLogger("a library").error("header %s", {PLANTED!r})
assert before == (warnings.formatwarning, logging.getLogRecordFactory())
"""
    path = os.pathsep.join([str(FOLDER.parent), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        encoding="utf-8",
        check=True,
        env={**os.environ, "PYTHONPATH": path, "PYTHONIOENCODING": "utf-8"},
    )
    assert RAW.search(done.stdout + done.stderr) is None
    assert done.stderr.count(SHOWN[:40]) == 2


def test_commands_write_through_one_place():
    """A new command that prints on its own would go round the escaping."""
    allowed = {("cli/output.py", "print"), ("progress/reporter.py", "print")}
    found = set()
    for path in FOLDER.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if re.search(r"\b(s?echo|print\w*)\(", text) else ():
            called = node.func if isinstance(node, ast.Call) else None
            name = getattr(called, "attr", getattr(called, "id", None))
            if name in ("echo", "secho", "print", "print_exc", "print_exception"):
                found.add((path.relative_to(FOLDER).as_posix(), name))
    assert found == allowed


# Commands


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """images/ with a hostile class, a hostile file that is a copy, a hostile model and a hostile run directory."""
    folder = tmp_path_factory.mktemp("terminal")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.syspath_prepend(str(folder))
        patch.setenv("CROSSGRAFT_CACHE", str(folder / "cache"))
        patch.delitem(sys.modules, "tiny_models", raising=False)
        (folder / "tiny_models.py").write_text(textwrap.dedent(TINY_MODELS))
        import tiny_models

        with torch.random.fork_rng():
            torch.manual_seed(0)
            save_file(tiny_models.tiny(8).state_dict(), folder / "narrow.safetensors")
        model = {"name": PLANTED, "source": "tiny_models:tiny", "weights": "narrow.safetensors", "family": PLANTED}
        (folder / "zoo.yaml").write_text(json.dumps([model]))
        make_images(folder / "images", {PLANTED: 8, "malignant": 8})
        image = (folder / "images" / "malignant" / "00.png").read_bytes()
        (folder / "images" / "malignant" / f"{PLANTED}.png").write_bytes(image)
        yield folder
    sys.modules.pop("tiny_models", None)


CODE = ("--code", "tiny_models.py")
RANK = ("rank", "images", "--models", "zoo.yaml", *CODE, "--scores", "logme", *QUICK)
TUNE = ("tune", "images", "--model", "tiny_models:tiny", "--method", "linear", "--epochs", "1", *QUICK)
OUT = f"run {PLANTED}"
COMMANDS = {
    "check": ("check", "images", "--workers", "1", "--out", f"check {OUT}"),
    "rank": (*RANK, "--out", f"rank {OUT}"),
    "plan": (*TUNE, "--plan"),
    "tune": (*TUNE, "--out", f"tune {OUT}"),
    "predict": ("predict", f"tune {OUT}", "images", *CODE, *QUICK, "--out", f"predict {OUT}"),
    "report": ("report", f"rank {OUT}"),
    "list models": ("list", "models", "--weights-dir", "weights"),
}


@pytest.fixture(scope="module")
def said(folder):
    (folder / "weights").mkdir()
    (folder / "weights" / f"{PLANTED}.safetensors").write_bytes((folder / "narrow.safetensors").read_bytes())
    tables = {name: ["--verbose"] for name in ("check", "rank", "tune", "predict")}
    return {name: run(*command, *tables.get(name, [])) for name, command in COMMANDS.items()}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_shows_names_escaped(said, name):
    code, out, err = said[name]
    assert code == 0, err
    assert RAW.search(out + err) is None
    if name not in ("plan", "list models"):
        assert SHOWN in out


def test_names_that_go_to_stderr_only_are_escaped_too(said):
    assert SHOWN[:30] in said["check"][2]


def test_files_of_weights_are_listed_escaped(said):
    assert SHOWN in said["list models"][1]


def test_a_name_is_one_cell_of_a_table(said):
    """A line break in a name would make a line of the table that nobody wrote."""
    line = next(line for line in said["check"][1].splitlines() if line.startswith(SHOWN[:30]))
    assert line.split()[-4:] == ["8", "5", "1", "2"]  # all, train, val, test


@pytest.mark.parametrize("name", ["check", "rank", "tune", "predict"])
def test_json_keeps_the_true_names_and_shows_them_escaped(said, name):
    """The run directory is there: the same command reads back what it found."""
    code, out, _ = run(*COMMANDS[name], "--json", "--quiet")
    assert code == 0
    assert RAW.search(out) is None
    assert PLANTED in names_of(json.loads(out))


def names_of(value):
    if isinstance(value, dict):
        return [*value, *(name for item in value.values() for name in names_of(item))]
    return [name for item in value for name in names_of(item)] if isinstance(value, list) else [value]


def test_json_lists_are_escaped_too(folder, said):
    code, out, _ = run("list", "models", "--weights-dir", "weights", "--json")
    assert code == 0
    assert RAW.search(out) is None
    json.loads(out)


WRONG = {
    "folder": ("check", PLANTED),
    "command": (PLANTED,),
    "flag": ("check", "images", f"--{PLANTED}"),
    "model": ("rank", "images", "--models", PLANTED, "--scores", "logme", "--quiet"),
    "score": ("rank", "images", "--models", "zoo.yaml", *CODE, "--scores", PLANTED),
    "column": ("check", "table.csv", "--label-column", PLANTED),
    "run": ("predict", PLANTED, "images"),
    "report": ("report", PLANTED),
    "config": ("rank", "images", "--config", "config.yaml"),
    "array": ("check", "keys.npz"),
    "weights": ("rank", "images", "--models", "wrong.yaml", *CODE, "--scores", "logme", "--quiet"),
    "table": ("rank", "--published", "bad.csv"),
}


@pytest.fixture(scope="module")
def wrong(folder):
    (folder / "table.csv").write_text(f'path,a,b,"{PLANTED}x"\na.png,1,2,3\n', encoding="utf-8")
    (folder / "config.yaml").write_text(json.dumps({PLANTED: 1}))
    np.savez(folder / "keys.npz", **{PLANTED.replace("/", ""): np.zeros(3)})
    save_file({PLANTED: torch.zeros(1)}, folder / "wrong.safetensors")
    model = {"name": "m", "source": "tiny_models:tiny", "weights": "wrong.safetensors"}
    (folder / "wrong.yaml").write_text(json.dumps([model]))
    (folder / "bad.csv").write_text(f'target,model,result\nt,"{PLANTED}",x\nt,"{PLANTED}",1\n', encoding="utf-8")


@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize("case", WRONG)
def test_an_error_quotes_names_escaped(wrong, case, debug):
    code, out, err = run(*WRONG[case], *(["--debug"] if debug and case != "command" else []))
    assert code in (2, 3, 4), err
    assert RAW.search(out + err) is None
    assert err.splitlines()[-1].startswith("Error: ")
    assert r"\x1b" in err or case == "table"
    if not debug:
        assert len(err.splitlines()) == 1 + err.count("Warning: ") + bool(re.match(r"Starting [a-z ]+\.\n", err))


def test_an_internal_error_is_escaped_as_well(folder, monkeypatch):
    def broken(*_, **__):
        raise RuntimeError(f"first {PLANTED}\nsecond")

    monkeypatch.setattr("crossgraft.check.verb.check_data", broken)
    code, _, err = run("check", "images", "--debug")
    assert code == 1
    assert "Traceback" in err
    assert RAW.search(err) is None


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no names that are no UTF-8")
def test_names_that_are_no_utf8_are_shown_and_kept_as_escapes(folder, tmp_path):
    make_images(tmp_path / "scans", {"benign": 6, "malignant": 6})
    (tmp_path / "scans" / "benign" / "00.png").rename(tmp_path / "scans" / "benign" / "\udcfe.png")
    (tmp_path / "scans" / "benign").rename(tmp_path / "scans" / "beni\udcffgn")
    data = (tmp_path / "scans").rename(tmp_path / "sc\udcfcns")
    out = tmp_path / "r\udcfcn"
    code, text, err = run("check", data, "--workers", "1", "--show-names", "--verbose", "--out", out)
    assert code == 0, err
    assert RAW.search(text + err) is None
    assert r"beni\udcffgn" in text
    assert r"sc\udcfcns" in text
    code, document, err = run("check", data, "--workers", "1", "--json", "--quiet", "--out", tmp_path / "json")
    assert code == 0, err
    assert r"beni\udcffgn" in json.loads(document)["dataset"]["class_names"]
    code, _, err = run("rank", data, "--models", "zoo.yaml", *CODE, "--scores", "logme", "--quiet", *QUICK)
    assert code == 0, err


def test_known_results_are_kept_with_true_names_and_listed_escaped(monkeypatch):
    """JSON may hold U+2028 and U+0085 as they are; they end no line of the file."""
    row = KnownResult(
        model=PLANTED, weights="w", source="s", target=PLANTED, protocol="p", metric="auc", value=0.5, origin="here"
    )
    assert add_known_results([row]) == 1
    assert read_known_results() == [row]
    monkeypatch.setenv("COLUMNS", "900")  # names stay whole
    code, out, err = run("list", "results")
    assert code == 0, err
    assert SHOWN in out
    assert RAW.search(out) is None
