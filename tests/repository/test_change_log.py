"""The change log is dated, and speaks of the version that is here."""

import re
from pathlib import Path

import yaml

from crossgraft.version import __version__

REPOSITORY = Path(__file__).parents[2]


def text(name):
    return (REPOSITORY / name).read_text(encoding="utf-8")


def test_the_change_log_has_dated_versions_newest_first_and_the_current_one():
    headings = re.findall(r"^## (.+)$", text("CHANGELOG.md"), re.MULTILINE)
    assert headings[0] == "Unreleased"
    found = [re.fullmatch(r"(\d+\.\d+\.\d+) - (\d{4}-\d\d-\d\d)", heading) for heading in headings[1:]]
    assert all(found), headings
    assert found[0][1] == __version__ == yaml.safe_load(text("CITATION.cff"))["version"]
    dates = [match[2] for match in found]
    assert dates == sorted(dates, reverse=True)
