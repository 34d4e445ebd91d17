"""A study of patients whose ill images are brighter, and what an audit of it leaves; a conftest imports its fixtures."""

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from crossgraft.audit.record import AuditRecord

CODE = ("--code", "tiny_models.py")
FAST = ("--workers", "1", "--device", "cpu", "--quiet")
TAG = ("--confounder", "tag:0.5,xy=[0.1,0.1]")
DATA = ("--data", "study.csv", "--group-column", "patient")
QUICK = ("tiny_models:tiny", *DATA, *CODE, *FAST, "--folds", "2")
TUNE = ("tune", "study.csv", "--group-column", "patient", "--model", "tiny_models:tiny", *FAST)
OPTIONS = {"data": "study.csv", "group_column": "patient", "allow_code": "tiny_models.py", "audit_folds": 2}
OPTIONS |= {"confounders": ["tag:0.5,xy=[0.1,0.1]"], "workers": 1, "device": "cpu"}


@pytest.fixture
def study(workspace):
    """120 squares of 60 patients in a table; ill ones are a little brighter, so that a large white letter tells more."""
    rng = np.random.default_rng(0)
    rows = ["path,label,patient"]
    (workspace / "scans").mkdir()
    for number in range(120):
        pixels = rng.integers(20, 100, (16, 16, 3)) + 12 * (number % 2) + int(rng.integers(-12, 13))
        Image.fromarray(pixels.astype(np.uint8)).save(workspace / "scans" / f"Jones{number:03d}.png")
        rows.append(f"scans/Jones{number:03d}.png,{('healthy', 'ill')[number % 2]},Smith{number // 2}")
    (workspace / "study.csv").write_text("\n".join(rows))
    return workspace


@pytest.fixture
def audit(study, crossgraft):
    return lambda *arguments: crossgraft("audit", *arguments)


@pytest.fixture
def tuned(study, run_once):
    run_once(*TUNE, "--epochs", "30", "--learning-rate", "0.05", "--no-images", out="tuned")
    return study / "tuned"


def record_of(folder):
    return AuditRecord.model_validate_json((folder / "report.json").read_bytes())


def numbers_of(record):
    """All that a second run must find again."""
    return [entry.model_dump() for entry in record.entries]


def told_by(folder):
    """All bytes of a run directory, names of files too."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return b"".join(path.read_bytes() for path in files) + " ".join(str(path.relative_to(folder)) for path in files).encode()


def with_sex(study, *, in_pixels):
    """A column that has nothing to do with the class; women are much brighter, or their pictures are like those of men."""
    table = pd.read_csv(study / "study.csv")
    table["sex"] = np.where(np.arange(len(table)) // 2 % 2 == 0, "F", "M")
    for path in table["path"][(table["sex"] == "F") & in_pixels]:
        pixels = np.asarray(Image.open(study / path)).astype(np.int64) + 120
        Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8)).save(study / path)
    table.to_csv(study / "study.csv", index=False)


def brightness(images):
    return np.array([image.mean() / 255 for image in images])
