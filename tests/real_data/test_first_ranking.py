"""The path of docs/results/first-ranking.md on real images and real weights, made small."""

from pathlib import Path

import pytest

from crossgraft.cli.main import main
from crossgraft.rank.record import RankingRecord

ZOO = Path(__file__).parents[2] / "examples" / "own_models" / "mobilenets.yaml"
DATA_SETS = {"breastmnist": (2, 20), "retinamnist": (5, 8)}


@pytest.mark.real_data
@pytest.mark.slow
@pytest.mark.parametrize("name", DATA_SETS)
def test_nine_real_models_are_ranked_on_real_images(name, real_data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    num_classes, per_class = DATA_SETS[name]
    flags = [
        "--models",
        str(ZOO),
        "--code",
        str(ZOO.parent),
        "--weights-dir",
        str(real_data / "weights"),
        "--out",
        "run",
        "--quiet",
    ]
    small = ["--image-size", "64", "--per-class", str(per_class), "--workers", "1", "--scores", "leep,logme,knn_probe"]
    assert main(["rank", str(real_data / "datasets" / f"{name}.npz"), *flags, *small]) == 0
    record = RankingRecord.model_validate_json((tmp_path / "run" / "report.json").read_bytes())
    assert record.dataset.class_counts == [per_class] * num_classes
    assert record.dataset.rows_used.startswith("split train")
    assert sum(model.role == "candidate" for model in record.models) == 9
    no_head = record.cell("mobilenetv2_035 · ImageNet", "leep")
    assert no_head.value is None
    assert "no classification head" in no_head.reason
    assert all(cell.low < cell.value < cell.high for cell in record.cells if cell.score == "logme")
    assert str(real_data) not in (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
