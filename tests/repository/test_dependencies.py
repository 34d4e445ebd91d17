"""What pyproject.toml declares is what the package imports."""

import re
import tomllib
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
MODULES = {"scikit-learn": "sklearn", "scikit-image": "skimage", "pillow": "PIL", "pyyaml": "yaml", "mlflow-skinny": "mlflow"}
"""Packages whose module has another name."""


def modules(requirements):
    names = [re.split(r"[<>=\[]", requirement)[0].lower() for requirement in requirements]
    return {MODULES.get(name, name.replace("-", "_")) for name in names if name != "crossgraft"}


def imported():
    """First names of all modules that are imported somewhere in src/, also inside functions."""
    pattern = re.compile(r"^\s*(?:from|import) (\w+)", re.MULTILINE)
    files = (REPOSITORY / "src").rglob("*.py")
    return {name for path in files for name in pattern.findall(path.read_text(encoding="utf-8"))}


def test_every_package_that_a_user_has_to_install_is_used():
    assert modules(PROJECT["dependencies"]) - imported() == set()
