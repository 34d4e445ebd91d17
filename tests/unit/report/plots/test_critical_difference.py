import re

from crossgraft.report.plots import critical_difference_figure


def drawing():
    return critical_difference_figure(
        ["LogME", "PARC", "Ours"], [2.4, 2.5, 1.1], [[2, 0], [0, 1]], 1.352, identifier="cd"
    )


def test_names_ranks_and_difference_are_readable():
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", drawing())
    assert {"LogME  2.40", "PARC  2.50", "Ours  1.10", "critical difference 1.352", "1", "2", "3"} <= set(texts)


def test_every_clique_is_one_bar():
    assert drawing().count("stroke: #0072b2") == 2


def test_a_screen_reader_hears_the_order():
    assert "best first: Ours 1.10, LogME 2.40, PARC 2.50" in drawing()


def test_the_same_input_gives_the_same_bytes():
    assert drawing() == drawing()
