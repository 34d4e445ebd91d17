"""Names that are written into a page stay text, whatever they hold, in every kind of report."""

import base64
import hashlib
import importlib.util
import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from crossgraft import write_report
from crossgraft.cli.main import main
from crossgraft.records.base import RunRecord
from crossgraft.tune.saving.save_model import model_card
from crossgraft.words.notebook import facts_table
from support.audit_records import audit_record
from support.comparison_records import comparison_record
from support.contact_sheet_records import sheets_record
from support.distillation_records import distillation_record
from support.editing_records import edit_record
from support.exported import own_classifier, saved
from support.fewshot_records import fewshot_record
from support.hostile import PLANTED, RAW, SHOWN, TAGS
from support.tuning_records import prediction_record, tuning_record

NAME = f"{TAGS}{PLANTED}"
EXAMPLES = Path(__file__).parents[1] / "unit" / "report" / "example_runs.py"


def example_runs():
    spec = importlib.util.spec_from_file_location("example_runs_of_security", EXAMPLES)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


class Outline(HTMLParser):
    """Elements with their attributes, the text that a reader sees, and the scripts."""

    def __init__(self, html):
        super().__init__()
        self.elements, self.text, self.scripts, self.comments, self._inside = [], "", [], [], ""
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self._inside = tag if tag in ("script", "style") else self._inside

    def handle_endtag(self, tag):
        self._inside = "" if tag == self._inside else self._inside

    def handle_comment(self, data):
        self.comments.append(data)

    def handle_data(self, data):
        if self._inside == "script":
            self.scripts.append(data)
        elif not self._inside:
            self.text += data


def records():
    examples = example_runs()
    return {
        "rank": lambda: examples.ranking_record(class_names=("malignant", "benign")),
        "demo": examples.demo_record,
        "check": examples.data_check_record,
        "tune": tuning_record,
        "predict": prediction_record,
        "compare": comparison_record,
        "fewshot": lambda: fewshot_record(examples.ranking_record().dataset, examples.ranking_record().models[0]),
        "edit": lambda: edit_record(examples.ranking_record().dataset),
        "list confounders": lambda: sheets_record(examples.ranking_record().dataset),
        "audit": lambda: audit_record(examples.ranking_record().dataset, examples.ranking_record().models[0]),
        "distil": lambda: distillation_record(examples.ranking_record().models[0]),
    }


NAMES = ("malignant", "tag", "breast", "BreastMNIST", "mobilenetv2_100", "hcs:0.6", "copa", "skin", "<script>alert(1)</script>")
"""Classes, data, models, variants and columns of the examples."""


@pytest.fixture(scope="module")
def page_of(tmp_path_factory):
    """`page_of("rank")`: the page of an example whose names are hostile, and its record."""
    makers, pages, examples = records(), {}, example_runs()

    def make(kind):
        if kind not in pages:
            folder = tmp_path_factory.mktemp("page") / "run"
            if kind == "published":
                published(folder)
            else:
                record = makers[kind]()
                document = record.model_dump_json()
                for name in NAMES:
                    document = document.replace(f'"{name}"', json.dumps(f"{name}{NAME}"))
                run = examples.run_record(command=kind)
                run = RunRecord.model_validate({**run.model_dump(), "command_line": f"crossgraft {kind} {NAME}"})
                examples.write_run(folder, type(record).model_validate_json(document), run=run)
                write_report(folder)
            pages[kind] = (
                (folder / "report.html").read_text(encoding="utf-8"),
                json.loads((folder / "report.json").read_text(encoding="utf-8")),
            )
        return pages[kind]

    return make


def published(folder):
    quoted = NAME.replace('"', '""')
    rows = "".join(f'"t{t}{quoted}","m{m}{quoted}",0.{t}{m},0.{m}{t}\n' for t in range(3) for m in range(4))
    table = folder.with_name("mine.csv")
    table.write_bytes(f"target,model,result,score {quoted[:0]}a\n{rows}".encode())
    assert main(["rank", "--published", str(table), "--out", str(folder)]) == 0


KINDS = (
    *("rank", "demo", "check", "tune", "predict", "compare", "fewshot", "distil", "edit", "audit"),
    *("list confounders", "published"),
)


@pytest.mark.parametrize("kind", KINDS)
def test_a_name_brings_no_element_and_no_attribute(page_of, kind):
    html, _ = page_of(kind)
    outline = Outline(html)
    assert TAGS in outline.text or kind == "published", "the name is on the page, as text"
    for tag, attributes in outline.elements:
        assert not [name for name in attributes if name.startswith("on")], (tag, attributes)
        if tag == "img":
            assert attributes["src"].startswith("data:image/png;base64,")
    assert outline.comments == []
    assert not {"iframe", "object", "embed", "base", "form", "link"} & {tag for tag, _ in outline.elements}


@pytest.mark.parametrize("kind", KINDS)
def test_no_name_turns_the_text_of_a_page_around(page_of, kind):
    html, _ = page_of(kind)
    assert RAW.search(html) is None
    assert SHOWN in Outline(html).text or kind == "published"


@pytest.mark.parametrize("kind", KINDS)
def test_the_record_on_the_page_is_whole_and_ends_no_script(page_of, kind):
    html, record = page_of(kind)
    outline = Outline(html)
    scripts = [attributes for tag, attributes in outline.elements if tag == "script"]
    assert [attributes.get("type") for attributes in scripts] == ["application/json", None]
    document, script = outline.scripts
    assert json.loads(document)["kind"] == record["kind"]
    assert PLANTED in document.encode().decode() or json.dumps(PLANTED)[1:-1] in document
    policy = next(a["content"] for tag, a in outline.elements if a.get("http-equiv") == "Content-Security-Policy")
    assert base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() in policy


def test_own_line_breaks_of_code_stay(page_of):
    html, _ = page_of("demo")
    code = re.findall(r"<code>(.*?)</code>", html, re.DOTALL)
    assert any(part.count("\n") >= 1 for part in code)
    assert not any(r"\n" in part.replace(SHOWN, "") for part in code if SHOWN not in part)


def test_a_table_in_a_notebook_is_escaped():
    shown = facts_table(NAME, {NAME: NAME})
    assert RAW.search(shown) is None
    assert "<img" not in shown


def test_a_model_card_is_one_document_without_hidden_text():
    facts = saved(own_classifier()).facts.model_copy(update={"class_names": [NAME, "a", "b"]})
    card = model_card(facts)
    assert RAW.search(card) is None
    assert "<img" not in card.replace(r"\<img", "")
    assert r"\u202e" in card.replace("\\\\", "\\")
