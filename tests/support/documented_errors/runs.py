"""Cases of run folders, exports, pages and studies."""

import contextlib
import errno
import json
import os
import sys

import pytest

from support.documented_errors import MODELS, PLAIN, TUNE
from support.medical import ct_slice, write_ct


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
