"""Whose fault it is: errors in the code of other packages name the plug-in, those of this package do not."""

import sys
import textwrap
import warnings

import pytest

from crossgraft.cli.main import main
from crossgraft.cli.output import harmless_messages
from crossgraft.errors import CrossgraftWarning, DataError, DivergedError, UsageError
from crossgraft.registry import Registry
from crossgraft.running.plugin_errors import naming_plugins
from crossgraft.scores import SCORES
from support.tiny import make_workspace

ORCHARD = """
import sys
from dataclasses import dataclass
from crossgraft.scores import score


@dataclass
class Plum:
    name = "plum"
    title = "Plum"

    def pick(self):
        raise ValueError("no  ladder")

    def leave(self):
        sys.exit(5)

    def give(self):
        return None


@dataclass
class Pear(Plum):
    name = "pear"


class Bare:
    name = "bare"
    title = "No dataclass"


class Nameless:
    pass


@score(title="Sour", reference="none")
def sour(features, labels):
    raise KeyError("ladder")
"""


def install(folder, monkeypatch, points):
    """A package that counts as installed, with its code beside."""
    facts = folder / "orchard-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: orchard\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text(textwrap.dedent(points))
    (folder / "orchard_code.py").write_text(ORCHARD)
    (folder / "orchard_exit.py").write_text("raise SystemExit('leaving')")
    monkeypatch.syspath_prepend(folder)


@pytest.fixture
def fruits(tmp_path, monkeypatch):
    install(tmp_path, monkeypatch, "[crossgraft.fruits]\nplum = orchard_code:Plum\npear = orchard_code:Pear\n")
    return Registry("fruit", group="crossgraft.fruits", plugin_type=type)


@pytest.mark.parametrize(
    ("method", "cause"),
    [("pick", r"raised ValueError: no ladder \(orchard_code.py, line 13\)"), ("leave", "raised SystemExit: 5")],
)
def test_what_the_code_of_a_plugin_raises_names_it(fruits, method, cause):
    with (
        pytest.raises(UsageError, match=f"^The fruit plum of the package orchard {cause}.*Mend or uninstall orchard"),
        naming_plugins(),
    ):
        getattr(fruits.get("plum")(), method)()


def test_an_error_of_this_package_is_not_the_plugins_but_says_that_it_was_in_use(fruits):
    with pytest.raises(AttributeError) as caught, naming_plugins():
        fruits.get("pear")().give().basket()
    assert caught.value.__notes__ == ["In use: the fruit pear of the package orchard. Does it happen without, too?"]
    with pytest.raises(AttributeError) as caught, naming_plugins():
        None.basket()
    assert not hasattr(caught.value, "__notes__")


def test_a_training_that_diverges_says_what_was_in_use_once(fruits):
    @naming_plugins()
    @naming_plugins()
    def train(error):
        fruits.get("plum")
        raise error

    with pytest.raises(DivergedError, match=r"^nan\. In use: the fruit plum of the package orchard\. Does it happen") as caught:
        train(DivergedError("nan."))
    assert str(caught.value).count("In use") == 1
    with pytest.raises(DataError, match=r"^plain$"):
        train(DataError("plain"))


@pytest.mark.parametrize(
    ("brought", "why"),
    [
        ("plum = orchard_exit:X", "cannot be imported: SystemExit: leaving"),
        ("peach = orchard_code:Plum", "calls itself plum. Give its entry point that name"),
        ("bare = orchard_code:Bare", "is no dataclass"),
        ("none = orchard_code:Nameless", "has no name, no title"),
    ],
)
def test_what_cannot_be_listed_is_left_out(tmp_path, monkeypatch, brought, why):
    install(tmp_path, monkeypatch, f"[crossgraft.fruits]\n{brought}\n")
    registry = Registry("fruit", group="crossgraft.fruits", plugin_type=type)
    with pytest.warns(UserWarning, match=f"is left out: .*{why}.*Mend or uninstall orchard"):
        assert registry.names() == []


def test_a_score_that_raises_is_named_by_the_command_line(tmp_path, monkeypatch, capsys):
    install(tmp_path, monkeypatch, "[crossgraft.scores]\nsour = orchard_code:sour\n")
    for holder in ("_plugins", "_origins", "_broken", "_brought"):
        monkeypatch.setattr(SCORES, holder, dict(getattr(SCORES, holder)))
    monkeypatch.setattr(SCORES, "_is_complete", False)  # so that it looks for packages again
    make_workspace(tmp_path)
    monkeypatch.delitem(sys.modules, "tiny_models", raising=False)  # of a test before
    monkeypatch.chdir(tmp_path)
    words = ["rank", "images", "--models", "zoo.yaml", "--code", "tiny_models.py", "--quiet", "--workers", "1", "--scores"]
    assert main([*words, "sour"]) == 2
    told = capsys.readouterr().err
    assert "Error: The score sour of the package orchard raised KeyError: 'ladder' (orchard_code.py, line " in told


def test_a_warning_of_ours_is_a_sentence_on_the_terminal():
    with harmless_messages():
        told = warnings.formatwarning(CrossgraftWarning("A plum is left\x1b out."), CrossgraftWarning, "registry.py", 182)
    assert told == "Warning: A plum is left\\x1b out.\n"
