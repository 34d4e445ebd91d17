"""Datasets of Hugging Face: saved folders, the local cache, columns of all kinds."""

import io
import json
import shutil
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from PIL import Image

from crossgraft.data import open_dataset
from crossgraft.data.listing import list_rows, location_text
from crossgraft.data.sources import SOURCES, SourceRequest
from crossgraft.errors import DataError, MissingError, MissingExtraError, UnreadableImageError, UsageError
from crossgraft.progress import Reporter

datasets = pytest.importorskip("datasets", reason="the extra hf is not installed")

ROWS = 8


def png(seed, *, mode="RGB", size=(6, 5)):
    rng = np.random.default_rng(seed)
    high = 65535 if mode == "I;16" else 255
    shape = (size[1], size[0], 3) if mode == "RGB" else (size[1], size[0])
    samples = rng.integers(0, high, shape, endpoint=True).astype(np.uint16 if mode == "I;16" else np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(samples).save(buffer, format="PNG")
    return {"bytes": buffer.getvalue(), "path": None}, samples


def images(count=ROWS, *, start=0, mode="RGB"):
    return [png(start + i, mode=mode)[0] for i in range(count)]


def classes(*names):
    return datasets.ClassLabel(names=list(names or ("benign", "malignant")))


def dataset(columns, *, count=ROWS, start=0, **features):
    """`image` and the given columns; features that are not named are inferred."""
    made = datasets.Dataset.from_dict({"image": images(count, start=start), **columns})
    return made.cast(datasets.Features({**made.features, "image": datasets.Image(), **features}))


def two_classes(**more):
    return dataset({"label": [0, 1] * (ROWS // 2), **more}, label=classes())


@pytest.fixture
def saved(tmp_path):
    """`saved(dataset)`: the folder `chest` that `save_to_disk` writes."""

    def save(made, name="chest"):
        made.save_to_disk(tmp_path / name)
        return tmp_path / name

    return save


def test_a_saved_dataset_opens_with_its_class_names_in_their_order(saved):
    made = dataset({"label": [1, 0] * (ROWS // 2)}, label=classes("z first", "a second"))
    opened = open_dataset(saved(made))
    assert (opened.source, opened.name) == ("hf_dataset", "chest")
    assert opened.class_names == ("z first", "a second")
    assert opened.targets.tolist() == [1, 0] * (ROWS // 2)
    assert opened.splits is None
    np.testing.assert_array_equal(opened.read(3), png(3)[1])


def test_sixteen_bit_samples_stay_sixteen_bit(saved):
    made = datasets.Dataset.from_dict({"image": images(mode="I;16"), "label": [0, 1] * (ROWS // 2)})
    opened = open_dataset(saved(made.cast_column("image", datasets.Image())))
    assert opened.image_kinds == {"5×6 grey 16-bit": ROWS}
    np.testing.assert_array_equal(opened.read(2)[..., 0], png(2, mode="I;16")[1])


def test_only_rows_of_the_split_are_opened(saved):
    poison = datasets.Dataset.from_dict({"image": [{"bytes": b"poison", "path": None}] * ROWS, "label": [9] * ROWS})
    poison = poison.cast(datasets.Features({"image": datasets.Image(), "label": datasets.Value("int64")}))
    sound = dataset({"label": [0, 1] * (ROWS // 2)}, label=datasets.Value("int64"))
    folder = saved(datasets.DatasetDict(train=sound, validation=sound, test=poison))
    for file in (folder / "test").glob("*.arrow"):
        file.write_bytes(b"not even Arrow")
    opened = open_dataset(folder)
    assert opened.class_names == ("0", "1")
    assert set(opened.splits) == {"train"}
    assert opened.image_name(3) == "train row 3"
    assert len(open_dataset(folder, use_split="val")) == ROWS
    with pytest.raises(DataError, match="The dataset chest is damaged"):
        open_dataset(folder, use_split="test")


def test_all_splits_are_one_listing_when_they_are_asked_for(saved):
    parts = {"train": two_classes(), "validation": dataset({"label": [1] * 3}, count=3, start=50, label=classes())}
    opened = open_dataset(saved(datasets.DatasetDict(parts)), use_split=None)
    assert opened.splits.tolist() == ["train"] * ROWS + ["val"] * 3
    assert opened.image_name(ROWS + 1) == "val row 1"
    np.testing.assert_array_equal(opened.read(ROWS + 1), png(51)[1])


def test_splits_with_other_classes_are_refused_together(saved):
    parts = {"train": two_classes(), "test": dataset({"label": [0] * ROWS}, label=classes("malignant", "benign"))}
    folder = saved(datasets.DatasetDict(parts))
    with pytest.raises(DataError, match="The splits of the dataset chest have different columns or classes"):
        open_dataset(folder, use_split=None)


def test_a_part_without_any_label_is_left_out_and_said(saved, reporter):
    """Benchmarks mark a hidden test part with -1: it is no part to measure on, so that another can be drawn."""
    hidden = dataset({"label": [-1] * ROWS}, label=classes())
    folder = saved(datasets.DatasetDict(train=two_classes(), test=hidden))
    opened = open_dataset(folder, use_split=None, reporter=reporter)
    assert set(opened.splits) == {"train"} and len(opened.targets) == ROWS
    assert "has no label in the split test, which is left out." in " ".join(reporter.stream.getvalue().split())
    for use_split, num_kept in ((None, ROWS), ("train", ROWS // 2)):
        drawn = open_dataset(folder, use_split=use_split, default_split=True)
        assert len(drawn) == num_kept and drawn.split is not None, "test is drawn from train, for rank as for tune"
    _, rows = list_rows(folder, SourceRequest(use_split="train"), reporter)
    assert rows.split_names == ("train",)
    with pytest.raises(DataError, match=r"The label is -1 in test row 0.*--uncertain leave-out"):
        open_dataset(folder, use_split="test")


def test_a_column_of_splits_is_followed(saved):
    folder = saved(two_classes(split=["train"] * 4 + ["validation"] * 4))
    opened = open_dataset(folder, use_split="val")
    assert (opened.image_name(0), opened.split_method) == ("row 4", "column split of the dataset")
    np.testing.assert_array_equal(opened.read(1), png(5)[1])


def test_a_folder_saved_from_the_test_split_says_so(saved, reporter):
    made = datasets.Dataset.from_dict({"image": images(), "label": [0, 1] * 4}, split=datasets.Split.TEST)
    open_dataset(saved(made.cast_column("image", datasets.Image())), reporter=reporter)
    assert "chest was saved from the split test; all its rows are used." in reporter.stream.getvalue()


def test_groups_and_attributes(saved):
    made = two_classes(
        patient=[7, 7, 8, 8, 9, 9, 10, 10],
        age=[40, 41, None, 43, 44, 45, 46, 47],
        sex=["f", "m", None, "f", "f", "m", "m", "f"],
        site=[0, 1, 0, 1, 0, 1, 0, 1],
        report=["x" * 1000] * ROWS,
        box=[[1, 2]] * ROWS,
    ).cast_column("site", classes("north", "south"))
    opened = open_dataset(saved(made))
    assert opened.group_column == "patient"
    assert opened.groups.tolist() == ["7", "7", "8", "8", "9", "9", "10", "10"]
    assert set(opened.attributes) == {"age", "sex", "site"}
    assert np.isnan(opened.attributes["age"][2]) and opened.attributes["age"][3] == 43
    assert opened.attributes["sex"].tolist()[:3] == ["f", "m", ""]
    assert opened.attributes["site"].tolist()[:2] == ["north", "south"]


def test_columns_can_be_chosen(saved):
    made = dataset(
        {"fine": [0, 1] * 4, "coarse": [1, 1, 0, 0] * 2, "hospital": ["a", "b"] * 4, "mask": images(start=90)},
        fine=classes("a", "b"),
        coarse=classes("c", "d"),
        mask=datasets.Image(),
    )
    folder = saved(made)
    with pytest.raises(DataError, match=r"Several columns of chest hold images: image, mask. Choose .* --path-column"):
        open_dataset(folder, label_column="fine")
    with pytest.raises(DataError, match=r"Several columns of chest could hold the labels: fine, coarse"):
        open_dataset(folder, path_column="mask")
    opened = open_dataset(folder, path_column="mask", label_column="coarse", group_column="hospital")
    assert opened.class_names == ("c", "d")
    assert opened.groups.tolist()[:2] == ["a", "b"]
    np.testing.assert_array_equal(opened.read(0), png(90)[1])
    with pytest.raises(DataError, match=r"The column fine of chest holds ClassLabel.*, not images"):
        open_dataset(folder, path_column="fine")
    with pytest.raises(DataError, match=r"has no column coarce. Did you mean coarse"):
        open_dataset(folder, path_column="image", label_column="coarce")


@pytest.mark.parametrize(
    ("values", "names"),
    [
        ([3, 1] * 4, ("1", "3")),
        (["sick", "healthy"] * 4, ("healthy", "sick")),
        ([1.0, 0.0] * 4, ("0", "1")),
        ([True, False] * 4, ("False", "True")),
    ],
)
def test_labels_that_are_no_class_label(saved, values, names):
    opened = open_dataset(saved(dataset({"diagnosis": values})))
    assert opened.class_names == names
    assert opened.targets.tolist() == [1, 0] * 4


@pytest.mark.parametrize(
    ("labels", "feature", "message"),
    [
        ([0, None] * 4, "ClassLabel", r"The label is not a number in row 1 and 3 more \(column label\)"),
        ([0, -1] * 4, "ClassLabel", r"The label is -1 in row 1 \(column label\), which says that it is not known"),
        (["a", None] * 4, "string", r"The label is missing in row 1"),
        ([0.5, 1.0] * 4, "float32", r"The labels are not whole numbers: 0.5 in row 0"),
        ([b"a", b"b"] * 4, "binary", r"The column label holds Value\('binary'\), which cannot be labels"),
        ([[0], None] * 4, "list", r"A label is missing in row 1"),
    ],
)
def test_labels_that_are_none(saved, labels, feature, message):
    kinds = {"ClassLabel": classes(), "list": datasets.Sequence(classes())}
    folder = saved(dataset({"label": labels}, label=kinds.get(feature) or datasets.Value(feature)))
    with pytest.raises(DataError, match=message):
        open_dataset(folder)


def rows_of(folder, **request):
    """What the source lists, before classes are made of it."""
    return SOURCES.get("hf_dataset").open(str(folder), SourceRequest(**request))


@pytest.mark.parametrize(
    ("cells", "item", "length", "names", "labels"),
    [
        ([[0, 2], [], [1]], "class", -1, ("mass", "edema", "nodule"), [[1, 0, 1], [0, 0, 0], [0, 1, 0]]),
        ([["b", "a"], ["b"], []], "string", -1, ("a", "b"), [[1, 1], [0, 1], [0, 0]]),
        ([[10], [2, 10], []], "int64", -1, ("2", "10"), [[0, 1], [1, 1], [0, 0]]),
        ([[0, 1, 0], [0, 0, 0], [1, 1, 1]], "int8", 3, ("0", "1", "2"), [[0, 1, 0], [0, 0, 0], [1, 1, 1]]),
    ],
)
def test_lists_are_several_labels_an_image(saved, cells, item, length, names, labels):
    feature = classes("mass", "edema", "nodule") if item == "class" else datasets.Value(item)
    made = dataset({"labels": cells}, count=3, labels=datasets.Sequence(feature, length=length))
    rows = rows_of(saved(made))
    assert (rows.label_names, rows.labels.tolist()) == (names, labels)


def test_a_separator_parts_the_labels_of_one_cell(saved):
    folder = saved(dataset({"finding": ["mass|edema", "edema", "mass", "edema"] * 2, "label": [0, 1] * 4}, label=classes()))
    rows = rows_of(folder, label_columns=("finding",), label_separator="|")
    assert rows.label_names == ("edema", "mass")
    assert rows.labels.tolist()[:3] == [[1, 1], [1, 0], [0, 1]]
    with pytest.raises(UsageError, match=r"--label-separator is for one column of text; label of chest holds ClassLabel"):
        rows_of(folder, label_separator="|")


def test_several_columns_are_several_labels_an_image(saved):
    folder = saved(dataset({"edema": [0, 1] * 4, "mass": [True, True] * 4, "note": ["x"] * ROWS, "stage": [0, 2] * 4}))
    rows = rows_of(folder, label_columns=("edema", "mass"))
    assert rows.label_names == ("edema", "mass")
    assert rows.labels.tolist() == [[0, 1], [1, 1]] * 4
    with pytest.raises(DataError, match=r"The column note holds Value\('string'\). Several label columns hold 0 or 1"):
        rows_of(folder, label_columns=("edema", "note"))
    with pytest.raises(DataError, match=r"The label is 2 in row 1 \(column stage\)"):
        rows_of(folder, label_columns=("stage", "mass"))


@pytest.mark.parametrize("columns", [None, "MEL,NV,BCC"])
def test_one_hot_columns_are_classes_as_in_tables(saved, columns):
    number = {"MEL": [1.0, 0, 0, 1] * 2, "NV": [0, 1, 0, 0] * 2, "BCC": [False, False, True, False] * 2}
    folder = saved(dataset({**number, "patient": [0, 0, 1, 1] * 2, "age": [31.5] * ROWS}))
    opened = open_dataset(folder, label_column=columns)
    assert opened.task == "multi-class" and opened.class_names == ("BCC", "MEL", "NV")
    assert opened.labels.tolist() == ["MEL", "NV", "BCC", "MEL"] * 2
    assert opened.group_column == "patient" and set(opened.attributes) == {"age"}
    assert open_dataset(folder, label_column="MEL,NV", uncertain="zeros").task == "multi-label"


def test_images_may_be_paths(saved, tmp_path):
    for i in range(ROWS):
        (tmp_path / f"{i}.png").write_bytes(png(i)[0]["bytes"])
    made = datasets.Dataset.from_dict({"image": [str(tmp_path / f"{i}.png") for i in range(ROWS)], "label": [0, 1] * 4})
    made = made.cast_column("image", datasets.Image(decode=False))
    # as in the cache of the hub, where files that were unpacked beside it are only named
    assert made.data.table.column("image").to_pylist()[0]["bytes"] is None
    opened = open_dataset(written(made, tmp_path / "cached"), allow_outside=True)
    np.testing.assert_array_equal(opened.read(4), png(4)[1])


def written(made, folder):
    """As ``save_to_disk``, which reads the files of paths, does not."""
    from datasets.arrow_writer import ArrowWriter

    folder.mkdir()
    with ArrowWriter(features=made.features, path=str(folder / "data.arrow")) as writer:
        writer.write_table(made.data.table)
        writer.finalize()
    (folder / "state.json").write_text('{"_data_files": [{"filename": "data.arrow"}], "_split": null}')
    (folder / "dataset_info.json").write_text("{}")
    return folder


@pytest.mark.parametrize(
    ("cell", "reason"),
    [
        (None, "the cell is empty"),
        ({"bytes": None, "path": "hf://datasets/owner/name/a.png"}, "only its address on the internet is stored"),
        ({"bytes": None, "path": "/nowhere/a.png"}, "there is no such file"),
        ({"bytes": b"hello", "path": None}, "it is a text file"),
    ],
)
def test_an_unreadable_cell_is_named_by_its_row(tmp_path, cell, reason):
    made = datasets.Dataset.from_dict({"image": [*images(3), cell], "label": [0, 1, 0, 1]})
    made = made.cast_column("image", datasets.Image(decode=False))
    folder = written(made, tmp_path / "cached")
    with pytest.raises(UnreadableImageError, match=f"Cannot read the image row 3: {reason}"):
        open_dataset(folder, allow_outside=True)


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: datasets.DatasetDict(test=two_classes()), r"chest has no rows of the split train. Its splits: test."),
        (lambda: two_classes().select([]), "chest has no rows"),
        (
            lambda: datasets.Dataset.from_dict({"pixels": [[[0, 1], [2, 3]]] * 4, "label": [0, 1] * 2}),
            r"No column of chest is declared as one image per row.*cast_column.*pixels: List",
        ),
        (  # an image may have several of them
            lambda: dataset({"edema": [0, 1] * 4, "mass": [1, 1] * 4}),
            r"No column of chest holds the labels .*--label-column",
        ),
    ],
    ids=["another split", "no rows", "arrays", "several labels"],
)
def test_what_cannot_be_opened_is_refused_with_the_way_out(saved, made, message):
    with pytest.raises(DataError, match=message):
        open_dataset(saved(made()))


def test_a_half_written_folder_is_named(saved):
    folder = saved(datasets.DatasetDict(train=two_classes()))
    (folder / "train" / "state.json").unlink()
    with pytest.raises(DataError, match=r"The dataset is not complete: there is no .*state.json"):
        open_dataset(folder)


@pytest.mark.parametrize("option", [{"image_root": "."}, {"window": "lung"}])
def test_options_without_a_meaning_are_refused(saved, option):
    with pytest.raises(UsageError, match="has no meaning for a Hugging Face dataset"):
        open_dataset(saved(two_classes()), **option)


def test_a_read_only_folder_is_enough_and_nothing_is_written_or_said(saved, capfd):
    folder = saved(datasets.DatasetDict(train=two_classes(), test=two_classes()))
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o500 if path.is_dir() else 0o400)
    capfd.readouterr()

    def state():
        return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}

    before = state()
    dataset = open_dataset(folder, reporter=Reporter(quiet=True))
    dataset.read(0)
    assert state() == before
    assert capfd.readouterr() == ("", "")
    for path in (folder, *folder.iterdir()):
        path.chmod(0o700)


def test_many_threads_read_the_same_pixels(saved):
    rows = rows_of(saved(two_classes()))
    with ThreadPoolExecutor(8) as pool:
        decoded = list(pool.map(rows.decode, list(range(ROWS)) * 20))
    for place, pixels in enumerate(decoded):
        np.testing.assert_array_equal(pixels, png(place % ROWS)[1])


def test_without_the_extra_the_message_names_it(saved, monkeypatch):
    folder = saved(two_classes())
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MissingExtraError, match=r"Hugging Face dataset chest needs .*pip install 'crossgraft\[hf\]'"):
        open_dataset(folder)


@pytest.fixture
def hub_cache(tmp_path, monkeypatch):
    """The cache of `datasets`; `hub_cache(config)` fills it with the configuration of owner/tiny, as a download does."""
    from datasets.packaged_modules.parquet.parquet import Parquet

    cache = tmp_path / "hf cache"
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", cache)
    monkeypatch.setattr(datasets, "load_dataset", lambda *_, **__: pytest.fail("the network was asked for"))

    def fill(config="default", names=("benign", "malignant")):
        parts = {}
        for number, split in enumerate(("train", "test")):
            file = tmp_path / f"{config}-{split}.parquet"
            dataset({"label": [0, 1] * 4}, start=number * 20, label=classes(*names)).to_parquet(file)
            parts[split] = [str(file)]
        builder = Parquet(cache_dir=str(cache), dataset_name="Tiny", config_name=config, hash="0" * 40, data_files=parts)
        builder.download_and_prepare()
        target = cache / "owner___tiny" / config / "0.0.0" / ("0" * 40)
        target.mkdir(parents=True)
        info = next(cache.glob("tiny/*/*/*/dataset_info.json"))
        facts = json.loads(info.read_text()) | {"config_name": config}
        (target / "dataset_info.json").write_text(json.dumps(facts))
        for file in info.parent.glob("*.arrow"):
            file.rename(target / file.name)
        shutil.rmtree(cache / "tiny")

    return fill


def test_a_cached_dataset_of_the_hub_opens_without_the_network(hub_cache):
    hub_cache()
    opened = open_dataset("hf:owner/Tiny")
    assert (opened.name, opened.class_names) == ("owner/Tiny", ("benign", "malignant"))
    np.testing.assert_array_equal(opened.read(3), png(3)[1])
    np.testing.assert_array_equal(open_dataset("hf:owner/Tiny", use_split="test").read(3), png(23)[1])


def test_a_configuration_can_be_named_and_must_be_where_there_are_several(hub_cache):
    for config, names in (("small", ("a", "b")), ("large", ("c", "d"))):
        hub_cache(config, names)
    assert open_dataset("hf:owner/Tiny:large").class_names == ("c", "d")
    with pytest.raises(UsageError, match="Write one of hf:owner/Tiny:large, hf:owner/Tiny:small"):
        open_dataset("hf:owner/Tiny")


def test_nothing_is_fetched_without_permission_and_offline_not_even_with_it(hub_cache, monkeypatch):
    with pytest.raises(MissingError, match=r"The dataset owner/absent is not in the cache .* Pass --allow-download"):
        open_dataset("hf:owner/absent")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(MissingError, match="HF_HUB_OFFLINE is set"):
        open_dataset("hf:owner/absent", allow_download=True)


def test_with_permission_it_is_fetched_in_silence(hub_cache, monkeypatch, capfd):
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    asked = []

    def load(name, config, **more):
        asked.append((name, config, more))
        assert datasets.are_progress_bars_disabled()
        datasets.logging.get_logger("datasets.x").warning("chatter")
        warnings.warn("chatter", UserWarning, stacklevel=1)
        hub_cache()

    monkeypatch.setattr(datasets, "load_dataset", load)
    capfd.readouterr()
    assert len(open_dataset("hf:owner/Tiny", allow_download=True)) == ROWS
    assert asked == [("owner/Tiny", None, {})]
    assert "chatter" not in capfd.readouterr().err


def test_old_versions_are_told_to_run_no_code(hub_cache, monkeypatch):
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    asked = []

    def load(name, config, trust_remote_code=None):
        asked.append(trust_remote_code)
        raise ConnectionError("Couldn't reach the Hub.")

    monkeypatch.setattr(datasets, "load_dataset", load)
    with pytest.raises(MissingError, match=r"owner/Tiny cannot be fetched from the hub: Couldn't reach the Hub\.$"):
        open_dataset("hf:owner/Tiny", allow_download=True)
    assert asked == [False]


@pytest.mark.parametrize("location", ["hf:", "hf:a/b/c", "hf:../x", "hf:owner/na me", "hf:owner/name:"])
def test_a_malformed_name_is_explained(location):
    with pytest.raises(UsageError, match="Write hf:OWNER/NAME"):
        open_dataset(location)


def test_objects_in_memory_are_explained():
    with pytest.raises(UsageError, match=r"Data cannot be a Dataset. Write it to a folder with save_to_disk"):
        location_text(two_classes())
    with pytest.raises(UsageError, match=r"Data cannot be an IterableDataset. It is streamed .* without streaming"):
        location_text(two_classes().to_iterable_dataset())
    with pytest.raises(UsageError, match="Data cannot be a list"):
        location_text([1, 2])


@pytest.mark.real_data
def test_a_real_dataset_has_the_fingerprint_of_its_npz_file(real_data, tmp_path):
    path = real_data / "datasets" / "breastmnist.npz"
    expected = open_dataset(path)

    def part(split):
        pictures = [Image.fromarray(pixels) for pixels in archive[f"{split}_images"]]
        made = datasets.Dataset.from_dict({"image": pictures, "label": archive[f"{split}_labels"].ravel().astype(np.int64)})
        return made.cast_column("image", datasets.Image())

    with np.load(path) as archive:
        datasets.DatasetDict(train=part("train"), validation=part("val")).save_to_disk(tmp_path / "breast")
    opened = open_dataset(tmp_path / "breast")
    assert opened.class_counts == expected.class_counts == (147, 399)
    np.testing.assert_array_equal(opened.targets, expected.targets)
    for row in range(0, len(opened), 50):
        np.testing.assert_array_equal(opened.read(row), expected.read(row))
    assert opened.fingerprint == expected.fingerprint


def test_uncertain_labels_are_those_of_tables(saved):
    folder = saved(dataset({"edema": [1, -1, None, 0], "mass": [0, 1, 1, 0]}, count=4))
    columns = "edema,mass"
    with pytest.raises(DataError, match="--uncertain zeros, ones or leave-out"):
        open_dataset(folder, label_column=columns)
    assert open_dataset(folder, label_column=columns, uncertain="ones").targets[:, 0].tolist() == [1, 1, 0, 0]
    assert len(open_dataset(folder, label_column=columns, uncertain="leave-out")) == 3
