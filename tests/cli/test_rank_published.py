import json

from crossgraft.cli.main import main


def test_the_terminal_shows_tables_and_conclusions(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["rank", "--published", "thesis"]) == 0
    text = capsys.readouterr().out
    assert "75 of 75 printed cells" in text and "77 of 77 printed cells" in text
    assert " ".join(text.split()).count("Nothing beats the static prior") == 2
    assert all(len(line) <= 100 for line in text.splitlines())
    assert (tmp_path / "runs" / "rank-thesis" / "report.html").is_file()


def test_json_is_the_record(tmp_path, capsys):
    assert main(["rank", "--published", "itm", "--out", str(tmp_path / "run"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["kind"] == "published"


def test_flags_of_images_are_refused(capsys):
    assert main(["rank", "digits", "--published", "itm"]) == 2
    assert "cannot be used with DATA" in capsys.readouterr().err
    assert main(["rank", "--published", "itm", "--seed", "1"]) == 2
    assert "cannot be used with --seed" in capsys.readouterr().err


def test_rank_without_images_says_what_to_do(capsys):
    assert main(["rank"]) == 2
    assert "Name the images to rank for" in capsys.readouterr().err
