"""What is imported from ``crossgraft`` is what its name says, and old places of verbs say where they went."""

import importlib
import inspect
import subprocess
import sys

import pytest

import crossgraft
import crossgraft.tune

NAMES = {"train": "function"}
NAMES |= {"FineTunedClassifier": "type", "TrainerSettings": "type", "load_saved_model": "function"}
NAMES |= dict.fromkeys(("METHODS", "REGULARIZERS", "BATCH_TRANSFORMS", "AUGMENTATIONS"), "Registry")


def test_every_fixed_name_is_there_and_is_no_module():
    found = {}
    for name in NAMES:
        value = getattr(crossgraft.tune, name)
        found[name] = "type" if inspect.isclass(value) else type(value).__name__
    assert found == NAMES


@pytest.mark.parametrize(
    ("package", "name"),
    [
        ("crossgraft.tune", "fine_tune"),
        ("crossgraft.tune", "predict"),
        ("crossgraft.rank", "rank_models"),
        ("crossgraft.data.checks", "check_data"),
        ("crossgraft.export", "export_model"),
    ],
)
def test_a_verb_that_moved_is_found_where_it_was(package, name):
    old = importlib.import_module(package)
    with pytest.warns(DeprecationWarning, match=f"from crossgraft import {name}"):
        assert getattr(old, name) is getattr(crossgraft, name)
    with pytest.raises(AttributeError, match="no attribute 'fine_tuned'"):
        old.fine_tuned  # noqa: B018


@pytest.mark.parametrize(
    ("package", "old", "new"),
    [
        ("crossgraft.tune", "Tuned", "FineTuningResult"),
        ("crossgraft.models.adapters", "Lora", "LoraAdapter"),
        ("crossgraft.models.adapters", "AdaptFormer", "AdaptFormerAdapter"),
    ],
)
def test_a_class_that_was_renamed_is_found_under_its_old_name(package, old, new):
    home = importlib.import_module(package)
    with pytest.warns(DeprecationWarning, match=f"from {package} import {new}"):
        assert getattr(home, old) is getattr(home, new)


def test_what_comparisons_give_is_found_where_it_was():
    old = importlib.import_module("crossgraft.tune.comparing")
    for name in ("FineTuningComparison", "Variant"):
        with pytest.warns(DeprecationWarning, match=f"from crossgraft.tune import {name}"):
            assert getattr(old, name) is getattr(crossgraft.tune, name)


def test_fixed_names_of_plugins():
    from crossgraft.tune import METHODS, REGULARIZERS

    assert {"full", "linear", "scratch", "partial"} <= set(METHODS.names())
    assert "l2_sp" in REGULARIZERS.names()


def test_the_package_alone_imports_nothing_heavy():
    code = (
        "import sys, crossgraft; dir(crossgraft); print({'torch', 'numpy', 'sklearn', 'matplotlib'} & set(sys.modules))"
    )
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert found == "set()\n"


def test_figures_are_not_imported_before_a_page_is_written():
    code = "import sys, crossgraft.report; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
