"""The example files that pydicom, nibabel and scikit-image bring with them: each is read right, or refused by name."""

import importlib.metadata
import re
import warnings
from importlib.util import find_spec
from pathlib import Path

import pytest

from crossgraft.errors import UnreadableImageError
from security import bundled_files

REPOSITORY = Path(__file__).parents[2]
PAGE = REPOSITORY / "docs" / "results" / "data-checks.md"


@pytest.fixture(scope="module", params=bundled_files.FOLDERS)
def package(request):
    if not any(bundled_files.files_of(request.param)):
        pytest.skip(f"{request.param} is not installed, or came without its example files")
    return request.param


@pytest.fixture(scope="module")
def outcome(package):
    return bundled_files.read_package(package)


def test_each_file_is_read_right_or_refused_by_name(outcome):
    assert outcome.wrong == {}
    assert outcome.right, "nothing was read, so nothing was compared"
    assert [name for name, reason in outcome.refused.items() if not re.search(r"\w+ \w+ \w+", reason)] == []


def test_nothing_but_the_error_is_said(package, logged):
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        for path in bundled_files.files_of(package):
            try:
                bundled_files.read_middle(path)
            except UnreadableImageError:
                continue
    assert [str(warning.message) for warning in shown] == []
    assert logged == []


def test_the_page_has_the_counts(package, outcome):
    version = importlib.metadata.version(package)
    if package == "pydicom" and find_spec("jpeg_ls") is not None:
        pytest.skip("a decoder of JPEG-LS (of highdicom) reads more")
    row = bundled_files.count_row(package, outcome)
    if f"| {package} {version} |" not in PAGE.read_text(encoding="utf-8"):
        pytest.skip(f"the page counts the files of another version than {package} {version}")
    assert row in PAGE.read_text(encoding="utf-8").splitlines()


def test_the_comparison_finds_a_wrong_pixel(package):
    """One step of 8 bits in one pixel of a picture is enough."""
    for path in bundled_files.files_of(package):
        try:
            decoded = bundled_files.read_middle(path)
        except UnreadableImageError:
            continue
        if decoded.dtype == "uint8":
            expected = bundled_files.expected_pixels(path)
            assert bundled_files.compare(decoded, expected) is None
            decoded = decoded.copy()
            decoded[0, 0, 0] ^= 2
            assert bundled_files.compare(decoded, expected) is not None
            return
