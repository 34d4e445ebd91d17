"""What is imported from ``crossgraft`` is what its name says, and old places of verbs say where they went."""

import inspect
import subprocess
import sys

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


def test_fixed_names_of_plugins():
    from crossgraft.tune import METHODS, REGULARIZERS

    assert {"full", "linear", "scratch", "partial"} <= set(METHODS.names())
    assert "l2_sp" in REGULARIZERS.names()


def test_the_package_alone_imports_nothing_heavy():
    code = "import sys, crossgraft; dir(crossgraft); print({'torch', 'numpy', 'sklearn', 'matplotlib'} & set(sys.modules))"
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert found == "set()\n"


def test_figures_are_not_imported_before_a_page_is_written():
    code = "import sys, crossgraft.report; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
