import re

from crossgraft.rank.plots import critical_difference_figure


def drawing(**changes):
    return critical_difference_figure(
        ["LogME", "PARC", "Ours"], [2.4, 2.5, 1.1], [[2, 0], [0, 1]], 1.352, identifier="cd", **changes
    )


def test_the_one_for_phones_is_half_as_wide_and_says_the_same():
    wide, narrow = (set(re.findall(r"<text[^>]*>([^<]*)</text>", drawing(is_wide=each))) for each in (True, False))
    assert wide == narrow
    assert "max-width: 340px" in drawing(is_wide=False) and "max-width: 680px" in drawing()
    names = re.findall(r'text-anchor: (\w+)" x="([\d.]+)"[^>]*>[^<]*  \d\.\d\d<', drawing(is_wide=False))
    assert len(names) == 3 and set(names) == {("end", "177")}  # one below the other, on the left


def test_names_ranks_and_difference_are_readable():
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", drawing())
    assert {"LogME  2.40", "PARC  2.50", "Ours  1.10", "critical difference 1.352", "1", "2", "3"} <= set(texts)


def test_every_clique_is_one_bar():
    assert drawing().count("stroke: #0072b2") == 2


def test_a_screen_reader_hears_the_order():
    assert "best first: Ours 1.10, LogME 2.40, PARC 2.50" in drawing()


def test_the_same_input_gives_the_same_bytes():
    assert drawing() == drawing()
