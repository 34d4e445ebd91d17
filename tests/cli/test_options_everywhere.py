"""An option is written once, in ``crossgraft.options``: command line, files, Python and a type checker know it from there."""

import inspect
import json
import subprocess
import sys
from pathlib import Path

import pytest

import crossgraft as package
from crossgraft.check.options import CheckOptions
from crossgraft.cli.call import parse
from crossgraft.cli.help_pages import command_page
from crossgraft.config import settings_model
from crossgraft.export.options import ExportOptions
from crossgraft.options._option import configuration, option, options, options_of
from crossgraft.options.command import COMMANDS, Command, Input
from crossgraft.options.running import Terminal
from crossgraft.predict.options import PredictOptions
from crossgraft.rank.options import RankOptions
from crossgraft.running.verb import verb
from crossgraft.tune.options import CompareOptions, TuneOptions

VERBS = {
    "check": ("check_data", CheckOptions),
    "rank": ("rank_models", RankOptions),
    "tune": ("fine_tune", TuneOptions),
    "tune --compare": ("compare_fine_tunings", CompareOptions),
    "predict": ("predict", PredictOptions),
    "export": ("export_model", ExportOptions),
}


@options
class ShadedOptions(CheckOptions):
    """Those of ``check`` and a new one."""

    shade: int = option("Shade of grey.", default=3, least=1)


@verb("check", ShadedOptions)
def check_shades(data, options, run):
    """Look at shades.

    Args:
        data: Images.
        {options}
    """
    return data, options.shade


def test_a_new_option_is_known_everywhere():
    command = Command("shade", "Shade images.", "shade x", (Input("data", "Images."),), (ShadedOptions, Terminal))
    page = " ".join(command_page(command, everything=True).split())
    assert "--shade N Shade of grey. [default: 3; at least 1]" in page
    assert "--shade" in command_page(command, everything=False)
    assert parse(command, ["x", "--shade", "4"]) == {"data": "x", "shade": 4}
    assert settings_model(ShadedOptions).model_validate({"shade": 5}).model_dump()["shade"] == 5
    assert inspect.signature(check_shades).parameters["shade"].default == 3
    assert "shade: Shade of grey." in check_shades.__doc__
    assert check_shades("x", shade=7) == ("x", 7)


@pytest.mark.parametrize("name", VERBS)
def test_every_option_of_a_verb_is_a_flag_a_key_and_a_keyword(name):
    function, kind = VERBS[name]
    typed = {each for each, one in options_of(kind).items() if one.about.is_typed}
    assert typed <= set(COMMANDS.get(name.split()[0]).flags)
    assert typed == set(settings_model(kind).model_fields)
    assert set(options_of(kind)) <= set(inspect.signature(getattr(package, function)).parameters)


def test_options_of_the_demo_are_keywords_of_its_function():
    from crossgraft.demo import show_demo
    from crossgraft.demo.options import DemoOptions

    assert set(options_of(DemoOptions)) == set(inspect.signature(show_demo).parameters)


WRONG = """
from crossgraft import fine_tune

fine_tune("digits", model="x", epochs=3, seed=1)
fine_tune("digits", model="x", epochs="3")
fine_tune("digits", model="x", eposh=3)
fine_tune("digits")
"""


@pytest.mark.slow
def test_a_type_checker_reports_wrong_keywords(tmp_path):
    source = Path(package.__file__).parents[1]
    (tmp_path / "wrong.py").write_text(WRONG)
    (tmp_path / "pyrightconfig.json").write_text(json.dumps({"extraPaths": [str(source)], "include": ["wrong.py"]}))
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, "-p", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    found = {
        (each["range"]["start"]["line"], each["rule"])
        for each in json.loads(done.stdout)["generalDiagnostics"]
        if each["severity"] == "error"
    }
    assert found == {(4, "reportArgumentType"), (5, "reportCallIssue"), (6, "reportCallIssue")}, done.stdout


def test_an_option_that_is_new_joins_the_configuration_of_a_run_only_if_it_is_given():
    """Otherwise run folders of versions without it would be those of another run."""
    plain = configuration(TuneOptions(model="x"))
    assert not {"keep", "batch_norm"} & set(plain) and plain["epochs"] is None
    assert configuration(TuneOptions(model="x", keep=0.8)) == {**plain, "keep": 0.8}
