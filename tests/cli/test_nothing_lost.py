"""No byte of an input or of an earlier result changes, unless the command ends well and was told to."""

import shutil

import pytest

TUNE = ("tune", "images", "--model", "zoo.yaml:small", "--code", "tiny_models.py", "--method", "linear", "--epochs", "1")
QUICK = ("--device", "cpu", "--workers", "1", "--no-images", "--quiet")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with everything that a user may have, made once."""
    import sys

    from crossgraft.cli.main import main
    from support.tiny import make_workspace

    folder = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.syspath_prepend(str(folder))
        patch.delitem(sys.modules, "tiny_models", raising=False)
        make_workspace(folder)
        rows = [f"{file.relative_to(folder)},{file.parent.name}" for file in sorted((folder / "images").rglob("*.png"))]
        (folder / "t.csv").write_text("path,label\n" + "\n".join(rows) + "\n")
        name = (folder / "zoo.yaml").read_text().split("name:")[1].split("\n")[0].split(",")[0].strip()
        tune = [word.replace("zoo.yaml:small", f"zoo.yaml:{name}") for word in TUNE]
        code = ("--code", "tiny_models.py", "--quiet")
        for words in (
            ("check", "images", "--out", "RUN_CHECK", "--quiet"),
            ("edit", "images", "e", "--with", "tag", "--quiet"),
            ("split", "images", "--out", "s.json", "--quiet"),
            ("split", "images", "--seed", "1", "--out", "other.json", "--quiet"),
            (*tune, *QUICK, "--out", "RUN"),
            ("predict", "RUN", "images", "--out", "P", "--no-images", *code),
            ("export", "RUN", "--out", "X", *code),
        ):
            assert main(list(words)) in (0, 3), words
        sys.modules.pop("tiny_models", None)
    (folder / "RUN" / "notes.txt").write_text("mine")
    (folder / "X2").mkdir()
    shutil.copytree(folder / "X", folder / "X2", dirs_exist_ok=True)
    (folder / "X2" / "thesis.txt").write_text("mine")
    (folder / "classes.txt").write_text("red\ngreen\n")
    (folder / "page.html").write_text("<html>mine</html>")
    (folder / "plain").mkdir()
    (folder / "plain" / "thesis.txt").write_text("mine")
    (folder / "NAME").write_text(name)
    return folder


@pytest.fixture
def place(made, tmp_path, monkeypatch):
    folder = tmp_path / "here"
    shutil.copytree(made, folder, symlinks=True)
    (folder / "link").symlink_to(folder / "RUN")
    (folder / "t_link.csv").symlink_to(folder / "t.csv")
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))
    return folder


def content(folder):
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in sorted(folder.rglob("*"))
        if file.is_file() and file.name != ".lock" and "__pycache__" not in file.parts
    }


OVER = "--overwrite"
FORMS = """
split images --out t.csv --overwrite
split images --out t.csv
split t.csv --out t.csv --overwrite
split t.csv --out t_link.csv --overwrite
split images --out zoo.yaml --overwrite
split images --out RUN --overwrite
split images --out RUN/report.json --overwrite
split images --out RUN/run.json --overwrite
split images --out page.html --overwrite
split images --out classes.txt --class-names classes.txt --overwrite
split images --split s.json --out s.json --overwrite
split images --seed 2 --out s.json
split imagez --out s.json --overwrite
split images --seed 2 --out RUN/split.json --overwrite
split images --seed 2 --out link/split.json --overwrite
report RUN --out RUN_CHECK/report.html
report RUN RUN_CHECK --out RUN_CHECK/report.html
report RUN_CHECK --out link/report.html
report RUN --out t.csv
report RUN --out t_link.csv
report RUN --out page.html
report RUN --out RUN/report.json
report RUN --out RUN/run.json
report RUN --out RUN/split.json
report RUN --out RUN/model/model.json
report RUN --out RUN/model/weights.safetensors
report RUN RUN_CHECK --out RUN_CHECK/report.json
report RUN --out s.json
report RUN --out images
report plain --out plain/thesis.txt
check imagez --out RUN --overwrite
check imagez --out RUN_CHECK --overwrite
check RUN --out RUN --overwrite
check e/labels.csv --out e --overwrite
check e --out e --overwrite
check images --out plain --overwrite
check images --split RUN/split.json --out RUN --overwrite
check images --split link/split.json --out RUN --overwrite
check images --split RUN/split.json --out link --overwrite
check t.csv --label-column nothing --out RUN --overwrite
edit e/labels.csv e --with tag
edit e/labels.csv e --with tag --overwrite
edit e e --with gamma --overwrite
edit imagez e --with tag --overwrite
edit images e --with nothing --overwrite
edit t.csv e --image-root e --with tag --overwrite
edit images RUN --with tag --among nothing --overwrite
TUNE imagez --out RUN --overwrite
TUNE images --split RUN/split.json --out RUN --overwrite
TUNE images --split RUN/nothing.json --out RUN --overwrite
TUNE images --split other.json --epochs 0 --out RUN --overwrite
TUNE images --model RUN/model --out RUN --overwrite
predict RUN images --out RUN --overwrite
predict link images --out RUN --overwrite
predict RUN/model images --out RUN --overwrite
predict RUN imagez --out P --overwrite
predict P images --out P --overwrite
compare RUN RUN --data images --out RUN --overwrite
compare RUN e --data images --out e --overwrite
compare RUN RUN --data imagez --out P --overwrite
interpolate RUN images --out RUN --overwrite
interpolate RUN imagez --out P --overwrite
distil RUN RUN --data images,images --model zoo.yaml --code tiny_models.py --out RUN --overwrite
audit RUN --data images --out RUN --overwrite
audit RUN --out RUN --overwrite
audit RUN --data imagez --confounder tag --out P --overwrite
rank images --models RUN/model --out RUN --overwrite
rank imagez --models zoo.yaml --code tiny_models.py --out RUN --overwrite
rank --published RUN/known.csv --out RUN --overwrite
rank --published t.csv --out RUN --overwrite
select --replay t.csv --out RUN --overwrite
list confounders --data imagez --out RUN --overwrite
list confounders --data e --out e --overwrite
export RUN --out RUN --overwrite
export RUN --out X2 --overwrite
export X --out X --overwrite
export imagez --out X --overwrite
export RUN --out X
""".strip().splitlines()


@pytest.mark.parametrize("form", FORMS)
def test_a_command_that_does_not_end_well_changes_nothing(form, place, crossgraft):
    if form.startswith("TUNE"):
        name = (place / "NAME").read_text()
        data, *more = form.split()[1:]
        words = ["tune", data, "--model", f"zoo.yaml:{name}", "--code", "tiny_models.py", "--method", "linear", *more]
    else:
        words = form.split()
        if words[0] in ("predict", "compare", "interpolate", "audit", "export"):
            words += ["--code", "tiny_models.py"]
    before = content(place)
    done = crossgraft(*words)
    assert done.code not in (0, 1), done.err
    after = content(place)
    assert {name for name in before if after.get(name) != before[name]} == set()
