"""Features are those of the backbone, computed once, whatever interrupts them."""

import errno
import io
import json
import os
import re
import threading
import time
from itertools import count
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file

from crossgraft.compute import limit_threads
from crossgraft.data.transforms import prepare_batch, prepare_resized
from crossgraft.errors import DataError, OutOfMemoryError, StorageError, UsageError
from crossgraft.features import extract, extract_features
from crossgraft.features import extract as cost
from crossgraft.features.passes import BatchLoader
from crossgraft.features.store import FeatureStore
from crossgraft.progress import Reporter
from support import forked

from .conftest import ROWS, Images, Net, make_backbone, only_folder


@pytest.fixture(autouse=True)
def shortest_timing(monkeypatch):
    """The estimate before the start looks at one image four times, also where the clock of a busy machine stands still."""
    monkeypatch.setattr(cost, "_MOST_SECONDS", -1.0)


def direct(images, backbone, batch_size=4):
    """The literal version: one batch after the other, no file, no thread."""
    features, logits = [], []
    for start in range(0, len(images), ROWS):
        for first in range(start, min(start + ROWS, len(images)), batch_size):
            last = min(first + batch_size, start + ROWS, len(images))
            pixels = [images.pixels[row] for row in range(first, last)]
            with limit_threads(1):
                output = backbone(prepare_batch(pixels, backbone.preprocessing))
            features.append(output.features)
            logits.append(output.source_logits)
    return torch.cat(features).numpy(), None if logits[0] is None else torch.cat(logits).numpy()


def extract_into(cache, images=None, backbone=None, **options):
    options = {"batch_size": 4, "num_threads": 1, **options}
    return extract_features(Images() if images is None else images, backbone or make_backbone(), cache_dir=cache, **options)


@pytest.mark.parametrize("number", [1, 7, 8, 9, 20])
def test_features_are_those_of_the_backbone(tmp_path, number):
    images, backbone = Images(number), make_backbone()
    found = extract_into(tmp_path, images, backbone)
    features, logits = direct(images, backbone)
    np.testing.assert_array_equal(found.features, features)
    np.testing.assert_array_equal(found.source_logits, logits)
    assert found.features.dtype == np.float32
    assert len(found) == number
    assert not found.from_cache
    assert found.seconds > 0


class Remembering(Net):
    """What it says depends on what it said before: by a number, a tensor, a buffer and draws of its own."""

    def __init__(self):
        super().__init__()
        self.number, self.last, self.own = 0, None, torch.Generator().manual_seed(0)
        self.register_buffer("sum", torch.zeros(5))

    def forward_features(self, images):
        features = super().forward_features(images) + torch.rand(5, generator=self.own)
        self.number += 1
        self.sum += self.number
        features = features + self.sum + (0 if self.last is None else self.last)
        self.last = features.mean(0)
        return features


@pytest.mark.parametrize("is_announced", [True, False])
def test_timing_leaves_nothing_behind_in_a_network_that_remembers(tmp_path, is_announced):
    backbone = make_backbone(Remembering())
    parts = {name: id(each) for name, each in vars(backbone.module).items()} | {"sum": id(backbone.module.sum)}
    loader = BatchLoader(Images(), backbone.preprocessing, [range(8)], batch_size=8, reporter=Reporter(quiet=True))
    cost.estimate_cost(backbone, loader, num_left=20, num_samples=20)
    assert parts == {name: id(each) for name, each in vars(backbone.module).items()} | {"sum": id(backbone.module.sum)}
    found = extract_into(tmp_path, Images(), backbone, is_announced=is_announced)
    np.testing.assert_array_equal(found.features, direct(Images(), make_backbone(Remembering()))[0])


def test_the_second_call_reads_nothing_but_the_cache(tmp_path):
    first = extract_into(tmp_path)
    images, net = Images(), Net()
    second = extract_into(tmp_path, images, make_backbone(net))
    assert second.from_cache
    assert images.reads == net.calls == []
    assert second.seconds == first.seconds
    np.testing.assert_array_equal(first.features, second.features)
    np.testing.assert_array_equal(first.source_logits, second.source_logits)
    with pytest.raises(ValueError, match="read-only"):
        second.features[0, 0] = 1


def test_without_a_head_there_are_no_logits(tmp_path):
    for _ in range(2):
        assert extract_into(tmp_path, backbone=make_backbone(Net(num_classes=0))).source_logits is None


def test_what_is_in_the_key(tmp_path):
    extract_into(tmp_path)
    assert not extract_into(tmp_path, Images(seed=1)).from_cache
    changed = Net()
    changed.body.bias.data[0] += 1
    assert not extract_into(tmp_path, backbone=make_backbone(changed)).from_cache
    resized = make_backbone()
    resized.preprocessing = type(resized.preprocessing)(height_pixels=8, width_pixels=8)
    assert not extract_into(tmp_path, backbone=resized).from_cache
    padded = Net()
    padded.body.padding = (1, 1)  # the same weights, another network
    assert not extract_into(tmp_path, backbone=make_backbone(padded)).from_cache
    assert extract_into(tmp_path, backbone=make_backbone(name="renamed"), batch_size=3).from_cache


def test_batches_never_reach_over_a_shard(tmp_path):
    net = Net()
    extract_into(tmp_path, backbone=make_backbone(net), batch_size=5)
    estimate, batches = net.calls[:4], net.calls[4:]
    assert estimate == [1, 1, 1, 1]
    assert batches == [5, 3, 5, 3, 4]
    net = Net()
    extract_into(tmp_path / "b", backbone=make_backbone(net), batch_size=100)
    assert net.calls[4:] == [8, 8, 4]


def test_default_cache_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("CROSSGRAFT_CACHE", str(tmp_path / "mine"))
    extract_features(Images(), make_backbone(), num_threads=1)
    assert only_folder(tmp_path / "mine" / "features").name


class _KilledError(BaseException):
    """Like KeyboardInterrupt: no handler for errors catches it."""


@pytest.mark.parametrize("shard", [0, 1, 2])
@pytest.mark.parametrize("moment", ["before", "after"])
def test_resume_after_a_kill_at_any_shard(tmp_path, monkeypatch, shard, moment):
    whole = extract_into(tmp_path / "whole")
    write = FeatureStore.write_shard

    def killed(self, index, *arguments, **options):
        if index == shard and moment == "before":
            raise _KilledError
        write(self, index, *arguments, **options)
        if index == shard:
            raise _KilledError

    monkeypatch.setattr(FeatureStore, "write_shard", killed)
    with pytest.raises(_KilledError):
        extract_into(tmp_path / "cut")
    monkeypatch.setattr(FeatureStore, "write_shard", write)
    kept = ROWS * (shard + (moment == "after"))
    images, net = Images(), Net()
    resumed = extract_into(tmp_path / "cut", images, make_backbone(net))
    assert sorted(set(images.reads)) == list(range(min(kept, 20), 20))
    assert resumed.features.tobytes() == whole.features.tobytes()
    assert resumed.source_logits.tobytes() == whole.source_logits.tobytes()
    assert not list((tmp_path / "cut").rglob("*.tmp"))
    assert not list((tmp_path / "cut").rglob("shard-*"))


def test_a_kill_while_joining_keeps_every_shard(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(FeatureStore, "finish", lambda _self: (_ for _ in ()).throw(_KilledError))
        with pytest.raises(_KilledError):
            extract_into(tmp_path)
    net = Net()
    extract_into(tmp_path, backbone=make_backbone(net))
    assert net.calls == []


SLOW_RUN = """
import sys
import time
from pathlib import Path
import importlib.util
spec = importlib.util.spec_from_file_location("helpers", {helpers!r})
helpers = importlib.util.module_from_spec(spec)
sys.modules["helpers"] = helpers
spec.loader.exec_module(helpers)
from crossgraft.features import store, extract
store.ROWS_PER_SHARD = extract.ROWS_PER_SHARD = helpers.ROWS
class Slow(helpers.Images):
    def read(self, index):
        time.sleep(0.05 if index < 10 else 30)
        return super().read(index)
extract.extract_features(Slow(), helpers.make_backbone(), cache_dir=Path({cache!r}), batch_size=4, num_threads=1)
"""


@pytest.mark.slow
@pytest.mark.xdist_group(forked.GROUP)
def test_a_process_that_is_really_killed(tmp_path):
    helpers = Path(__file__).with_name("conftest.py")
    script = tmp_path / "slow_run.py"
    script.write_text(SLOW_RUN.format(helpers=str(helpers), cache=str(tmp_path / "cut")))
    process = forked.start(script, environment={**os.environ, "OMP_NUM_THREADS": "1"}, cwd=tmp_path)
    deadline = time.monotonic() + 120
    while not list(tmp_path.rglob("shard-00000.safetensors")):
        assert process.exitcode is None and time.monotonic() < deadline
        time.sleep(0.02)
    process.kill()
    process.join()
    images = Images()
    resumed = extract_into(tmp_path / "cut", images)
    assert min(images.reads) == ROWS
    assert resumed.features.tobytes() == extract_into(tmp_path / "whole").features.tobytes()


@pytest.mark.parametrize("harm", ["truncated", "flipped", "empty", "other shape", "no header", "header is a list"])
@pytest.mark.parametrize("what", ["shard", "finished file"])
def test_damaged_files_are_found_and_computed_again(tmp_path, monkeypatch, capsys, harm, what):
    whole = extract_into(tmp_path / "whole")
    with monkeypatch.context() as patch:
        if what == "shard":
            patch.setattr(FeatureStore, "finish", lambda _self: (_ for _ in ()).throw(_KilledError))
            with pytest.raises(_KilledError):
                extract_into(tmp_path / "cut")
        else:
            extract_into(tmp_path / "cut")
    name = "shard-00001.safetensors" if what == "shard" else "features.safetensors"
    path = only_folder(tmp_path / "cut") / name
    content = path.read_bytes()
    header_length = int.from_bytes(content[:8], "little")
    path.write_bytes(
        {
            "truncated": content[:-4],
            "flipped": content[:-3] + bytes([content[-3] ^ 1]) + content[-2:],
            "empty": b"",
            "other shape": content.replace(b'"shape": [8, 5]', b'"shape": [5, 8]').replace(b"[20, 5]", b"[5, 20]"),
            "no header": b"\xff" * len(content),
            "header is a list": content[:8] + b"[]".ljust(header_length) + content[8 + header_length :],
        }[harm]
    )
    net = Net()
    again = extract_into(tmp_path / "cut", backbone=make_backbone(net), reporter=Reporter())
    assert sum(net.calls[4:]) == (ROWS if what == "shard" else 20)
    assert f"The stored features {name} of net are damaged; computing them again" in capsys.readouterr().err
    assert again.features.tobytes() == whole.features.tobytes()


def test_two_processes_on_one_key(tmp_path, monkeypatch):
    """A second run finishes, and takes the shards away, while the first is in its middle shard."""
    write = FeatureStore.write_shard
    nested = []

    def with_a_rival(self, index, *arguments, **options):
        if index == 1 and not nested:
            nested.append(True)
            nested.append(extract_into(tmp_path))
        write(self, index, *arguments, **options)

    monkeypatch.setattr(FeatureStore, "write_shard", with_a_rival)
    first = extract_into(tmp_path)
    assert first.features.tobytes() == nested[1].features.tobytes()
    assert not list(tmp_path.rglob("*.tmp"))
    assert extract_into(tmp_path).from_cache


def test_features_that_always_come_back_damaged(tmp_path, monkeypatch):
    monkeypatch.setattr(FeatureStore, "finish", lambda _self: None)
    with pytest.raises(StorageError, match="came back damaged 3 times"):
        extract_into(tmp_path)


@pytest.mark.parametrize("largest", [1, 2, 3])
def test_out_of_memory_halves_the_batch_and_goes_on(tmp_path, capsys, largest):
    images, net = Images(), Net()
    backbone = make_backbone(net)
    net.largest_batch = largest
    found = extract_into(tmp_path, images, backbone, reporter=Reporter())
    kept = 2 if largest == 3 else largest
    assert set(net.calls) <= {kept, 1, 4 % kept or kept}
    np.testing.assert_allclose(found.features, direct(images, backbone, batch_size=1)[0], rtol=1e-6, atol=1e-6)
    assert f"Warning: Out of memory; going on with batches of {kept} images." in capsys.readouterr().err


@pytest.mark.parametrize(
    "error",
    [RuntimeError("DefaultCPUAllocator: can't allocate memory"), MemoryError(), RuntimeError("MPS backend out of memory")],
)
def test_every_allocator_is_understood(tmp_path, error):
    net = Net()
    backbone = make_backbone(net)
    net.largest_batch, net.memory_error = 2, lambda: error
    assert len(extract_into(tmp_path, backbone=backbone)) == 20


def test_out_of_memory_while_preparing_images(tmp_path, monkeypatch, capsys):
    def limited(images, preprocessing, device):
        if len(images) > 2:
            raise MemoryError
        return prepare_resized(images, preprocessing)

    monkeypatch.setattr("crossgraft.features.passes.prepare_resized", limited)
    images, backbone = Images(), make_backbone()
    found = extract_into(tmp_path, images, backbone, reporter=Reporter())
    np.testing.assert_allclose(found.features, direct(images, backbone)[0], rtol=1e-6, atol=1e-6)
    assert capsys.readouterr().err.count("Out of memory") == 1


def test_gives_up_at_one_image_and_leaves_nothing_half_written(tmp_path):
    net = Net()
    backbone = make_backbone(net)
    net.largest_batch = 0
    with pytest.raises(OutOfMemoryError, match="Not enough memory for a single image"):
        extract_into(tmp_path, backbone=backbone)
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["manifest.json"]


@pytest.mark.parametrize("failing", ["forward", "reading"])
def test_other_errors_pass_through(tmp_path, failing):
    images, net = Images(), Net()
    backbone = make_backbone(net)
    if failing == "forward":
        net.largest_batch, net.memory_error = 2, lambda: RuntimeError("a fault of the network")
    else:
        images.read = lambda index: (_ for _ in ()).throw(DataError("unreadable"))
    with pytest.raises((RuntimeError, DataError), match=r"a fault of the network|unreadable"):
        extract_into(tmp_path, images, backbone)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("where", ["features", "logits"])
def test_values_that_are_not_finite_name_model_and_rows(tmp_path, value, where):
    def spoil(images, output):
        output = output.clone()
        output[images.mean((1, 2, 3)) > 2, -1] = value  # one column is enough
        return output

    class Broken(Net):
        def forward_features(self, images):
            features = super().forward_features(images)
            return spoil(images, features) if where == "features" else features

        def forward(self, images):
            return spoil(images, super().forward(images))

    images = Images()
    images.pixels[9:17] = 255  # white images are the only bright ones
    backbone = make_backbone(Broken(num_classes=0 if where == "features" else 3))
    with pytest.raises(DataError, match=r"net gives NaN or infinite values for row 9 \(image_9\.png\), row 10 .* and 2 more"):
        extract_into(tmp_path, images, backbone)
    assert [path.name for path in only_folder(tmp_path).glob("shard*")] == ["shard-00000.safetensors"]


def test_disk_full_names_the_folder_and_leaves_nothing_half_written(tmp_path, monkeypatch):
    written = []

    def full(descriptor):
        written.append(descriptor)
        if len(written) > 2:  # the manifest and the first shard still fit
            raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(StorageError, match="No space left on device") as caught:
            extract_into(tmp_path)
    folder = only_folder(tmp_path)
    assert str(folder) in str(caught.value)
    assert sorted(path.name for path in folder.iterdir()) == ["manifest.json", "shard-00000.safetensors"]
    images = Images()
    extract_into(tmp_path, images)
    assert min(images.reads) == ROWS


def test_a_cache_folder_that_can_not_be_made_is_a_warning(tmp_path):
    (tmp_path / "file").touch()
    stream = io.StringIO()
    found = extract_into(tmp_path / "file", reporter=Reporter(stream))
    said = " ".join(stream.getvalue().split())
    assert "are not kept for the next command" in said and "CROSSGRAFT_CACHE" in said
    np.testing.assert_array_equal(found.features, extract_into(tmp_path / "good").features)
    assert found.from_cache is False


def test_ctrl_c_keeps_finished_shards(tmp_path):
    images = Images()
    read = images.read

    def interrupted(index):
        if index == 18:
            raise KeyboardInterrupt
        return read(index)

    images.read = interrupted
    with pytest.raises(KeyboardInterrupt):
        extract_into(tmp_path, images)
    assert len(list(tmp_path.rglob("shard-*.safetensors"))) == 2


def test_a_stopped_cell_leaves_no_thread_even_while_its_error_is_kept(tmp_path, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(FeatureStore, "write_shard", stop)
    with pytest.raises(KeyboardInterrupt) as kept:
        extract_into(tmp_path)
    assert kept.value is not None
    assert [thread.name for thread in threading.enumerate() if thread.name.startswith("prepare")] == []


def test_what_the_user_is_told(tmp_path):
    stream = io.StringIO()
    reporter = Reporter(stream, clock=count(0, 11).__next__)  # nothing is short by this clock
    extract_into(tmp_path, reporter=reporter, title="Looking at 20 images with net (2 of 7)")
    extract_into(tmp_path, reporter=reporter)
    estimate, done, cached = stream.getvalue().splitlines()
    assert estimate == "Looking at 20 images with net (2 of 7): about 1 s, 1 kB"
    assert re.fullmatch(r"Looking at 20 images with net \(2 of 7\): [0-9]+.0 s, .+", done)
    assert cached == "Looking at 20 images with net: read from the cache"


def test_a_resumed_run_says_what_is_there(tmp_path, monkeypatch, capsys):
    write = FeatureStore.write_shard
    with monkeypatch.context() as patch:
        patch.setattr(FeatureStore, "write_shard", lambda *a, **k: (write(*a, **k), (_ for _ in ()).throw(_KilledError)))
        with pytest.raises(_KilledError):
            extract_into(tmp_path)
    extract_into(tmp_path, reporter=Reporter())
    assert "(an earlier run left 8 of 20): about" in capsys.readouterr().err


def test_the_manifest_says_what_the_folder_holds(tmp_path):
    extract_into(tmp_path)
    manifest = json.loads((only_folder(tmp_path) / "manifest.json").read_text())
    assert manifest["model"] == "net"
    assert manifest["num_samples"] == 20
    assert manifest["data_fingerprint"] == "images 20 0"
    assert manifest["versions"]["torch"] == torch.__version__


def test_other_tools_can_open_the_file(tmp_path):
    found = extract_into(tmp_path)
    tensors = load_file(only_folder(tmp_path) / "features.safetensors")
    np.testing.assert_array_equal(tensors["features"], found.features)
    np.testing.assert_array_equal(tensors["source_logits"], found.source_logits)


def test_threads_are_limited_while_running_and_restored(tmp_path, monkeypatch):
    seen = []

    class Watching(Net):
        def forward(self, images):
            seen.append(torch.get_num_threads())
            return super().forward(images)

    backbone = make_backbone(Watching())
    seen.clear()
    before = torch.get_num_threads()
    extract_into(tmp_path, backbone=backbone, num_threads=3)
    assert set(seen) == {3}
    assert torch.get_num_threads() == before
    seen.clear()
    monkeypatch.setattr(extract, "available_cores", lambda: 1)
    extract_into(tmp_path / "b", backbone=backbone, num_threads=None)
    assert set(seen) == {1}


@pytest.mark.parametrize("options", [{"batch_size": 0}, {"num_threads": 0}])
def test_numbers_below_one(tmp_path, options):
    with pytest.raises(UsageError, match="at least 1"):
        extract_into(tmp_path, **options)


def test_no_images(tmp_path):
    with pytest.raises(DataError, match="no images to look at"):
        extract_into(tmp_path, Images(0))


@pytest.mark.parametrize(
    ("side", "device", "expected"), [(8, "cpu", 64), (96, "cpu", 32), (224, "cpu", 8), (600, "cpu", 4), (600, "cuda:0", 64)]
)
def test_the_default_batch_fits_the_device(side, device, expected):
    from types import SimpleNamespace

    from crossgraft.features.extract import default_batch_size
    from crossgraft.types import Preprocessing

    literal = default_batch_size.__wrapped__ if hasattr(default_batch_size, "__wrapped__") else default_batch_size
    stand_in = SimpleNamespace(device=device, preprocessing=Preprocessing(side, side))
    assert literal(stand_in) == expected


def test_a_cache_that_may_not_be_searched_keeps_nothing(tmp_path, monkeypatch):
    def refuse(self, **_):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(self))

    backbone = make_backbone()
    monkeypatch.setattr(Path, "stat", refuse)
    assert not extract.features_are_kept(Images(), backbone, cache_dir=tmp_path)
