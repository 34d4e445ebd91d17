"""The page as a whole: self-contained, escaped, small, byte-stable, and never half-written."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import os
import re
from html.parser import HTMLParser

import pytest

from crossgraft import write_report
from crossgraft.errors import DataError, StorageError, UsageError
from support.few_figures import PAINTINGS, leave_out_drawings
from support.tuning_records import tuned_model, tuning_record

MEGABYTE = 1_000_000


class Outline(HTMLParser):
    """Everything a test asks of a page: elements, ids, links, and the text inside and outside of scripts."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.scripts: list[str] = []
        self._inside: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag in ("script", "style"):
            self._inside.append(tag)

    def handle_endtag(self, tag):
        if tag in ("script", "style"):
            self._inside.pop()

    def handle_data(self, data):
        if not self._inside:
            self.text += data
        elif self._inside[-1] == "script":
            self.scripts.append(data)

    def values(self, attribute: str) -> list[str]:
        return [value for _, attributes in self.elements for name, value in attributes.items() if name == attribute and value]


@pytest.fixture(scope="module")
def run(tmp_path_factory, examples, ranking):
    images = examples.thumbnails(ranking.dataset.class_names)
    return examples.write_run(tmp_path_factory.mktemp("runs") / "rank", ranking, images=images)


@pytest.fixture(scope="module")
def demo(tmp_path_factory, examples):
    return examples.write_run(tmp_path_factory.mktemp("runs") / "demo", examples.demo_record())


@pytest.fixture
def no_figures(monkeypatch):
    """Painting and writing them takes most of the time of a page."""
    leave_out_drawings(monkeypatch)
    PAINTINGS.limit(monkeypatch)


@pytest.fixture(scope="module")
def html(run):
    return write_report(run).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def outline(html):
    return Outline(html)


@pytest.mark.usefixtures("no_figures")
def test_it_goes_into_the_run_directory_or_where_it_is_told(run, tmp_path):
    assert write_report(run) == run / "report.html"
    assert write_report(str(run), out=tmp_path / "new" / "page.html") == tmp_path / "new" / "page.html"
    assert (tmp_path / "new" / "page.html").read_bytes() == (run / "report.html").read_bytes()


def test_the_same_records_give_the_same_bytes(run, tmp_path):
    assert write_report(run, out=tmp_path / "a.html").read_bytes() == write_report(run, out=tmp_path / "b.html").read_bytes()


def test_nothing_is_fetched(outline):
    for link in outline.values("href") + outline.values("src"):
        assert link.startswith(("#", "data:"))
    assert not {"link", "iframe", "object", "embed", "base", "form"} & {tag for tag, _ in outline.elements}


def test_the_policy_allows_the_one_script_of_the_page_only(outline):
    (policy,) = [value for value in outline.values("content") if "default-src" in value]
    *_, script = outline.scripts
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy


def test_a_class_named_like_a_script_is_text_everywhere(html, outline, examples):
    assert examples.EVIL not in html
    assert outline.text.count(examples.EVIL) >= 3  # drawing, file left out, gallery
    assert len([tag for tag, _ in outline.elements if tag == "script"]) == 2  # the record and the page's own
    assert f"Image 1 of class {examples.EVIL}" in outline.values("alt")


HOSTILE = ("</script><script>alert(1)</script>", "<!--<script>", '"onload="alert(1)', "a&b", "]]>")


def test_hostile_names_of_models_data_and_scores(tmp_path, examples, ranking):
    """Each is the name of a model, and all together are the name of the data and of a score."""
    models = [cell.model for cell in ranking.cells if cell.score == "logme"]
    names = {**dict(zip(models, HOSTILE, strict=False)), "BreastMNIST": "".join(HOSTILE), "N-LEEP": "".join(HOSTILE)}
    assert len(names) == len(HOSTILE) + 2, "too few models"
    text = ranking.model_dump_json()
    for name, hostile in names.items():
        text = text.replace(name, json.dumps(hostile)[1:-1])
    record = type(ranking).model_validate_json(text)
    outline = Outline(write_report(examples.write_run(tmp_path, record)).read_text(encoding="utf-8"))
    assert [name for name in names.values() if name not in outline.text] == []
    assert len([tag for tag, _ in outline.elements if tag == "script"]) == 2
    assert not outline.values("onload")
    assert json.loads(outline.scripts[0])["dataset"]["name"] == "".join(HOSTILE)


def test_the_record_is_inside_without_its_replicates(outline, ranking):
    record = json.loads(outline.scripts[0])
    assert record["dataset"]["class_names"] == ranking.dataset.class_names
    assert record["cells"][0]["value"] == ranking.cells[0].value
    assert "jackknife_values" not in record["cells"][0]
    assert not set("<>&") & set(outline.scripts[0])  # nothing in it can end the script element


def test_anchors_are_unique_and_links_resolve(outline):
    ids = outline.values("id")
    assert len(ids) == len(set(ids))
    assert {link[1:] for link in outline.values("href") if link.startswith("#")} <= set(ids)
    labels = outline.values("aria-labelledby")
    assert labels and set(labels) <= set(ids)


def test_headings_step_down_one_level_at_a_time(outline):
    levels = [int(tag[1]) for tag, _ in outline.elements if re.fullmatch(r"h[1-6]", tag)]
    assert levels.count(1) == 1
    assert all(later - earlier <= 1 for earlier, later in itertools.pairwise(levels))


def test_every_table_has_its_csv_and_every_figure_its_label_and_caption(outline):
    tags = [tag for tag, _ in outline.elements]
    assert tags.count("table") == len([link for link in outline.values("href") if link.startswith("data:text/csv")])
    assert tags.count("figure") == tags.count("figcaption")
    drawings = [attributes for tag, attributes in outline.elements if tag == "svg"]
    assert drawings and all(drawing["role"] == "img" and drawing["aria-label"] for drawing in drawings)


def test_it_says_what_it_is_for_and_that_it_holds_images(outline):
    assert "Research use, not a medical device." in outline.text
    assert "This page contains images." in outline.text


@pytest.mark.usefixtures("no_figures")
def test_without_images_there_are_none(demo):
    outline = Outline(write_report(demo).read_text(encoding="utf-8"))
    assert not [tag for tag, _ in outline.elements if tag == "img"]
    assert "This page contains images." not in outline.text
    assert "No images are shown" in outline.text


def test_no_absolute_path_is_shown(html, run):
    assert "/home/jane" not in html
    assert str(run) not in html


def test_it_is_small(html):
    assert len(html.encode()) < MEGABYTE


def test_forty_models_with_long_jackknives_stay_below_two_megabytes(tmp_path, examples, ranking, monkeypatch):
    monkeypatch.setattr(examples, "CANDIDATES", {f"model {index} · a source": index % 3 for index in range(40)})
    large = examples.ranking_record(seed=5)
    cells = [cell.model_copy(update={"jackknife_values": [0.123456789012345] * 500}) for cell in large.cells]
    directory = examples.write_run(tmp_path, large.model_copy(update={"cells": cells}))
    assert (directory / "report.json").stat().st_size > 2 * MEGABYTE
    assert write_report(directory).stat().st_size < 2 * MEGABYTE


def test_several_runs_share_one_page(run, demo, tmp_path):
    outline = Outline(write_report([run, demo], out=tmp_path / "both.html").read_text(encoding="utf-8"))
    ids = outline.values("id")
    assert len(ids) == len(set(ids))
    assert {"run-1-verdict", "run-2-verdict", "run-1-run", "run-2-run", "run-2-split"} <= set(ids)
    assert {link[1:] for link in outline.values("href") if link.startswith("#")} <= set(ids)
    assert "2 runs side by side" in outline.text
    assert [json.loads(script)["kind"] for script in outline.scripts[:2]] == ["ranking", "demo"]


def test_a_numeric_column_is_marked_for_sorting(html, ranking):
    value = ranking.ranking("logme").rows[0]
    assert f'data-sort="{ranking.cell(value.model, "logme").value}"' in html


def test_no_run_and_no_place_to_write(run, demo):
    with pytest.raises(UsageError, match="No run directory"):
        write_report([])
    with pytest.raises(UsageError, match="several runs needs a file"):
        write_report([run, demo])


@pytest.mark.usefixtures("no_figures")
def test_a_damaged_record_leaves_the_old_page_alone(tmp_path, examples, ranking):
    directory = examples.write_run(tmp_path, ranking)
    before = write_report(directory).read_bytes()
    (directory / "report.json").write_text("{", encoding="utf-8")
    with pytest.raises(DataError, match=r"report\.json"):
        write_report(directory)
    assert (directory / "report.html").read_bytes() == before


@pytest.mark.usefixtures("no_figures")
def test_a_failed_write_leaves_the_old_page_alone(tmp_path, examples, ranking, monkeypatch):
    directory = examples.write_run(tmp_path, ranking)
    before = write_report(directory).read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError, match="No space left"):
        write_report(directory)
    assert (directory / "report.html").read_bytes() == before
    assert sorted(path.name for path in directory.iterdir()) == ["report.html", "report.json", "run.json"]


@pytest.mark.usefixtures("no_figures")
def test_links_to_files_of_a_run_stand_only_where_they_hold(run, demo, tmp_path):
    links = {
        place: set(Outline(write_report(runs, out=out).read_text(encoding="utf-8")).values("href"))
        for place, runs, out in (
            ("home", demo, None),
            ("beside", demo, demo / "again.html"),
            ("elsewhere", demo, tmp_path / "page.html"),
            ("several", [demo, run], demo / "both.html"),
        )
    }
    holds = {place: "tune/report.html" in found for place, found in links.items()}
    assert holds == {"home": True, "beside": True, "elsewhere": False, "several": False}


def test_several_trainings_share_a_figure_of_their_curves(tmp_path, examples):
    runs = [examples.write_run(tmp_path / name, tuning_record(model=tuned_model(name=name))) for name in ("resnet18", "vit_tiny")]
    outline = Outline(write_report(runs, out=tmp_path / "page.html").read_text(encoding="utf-8"))
    assert "Balanced accuracy on validation images after each epoch, of 2 runs." in outline.text
    assert any("1. resnet18, 2. vit_tiny" in label for label in outline.values("aria-label"))
    alone = Outline(write_report(runs[0]).read_text(encoding="utf-8"))
    assert "after each epoch, of" not in alone.text
