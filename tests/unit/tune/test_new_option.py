"""An option is added where options of a training are declared and read where it acts; plan, key and configuration follow."""

import json
import os
import textwrap
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import crossgraft
from crossgraft.options import configuration, option, options
from crossgraft.tasks import BinaryTask
from crossgraft.tune.engine.selection_rule import SelectionRule
from crossgraft.tune.engine.settings import TrainerSettings
from crossgraft.tune.options import TuneOptions
from crossgraft.tune.planning.batch_norm import BatchNorm
from crossgraft.tune.planning.choices import choose_plugins
from crossgraft.tune.planning.in_force import InForce
from support import forked
from support.tiny import TINY_MODELS, make_images

SOURCE = Path(crossgraft.__file__).parent

NEW = """
    ema_decay: float | None = option(
        "Factor of the moving average of the weights.", default=None, only_if_given=True, within=(0, 1)
    )
"""
USED = '\n        if self.settings.ema_decay is not None:\n            print("averages with", self.settings.ema_decay)\n'


NAMES = ("ema_decay", "swap_channels", "name_of_it", "several")


@options
class MoreOptions(TuneOptions):
    """One option more, of each type."""

    ema_decay: float | None = option("A number.", default=None, only_if_given=True)
    swap_channels: bool = option("A switch.", default=False, only_if_given=True)
    name_of_it: str = option("A word.", default="a", only_if_given=True)
    several: tuple[int, ...] = option("Numbers.", default=(), only_if_given=True)
    where_it_prints: str = option("Decides nothing.", default="here", decides=False)


def in_force(kind=MoreOptions, **changes):
    asked = kind(model="small", **changes)
    plugins = choose_plugins(asked, BinaryTask())
    return InForce(asked, plugins, TrainerSettings(), SelectionRule(), BatchNorm("train", "", 0))


def test_nothing_changes_at_the_default():
    assert in_force().in_words() == in_force(TuneOptions).in_words()
    assert in_force().further() == in_force(TuneOptions).further() == {}
    assert configuration(MoreOptions(model="small")) == configuration(TuneOptions(model="small"))


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "ema_decay": st.floats(0, 1),
            "swap_channels": st.just(True),
            "name_of_it": st.text(min_size=2, max_size=5),
            "several": st.lists(st.integers(), min_size=1, max_size=3).map(tuple),
        },
    )
)
def test_what_is_given_is_in_the_plan_the_key_and_the_configuration(given):
    now = in_force(where_it_prints="there", **given)
    assert now.further() == given
    rows = list(now.in_words())
    assert rows == [*in_force(TuneOptions).in_words(), *(name.replace("_", " ") for name in NAMES if name in given)]
    assert configuration(now.options).items() >= given.items()


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"ema_decay": 0.99}, "0.99"),
        ({"swap_channels": True}, "yes"),
        ({"name_of_it": "b"}, "b"),
        ({"name_of_it": "/home/anna/b"}, "b"),
        ({"several": (1, 2)}, "1, 2"),
    ],
)
def test_a_value_is_said_in_words(given, text):
    assert list(in_force(**given).in_words().values())[-1] == text


SHOW = """
import json
from crossgraft import fine_tune

FAST = {"model": "tiny_models:tiny", "workers": 1, "device": "cpu", "epochs": 1, "no_images": True}
said = {}
for name, more in {"usual": {}, "half": {"ema_decay": 0.5}}.items():
    fine_tune("images", **FAST, **more, out=name)
    read = lambda file: json.loads(open(f"{name}/{file}", encoding="utf-8").read())
    said[name] = {
        "plan": read("plan.json")["settings"], "page": "ema decay" in open(f"{name}/report.html", encoding="utf-8").read(),
        "record": read("report.json")["plan"]["settings"], "configuration": read("run.json")["config"],
        "key": read("jobs/only/result.json")["key"],
    }
try:
    fine_tune("images", **FAST, ema_decay=2.0, plan=True)
except Exception as error:
    said["refused"] = f"{type(error).__name__}: {error}"
print(chr(0), json.dumps(said))
"""


@pytest.fixture
def copy_with_one_option_more(tmp_path):
    """A copy of this package in which two files are edited."""
    copy = tmp_path / "site" / "crossgraft"
    for folder in ("tune", "tune/engine"):
        (copy / folder).mkdir(parents=True)
    for folder in (".", "tune", "tune/engine"):
        for path in (SOURCE / folder).iterdir():
            if not (copy / folder / path.name).exists():
                (copy / folder / path.name).symlink_to(path)
    edits = {
        "settings.py": ("    patience: int | None = option(", NEW.lstrip("\n") + "    patience: int | None = option("),
        "step.py": ("        self.task_weight = ", USED.lstrip("\n") + "        self.task_weight = "),
    }
    for name, (old, new) in edits.items():
        text = (SOURCE / "tune" / "engine" / name).read_text(encoding="utf-8")
        assert text.count(old) == 1
        (copy / "tune" / "engine" / name).unlink()
        (copy / "tune" / "engine" / name).write_text(text.replace(old, new), encoding="utf-8")
    make_images(tmp_path / "images", {"benign": 20, "malignant": 20})
    (tmp_path / "tiny_models.py").write_text(textwrap.dedent(TINY_MODELS))
    path = os.pathsep.join([str(tmp_path / "site"), str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, "PYTHONPATH": path}


@pytest.mark.slow
@pytest.mark.xdist_group(forked.GROUP)
def test_two_files_are_enough(copy_with_one_option_more, tmp_path):
    (tmp_path / "show.py").write_text(SHOW)
    done = forked.run(tmp_path / "show.py", environment=copy_with_one_option_more, cwd=tmp_path, timeout=500, own_copy=True)
    assert done.returncode == 0, done.stderr
    used, _, document = done.stdout.partition("\0")
    said = json.loads(document)
    usual, half = said["usual"], said["half"]
    assert {line for line in used.splitlines() if line} == {"averages with 0.5"}
    assert half["plan"] == half["record"] == {**usual["plan"], "ema decay": "0.5"}
    assert (usual["page"], half["page"]) == (False, True)
    assert (usual["configuration"].get("ema_decay", 0), half["configuration"]["ema_decay"]) == (0, 0.5)
    assert usual["key"] != half["key"]
    assert said["refused"] == "UsageError: ema_decay must lie between 0 and 1, found 2.0."
