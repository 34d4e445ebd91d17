"""The command that a page prints runs again in a shell, and gives the same numbers."""

import html
import json
import re
import shlex
import shutil

import pytest

import crossgraft as package

CODE = ("--code", "it's code")
OUT = 'out "1"'
DATA = "it's my data"


@pytest.fixture
def oddly_named(workspace):
    """The workspace, with names that a shell would take apart."""
    (workspace / "images").rename(workspace / DATA)
    (workspace / "it's code").mkdir()
    (workspace / "tiny_models.py").rename(workspace / "it's code" / "tiny_models.py")
    (workspace / "zoo.yaml").rename(workspace / "my $zoo.yaml")
    return workspace


def printed(folder):
    page = text_of((folder / "report.html").read_text(encoding="utf-8"))
    (line,) = re.findall(r"<summary>Command</summary>\s*<pre[^>]*><code>([^<]*)\n</code>", page)
    return html.unescape(line)


@pytest.mark.parametrize(
    "typed",
    [
        ("check", DATA, "--holdout", "0.25", "--seed", "3"),
        ("rank", DATA, "--models", "my $zoo.yaml", *CODE, "--scores", "logme", "--limit", "20", "--workers", "1", "--no-images"),
        ("rank", "--published", "itm"),
    ],
    ids=["check", "rank", "published"],
)
def test_the_printed_command_gives_the_same_numbers(typed, oddly_named, crossgraft):
    first = crossgraft(*typed, "--out", OUT, "--quiet", "--json")
    assert first.code in (0, 3), first.err
    line = printed(oddly_named / OUT)
    words = shlex.split(line)
    assert set(typed) <= set(words), line
    shutil.rmtree(oddly_named / OUT)
    again = crossgraft(*words[1:], "--quiet", "--json")
    assert again.code == first.code, again.err
    assert numbers(again.out) == numbers(first.out)
    assert printed(oddly_named / OUT) == line


def numbers(document):
    """Without seconds and bytes, which differ from run to run."""
    return re.sub(
        r'"(\w*seconds|peak_bytes|features_from_cache)":[^,}]+', "", json.dumps(json.loads(document), separators=(",", ":"))
    )


def text_of(page):
    """The page with what is to be copied in one piece."""
    return re.sub(r"</?span[^>]*>", "", page)


def test_a_call_in_python_is_printed_as_one(workspace):
    package.check_data("images", holdout=0.25, out="run")
    page = html.unescape(text_of((workspace / "run" / "report.html").read_text(encoding="utf-8")))
    assert "Call in Python" in page
    assert "crossgraft.check_data('images', holdout=0.25, out='run')" in page
    assert re.search(r">crossgraft rank images --holdout 0.25 --models [a-z0-9_,]+ --allow-download\n<", page)
    assert json.loads((workspace / "run" / "run.json").read_text())["as_typed"].startswith("crossgraft check images")


def test_what_no_command_line_can_name_is_a_placeholder_in_the_next_command(workspace, crossgraft):
    package.check_data(package.data.open_dataset("images"), out="run")
    page = html.unescape(text_of((workspace / "run" / "report.html").read_text(encoding="utf-8")))
    assert ">crossgraft rank DATA --models mobilenetv3_small_100,resnet18 --allow-download\n" in page
    assert crossgraft("check", "images", "--out", "typed").code == 0
    assert json.loads((workspace / "typed" / "run.json").read_text())["as_typed"] is None
