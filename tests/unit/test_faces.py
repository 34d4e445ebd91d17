"""Names of a package are found on first use, and stay what they are whatever is imported."""

import importlib
import inspect
import sys
import warnings

import pytest

import crossgraft
import crossgraft.rank
from crossgraft.moved import MOVED

PACKAGE = '''"""A package."""

from typing import TYPE_CHECKING

from crossgraft.faces import lazy_face

if TYPE_CHECKING:
    from {name}.work import work as work
    from {name}.work import other as another

lazy_face(__name__)
'''


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package whose function has the name of its module."""
    (tmp_path / "with_a_face").mkdir()
    (tmp_path / "with_a_face" / "__init__.py").write_text(PACKAGE.format(name="with_a_face"))
    (tmp_path / "with_a_face" / "work.py").write_text("def work():\n    return 1\n\n\ndef other():\n    return 2\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield importlib.import_module("with_a_face")
    for name in ("with_a_face", "with_a_face.work"):
        sys.modules.pop(name, None)


def test_nothing_is_imported_before_it_is_used(package):
    assert package.__all__ == ["work", "another"] and {"work", "another"} <= {*dir(package)}
    assert "with_a_face.work" not in sys.modules
    assert package.another() == 2


def test_a_function_stays_a_function_when_the_module_of_its_name_is_imported(package):
    importlib.import_module("with_a_face.work")
    assert package.work() == 1
    importlib.import_module("crossgraft.rank.aggregate")
    assert inspect.isfunction(crossgraft.rank.aggregate)


def test_bars_that_are_not_used_are_not_warned_of_and_everything_else_is(package, tmp_path, recwarn):
    (tmp_path / "with_a_face" / "work.py").write_text(
        "import warnings\n\nwarnings.warn('IProgress not found. Please update jupyter')\nwarnings.warn('old')\n\n\n"
        "def work():\n    return 1\n"
    )
    assert package.work() == 1
    assert [str(warning.message) for warning in recwarn] == ["old"]


def test_an_unknown_name_is_none(package):
    for module in (package, crossgraft):
        with pytest.raises(AttributeError, match="no attribute 'nothing'"):
            module.nothing  # noqa: B018


@pytest.mark.parametrize(
    ("package", "name", "home"),
    [(package, name, home) for package, homes in MOVED.items() for home, names in homes.items() for name in names.split()],
)
def test_every_name_that_moved_is_found_where_it_was_and_warns(package, name, home):
    old, _, now = name.partition("=")
    module = importlib.import_module(package)
    with pytest.warns(DeprecationWarning, match=f"from {home} import {now or old}"):
        value = getattr(module, old)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert value is getattr(importlib.import_module(home), now or old)


def test_a_package_that_is_gone_has_no_other_names():
    with pytest.raises(ImportError, match="cannot import name 'nothing'"):
        from crossgraft.selection import nothing  # noqa: F401
    with pytest.raises(ModuleNotFoundError, match="never_was"):
        importlib.import_module("crossgraft.never_was")


def test_completion_offers_public_names_alone():
    for package in (crossgraft, crossgraft.rank):
        assert [name for name in dir(package) if not name.startswith("__")] == sorted(set(package.__all__) - {"__version__"})
