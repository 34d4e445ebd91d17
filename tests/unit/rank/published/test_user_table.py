import numpy as np
import pytest

from crossgraft import evaluate_published
from crossgraft.errors import DataError
from crossgraft.rank.published import read_benchmark_table

HEADER = "target,model,result,logme,group,family"


def write(folder, *rows, header=HEADER):
    path = folder / "mine.csv"
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return path


def test_a_table_becomes_a_benchmark(tmp_path):
    rows = ["a,m,0.9,1,g,x", "a,n,0.8,2,g,y", "b,m,0.7,,g,x", "b,n,0.6,3,g,y", "b,o,0.5,3,g,y"]
    table = read_benchmark_table(write(tmp_path, *rows))
    assert (list(table.models), list(table.targets), list(table.groups)) == (["m", "n", "o"], ["a", "b"], ["g", "g"])
    np.testing.assert_array_equal(table.results, [[0.9, 0.8, np.nan], [0.7, 0.6, 0.5]])
    np.testing.assert_array_equal(table.columns["logme"].values, [[1, 2, np.nan], [np.nan, 3, 3]])


def test_a_useful_score_beats_the_prior(tmp_path):
    rng = np.random.default_rng(0)
    rows = []
    for target in range(12):
        for model in range(8):
            result = rng.normal()
            rows.append(f"t{target},m{model},{result},{result + 0.01 * rng.normal()}")
    record = evaluate_published(write(tmp_path, *rows, header="target,model,result,oracle")).record
    (scenario,) = record.scenarios
    oracle = next(m for m in scenario.methods if m.name == "oracle")
    assert oracle.mean.value > 0.9 and oracle.gain.low > 0 and oracle.regret.value < 0.05
    assert oracle.residual.value > 0.5
    assert " beats the static prior" in scenario.conclusion


@pytest.mark.parametrize(
    ("rows", "header", "message"),
    [
        (["a,m,0.9"], "target,model,auc", "missing: value"),
        (["a,m,high,1,g,x"], HEADER, "row 2: result is 'high', not a number"),
        (["a,m,inf,1,g,x"], HEADER, "Leave the cell empty"),
        (["a,m,1,1,g,x", "a,m,2,1,g,x"], HEADER, "row 3: m on a appears twice"),
        (["a,m,1,1,g,x", "a,n,1,1,h,x"], HEADER, "row 3: a has the group h"),
        (["a,m,1,1,g,x"], HEADER, "fewer than two results on a"),
        ([], HEADER, "no rows"),
    ],
)
def test_wrong_tables_are_named(tmp_path, rows, header, message):
    with pytest.raises(DataError, match=message):
        read_benchmark_table(write(tmp_path, *rows, header=header))


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(DataError, match="No such table"):
        read_benchmark_table(tmp_path / "none.csv")
