"""What data say of people, and where they lie, leaves the data in nothing that twelve commands write, return, print or log."""

import io
import logging
import pickle
import shutil
import sys
import tempfile
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from crossgraft import interpolate
from crossgraft.cli.call import Call
from crossgraft.cli.main import main
from support.few_figures import leave_out_drawings
from support.planted import PERSONS, PLACES, Search, write_planted_study
from support.tiny import make_workspace

pytestmark = pytest.mark.slow

SHARED = ("--workers", "1", "--device", "cpu")
TRAIN = ("--model", "tiny_models:tiny", "--epochs", "1", "--group-column", "patient", *SHARED)
RANK = ("--models", "zoo.yaml", "--code", "tiny_models.py", "--scores", "logme", "--group-column", "patient", *SHARED)


@dataclass
class Done:
    """All that the commands left.

    Attributes:
        root: Folder of everything that was written, without the data.
        codes: Exit code of each command.
        out: What each wrote to stdout.
        err: The same of stderr, tracebacks among it.
        shown: Texts of results: `repr`, notebook, JSON, frames, pickles.
        log: What any package logged, at every level.
    """

    root: Path
    codes: dict[str, int] = field(default_factory=dict)
    out: dict[str, str] = field(default_factory=dict)
    err: dict[str, str] = field(default_factory=dict)
    shown: dict[str, str] = field(default_factory=dict)
    log: io.StringIO = field(default_factory=io.StringIO)


def faces(result):
    """Everything that somebody may look at of a result, or keep of it."""
    texts = [repr(result), str(result), result.to_json(), result.to_frame().to_csv(), result.summary()]
    texts += [result._repr_html_(), repr(vars(result))]
    with suppress(TypeError, AttributeError, pickle.PicklingError):  # some hold open models
        texts.append(pickle.dumps(result).decode("latin-1"))
    return "\n".join(texts)


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """Twelve commands in one process, in a folder that is not above the data."""
    root, data = tmp_path_factory.mktemp("work"), tmp_path_factory.mktemp("data")
    made, handler = Done(root), logging.StreamHandler()
    table = write_planted_study(data)
    make_workspace(root)
    shutil.rmtree(root / "images")
    for name in ("cache", "temp", "home"):
        (root / name).mkdir()

    def run(name, *arguments):
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            made.codes[name] = main([str(argument) for argument in arguments])
        made.out[name], made.err[name] = out.getvalue(), err.getvalue()

    def show(call, result, lines, original=Call._show):
        made.shown[f"{type(result).__name__} {len(made.shown)}"] = faces(result)
        original(call, result, lines)

    handler.setStream(made.log)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        patch.syspath_prepend(str(root))
        patch.delitem(sys.modules, "tiny_models", raising=False)
        patch.setenv("CROSSGRAFT_CACHE", str(root / "cache"))
        patch.setenv("HOME", str(root / "home"))
        patch.setattr(tempfile, "tempdir", str(root / "temp"))
        patch.setattr(Call, "_show", show)
        leave_out_drawings(patch)
        logging.getLogger().addHandler(handler)
        level = logging.getLogger().level
        logging.getLogger().setLevel(logging.DEBUG)
        try:
            run_all(run, table)
            curve = interpolate(
                "tune", table, linear="linear", alphas=(0, 0.5, 1), allow_code="tiny_models.py", workers=1, device="cpu"
            )
            made.shown["interpolated"] = "\n".join([repr(curve), str(curve), repr(vars(curve))])
        finally:
            logging.getLogger().setLevel(level)
            logging.getLogger().removeHandler(handler)
            sys.modules.pop("tiny_models", None)
    return made


def run_all(run, table):
    run("check", "check", table, "--group-column", "patient", "--out", "check", "--debug")
    run("rank", "rank", table, *RANK, "--out", "rank")
    run("tune", "tune", table, *TRAIN, "--out", "tune")
    run("linear", "tune", table, *TRAIN, "--method", "linear", "--split", "tune/split.json", "--out", "linear", "--json")
    run("folds", "tune", table, *TRAIN, "--folds", "2", "--out", "folds")
    run("compare", "tune", table, *TRAIN, "--compare", "linear,l2_sp:0.1", "--out", "compare")
    run(
        "predict",
        "predict",
        "tune",
        table,
        "--group-column",
        "patient",
        *SHARED,
        "--code",
        "tiny_models.py",
        "--out",
        "predict",
        "--json",
    )
    run("export", "export", "tune", "--code", "tiny_models.py", "--format", "torch", "--out", "export")
    run("list", "list", "results")
    run("report", "report", "tune", "folds", "--out", "both.html")
    run("missing column", "tune", table, *TRAIN, "--subgroups", "nobody", "--out", "never", "--debug")
    torn = table.with_name("torn.csv")
    first = next(table.parent.glob("benign/*.png"))
    (table.parent / f"{PLACES[1]}-torn.png").write_bytes(first.read_bytes()[:200])
    torn.write_text(f"{table.read_text()}\n{PLACES[1]}-torn.png,benign,{PERSONS[0]}-x,{PERSONS[-1]},{PERSONS[1]}-x")
    run("unreadable", "rank", torn, *RANK, "--holdout", "0", "--out", "unreadable", "--debug")


def test_the_commands_did_what_they_are_searched_for(done):
    failed = {"missing column": 2, "unreadable": 3}
    assert done.codes == {name: failed.get(name, 0) for name in done.codes}, done.err
    assert len(done.codes) + 1 >= 12
    assert all("Traceback" in done.err[name] for name in failed)
    written = {path.relative_to(done.root).as_posix() for path in done.root.rglob("*") if path.is_file()}
    for name in ("check/report.html", "rank/scores.csv", "tune/model/model.json", "predict/predictions.csv", "both.html"):
        assert name in written, sorted(written)
    assert any(name.startswith("cache/") and name.endswith("known_results.jsonl") for name in written)
    assert {"JSON", "safetensors", "PNG", "base64", "data URI", "zip"} <= Search(PERSONS).folder(done.root).kinds
    assert len(done.shown) >= 8 and done.log.getvalue()


JOINED = {"PLANTED-FILE in predict/predictions.csv", "PLANTED-FILE in Predictions", "PLANTED-FILE in JSON of predict"}
"""Predictions are made to be joined with the user's own table, so they name files; nothing else does."""


def test_no_file_says_anything_of_a_person_or_a_place(done):
    assert set(Search((*PERSONS, *PLACES)).folder(done.root).leaks) <= JOINED


def test_no_result_says_anything_of_a_person_or_a_place(done):
    search = Search((*PERSONS, *PLACES))
    for name, text in done.shown.items():
        search.text(name.partition(" ")[0], text)
    for name in ("linear", "predict"):
        search.text(f"JSON of {name}", done.out[name])
    assert set(search.leaks) <= JOINED


def test_nothing_on_the_terminal_nor_in_a_log_or_traceback_says_anything_of_a_person(done):
    search = Search(PERSONS)
    for name in done.codes:
        search.text(f"stdout of {name}", done.out[name]).text(f"stderr of {name}", done.err[name])
    search.text("the log", done.log.getvalue())
    assert search.leaks == []


def test_the_search_finds_what_is_hidden(tmp_path):
    """In the data themselves everything is found, in the forms in which a file could hold it."""
    write_planted_study(tmp_path)
    search = Search((*PERSONS, *PLACES)).folder(tmp_path)
    assert {leak.partition(" in ")[0] for leak in search.leaks} == {*PERSONS, *PLACES}
    assert any("iTXt unpacked" in leak for leak in search.leaks)
