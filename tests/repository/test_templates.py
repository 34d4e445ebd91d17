"""What the templates of issues and pull requests ask for."""

from pathlib import Path

TEMPLATES = Path(__file__).parents[2] / ".github"


def test_a_report_of_a_problem_has_the_version_and_nothing_of_a_patient():
    problem = (TEMPLATES / "ISSUE_TEMPLATE" / "problem.md").read_text(encoding="utf-8")
    for asked in ("What I typed", "What happened", "crossgraft --version", "No patient data", "SECURITY.md"):
        assert asked in problem


def test_a_pull_request_says_what_changes_for_users():
    assert "CHANGELOG.md" in (TEMPLATES / "pull_request_template.md").read_text(encoding="utf-8")
