import builtins
import errno
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from crossgraft.cli import main
from crossgraft.options.command import COMMANDS

REPOSITORY = Path(__file__).parents[2]
HEAVY = ("numpy", "scipy", "torch", "timm", "sklearn", "torchvision", "matplotlib", "pandas")


def imported_by(code):
    """Which heavy packages a fresh interpreter has imported after running `code`."""
    program = f"import sys\n{code}\nprint([name for name in {HEAVY!r} if name in sys.modules])"
    output = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    return output.splitlines()[-1]


def test_help_imports_nothing_heavy():
    """Of all commands, one after the other in one interpreter: what is imported stays, so the last line tells of all."""
    helps = [["--help"], *([name, "--help"] for name in COMMANDS.names())]
    assert imported_by(f"from crossgraft.cli.main import main\nfor arguments in {helps!r}:\n    main(arguments)") == "[]"


def test_importing_the_package_imports_nothing_heavy():
    assert imported_by("import crossgraft") == "[]"


def test_known_results_are_listed_without_a_network_library():
    found = imported_by("from crossgraft.cli.main import main\nmain(['list', 'results', '--quiet'])")
    assert found == "['numpy']"


def test_the_guard_can_fail():
    assert imported_by("import numpy") == "['numpy']"


def test_threads_that_wait_leave_the_core_from_before_torch_is_there():
    program = (
        "import os, sys\nfrom crossgraft.cli import main\n"
        "main.main = lambda arguments: print(os.environ['OMP_WAIT_POLICY'], 'torch' in sys.modules) or 0\nmain.run([])"
    )
    environment = {name: value for name, value in os.environ.items() if name not in main._HOW_THREADS_WAIT}
    found = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["passive", "False"]


@pytest.mark.parametrize("said", [{"OMP_WAIT_POLICY": "active"}, {"GOMP_SPINCOUNT": "1000"}, {"KMP_BLOCKTIME": "200"}])
def test_how_the_user_lets_threads_wait_stays(said):
    environment = dict(said)
    main.let_threads_sleep(environment)
    assert environment == said


@pytest.mark.parametrize(("library", "seen"), [("triton", "said\n"), ("another", "said\nleaked\n")])
def test_triton_does_not_tell_what_is_left_when_a_command_ends(library, seen):
    """What is registered first comes last, as what extensions write when an interpreter ends."""
    program = (
        "import atexit, os, sys\n"
        "atexit.register(os.write, 2, b'leaked\\n')\n"
        "from crossgraft.cli import main\n"
        "atexit.register(main.end_quickly)\n"
        f"sys.modules[{library!r}] = sys\n"
        "print('said', file=sys.stderr)\n"
        "sys.exit(3)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (3, seen)


def test_an_end_without_a_file_below_the_stream_is_no_error():
    main.silence_from_here(io.StringIO())
    closed = io.StringIO()
    closed.close()
    main.silence_from_here(closed)


def test_help_begins_with_one_sentence_and_one_example(crossgraft):
    for name in COMMANDS.names():
        text = " ".join(crossgraft(name, "--help").out.split())
        assert "Example: crossgraft " + name in text
    everything = crossgraft()
    assert everything.code == 0
    assert all(name in everything.out for name in COMMANDS.names())


def test_the_help_names_every_exit_code(crossgraft):
    """Those of the table in docs/errors.md."""
    table = (REPOSITORY / "docs" / "errors.md").read_text(encoding="utf-8")
    documented = re.findall(r"^\| ([\d, ]+) \| (.+) \|$", table, re.MULTILINE)
    listed = crossgraft("--help").out.split("Exit codes:\n")[1]
    shown = re.findall(r"^  (\d+) {2,}(.+)$", listed, re.MULTILINE)
    assert shown == [row for row in documented if "," not in row[0]]
    signals = [code for codes, _ in documented if "," in codes for code in codes.split(", ")]
    assert [code for code in signals if code not in listed] == []


@pytest.mark.parametrize(
    ("flag", "kind"),
    [
        ("--method", "methods"),
        ("--objective", "objectives"),
        ("--batch-transform", "batch_transforms"),
        ("--feature-transform", "feature_transforms"),
        ("--augmentation", "augmentations"),
        ("--loss", "losses"),
        ("--schedule", "schedules"),
    ],
)
def test_the_help_of_a_slot_names_all_that_this_package_has_for_it(crossgraft, flag, kind):
    from crossgraft.tune.slots import slots

    text = " ".join(crossgraft("tune", "--help-all").out.split())
    (described,) = re.findall(rf" {flag} [A-Z]+ .*?(?= --[a-z])", text)
    own = [name for name, _ in slots()[kind] if slots()[kind].origin(name) == "crossgraft"]
    assert [name for name in own if not re.search(rf"\b{name}\b", described)] == []


def test_the_version_is_printed(crossgraft):
    from crossgraft import __version__

    assert crossgraft("--version").out == f"crossgraft {__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["check"], "Missing argument DATA. Try: crossgraft check --help."),
        (["rank"], "Name the images to rank for, for example: crossgraft rank digits (or --published thesis)."),
        (["rank", "x", "--seeed", "1"], "--seed"),
        (["rank", "x", "--per-class", "0"], "--per-class must be at least 1, not 0. Try: crossgraft rank --help."),
        (["list", "fruits"], "fruits"),
    ],
)
def test_wrong_usage_is_exit_code_2_on_stderr(crossgraft, arguments, message):
    outcome = crossgraft(*arguments)
    assert outcome.code == 2
    assert message in outcome.err
    assert outcome.out == ""


def test_a_bug_is_one_paragraph_and_exit_code_1(crossgraft, monkeypatch):
    from crossgraft import scores

    monkeypatch.setattr(scores, "DEFAULT_SCORES", None)
    outcome = crossgraft("list", "scores")
    assert outcome.code == 1
    assert outcome.err.splitlines()[-1].startswith("Error: Internal error: TypeError")
    assert "Traceback" not in outcome.err


@pytest.mark.parametrize("name", ["zoo.yaml", "c.yaml"])
def test_a_file_that_may_not_be_read_is_no_bug(workspace, crossgraft, monkeypatch, name):
    (workspace / "c.yaml").write_text("seed: 1")
    opened = io.open

    def refuse(file, *arguments, **keywords):
        if Path(str(file)).name == name:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(file))
        return opened(file, *arguments, **keywords)

    monkeypatch.setattr(io, "open", refuse)
    monkeypatch.setattr(builtins, "open", refuse)
    outcome = crossgraft("rank", "images", "--models", "zoo.yaml", "--code", "tiny_models.py", "--config", "c.yaml")
    assert outcome.code == 2
    assert f"{name}. Give this user access to it, or choose another path." in outcome.err.splitlines()[-1]


def test_list_shows_scores_sources_and_models(crossgraft, tmp_path):
    scores = crossgraft("list", "scores")
    assert scores.code == 0
    assert scores.out.splitlines()[0].split() == ["score", "title", "needs", "default", "from"]
    assert "regularized_h_score: Ibrahim" in scores.out
    assert max(map(len, scores.out.splitlines())) <= 100
    regularizers = crossgraft("list", "regularizers")
    assert "l2_sp: alpha=0.01" in regularizers.out
    assert max(map(len, regularizers.out.splitlines())) <= 100
    names = [row["source"] for row in json.loads(crossgraft("list", "sources", "--json").out)["sources"]]
    assert names == ["digits", "csv_table", "npz_file", "hf_dataset", "image_folder"]
    models = json.loads(crossgraft("list", "models", "--json", "--weights-dir", tmp_path).out)
    assert models["schema_version"] == 1
    assert "resnet18" in [row["model"] for row in models["models"]]
    assert "Error" not in crossgraft("list", "models", "--available", "--weights-dir", tmp_path).err


def test_report_is_written_again_and_several_runs_share_a_page(workspace, crossgraft):
    flags = ("--models", "zoo.yaml", "--code", "tiny_models.py", "--scores", "logme", "--quiet")
    for out, limit in (("a", "12"), ("b", "14")):
        assert crossgraft("rank", "images", *flags, "--limit", limit, "--out", out).code == 0
    before = (workspace / "a" / "report.html").read_bytes()
    (workspace / "a" / "report.html").unlink()
    assert crossgraft("report", "a").out == "a/report.html\n"
    assert (workspace / "a" / "report.html").read_bytes() == before
    assert crossgraft("report", "a", "b", "--out", "both.html").code == 0
    assert (workspace / "both.html").stat().st_size > len(before)
    assert crossgraft("report", "a", "b").code == 2
    assert crossgraft("report", "nothing").code == 2
