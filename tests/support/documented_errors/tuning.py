"""Cases of trainings."""

import errno
import json
import os
import sys
import types

import torch
from safetensors.torch import save_file

from crossgraft.rank.results_store import known_results_file
from support.documented_errors import MODELS, PLAIN, TUNE
from support.tiny import make_images


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
