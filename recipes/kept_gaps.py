"""Put the gaps of a finished study into the committed table of docs/results/fewshot.md.

    crossgraft bench studies/fewshot-gap.yaml --out runs/gap --code examples/own_models
    python recipes/kept_gaps.py runs/gap docs/results/fewshot/gap.csv.gz
    crossgraft bench studies/fewshot-class-weights.yaml --out runs/weights --code examples/own_models
    python recipes/kept_gaps.py runs/weights docs/results/fewshot/class-weights.csv

One row a network, set, rule, head and place, a mean over episodes; or of the second study one row a set and head.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd
from tables import mean, read_csv

from crossgraft.fewshot.result import t_half_width

RHO_SIM = " + ρSIM"


def gaps(study: Path) -> pd.DataFrame:
    """Means over the episodes of each job."""
    jobs = read_csv(study / "results.csv").drop_duplicates("job")
    frames = []
    for job in jobs.itertuples():
        name, _, rule = job.data.partition("; ")
        frames.append(read_csv(study / job.run / "gaps.csv").assign(network=job.model, set=name, episodes_by=rule))
    columns = ["network", "set", "episodes_by", "head", "moved", "at", "gap", "gap_by_class", "accuracy"]
    found = pd.concat(frames)[[*columns, "coefficient", "squared_ratio", "difference", "difference_half_width"]]
    return found.round(5).sort_values(columns[:6], kind="stable")


def class_weights(study: Path) -> pd.DataFrame:
    """Accuracies, and of heads with ρSIM the difference to the same without it, paired by episode."""
    rows = []
    for job in read_csv(study / "results.csv").drop_duplicates("job").itertuples():
        heads = read_csv(study / job.run / "heads.csv")
        episodes = read_csv(study / job.run / "episodes.csv")
        names = dict(zip(heads["title"], heads["head"], strict=True))
        for head in heads.itertuples():
            less = None
            if head.title.endswith(RHO_SIM):
                less = (episodes[head.head] - episodes[names[head.title.removesuffix(RHO_SIM)]]).to_numpy()
            rows.append({
                "set": job.data,
                "head": head.title,
                "accuracy": head.accuracy,
                "half_width": head.half_width,
                "less_tip_adapter": head.difference,
                "less_tip_adapter_half": head.difference_half_width,
                "less_without": None if less is None else mean(less),
                "less_without_half": None if less is None else t_half_width(less),
                "episodes_that_differ": None if less is None else int((abs(less) > 1e-12).sum()),
                "episodes": len(episodes),
            })  # fmt: skip
    return pd.DataFrame(rows).round(5)


def main(arguments: list[str]) -> None:
    study, place = (Path(each) for each in arguments)
    found = gaps(study) if place.name.startswith("gap") else class_weights(study)
    how = {"method": "gzip", "mtime": 0} if place.suffix == ".gz" else None
    found.convert_dtypes().to_csv(place, index=False, lineterminator="\n", compression=how)
    print(f"{place.as_posix()}: {len(found)} rows")


if __name__ == "__main__":
    main(sys.argv[1:])
