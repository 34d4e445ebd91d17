import pytest

from crossgraft.running.command_line import portable_name, portable_names

WINDOWS_REFUSES = set('<>:"/\\|?*')


@pytest.mark.parametrize("name", ["my images", "Brustkrebs-Übersicht", "胸部X線", "🫁 scans", "v1.2", "console"])
def test_names_that_every_system_accepts_stay_as_they_are(name):
    assert portable_name(name) == name


@pytest.mark.parametrize("name", ["owner/name:config", "what?", "a\\b", "x\ny", 'say "ah"', "<3", "a|b", "tab\there"])
def test_what_windows_refuses_is_replaced(name):
    made = portable_name(name)
    assert made
    assert not WINDOWS_REFUSES & set(made)
    assert made.isprintable()


@pytest.mark.parametrize("name", ["CON", "con", "nul.txt", "COM1", "lpt9.tar.gz", "Aux"])
def test_names_of_devices_are_not_used(name):
    assert portable_name(name) == f"_{name}"


@pytest.mark.parametrize("name", ["trailing.", "trailing ", "trailing..."])
def test_windows_would_cut_off_dots_and_blanks_at_the_end(name):
    assert portable_name(name) == "trailing"


def test_both_ways_to_write_an_umlaut_are_one_name():
    assert portable_name("Bru\u0308cke") == portable_name("Br\u00fccke") == "Br\u00fccke"


@pytest.mark.parametrize("letter", ["a", "ü", "胸", "🫁"])
def test_long_names_are_short_and_stay_different(letter):
    first, second = portable_name(letter * 200 + "1"), portable_name(letter * 200 + "2")
    assert first != second
    assert len(first.encode()) <= 60
    assert first.startswith(letter)


@pytest.mark.parametrize("name", ["", "..", "///", "?"])
def test_nothing_is_left_of_nothing(name):
    assert portable_name(name) == ""


def test_names_of_several_folders_are_apart_whatever_they_are_called():
    made = portable_names(["vit", "ViT", "vit?", "vit-2", "vit-2*", ""])
    assert made == ["vit", "ViT-3", "vit-4", "vit-2", "vit-2-2", ""]
    assert portable_names(["a", "b", "A"]) == ["a", "b", "A-2"]
