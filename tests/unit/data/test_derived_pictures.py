"""Masks and other derived pictures, in the layouts that public data sets have them in, are no images; classes stay classes."""

import numpy as np
import pytest
from PIL import Image

from crossgraft.data import open_dataset
from crossgraft.data.listing import list_rows
from crossgraft.data.sources import SourceRequest
from crossgraft.data.sources._inventory import find_derived
from crossgraft.progress import Reporter

CLASSES = ("benign", "malignant")


def save(path, seed=0, **options):
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(seed).integers(0, 256, (20, 24, 3)).astype(np.uint8)
    Image.fromarray(pixels).save(path, **options)


def mask(path, seed=0, *, share=0.3):
    path.parent.mkdir(parents=True, exist_ok=True)
    flags = np.random.default_rng(seed).random((20, 24)) < share
    Image.fromarray((255 * flags).astype(np.uint8)).save(path)


def derived(root):
    return {path.relative_to(root).as_posix() for path in find_derived(sorted(root.rglob("*.*g")), root)}


def both(root, images, masks, number=4):
    """Images and masks of two classes; the places have ``{name}`` and ``{number}`` in them."""
    for place, name in enumerate(CLASSES):
        for seed in range(number):
            save(root / images.format(name=name, number=f"{name}{seed}"), 10 * place + seed)
            mask(root / masks.format(name=name, number=f"{name}{seed}"), 10 * place + seed)


@pytest.mark.parametrize(
    ("images", "masks"),
    [
        ("{name}/{number}.png", "{name}/masks/{number}.png"),
        ("{name}/{number}.png", "{name}/masks/{number}_mask.png"),
        ("{name}/{number}.png", "{name}/lung_masks/{number}.png"),
        ("{name}/{number}.png", "{name}/drawn/{number}.png"),
        ("{name}/{number}.png", "masks/{name}/{number}.png"),
        ("{name}/{number}.png", "masks/{number}.png"),
        ("{name}/{number}.jpg", "{name}/{number}.png"),
        ("{name}/image_{number}.png", "{name}/mask_{number}.png"),
        ("{name}/{number}.png", "{name}/mask_{number}.png"),
        ("{name}/images/{number}.png", "{name}/masks/{number}_seg.png"),
        ("{name}/scans/a/{number}.png", "{name}/lesions/a/{number}.png"),
        ("images/{name}/{number}.png", "masks/{name}/{number}.png"),
        ("images/{name}/{number}.jpg", "masks/{name}/{number}_mask.png"),
        ("images/{name}/{number}.png", "masks/{number}.png"),
        ("images/{name}/{number}.png", "ground_truth/{name}/{number}.png"),
        ("train/images/{name}/{number}.png", "train/masks/{name}/{number}.png"),
        ("images/train/{name}/{number}.png", "masks/train/{name}/{number}.png"),
    ],
)
def test_layouts_of_public_data_sets(tmp_path, images, masks):
    root = tmp_path / "set"
    both(root, images, masks)
    data = open_dataset(root)
    assert data.class_names == CLASSES and data.class_counts == (4, 4)
    assert "8 .png (derived from an image beside it" in " ".join(data.reading)
    assert all(data.read(row).shape[2] == 3 for row in range(8))  # the masks are grey
    assert list_rows(root, SourceRequest(use_split=None), Reporter(quiet=True))[1].notices == ()
    request = SourceRequest(use_split=None, needs_labels=False, known_classes=CLASSES)
    unlabelled = list_rows(root, request, Reporter(quiet=True))[1]
    assert unlabelled.has_labels and len(unlabelled.labels) == 8


def test_kept_masks_are_images_wherever_they_lie(tmp_path):
    both(tmp_path, "{name}/{number}.jpg", "{name}/{number}.png")
    both(tmp_path, "{name}/{number}.jpg", "{name}/masks/{number}.png")
    assert len(open_dataset(tmp_path, keep_masks=True)) == 24
    assert len(open_dataset(tmp_path)) == 8


def test_empty_masks_among_others_are_masks(tmp_path):
    for seed in range(8):
        save(tmp_path / "a" / f"{seed}.png", seed)
        mask(tmp_path / "a" / f"{seed}_outline.png", seed, share=0 if seed else 0.3)
    assert derived(tmp_path) == {f"a/{seed}_outline.png" for seed in range(8)}


def test_blank_pictures_alone_are_no_masks(tmp_path):
    for seed in range(6):
        save(tmp_path / "a" / f"{seed}.png", seed)
        mask(tmp_path / "a" / f"{seed}_later.png", seed, share=0)
        save(tmp_path / "lesion" / f"{seed}.png", 50 + seed)
        mask(tmp_path / "empty" / f"{seed}.png", seed, share=0)
    assert derived(tmp_path) == set()


def test_one_damaged_mask_does_not_keep_the_others(tmp_path):
    for seed in range(4):
        save(tmp_path / "a" / f"{seed}.png", seed)
        mask(tmp_path / "a" / f"{seed}_outline.png", seed)
    (tmp_path / "a" / "0_outline.png").write_bytes(b"")
    assert len(derived(tmp_path)) == 4


def test_two_photographs_of_one_name_are_two_images(tmp_path):
    for seed in range(4):
        save(tmp_path / "a" / f"{seed}.png", seed)
        save(tmp_path / "a" / f"{seed}.jpg", seed)
    assert derived(tmp_path) == set()


@pytest.mark.parametrize(
    "classes", [("mask", "no_mask"), ("with_mask", "without_mask"), ("roi", "normal"), ("contours", "images of texture")]
)
def test_classes_that_are_called_like_masks_stay_classes(tmp_path, classes):
    for place, name in enumerate(classes):
        for seed in range(4):
            save(tmp_path / "set" / name / f"{seed}.png", 10 * place + seed)
    assert set(open_dataset(tmp_path / "set").class_names) == set(classes)


def test_masks_of_a_class_that_is_called_like_masks(tmp_path):
    for name in ("with_mask", "without_mask"):
        for seed in range(4):
            save(tmp_path / name / "images" / f"{seed}.png", len(name) + seed)
            mask(tmp_path / name / "masks" / f"{seed}.png", seed)
    assert len(open_dataset(tmp_path)) == 8


def test_pictures_with_something_drawn_on_them_are_derived(tmp_path):
    for seed in range(4):
        save(tmp_path / "a" / f"{seed}.png", seed)
        save(tmp_path / "b" / f"b{seed}.png", 20 + seed)
        drawn = np.asarray(Image.open(tmp_path / "a" / f"{seed}.png")).copy()
        drawn[2:5] = 255
        (tmp_path / "overlays").mkdir(exist_ok=True)
        Image.fromarray(drawn).save(tmp_path / "overlays" / f"{seed}.png")
    assert derived(tmp_path) == {f"overlays/{seed}.png" for seed in range(4)}


def test_only_the_masks_are_named_where_images_beside_them_have_classes(tmp_path):
    both(tmp_path / "set", "images/{name}/{number}.png", "masks/{name}/{number}.png")
    data = open_dataset(tmp_path / "set")
    assert data.image_name(0) == "images/benign/benign0.png" and data.name == "set"
    assert {each.place for each in data.files.passed_over} == {"masks"}
