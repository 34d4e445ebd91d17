"""Where paths may lead: a table opens nothing outside the folder of its images, and no path ends in an internal error."""

import inspect
import json
import re

import pytest

from crossgraft import check_data, fine_tune, predict, rank_models
from crossgraft.cli.main import main
from crossgraft.data import open_dataset
from crossgraft.errors import DataError, UnreadableImageError
from support.tiny import make_images
from support.unlabelled import open_images


@pytest.fixture
def study(tmp_path, monkeypatch):
    """The current folder, with `study/a/*.png` and `study/b/*.png`; beside them `secret/a/00.png`."""
    make_images(tmp_path / "study", {"a": 3, "b": 3}, size=8)
    make_images(tmp_path / "secret", {"a": 1}, size=9)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "study"


def table(folder, *extra, labels=True):
    """`labels.csv` of the six images and of the paths `extra`."""
    paths = [f"{name}/0{i}.png" for name in "ab" for i in range(3)]
    rows = [f"{path},{path[0]}" if labels else path for path in paths]
    rows += [f"{path},a" if labels else path for path in extra]
    header = "path,label" if labels else "path"
    (folder / "labels.csv").write_text("\n".join([header, *rows]) + "\n")
    return folder / "labels.csv"


def way_out(study, way):
    """A path that leaves the folder of the table."""
    if way == "dots":
        return "../secret/a/00.png"
    if way == "dots without extension":
        return "a/../../secret/a/00"
    if way == "absolute":
        return str(study.parent / "secret" / "a" / "00.png")
    if way == "linked file":
        (study / "a" / "link.png").symlink_to(study.parent / "secret" / "a" / "00.png")
        return "a/link.png"
    (study / "linked").symlink_to(study.parent / "secret")
    return "linked/a/00.png"


WAYS = ("dots", "dots without extension", "absolute", "linked file", "linked folder")


@pytest.mark.parametrize("labels", [True, False])
@pytest.mark.parametrize("way", WAYS)
def test_a_path_that_leaves_the_folder_of_the_table_is_refused_unless_it_is_allowed(study, way, labels):
    opening = open_dataset if labels else open_images
    path = way_out(study, way)
    file = table(study, path, labels=labels)
    with pytest.raises(DataError) as caught:
        opening(file)
    message = str(caught.value)
    assert f"{path} in line 8 of labels.csv" in message and message.startswith("1 of 7 image files ")
    assert "--allow-outside" in message
    opened = opening(file, allow_outside=True)
    assert opened.read(6).shape == (9, 9, 3)


@pytest.mark.parametrize("path", ["../secret/a/none.png", "../secret/none", "/nowhere/x.png"])
def test_whether_there_is_a_file_outside_is_not_told(study, path):
    with pytest.raises(DataError, match="--allow-outside"):
        open_dataset(table(study, path))


def test_the_root_is_what_the_user_says(study):
    file = table(study, "../secret/a/00.png")
    with pytest.raises(DataError, match=r"secret/a/00\.png in line 8"):
        open_dataset(file, image_root=study)
    file.write_text(file.read_text().replace("../", "").replace("\na/", "\nstudy/a/").replace("\nb/", "\nstudy/b/"))
    assert len(open_dataset(file, image_root=study.parent)) == 7


def test_paths_that_stay_inside_are_read_however_they_are_written(study):
    file = table(study)
    text = file.read_text().replace("a/00", "b/../a/00").replace("a/01.png", str(study / "a" / "01.png"))
    file.write_text(text)
    (study / "b" / "01.png").rename(study / "b" / "real.png")
    (study / "b" / "01.png").symlink_to("real.png")
    assert len(open_dataset(file)) == 6
    (study.parent / "linked").symlink_to(study)
    file.write_text(text.replace(str(study), str(study.parent / "linked")))
    assert len(open_dataset(study.parent / "linked" / "labels.csv")) == 6


def test_a_folder_of_links_is_read_as_before(study):
    (study / "b" / "link.png").symlink_to(study.parent / "secret" / "a" / "00.png")
    assert len(open_dataset(study)) == 7


def test_every_command_that_opens_a_table_has_the_flag(study, capsys):
    for function in (open_dataset, check_data, rank_models, fine_tune, predict):
        assert inspect.signature(function).parameters["allow_outside"].default is False
    table(study, "../secret/a/00.png")
    code = main(["check", "study/labels.csv", "--out", "run", "--quiet"])
    said = capsys.readouterr()
    assert code == 3 and "../secret/a/00.png in line 8 of labels.csv" in said.err and not said.out
    (study.parent / "c.yaml").write_text("allow_outside: true\n")
    assert main(["check", "study/labels.csv", "--out", "run-0", "--quiet", "--allow-outside"]) == 0
    assert main(["check", "study/labels.csv", "--out", "run-1", "--quiet", "--config", "c.yaml"]) == 2
    assert "which a file cannot allow" in capsys.readouterr().err
    run = json.loads((study.parent / "run-0" / "run.json").read_text())
    assert "--allow-outside" in run["command_line"]
    for command in ("rank", "tune", "predict"):
        main([command, "--help"])
        assert "--allow-outside" in capsys.readouterr().out


def test_a_permission_makes_no_other_run(study, capsys):
    """A run that was made before the flag existed goes on under it, and the flag changes no number."""
    table(study)
    assert main(["check", "study/labels.csv", "--out", "run", "--quiet"]) == 0
    assert main(["check", "study/labels.csv", "--out", "run", "--quiet", "--allow-outside"]) == 0
    assert "allow_outside" not in json.loads((study.parent / "run" / "run.json").read_text())["config"]


def saved_dataset(folder, path):
    """A folder as `save_to_disk` leaves it, whose images are only named."""
    datasets = pytest.importorskip("datasets")
    from datasets.arrow_writer import ArrowWriter

    folder.mkdir()
    made = datasets.Dataset.from_dict({"image": [str(path)] * 4, "label": [0, 1, 0, 1]})
    made = made.cast_column("image", datasets.Image(decode=False))
    with ArrowWriter(features=made.features, path=str(folder / "data.arrow")) as writer:
        writer.write_table(made.data.table)
        writer.finalize()
    (folder / "state.json").write_text('{"_data_files": [{"filename": "data.arrow"}], "_split": null}')
    (folder / "dataset_info.json").write_text("{}")
    return folder


def test_a_dataset_of_hugging_face_names_no_file_outside_its_folder(study):
    outside = study.parent / "secret" / "a" / "00.png"
    folder = saved_dataset(study.parent / "saved", outside)
    with pytest.raises(DataError, match=rf"{outside} in row 0; .*--allow-outside"):
        open_dataset(folder)
    assert open_dataset(folder, allow_outside=True).read(3).shape == (9, 9, 3)
    folder = saved_dataset(study.parent / "whole", study.parent / "whole" / "00.png")
    outside.rename(folder / "00.png")
    assert open_dataset(folder).read(3).shape == (9, 9, 3)


LONG = "x" * 5000


@pytest.fixture
def odd(study):
    """Links that lead in a circle: a folder `round`, an image, a table, an npz file, weights."""
    folder = study.parent
    for name in ("round", "round.csv", "round.npz", "round.yaml", "round.safetensors", "study/a/round.png", "study/a/round.dcm"):
        (folder / name).symlink_to(folder / name)
    return folder


IMPOSSIBLE = (
    *(["check", location] for location in ("round", "round/below", "round.csv", "round.npz", LONG, f"{LONG}.csv", f"{LONG}.npz")),
    *(["check", "study/labels.csv", "--image-root", root] for root in ("round", LONG)),
    *(["check", "study/labels.csv", "--split", file] for file in ("round.yaml", LONG)),
    *(["check", "study/labels.csv", "--class-names", file] for file in ("round.yaml", LONG)),
    *(["check", "study/labels.csv", "--config", file] for file in ("round.yaml", LONG)),
    *(["check", "study/labels.csv", "--out", folder] for folder in ("round", "round/below", LONG)),
    *(["rank", "study/labels.csv", "--models", models] for models in ("round.safetensors", "round.yaml", LONG, f"{LONG}.yaml")),
    *(["rank", "study/labels.csv", "--weights-dir", folder] for folder in ("round", LONG)),
    *(["tune", "study/labels.csv", "--model", "resnet18", "--adapter", folder, "--method", "lora"] for folder in ("round", LONG)),
    *(["predict", run, "study"] for run in ("round", LONG)),
    *(["export", run] for run in ("round", LONG)),
    *(["report", run] for run in ("round", LONG)),
)


@pytest.mark.parametrize("arguments", IMPOSSIBLE, ids=lambda words: " ".join(word[:20] for word in words))
def test_no_path_ends_in_an_internal_error(odd, capsys, arguments):
    table(odd / "study")
    code = main([*arguments, "--quiet"] if arguments[0] not in ("export", "report") else list(arguments))
    said = capsys.readouterr()
    assert code in (1, 2, 3, 4) and re.match(r"(Starting [a-z ]+\.\n)?Error: ", said.err), said.err
    assert "Internal error" not in said.err and "Errno" not in said.err
    assert len(said.err) < 1500 or LONG not in said.err


def test_an_image_that_is_a_circle_of_links_is_unreadable(odd, capsys):
    for opening in (open_dataset, open_images):
        with pytest.raises(UnreadableImageError, match=r"a/round\.\w+: its symbolic links lead in a circle"):
            opening(odd / "study")
        assert len(opening(odd / "study", skip_unreadable=True).readable()) == 6
    with pytest.raises(DataError, match=r"1 of 7 image files do not exist .*a/round\.png in line 8"):
        open_dataset(table(odd / "study", "a/round.png"))


@pytest.mark.parametrize(
    "path", [LONG, f"a/{LONG}.png", f"{LONG}/a.png", "a/" * 1300 + "x.png"], ids=["name", "file", "folder", "deep"]
)
def test_a_path_of_thousands_of_characters_in_a_table_does_not_exist(study, path):
    with pytest.raises(DataError, match=r"1 of 7 image files do not exist .*\([256],\d{3} characters\) in line 8") as caught:
        open_dataset(table(study, path))
    assert len(str(caught.value)) < 1500


@pytest.mark.parametrize("path", ["a/02.png\0/../x", "a/02.png\0", "a\0/02.png", "a\0/../b/x.png"])
def test_a_path_with_nul_in_a_table_does_not_exist(study, path):
    for labels, opening in ((True, open_dataset), (False, open_images)):
        file = table(study, path, labels=labels)
        for allow_outside in (False, True):
            with pytest.raises(DataError, match=r"1 of 7 image files do not exist .* in line 8 of labels"):
                opening(file, allow_outside=allow_outside)
    for way in ("../secret/a/00.png\0", "a\0/../../secret/a/00.png"):
        with pytest.raises(DataError, match=r"1 of 7 image files is not in .*--allow-outside"):
            open_dataset(table(study, way))


def test_a_path_with_nul_in_a_dataset_of_hugging_face_is_unreadable(study):
    folder = saved_dataset(study.parent / "saved", f"{study.parent / 'saved'}/a.png\0/../x")
    with pytest.raises(UnreadableImageError, match="row 0: "):
        open_dataset(folder)


def test_a_long_path_in_a_dataset_of_hugging_face_is_unreadable(study):
    folder = saved_dataset(study.parent / "saved", study.parent / "saved" / LONG)
    with pytest.raises(UnreadableImageError, match="row 0: its name is longer than the system allows"):
        open_dataset(folder)
