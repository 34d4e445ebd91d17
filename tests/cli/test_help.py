"""What the pages of --help promise."""

import re

import pytest

from crossgraft.cli.help_pages import EXIT_CODES
from crossgraft.errors import DataError, MissingError, UsageError
from crossgraft.options.command import COMMANDS

PAGES = [(), *((name,) for name in COMMANDS.names())]


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")


def flags_in(text):
    return set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", text))


@pytest.mark.parametrize("words", PAGES)
def test_the_first_page_fits_a_screen(crossgraft, words):
    shown = crossgraft(*words, "--help")
    assert shown.code == 0
    lines = shown.out.splitlines()
    assert len(lines) <= 60
    assert max(map(len, lines)) <= 100
    assert shown.out.isprintable() or set(shown.out) - {"\n"} == {each for each in shown.out if each.isprintable()}


def test_the_first_page_describes_few_options_and_names_all(crossgraft):
    few, everything = crossgraft("tune", "--help").out, crossgraft("tune", "--help-all").out
    described = re.findall(r"^  (--[a-z-]+)", few.split("Common options:")[1].split("More options")[0], re.MULTILINE)
    assert 8 <= len(described) <= 12
    assert "--model" in described
    assert flags_in(few) == flags_in(everything)


def test_a_command_with_few_options_describes_them_at_once(crossgraft):
    assert crossgraft("export", "--help").out == crossgraft("export", "--help-all").out


@pytest.mark.parametrize("name", COMMANDS.names())
def test_the_long_page_has_sentence_default_and_least_value_of_every_option(crossgraft, name):
    text = " ".join(crossgraft(name, "--help-all").out.split())
    for each in COMMANDS.get(name).flags.values():
        assert each.flag in text
        assert each.about.help in text
        if each.about.default_text is not None:
            assert f"default: {each.about.default_text}" in text
    if name == "tune":
        assert "--accumulate N Number of micro-batches per step, to save memory. [default: 1; at least 1]" in text
        assert "--flip / --no-flip" in text
        assert "package.module:factory. [required]" in text
        assert "--compare TEXT Variants: full,linear,l2_sp:0.1,0.01,partial:3+l2_sp, or a YAML file of named settings." in text


def test_a_narrow_terminal_gets_narrow_pages(crossgraft, monkeypatch):
    monkeypatch.setenv("COLUMNS", "70")
    lines = crossgraft("rank", "--help-all").out.splitlines()
    assert max(map(len, lines)) <= 70


@pytest.mark.parametrize("flag", ["--help", "-h", "--help-all"])
def test_help_is_shown_wherever_it_is_asked_for(crossgraft, flag):
    assert crossgraft("tune", "data", "--no-such-flag", flag).out.startswith("Usage: crossgraft tune DATA [OPTIONS]")
    assert crossgraft(flag).out.startswith("Usage: crossgraft COMMAND")


def test_after_two_dashes_a_word_is_no_flag(crossgraft):
    assert crossgraft("check", "--", "--help").code == DataError.exit_code


def test_exit_codes_are_listed(crossgraft):
    page = crossgraft("--help").out
    for code in (UsageError.exit_code, DataError.exit_code, MissingError.exit_code):
        assert re.search(rf"^  {code}  ", page, re.MULTILINE)
    assert all(meaning in " ".join(page.split()) for meaning in EXIT_CODES.values())
