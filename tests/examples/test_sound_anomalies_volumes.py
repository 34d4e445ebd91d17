"""ρSIM on sound, time series, volumes and several labels: each example runs small, and its parts are what they say."""

import io
import sys
import tarfile
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from sklearn.metrics import f1_score

from crossgraft.metrics import average_precision, f1
from crossgraft.tune.sim import RhoSim

SIM = Path(__file__).parents[2] / "examples" / "sim"
ARMS = {"without", "rho_sim", "placebo"}


@pytest.fixture
def example(monkeypatch):
    """Import one example by its name, as it is imported where it stands; it and what it shares are forgotten afterwards."""
    monkeypatch.syspath_prepend(str(SIM))
    threads = torch.get_num_threads()
    yield __import__
    torch.set_num_threads(threads)
    for name in {file.stem for file in SIM.glob("*.py")} & set(sys.modules):
        del sys.modules[name]


@pytest.fixture
def smoke(example, monkeypatch, tmp_path):
    """Run one example small; the rows it leaves."""

    def run(name, files):
        monkeypatch.setattr(sys, "argv", [name, str(files), str(tmp_path / "out.csv"), "--smoke", "--seeds", "1"])
        example(name).main()
        rows = pd.read_csv(tmp_path / "out.csv")
        assert rows["value"].between(0, 1).all()
        return rows

    return run


def places(rows, arm=None):
    """Data sets and networks that have all arms, or those of one arm."""
    chosen = rows[rows["arm"].isin(ARMS)] if arm is None else rows[rows["arm"] == arm]
    by_place = chosen.groupby(["data", "network"])["arm"].agg(set)
    assert all(found == (ARMS if arm is None else {arm}) for found in by_place)
    return set(by_place.index)


def metrics(rows):
    by_training = rows.groupby(["data", "network", "arm", "seed"])["metric"].agg(list)
    assert by_training.map(tuple).nunique() == 1
    return by_training.iloc[0]


@pytest.fixture
def digits(tmp_path):
    """30 clips of noise of two people, in the form that is published."""
    drawn = np.random.default_rng(0)
    labels, people, index = zip(*product(range(5), ("ada", "bob"), range(4, 7)), strict=True)
    lengths = drawn.integers(600, 1500, len(labels))
    np.savez(
        tmp_path / "free_spoken_digits_1200.npz",
        audio=drawn.normal(0, 1000, lengths.sum()).astype(np.int16),
        offsets=np.r_[0, np.cumsum(lengths)],
        labels=np.array(labels), speakers=np.array(people), index=np.array(index), sample_rate=8000,
    )  # fmt: skip
    return tmp_path


@pytest.fixture
def series(tmp_path):
    """Three short series in the form that is published."""
    drawn, answers = np.random.default_rng(0), np.arange(200) // 40 % 2
    for folder in ("smap_msl", "skab"):
        (tmp_path / folder).mkdir()
    for channel, variables in (("P-1", 3), ("C-1", 5)):
        for part, steps in (("train", 240), ("test", 200)):
            np.save(tmp_path / "smap_msl" / f"{channel}_{part}.npy", drawn.normal(size=(steps, variables)).astype(np.float32))
        np.save(tmp_path / "smap_msl" / f"{channel}_test_labels.npy", answers.astype(np.uint8))
    for name, steps in (("anomaly-free_anomaly-free", 240), ("valve1_0", 200), ("other_1", 150)):
        table = pd.DataFrame(drawn.normal(size=(steps, 3)), columns=["a", "b", "c"]).rename_axis("datetime")
        if steps < 240:
            table = table.assign(anomaly=answers[:steps] * 1.0, changepoint=0.0)
        table.to_csv(tmp_path / "skab" / f"{name}.csv", sep=";")
    return tmp_path


@pytest.fixture
def spots(tmp_path):
    """24 images of 12 lesions, each lesion of one grey, in the form that is published."""
    rows = [
        {"image_id": f"i{i}", "lesion_id": f"l{i // 2}", "dx": ("mel", "nv")[i // 2 % 2],
         "sex": "male" if i % 3 else "unknown", "localization": "back" if i // 2 % 3 else "face"}
        for i in range(24)
    ]  # fmt: skip
    with tarfile.open(tmp_path / "ham10000_subset_jpg200x150.tar", "w") as archive:
        files = {"metadata.csv": pd.DataFrame(rows).to_csv(index=False).encode()}
        for i, row in enumerate(rows):
            picture = io.BytesIO()
            Image.new("RGB", (20, 15), (10 * (i // 2),) * 3).save(picture, "JPEG", quality=100)
            files[f"images/{row['image_id']}.jpg"] = picture.getvalue()
        for name, content in files.items():
            entry = tarfile.TarInfo(f"ham10000_subset/{name}")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return tmp_path


@pytest.fixture
def heads():
    nibabel = pytest.importorskip("nibabel")
    return Path(nibabel.__file__).parent / "tests" / "data"


def test_sound_leaves_all_arms_of_each_split(smoke, digits):
    rows = smoke("sound", digits)
    data = ("official", "unseen ada", "unseen bob")
    assert places(rows) == set(product(data, ("TDNN", "Res2Net-like", "CAM++-like")))
    assert places(rows, "trivial") == {(name, "linear") for name in data}
    assert metrics(rows) == ["accuracy", "macro_f1"]


def test_anomalies_leave_random_numbers_beside_all_arms(smoke, series):
    rows = smoke("anomalies", series)
    data = ("P-1", "C-1", "SKAB")
    assert places(rows) == set(product(data, ("iTransformer-like", "LightTS-like")))
    beside = set(product(data, ("PCA", "random numbers"))) | {(name, "PCA, all variables") for name in data[:2]}
    assert places(rows, "trivial") == beside
    assert metrics(rows) == ["f1", "best_f1", "f1_adjusted", "best_f1_adjusted", "auc_pr"]


def test_volumes_leave_all_arms(smoke, heads):
    rows = smoke("volumes", heads)
    assert places(rows) == {("heads", "3-D ResNet")} and places(rows, "trivial") == {("heads", "linear")}
    assert metrics(rows) == ["accuracy", "macro_f1"]


def test_several_labels_leave_all_arms(smoke, spots):
    rows = smoke("several_labels", spots)
    assert places(rows) == {("HAM10000", "ResNet-8")} and places(rows, "trivial") == {("HAM10000", "linear")}
    assert metrics(rows) == ["CF1", "OF1", "mAP"]


def test_a_tone_is_loudest_in_the_band_around_it(example):
    sound = example("sound")
    edges = 700 * (10 ** (np.linspace(0, 2595 * np.log10(1 + 4000 / 700), sound.BANDS + 2) / 2595) - 1)
    picture = sound.log_mel(1e4 * np.sin(2 * np.pi * edges[21] * np.arange(3000) / 8000), 8000)
    assert picture.shape == (sound.BANDS, sound.FRAMES)
    assert picture[:, :30].argmax(axis=0).tolist() == [20] * 30
    assert picture.max() == 1 and (picture[:, -20:] == -1).all()  # it is over by then


def test_a_mask_sees_the_whole_sound_and_its_own_segment(example):
    layer = example("sound").MaskedDense(4, 3, hole=2, segment=5).eval()
    x = torch.randn(2, 4, 12)
    entered = layer.enter(x)
    with torch.no_grad():
        new = layer(x)[:, 4:]
        for step in range(12):
            start = step // 5 * 5
            context = entered.mean(dim=2) + entered[:, :, start : start + 5].mean(dim=2)
            expected = layer.local(entered)[:, :, step] * layer.mask(context[:, :, None])[:, :, 0]
            torch.testing.assert_close(new[:, :, step], expected)


def test_variables_of_an_inverted_transformer_have_no_order(example):
    anomalies = example("anomalies")
    network, x, order = anomalies.InvertedTransformer(6).eval(), torch.randn(2, anomalies.WINDOW, 6), torch.randperm(6)
    with torch.no_grad():
        torch.testing.assert_close(network(x[:, :, order]), network(x)[:, :, order])


def adjusted_by_walking(found, answers):
    """Point adjustment as benchmarks have it: from each hit in a segment to both of its ends."""
    found = [bool(each) for each in found]
    for hit in [step for step in range(len(found)) if found[step] and answers[step]]:
        for direction in (-1, 1):
            step = hit
            while 0 <= step < len(found) and answers[step]:
                found[step] = True
                step += direction
    return found


def test_point_adjusted_f1_is_that_of_walking_at_every_threshold(example):
    anomalies, drawn = example("anomalies"), np.random.default_rng(0)
    training, scores = drawn.random(300), drawn.random(90).round(1)  # many are equal
    answers = np.repeat(drawn.random(18) < 0.4, 5)
    found = anomalies.measured(training, [scores[:50], scores[50:]], [answers[:50], answers[50:]])

    def literal(threshold):
        parts = [(scores[part] > threshold, answers[part]) for part in (slice(50), slice(50, None))]
        return f1_score(answers, [step for part in parts for step in adjusted_by_walking(*part)])

    assert found["f1_adjusted"] == pytest.approx(literal(np.quantile(training, 0.99)))
    assert found["best_f1_adjusted"] == pytest.approx(max(literal(each) for each in {-1, *scores}))
    assert found["best_f1"] == pytest.approx(max(f1_score(answers, scores > each) for each in {-1, *scores}))


def test_random_numbers_find_long_segments(example):
    answers = np.zeros(4000, dtype=bool)
    answers[500:800] = answers[3000:3400] = True
    anomalies = example("anomalies")
    found = anomalies.guess(anomalies.Series(np.zeros((1000, 1)), [np.zeros((4000, 1))], [answers], 1), seed=0)
    assert found["best_f1_adjusted"] > 0.9 and found["best_f1"] < 0.35
    assert found["auc_pr"] == pytest.approx(answers.mean(), abs=0.03)


@pytest.mark.parametrize("length", [64, 100, 128, 200])
def test_each_step_has_the_score_of_its_window_once(example, length):
    anomalies = example("anomalies")
    cut = anomalies.windows(np.arange(length, dtype=float)[:, None], anomalies.WINDOW)
    assert anomalies.step_scores(cut[:, :, 0].numpy(), length).tolist() == list(range(length))


def test_halves_of_a_head_that_is_as_its_mirror_are_equal(example, monkeypatch, tmp_path):
    nibabel = pytest.importorskip("nibabel")
    half = np.random.default_rng(0).random((4, 6, 5)).astype(np.float32)
    head = np.concatenate([half, np.ones((1, 6, 5), np.float32), half[::-1]])
    nibabel.save(nibabel.Nifti1Image(head, np.diag([-2.0, 2, 2, 1])), tmp_path / "head.nii")  # stored from right to left
    volumes = example("volumes")
    monkeypatch.setattr(volumes, "HEADS", ("head.nii",))
    (left,), (right,) = volumes.halves(tmp_path)
    np.testing.assert_allclose(left, half / np.quantile(head, 0.99), rtol=1e-6)
    np.testing.assert_array_equal(left, right)


def test_the_order_of_the_axes_of_a_cube_is_the_one_that_is_asked_for(example):
    pytest.importorskip("nibabel")
    volumes = example("volumes")
    ramp = np.broadcast_to(np.arange(1.0, 18)[:, None, None], (17, 17, 17))  # grows along the first axis alone
    for cube, order in zip(*volumes.cubes([ramp], 12, np.random.default_rng(0)), strict=True):
        grows = [axis for axis in range(3) if cube[0].diff(dim=axis).abs().max() > 0]
        assert grows == [volumes.ORDERS[order].index(0)]


def test_volumes_have_their_channels_second(example):
    pytest.importorskip("nibabel")
    volumes = example("volumes")
    network, cubes = volumes.Solid(), torch.randn(2, 1, volumes.SIDE, volumes.SIDE, volumes.SIDE)
    losses = []
    for layout in ("ncdhw", "auto"):
        sim = RhoSim(network, example=cubes, blocks=list(network.blocks), layout=layout)
        network(cubes)
        losses.append(sim.loss())
        sim.detach()
    assert sim.blocks == ("blocks.0", "blocks.1", "blocks.2")
    assert losses[0] == losses[1] > 0


def test_no_lesion_is_on_both_sides_and_metrics_are_the_packages_own(example, spots):
    several = example("several_labels")
    train, test = several.read_parts(spots, least_images=1)
    greys = [set((255 * part.images[:, 0, 0, 0] / 10).round().int().tolist()) for part in (train, test)]
    assert greys[0] | greys[1] == set(range(12)) and not greys[0] & greys[1]
    labels, probabilities = (
        torch.randint(2, (40, 5), generator=torch.Generator().manual_seed(0)).float(),
        torch.rand(40, 5).numpy(),
    )
    found, truth, decided = several.scored(labels, probabilities), labels.numpy().astype(int), (probabilities >= 0.5).astype(int)
    assert found["CF1"] == pytest.approx(f1(decided, truth).value)
    assert found["OF1"] == pytest.approx(2 * (decided & truth).sum() / (decided.sum() + truth.sum()))
    assert found["mAP"] == pytest.approx(average_precision(probabilities, truth).value)
