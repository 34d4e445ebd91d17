"""A spreadsheet that opens a CSV of crossgraft runs nothing, and crossgraft reads back the true text."""

import csv
import io
import json
import os
import sys
import textwrap
from contextlib import redirect_stderr, redirect_stdout
from urllib.parse import unquote

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import save_file

from crossgraft.cli.main import main
from crossgraft.data.sources._table import read_table
from crossgraft.rank.ground_truth import read_ground_truth
from crossgraft.rank.published.benchmark import read_benchmark_table
from crossgraft.report.tables import Column, Table, words
from crossgraft.running import publishing as finish
from crossgraft.variants import curves
from crossgraft.words.visible import csv_rows, csv_text, frame_csv, guarded, unguarded
from support.tiny import TINY_MODELS, make_images

FORMULAS = ["=1+1", "+1", "-1+cmd|' /C calc'!A0", "@SUM(1)", "\t=1", "\r=1", "\n=1", "\0=1", " =1", "\u00a0@x"]
FULL_WIDTH = ["＝1", "＋1", "－1", "＠SUM(1)"]
ALIKE = [f"'{text}" for text in (*FORMULAS, "=", "'=1")]
HARMLESS = ["", "benign", "'tis benign", "a=b", "''", "1-2", "−0.4", "it's"]

TEXT = st.text(st.sampled_from("'=+-@＝ \t\r\n,;\"a\u202e"), max_size=6) | st.text(max_size=20)


def parsed(text):
    return list(csv.reader(io.StringIO(text, newline="")))


@pytest.mark.parametrize("text", [*FORMULAS, *FULL_WIDTH, *ALIKE])
def test_what_a_spreadsheet_would_run_gets_an_apostrophe(text):
    assert guarded(text) == f"'{text}"


@pytest.mark.parametrize("text", HARMLESS)
def test_other_text_stays(text):
    assert guarded(text) == unguarded(text) == text


@given(TEXT)
def test_every_text_comes_back(text):
    assert unguarded(guarded(text)) == text


@given(TEXT)
def test_no_cell_begins_as_a_formula(text):
    assert guarded(text).strip()[:1] not in tuple("=+-@＝＋－＠")


@given(st.lists(st.lists(TEXT, min_size=2, max_size=2), max_size=4))
def test_a_table_comes_back_with_its_line_breaks(rows):
    header, found = csv_rows(csv_text(["=a", "b"], rows))
    assert header == ["=a", "b"]
    assert [list(row.values()) for row in found] == rows


def test_numbers_stay_numbers_as_pandas_writes_them():
    frame = pd.DataFrame(
        {
            "-score": [-0.42, np.nan, 1e-7, 1e16, np.inf],
            "single": np.array([-0.1, 2, np.nan, 1e-5, 3], dtype=np.float32),
            "rank": pd.array([1, None, 3, -4, 5], dtype="Int64"),
            "count": [-1, 2, 3, 4, 5],
            "yes": [True, False, True, True, False],
            "mixed": [-0.5, None, 2, "a,b", True],
            "text": ["plain", None, 'with "quotes"', "two\nlines", ""],
        }
    )
    written = frame_csv(frame)
    assert written.splitlines()[1:] == frame.to_csv(index=False).splitlines()[1:]
    assert written.startswith("'-score,")
    assert frame_csv(frame[["count"]].iloc[:0]) == f"count{os.linesep}"


def test_a_file_name_without_utf8_does_not_stop_the_writing():
    assert csv_text(["image"], [["gr\udcfcn.png"]]).encode().decode().splitlines() == ["image", r"gr\udcfcn.png"]


def test_the_table_of_a_page_follows_the_same_rule():
    table = Table(caption="c", columns=[Column("=x")], rows=[[words("＝1")]], file_name="f")
    _, _, body = table.csv_uri.partition(",")
    assert parsed(unquote(body)) == [["'=x"], ["'＝1"]]


# What is read


def test_a_table_of_images_gives_back_true_names(tmp_path):
    (tmp_path / "table.csv").write_text("path,label,'=site\n'=a.png,''=b,'- c\n b.png , '@d ,x\n", encoding="utf-8")
    table = read_table(tmp_path / "table.csv")
    assert table.columns == ("path", "label", "=site")
    assert table.rows == (("=a.png", "'=b", "- c"), ("b.png", "@d", "x"))


def test_fine_tuned_results_belong_to_the_true_model(tmp_path):
    (tmp_path / "truth.csv").write_text('model,auc\n\'=m,-0.5\n"a\nb",0.5\n', encoding="utf-8")
    assert read_ground_truth(tmp_path / "truth.csv", ["=m", "a\nb"]).values == {"=m": -0.5, "a\nb": 0.5}


def test_a_table_of_results_has_the_true_names(tmp_path):
    rows = "".join(f"'=t{target},'@m{model},-0.{target}{model}\n" for target in range(2) for model in range(2))
    (tmp_path / "mine.csv").write_text(f"target,model,result\n{rows}", encoding="utf-8")
    found = read_benchmark_table(tmp_path / "mine.csv")
    assert found.targets == ["=t0", "=t1"]
    assert found.models == ["@m0", "@m1"]
    assert found.results[1, 1] == -0.11


# Commands

EVIL_CLASS = "=cmd|' !A0"
EVIL_FILE = "@SUM(1).png"
EVIL_MODEL = "-m"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cells")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.syspath_prepend(str(folder))
        patch.setenv("CROSSGRAFT_CACHE", str(folder / "cache"))
        patch.delitem(sys.modules, "tiny_models", raising=False)
        patch.setattr(finish, "write_report", lambda path: path / "report.html")  # pages are tested elsewhere
        patch.setattr(curves, "ALPHAS", (0.0, 1.0))
        (folder / "tiny_models.py").write_text(textwrap.dedent(TINY_MODELS))
        import tiny_models

        with torch.random.fork_rng():
            torch.manual_seed(0)
            save_file(tiny_models.tiny(8).state_dict(), folder / "narrow.safetensors")
        model = {"name": EVIL_MODEL, "source": "tiny_models:tiny", "weights": "narrow.safetensors"}
        (folder / "zoo.yaml").write_text(json.dumps([model]))
        make_images(folder / "images", {EVIL_CLASS: 8, "malignant": 8})
        (folder / "images" / EVIL_CLASS / "00.png").rename(folder / "images" / EVIL_CLASS / EVIL_FILE)
        (folder / "loose").mkdir()
        for path in (folder / "images" / EVIL_CLASS).iterdir():
            (folder / "loose" / path.name).write_bytes(path.read_bytes())
        quick = ("--workers", "1", "--device", "cpu", "--quiet")
        command(
            "rank", "images", "--models", "zoo.yaml", "--code", "tiny_models.py", "--scores", "logme", *quick, "--out", "rank"
        )
        ways = ("--compare", "linear,=.yaml")
        (folder / "=.yaml").write_text(json.dumps([{"name": "=slow", "method": "linear", "learning_rate": 1e-5}]))
        tune = ("tune", "images", "--model", "tiny_models:tiny", "--epochs", "1", *quick, "--show-names")
        command(*tune, *ways, "--out", "compare")
        command("predict", "compare/trainings/linear-0", "loose", "--code", "tiny_models.py", *quick, "--out", "predict")
        command("check", "images", "--workers", "1", "--quiet", "--show-names", "--out", "check")
        yield folder
    sys.modules.pop("tiny_models", None)


def command(*arguments):
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main([str(argument) for argument in arguments])
    assert code == 0, err.getvalue()
    return out.getvalue()


WRITTEN = {
    "rank/scores.csv": EVIL_MODEL,
    "compare/comparison.csv": "=slow",
    "compare/trainings.csv": "=slow",
    "compare/trainings/linear-0/predictions.csv": EVIL_CLASS,
    "predict/predictions.csv": EVIL_FILE,
}


@pytest.mark.parametrize("file", WRITTEN)
def test_a_file_of_a_run_holds_no_formula_and_gives_back_the_name(folder, file):
    text = (folder / file).read_text(encoding="utf-8")
    cells = {cell for line in parsed(text) for cell in line}
    assert f"'{WRITTEN[file]}" in cells
    for cell in cells:
        if cell.startswith(tuple("=+-@\t\r")):
            float(cell)  # a number, which stays one
    _, rows = csv_rows(text)
    assert WRITTEN[file] in {value for row in rows for value in row.values()}


def test_every_csv_of_the_runs_is_guarded(folder):
    files = list(folder.rglob("*.csv"))
    assert {path.name for path in files} >= {
        "scores.csv", "comparison.csv", "trainings.csv", "history.csv", "metrics.csv", "predictions.csv", "findings.csv",
    }  # fmt: skip
    for path in files:
        for cell in {cell for line in parsed(path.read_text(encoding="utf-8")) for cell in line}:
            if cell.startswith(tuple("=+-@\t\r")):
                float(cell)


def test_a_finished_comparison_reads_its_predictions_back(folder):
    """Decisions are names of classes; with the apostrophe they would be no class of the data."""
    flags = ("--workers", "1", "--device", "cpu", "--quiet", "--show-names", "--compare", "linear,=.yaml")
    again = command("tune", "images", "--model", "tiny_models:tiny", "--epochs", "1", *flags, "--out", "compare", "--json")
    assert json.loads(again)["kind"]


def test_predictions_can_be_given_back_as_a_table(folder):
    """With corrected labels, say: the column of the files is found, and so is every file."""
    text = (folder / "predict" / "predictions.csv").read_bytes().decode()
    header, rows = csv_rows(text)
    for number, row in enumerate(rows):
        row["decision"] = (EVIL_CLASS, "malignant")[number % 2]
    (folder / "corrected.csv").write_text(csv_text(header, [list(row.values()) for row in rows]), encoding="utf-8")
    flags = ("--image-root", "loose", "--label-column", "decision", "--json", "--quiet", "--workers", "1")
    found = json.loads(command("check", "corrected.csv", *flags))["dataset"]
    assert found["num_images"] == 8
    assert found["class_names"] == [EVIL_CLASS, "malignant"]
