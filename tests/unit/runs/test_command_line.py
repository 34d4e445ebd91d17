"""The command that gives a run again, as a file and as a terminal may show it."""

from crossgraft.options import RankOptions
from crossgraft.runs.command_line import command_line


def test_a_file_has_the_last_part_of_a_path_and_a_terminal_the_way_to_it_from_here(tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")

    def line(data, **options):
        return command_line("rank", data, {"weights_dir": "/elsewhere/w"}, RankOptions, out="runs/r", **options)

    inside = str(tmp_path / "here" / "data" / "a.csv")
    assert line(inside) == "crossgraft rank a.csv --weights-dir w --out runs/r"
    assert line(inside, from_here=True) == "crossgraft rank data/a.csv --weights-dir '…/w' --out runs/r"
    assert line("data/a.csv", from_here=True) == "crossgraft rank data/a.csv --weights-dir '…/w' --out runs/r"
    assert str(tmp_path) not in line(inside, from_here=True)
