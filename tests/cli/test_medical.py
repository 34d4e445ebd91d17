"""A ranking of DICOM and NIfTI files as a user sees it, and what nobody may see in it."""

import base64
import gzip
import json
import zipfile

import numpy as np
import pytest

from support.medical import ct_slice, write_ct, write_nifti

MODELS = ("--models", "zoo.yaml", "--code", "tiny_models.py", "--scores", "logme", "--workers", "1", "--cache-dir", "cache")
SECRETS = ("MRN-4711", "Doe", "Jane", "scan-of-jane", "19600229", "General Hospital")


@pytest.fixture
def scans(workspace):
    """CT files of named patients, one of them damaged."""
    for seed, label in enumerate(("benign", "malignant")):
        for i in range(12):
            values = ct_slice(20 * seed + i)
            values[12:16, 12:16] += 300 * seed
            write_ct(
                workspace / "scans" / label / f"scan-of-jane-{i:02d}.dcm",
                values,
                patient=f"MRN-4711-{seed}{i // 2}",
                PatientName="Doe^Jane",
                PatientBirthDate="19600229",
                InstitutionName="General Hospital",
            )
    damaged = workspace / "scans" / "benign" / "scan-of-jane-99.dcm"
    damaged.write_bytes((workspace / "scans" / "benign" / "scan-of-jane-00.dcm").read_bytes()[:-500])
    return workspace / "scans"


def written(*folders):
    """Everything in every file of the folders, unpacked where it is packed."""
    for folder in folders:
        for path in folder.rglob("*"):
            yield path.name.encode()
            if path.is_file():
                content = path.read_bytes()
                yield content
                if content[:2] == b"\x1f\x8b":
                    yield gzip.decompress(content)
                if zipfile.is_zipfile(path):
                    with zipfile.ZipFile(path) as archive:
                        yield from (archive.read(name) for name in archive.namelist())


@pytest.mark.parametrize("show_names", [False, True])
@pytest.mark.parametrize("absolute", [False, True])
def test_nothing_written_names_a_patient_or_a_file(scans, workspace, crossgraft, show_names, absolute):
    data = scans if absolute else "scans"
    names = ("--show-names",) if show_names else ()
    outcome = crossgraft("rank", data, *MODELS, "--out", "run", "--skip-unreadable", *names)
    assert outcome.code == 0, outcome.err
    everything = [*written(workspace / "run", workspace / "cache"), outcome.out.encode()]
    assert len(everything) > 8
    allowed = ("scan-of-jane",) if show_names else ()
    for secret in SECRETS:
        found = [content[:80] for content in everything if secret.encode() in content]
        assert bool(found) == (secret in allowed), (secret, found)
    files = everything[:-1]  # on the terminal the next command is whole, so that it can be typed
    assert not any(str(workspace).encode() in content for content in files)
    for secret in set(SECRETS) - {"scan-of-jane"}:
        assert secret not in outcome.err


def test_the_report_says_how_files_were_read_and_shows_them(scans, workspace, crossgraft):
    outcome = crossgraft("rank", "scans", *MODELS, "--holdout", "0", "--out", "run", "--skip-unreadable")
    assert "DICOM: own window in 25 files." in outcome.err
    record = json.loads((workspace / "run" / "report.json").read_text(encoding="utf-8"))
    assert record["dataset"]["reading"] == ["DICOM: own window in 25 files."]
    assert record["dataset"]["num_groups"] == 12
    assert "DICOM: own window in 25 files." in (workspace / "run" / "report.html").read_text(encoding="utf-8")
    thumbnails = json.loads((workspace / "run" / "thumbnails.json").read_text(encoding="utf-8"))
    from PIL import Image

    (workspace / "thumbnail.png").write_bytes(base64.b64decode(first_image(thumbnails)))
    shown = np.asarray(Image.open(workspace / "thumbnail.png").convert("L")).astype(int)
    air, lung, body, bone = shown[0, 0], shown[16, 9], shown[5, 16], shown[26, 16]
    assert air < lung < body < bone


def first_image(thumbnails):
    rows = thumbnails if isinstance(thumbnails, list) else next(iter(thumbnails.values()))
    return rows[0]["png_base64"]


def test_slices_and_window_of_volumes(workspace, crossgraft):
    for seed, label in enumerate(("benign", "malignant")):
        for i in range(6):
            volume = np.stack([ct_slice(100 * seed + 10 * i + k, 16) for k in range(5)], axis=-1)
            write_nifti(workspace / "volumes" / label / f"{i}.nii.gz", volume)
    outcome = crossgraft("rank", "volumes", *MODELS, "--holdout", "0", "--out", "run", "--slices", "2", "--window", "lung")
    assert outcome.code == 0, outcome.err
    assert "NIfTI: window lung (centre -600, width 1500) in 12 files; of 12 files with several slices, 2 evenly" in outcome.err
    assert "24 images" in outcome.out and "12 groups" in outcome.out
