"""Absolute paths never reach the page; everything else stays as it was."""

from __future__ import annotations

import pytest

from crossgraft.report.source import configuration_without_absolute_paths, without_absolute_paths


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("rank /home/jane/a.npz --seed 7", "rank …/a.npz --seed 7"),
        ("--out=/scratch/jane/run", "--out=…/run"),
        ("rank '/home/jane doe/scans of may/a.npz'", "rank '…/a.npz'"),
        (r"rank /home/jane\ doe/a.npz", "rank …/a.npz"),
        (r"rank C:\Users\jane\a.npz", "rank …/a.npz"),
        (r"rank \\server\share\a.npz", "rank …/a.npz"),
        ("rank ~/scans/a.npz", "rank …/a.npz"),
        ("/data", "…/data"),
    ],
)
def test_absolute_paths_are_cut(text, expected):
    assert without_absolute_paths(text) == expected


@pytest.mark.parametrize(
    "text", ["scans/a.npz", "./a.npz", "../b/a.npz", "mean and/or std", "https://example.org/a", "1 / 2", "a:b"]
)
def test_other_text_stays(text):
    assert without_absolute_paths(text) == text


def test_configurations_are_cut_at_every_depth():
    configuration = {"data": "/home/jane doe/a.npz", "models": ["/w/b.pth", "resnet18"], "seed": 7, "more": {"x": None}}
    assert configuration_without_absolute_paths(configuration) == {
        "data": "…/a.npz",
        "models": ["…/b.pth", "resnet18"],
        "seed": 7,
        "more": {"x": None},
    }
