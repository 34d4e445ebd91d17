"""What a notebook shows of results: verdict, figure and rows in light and dark, without script, widget, request or place."""

import re

import pytest

from crossgraft.errors import NotApplicable
from crossgraft.rank.ranking import Ranking
from crossgraft.report.notebook import _rows
from crossgraft.tune.predictions import Predictions
from support.tuning_records import prediction_record


@pytest.fixture(scope="module")
def ranking_result(ranking):
    return Ranking(ranking)


@pytest.fixture(scope="module")
def html(ranking_result):
    return ranking_result._repr_html_()


def test_a_ranking_shows_its_verdict_a_figure_and_rows(html, ranking):
    assert html.count('<p class="lead">') == html.count("<svg") == html.count("<table>") == 1
    assert html.index('class="lead"') < html.index("<svg") < html.index("<table>")
    assert html.count("<tr>") == 11 and '<p class="quiet">… and ' in html
    assert "<script>alert" not in html


def test_it_needs_no_script_no_widget_and_no_host(html):
    assert not re.search(r"<script|<link|<iframe|onclick|https?://(?!www\.w3\.org)|url\((?!#)|@import", html)


def test_ink_and_paper_are_those_of_the_notebook(html):
    style, rest = html.split("</style>")
    assert "currentColor" in rest and "var(--paper)" in rest and "--paper:" in style
    assert not re.search(r"(?<![-\w])(color|background): ?(#|black|white)", style)
    assert all(line.startswith((".crossgraft", "<style>")) for line in style.splitlines())  # nothing else of the page changes
    assert 'border="1"' not in html


def test_the_figure_is_there_alone_and_as_a_file(ranking_result, tmp_path):
    plot = ranking_result.plot()
    assert plot._repr_html_().count("<svg") == 1 and plot.caption
    text = plot.save(tmp_path / "ranking.svg").read_text(encoding="utf-8")
    assert text.startswith('<svg xmlns="http://www.w3.org/2000/svg"') and text.count("xmlns=") == 1
    from xml.etree import ElementTree

    assert ElementTree.fromstring(text).tag == "{http://www.w3.org/2000/svg}svg"


def test_the_frame_can_be_styled(ranking_result):
    shown = ranking_result.styled().to_html()
    assert "text-align: right" in shown and "—" in shown and "<script>alert" not in shown
    assert ranking_result.to_frame().equals(ranking_result.styled().data)


def test_two_results_have_ids_of_their_own(ranking, html):
    other = Ranking(ranking.model_copy(update={"advice": "Another."}))._repr_html_()
    ids = [set(re.findall(r'id="([^"]+)"', text)) for text in (html, other)]
    assert ids[0] and not ids[0] & ids[1]


def test_predictions_show_rows_with_their_names_and_no_next_command():
    record = prediction_record(num_images=12)
    html = Predictions(record, names=[f"<{place}>.png" for place in range(12)])._repr_html_()
    assert "&lt;0&gt;.png" in html and "… and 2 more" in html and "crossgraft export" not in html


def test_long_texts_come_last_and_have_room():
    import pandas as pd

    frame = pd.DataFrame({"outcome": ["relies"], "reason": ["It moves answers. " * 5], "auc_drop": [0.1]})
    html = _rows(frame)
    assert re.findall(r"<th[^>]*>([^<]+)</th>", html) == ["outcome", "auc_drop", "reason"]
    assert '<td class="long">' in html and '<td class="number">0.100</td>' in html


def test_a_result_without_a_figure_says_so(monkeypatch):
    record = prediction_record(num_images=2)
    result = Predictions(record, names=["a", "b"])
    monkeypatch.setattr("crossgraft.report.notebook._MOST_BUILDERS", 0)
    with pytest.raises(NotApplicable, match="no figure"):
        result.plot()
