"""Everything that the pages of the documentation talk about: folders, tables, arrays, weights."""

import json
import re
import shutil
import sys
from pathlib import Path

import numpy as np
from PIL import Image

from support.medical import ct_slice, write_ct, write_nifti

SMALL = (20, 24)


def make_documented_workspace(folder, repository):
    """Fill `folder` so that the printed commands run there; weights are random, images are noise."""
    class_folders(folder / "breast", number=90)  # an audit needs enough of every class in every part
    for name in ("my_images", "data/breast"):
        class_folders(folder / name)
    (folder / "new_images").mkdir()
    noise(0, seed=7).save(folder / "new_images" / "new.png")
    table(
        folder / "study",
        "labels.csv",
        "path,label,patient,age,scanner",
        "scans/{i:03d}.png,{label},P{patient:02d},{age},{scanner}",
    )
    table(folder / "busi", "metadata.csv", "path,label,class,orig_width", "busi/scans/{i:03d}.png,{number},{label},500")
    table(folder / "ham10000", "metadata.csv", "image_id,lesion_id,dx", "ISIC_{i:07d},HAM_{patient},{label}")
    (folder / "ham10000" / "images").mkdir()
    for i in range(24):
        noise(i % 2).save(folder / "ham10000" / "images" / f"ISIC_{i:07d}.jpg")
    clinic(folder)
    hospitals(folder)
    arrays(folder)
    results = (repository / "docs" / "how-to" / "which-model-in-one-hour.md").read_text(encoding="utf-8")
    (folder / "my_results.csv").write_text(re.search(r"```csv\n(.*?)```", results, re.DOTALL)[1], encoding="utf-8")
    (folder / "accuracies.csv").write_text("model,accuracy\nmy net,0.8\nmobilenetv2_100 · birds,0.9\n", encoding="utf-8")
    several_labels(folder)
    medical(folder)
    saved_datasets(folder)
    weights(folder / "weights")
    examples(folder / "examples", repository / "examples")
    shutil.copytree(repository / "studies", folder / "studies")
    (folder / "my_nets.py").write_text(SMALL_NET)
    entry = "- {{name: {}, source: test_resnet, weights: my_net.safetensors}}\n"
    (folder / "zoo.yaml").write_text(entry.format("my net") + entry.format("mobilenetv2_100 · birds"), encoding="utf-8")


SMALL_NET = """
from torch import nn


def small_net():
    net = nn.Sequential()
    net.body = nn.Conv2d(3, 8, 3)
    net.pool = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())
    net.fc = nn.Linear(8, 10)
    net.default_cfg = {"input_size": (3, 32, 32)}
    return net
"""


def forget_examples(repository):
    """Python keeps one module per name, and other tests import the originals."""
    for file in (*(repository / "examples").glob("*/*.py"), Path("my_nets.py")):
        sys.modules.pop(file.stem, None)


def examples(folder, originals):
    """The examples, their zoos with the first entry and the last: tests of the examples try every entry."""
    for original in originals.glob("*/*.*"):
        file = folder / original.relative_to(originals)
        file.parent.mkdir(parents=True, exist_ok=True)
        if original.suffix == ".yaml":
            heading, *entries = re.split(r"(?m)^(?=- name:)", original.read_text(encoding="utf-8"))
            file.write_text("".join([heading, entries[0], *entries[1:][-1:]]), encoding="utf-8")
        else:
            shutil.copyfile(original, file)  # a link would lead out of the folder that --code names


def several_labels(folder):
    """`chest`: three labels in columns and in cells; `chest_labels.npz`; the names of the numbers in `busi`."""
    labels = np.random.default_rng(0).random((48, 3)) < 0.45
    names = ("effusion", "nodule", "oedema")
    (folder / "chest" / "scans").mkdir(parents=True)
    columns, cells = [f"path,{','.join(names)},patient"], ["path,label"]
    for i, row in enumerate(labels):
        noise(int(row.any())).save(folder / "chest" / "scans" / f"{i:03d}.png")
        columns.append(f"scans/{i:03d}.png,{','.join(str(int(has)) for has in row)},P{i // 2}")
        cells.append(f"scans/{i:03d}.png,{'|'.join(name for name, has in zip(names, row, strict=True) if has)}")
    (folder / "chest" / "columns.csv").write_text("\n".join(columns) + "\n")
    (folder / "chest" / "cells.csv").write_text("\n".join(cells) + "\n")
    images = np.random.default_rng(0).integers(0, 255, (48, 28, 28), dtype=np.uint8)
    np.savez(folder / "chest_labels.npz", images=images, labels=labels.astype(np.uint8), class_names=np.array(names))
    (folder / "busi" / "names.txt").write_text("benign\nmalignant\n")


def medical(folder):
    """`ct` and `ct.csv`: DICOM files of twelve patients; `volumes`: NIfTI; `archive`: DICOM with the UIDs of its studies."""
    for i in range(3):
        uids = {
            "StudyInstanceUID": f"1.2.{i // 2}",
            "SeriesInstanceUID": f"1.2.{i // 2}.1",
            "SOPInstanceUID": f"1.2.{i // 2}.1.{i}",
        }
        write_ct(folder / "archive" / f"{i}.dcm", ct_slice(i), **uids)
    rows = ["path,label,patient"]
    for level, label in enumerate(("benign", "malignant")):
        for i in range(12):
            body = ct_slice(20 * level + i) + np.int16(40 * level)
            write_ct(folder / "ct" / label / f"{i:02d}.dcm", body, patient=f"{level}{i // 2}")
            rows.append(f"ct/{label}/{i:02d}.dcm,{label},P{level}{i // 2}")
            volume = np.stack([ct_slice(1000 * level + 10 * i + k, 16) for k in range(4)], axis=-1)
            write_nifti(folder / "volumes" / label / f"{i:02d}.nii.gz", volume)
    (folder / "ct.csv").write_text("\n".join(rows) + "\n")


def noise(level, size=SMALL, seed=None):
    pixels = np.random.default_rng(level if seed is None else seed).integers(0, 100, (*size, 3)) + 100 * level
    return Image.fromarray(pixels.astype(np.uint8))


def class_folders(folder, number=12):
    for level, name in enumerate(("benign", "malignant")):
        (folder / name).mkdir(parents=True)
        for i in range(number):
            noise(level, seed=1000 * level + i).save(folder / name / f"{i:02d}.png")


def table(folder, name, header, row):
    (folder / "scans").mkdir(parents=True)
    rows = [header]
    for i in range(24):
        noise(i % 2).save(folder / "scans" / f"{i:03d}.png")
        label = ("benign", "malignant")[i % 2]
        rows.append(
            row.format(i=i, label=label, number=i % 2, patient=i // 2 % 10 + 10 * (i % 2), age=40 + i, scanner="AB"[i // 2 % 2])
        )
    (folder / name).write_text("\n".join(rows) + "\n")


def clinic(folder):
    """A sound study: every image is another one, two of each patient."""
    (folder / "clinic" / "scans").mkdir(parents=True)
    rows = ["path,label,patient"]
    for i in range(24):
        noise(0, seed=i).save(folder / "clinic" / "scans" / f"{i:03d}.png")
        rows.append(f"scans/{i:03d}.png,{('benign', 'malignant')[i // 2 % 2]},P{i // 2:02d}")
    (folder / "clinic" / "labels.csv").write_text("\n".join(rows) + "\n")


def hospitals(folder):
    """A study of three hospitals: two images of each patient, each patient in one hospital."""
    (folder / "hospitals" / "scans").mkdir(parents=True)
    rows = ["path,label,patient,hospital"]
    for i in range(48):
        noise(i // 2 % 2, seed=i).save(folder / "hospitals" / "scans" / f"{i:03d}.png")
        label, hospital = ("benign", "malignant")[i // 2 % 2], ("Bergen", "Oslo", "Tromsø")[i // 16]
        rows.append(f"scans/{i:03d}.png,{label},P{i // 2:02d},{hospital}")
    (folder / "hospitals" / "labels.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")


def arrays(folder):
    rng = np.random.default_rng(0)
    images, labels = rng.integers(0, 255, (24, 28, 28), dtype=np.uint8), np.arange(24) % 2
    medmnist = {f"{part}_{kind}": a for part in ("train", "val", "test") for kind, a in (("images", images), ("labels", labels))}
    for name in ("breastmnist", "retinamnist", "pneumoniamnist"):
        np.savez(folder / f"{name}.npz", **medmnist)
    np.savez(folder / "chest.npz", images=images, diagnosis=labels, site=np.arange(24) // 3)


def saved_datasets(folder):
    """What `save_to_disk` of Hugging Face datasets writes: a dataset with splits."""
    import datasets

    datasets.disable_progress_bars()
    columns = {
        "image": [noise(i % 2) for i in range(24)],
        "label": [i % 2 for i in range(24)],
        "finding": [f"F{i % 3}" for i in range(24)],
        "patient": [f"P{i // 2 % 10 + 10 * (i % 2)}" for i in range(24)],
    }
    features = datasets.Features(
        image=datasets.Image(),
        label=datasets.ClassLabel(names=["normal", "pneumonia"]),
        finding=datasets.Value("string"),
        patient=datasets.Value("string"),
    )
    part = datasets.Dataset.from_dict(columns, features=features)
    datasets.DatasetDict(train=part, test=part).save_to_disk(folder / "chest_xray")


def weights(folder):
    """Random weights under the names of real ones: `resnet18`, and files that describe themselves."""
    import timm
    import torch
    from safetensors.torch import save_file

    folder.mkdir()
    with torch.random.fork_rng():
        torch.manual_seed(0)
        small = timm.create_model("test_resnet", num_classes=10)  # of all networks, one of the quickest
        header = {"architecture": "test_resnet", "num_classes": "10", "input_size": json.dumps([3, 32, 32])}
        (folder.parent / "my_checkpoints").mkdir()
        for file in (folder / "my_net.safetensors", folder.parent / "my_checkpoints" / "small.safetensors"):
            save_file(small.state_dict(), file, metadata=header)
        for name in ("resnet18", "mobilenetv2_100", "vit_tiny_patch16_224"):
            save_file(timm.create_model(name).state_dict(), folder / f"{name}.safetensors")
        mobilenets(folder, save_file)
        torchvision_weights(folder)
        own_networks(folder, save_file)
    few_weights(folder.parent / "few_weights", folder)


def few_weights(folder, weights_folder):
    """Of every way to say what a file holds, one: by the whole name, by its beginning, by the header."""
    folder.mkdir()
    for name in ("resnet18", "mobilenetv2_035.imagenet_backbone", "mobilenetv2_100.inat_bird", "my_net"):
        (folder / f"{name}.safetensors").hardlink_to(weights_folder / f"{name}.safetensors")
    for file in weights_folder.glob("shufflenetv2*"):  # of torchvision
        (folder / file.name).hardlink_to(file)
    from support.transformers_folders import write_folder

    write_folder(folder / "microsoft--rad-dino", "Dinov2Model")
    from support.text_towers import TRUNK, write_open_clip

    write_open_clip(folder / "ward--small-clip", vision=TRUNK, custom=True)


def torchvision_weights(folder):
    """A small network under the name that torchvision publishes its weights."""
    import torch
    from torchvision import models

    published = models.get_model_weights("shufflenet_v2_x0_5").DEFAULT.url.rpartition("/")[2]
    torch.save(models.shufflenet_v2_x0_5(weights=None).state_dict(), folder / published)


def mobilenets(folder, save_file):
    """The files of `examples/own_models/mobilenets.yaml`."""
    import importlib.util

    import timm

    example = Path(__file__).parents[2] / "examples" / "own_models" / "fractional_mobilenet.py"
    spec = importlib.util.spec_from_file_location("documented_mobilenets", example)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    size = {"input_size": json.dumps([3, 32, 32])}
    for name, build, kwargs in (
        ("mobilenetv1_025_r128.imagenet_qat", module.mobilenetv1_025, {}),
        ("mobilenetv1_025_r96.vww", module.mobilenetv1_025, {"num_classes": 2, "act_layer": "relu"}),
        ("mobilenetv1_050_r160.imagenet_qat", module.mobilenetv1_050, {}),
        ("mobilenetv1_075_r192.imagenet_qat", module.mobilenetv1_075, {}),
    ):
        save_file(build(**kwargs).state_dict(), folder / f"{name}.safetensors", metadata=size)
    for name, architecture, classes in (
        ("mobilenetv1_100.imagenet_qat", "mobilenetv1_100", 1000),
        ("mobilenetv2_035.imagenet_backbone", "mobilenetv2_035", 0),
        ("mobilenetv2_100.imagenet_qat", "mobilenetv2_100", 1000),
        ("mobilenetv2_100.inat_bird", "mobilenetv2_100", 965),
        ("mobilenetv2_100.inat_insect", "mobilenetv2_100", 1022),
    ):
        header = {"architecture": architecture, "num_classes": str(classes), **size}
        state = timm.create_model(architecture, num_classes=classes).state_dict()
        save_file(state, folder / f"{name}.safetensors", metadata=header)


def own_networks(folder, save_file):
    """The files of the other zoos of `examples/own_models`."""

    import torch
    import yaml

    from crossgraft.models import ModelSpec, load_backbone

    examples = Path(__file__).parents[2] / "examples" / "own_models"
    for zoo in ("small_networks.yaml", "radimagenet.yaml", "chest_xrays.yaml"):
        for entry in yaml.safe_load((examples / zoo).read_text(encoding="utf-8")):
            spec = ModelSpec(entry["name"], entry["source"], "random", kwargs=entry.get("kwargs", {}), folder=examples)
            state = load_backbone(spec, image_size=32).module.state_dict()
            if entry["weights"].endswith(".safetensors"):
                save_file(state, folder / entry["weights"])
            else:
                torch.save({name: values.half() for name, values in state.items()}, folder / entry["weights"])


def fill_hub_cache(hub, weights_folder):
    """What a machine that has used timm before holds: the default weights of three small networks, here random."""
    import timm

    for name in ("mobilenetv2_100", "resnet18", "vit_tiny_patch16_224"):
        repository = timm.get_pretrained_cfg(name).hf_hub_id
        snapshot = hub / ("models--" + repository.replace("/", "--")) / "snapshots" / ("0" * 40)
        snapshot.mkdir(parents=True)
        (snapshot / "model.safetensors").symlink_to(weights_folder / f"{name}.safetensors")
        (snapshot.parents[1] / "refs").mkdir()
        (snapshot.parents[1] / "refs" / "main").write_text("0" * 40)
