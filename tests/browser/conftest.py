"""Headless Chromium, and one written page of each kind to look at."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from crossgraft import evaluate_published, write_report
from crossgraft.records.base import ImageAnswer, Thumbnail
from crossgraft.tune.record import TuningRecord
from support.tuning_records import prediction_record, tuning_record

EXAMPLES = Path(__file__).parents[1] / "unit" / "report" / "example_runs.py"
QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)


@pytest.fixture(scope="session")
def browser() -> Iterator:
    """Debian's Chromium (or the one that CROSSGRAFT_CHROMIUM names)."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    chromium = Path(os.environ.get("CROSSGRAFT_CHROMIUM", "/usr/bin/chromium"))
    if not chromium.is_file():
        pytest.skip(f"no browser at {chromium}; install chromium or set CROSSGRAFT_CHROMIUM")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=str(chromium), args=list(QUIET))
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def examples() -> ModuleType:
    spec = importlib.util.spec_from_file_location("example_runs", EXAMPLES)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def answered_images(examples, record: TuningRecord) -> list[Thumbnail]:
    """Examples of each class, the test images that the confusion matrix counts, and some of val."""
    names = record.dataset.class_names
    png = examples.thumbnails(["x"])[0].png_base64
    images = examples.thumbnails(names)
    row = 0
    for true, counts in zip(names, record.confusion.counts, strict=True):
        for said, number in zip(names, counts, strict=True):
            for place in range(number + 1):
                row += 1
                answer = ImageAnswer(decision=said, certainty=round(0.99 - 0.005 * place, 3), is_right=true == said)
                split = "test" if place < number else "val"
                images.append(Thumbnail(row=row, split=split, target=true, group=row // 2 + 1, png_base64=png, answers=[answer]))
    return images


@pytest.fixture(scope="session")
def pages(examples, tmp_path_factory) -> dict[str, Path]:
    """A page of each kind of record, and one of a ranking and a demo together."""
    folder = tmp_path_factory.mktemp("pages")
    record = examples.ranking_record()
    images = examples.thumbnails(record.dataset.class_names)
    rank = examples.write_run(folder / "rank", record, images=images)
    demo = examples.write_run(folder / "demo", examples.demo_record())
    check_record = examples.data_check_record()
    copies = [f"{check_record.findings[0].title}: {rows}" for rows in ("4 (train) and 700 (test)", examples.EVIL)]
    strips = [
        Thumbnail(class_name=name, row=row, png_base64=png, distance=None if row % 2 else 10.0 + row, is_far=row == 8)
        for name in check_record.dataset.class_names
        for row, png in enumerate((each.png_base64 for each in examples.thumbnails(["x", "y"])), start=1)
    ]
    check = examples.write_run(folder / "check", check_record, images=[*examples.thumbnails(copies), *strips])
    record = tuning_record(class_names=("benign", examples.EVIL, "melanoma"), num_folds=2)
    tune = examples.write_run(folder / "tune", record, images=answered_images(examples, record))
    record = prediction_record()
    rows = [str(row) for row in (*record.most_certain, *record.least_certain)]
    predict = examples.write_run(folder / "predict", record, images=examples.thumbnails(rows))
    evaluate_published("itm", out=folder / "published")
    return {
        "published": folder / "published" / "report.html",
        "tune": write_report(tune),
        "predict": write_report(predict),
        "rank": write_report(rank),
        "check": write_report(check),
        "demo": write_report(demo),
        "both": write_report([rank, demo], out=folder / "both.html"),
    }
