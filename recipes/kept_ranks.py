"""Put what a finished study of ``rank`` found into the committed tables of docs/results/real-scores.md.

    crossgraft bench studies/real-scores.yaml --out runs/real-scores --code examples/own_models
    python recipes/kept_ranks.py runs/real-scores docs/results/real-scores

``values.csv`` has a row a set, score and candidate; ``checks.csv`` warnings and notices of the primary score about each set.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd
from kept import jobs_of
from tables import read_csv

from crossgraft.rank.record import RankingRecord

COLUMNS = ["set", "score", "model", "value", "low", "high", "level", "above_shuffled", "seconds"]


def values(record: RankingRecord, scores: pd.DataFrame) -> pd.DataFrame:
    """Candidates that have a value, and how many models are not separable from each."""
    titles = {score.name: score.title for score in record.scores}
    level = {(row.model, each.score): len(row.not_separable_from) for each in record.rankings for row in each.rows}
    found = scores[(scores["role"] == "candidate") & scores["value"].notna()]
    levels = [level[cell] for cell in zip(found["model"], found["score"], strict=True)]
    found = found.assign(score=found["score"].map(titles), level=levels)
    return found.assign(**{column: found[column].map("{:.7g}".format) for column in ("value", "low", "high", "seconds")})


def main(arguments: list[str]) -> None:
    study, place = (Path(each) for each in arguments)
    cells, checks = list[pd.DataFrame](), list[dict[str, str]]()
    for job, run, _ in jobs_of(study):
        record = RankingRecord.model_validate_json((run / "report.json").read_bytes())
        cells.append(values(record, read_csv(run / "scores.csv")).assign(set=job.data))
        told = [check for check in record.checks if check.severity in ("warning", "notice")]
        said = [{"set": job.data, "severity": each.severity, "what": each.title, "text": each.text} for each in told]
        checks += said if record.primary_score == "logme" else []
    for name, table in {"values": pd.concat(cells)[COLUMNS], "checks": pd.DataFrame(checks)}.items():
        table.convert_dtypes().to_csv(place / f"{name}.csv", index=False, lineterminator="\n")
        print(f"{(place / name).as_posix()}.csv: {len(table)} rows")


if __name__ == "__main__":
    main(sys.argv[1:])
