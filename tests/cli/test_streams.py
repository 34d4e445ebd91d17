"""Terminals and pipes that cannot show every character: code pages of Windows, plain ASCII."""

import io
import json
import subprocess
import sys

import pytest

from crossgraft.cli.main import run
from crossgraft.cli.output import print_json
from support.tiny import make_images


@pytest.fixture
def narrow_streams(monkeypatch):
    """`narrow_streams("cp1252")`: stdout and stderr of that encoding; read them with `.buffer.getvalue()`."""

    def replace(encoding):
        streams = [io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors="strict") for _ in range(2)]
        for name, stream in zip(("stdout", "stderr"), streams, strict=True):
            monkeypatch.setattr(sys, name, stream)
        return streams

    return replace


def shown(stream):
    stream.flush()
    return stream.buffer.getvalue().decode(stream.encoding)


@pytest.mark.parametrize("encoding", ["cp1252", "ascii"])
def test_what_a_stream_can_not_show_does_not_stop_the_command(tmp_path, monkeypatch, narrow_streams, encoding):
    make_images(tmp_path / "scans 🫁 胸部", {"gutartig ä": 6, "悪性": 6})
    monkeypatch.chdir(tmp_path)
    out, err = narrow_streams(encoding)
    with pytest.raises(SystemExit) as ended:
        run(["check", "scans 🫁 胸部", "--workers", "1", "--verbose"])
    assert ended.value.code == 0, shown(err)
    assert "scans ? ??" in shown(out)
    assert ("gutartig ä" if encoding == "cp1252" else "gutartig ?") in shown(out)
    (report,) = tmp_path.glob("runs/*/report.html")
    assert "悪性" in report.read_text(encoding="utf-8"), "files are UTF-8 whatever the terminal is"


@pytest.mark.parametrize("encoding", ["cp1252", "ascii"])
def test_json_stays_whole(narrow_streams, encoding):
    out, _ = narrow_streams(encoding)
    document = {"name": "gutartig ä 悪性 🫁", "value": 0.1}
    print_json(json.dumps(document, ensure_ascii=False))
    assert json.loads(shown(out)) == document


def test_an_error_can_be_shown_everywhere(tmp_path, monkeypatch, narrow_streams):
    monkeypatch.chdir(tmp_path)
    _, err = narrow_streams("cp1252")
    with pytest.raises(SystemExit) as ended:
        run(["check", "悪性"])
    assert ended.value.code == 3
    assert "No such folder: ??" in shown(err)


def test_the_module_is_the_command():
    command = [sys.executable, "-m", "crossgraft", "--version"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.startswith("crossgraft ")
