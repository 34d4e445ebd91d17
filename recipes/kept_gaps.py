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
from kept import jobs_of
from tables import mean, read_csv

from crossgraft.fewshot.result import t_half_width

RHO_SIM = " + ρSIM"
PLACE = ["network", "set", "episodes_by", "head", "moved", "at"]
GAPS = ["gap", "gap_by_class", "accuracy", "coefficient", "squared_ratio", "difference", "difference_half_width"]


def gaps(study: Path) -> pd.DataFrame:
    """Means over the episodes of each job."""
    frames = []
    for job, run, _ in jobs_of(study):
        name, _, rule = job.data.partition("; ")
        frames.append(read_csv(run / "gaps.csv").assign(network=job.model, set=name, episodes_by=rule))
    return pd.concat(frames)[[*PLACE, *GAPS]].round(5).sort_values(PLACE, kind="stable")


def class_weights(study: Path) -> pd.DataFrame:
    """Accuracies, and of heads with ρSIM the difference to the same without it, paired by episode."""
    frames = []
    for job, run, _ in jobs_of(study):
        heads, episodes = (read_csv(run / f"{name}.csv") for name in ("heads", "episodes"))
        own = heads.set_index("title")[["accuracy", "half_width", "difference", "difference_half_width"]]
        own.columns = ["accuracy", "half_width", "less_tip_adapter", "less_tip_adapter_half"]
        own = own.rename_axis("head").assign(less_without=None, less_without_half=None, episodes_that_differ=None)
        names = heads.set_index("title")["head"]
        for title in names.index[names.index.str.endswith(RHO_SIM)]:
            less = (episodes[names[title]] - episodes[names[title.removesuffix(RHO_SIM)]]).to_numpy()
            differ = int((abs(less) > 1e-12).sum())
            own.loc[title, ["less_without", "less_without_half", "episodes_that_differ"]] = mean(less), t_half_width(less), differ
        frames.append(own.assign(episodes=len(episodes)).reset_index().assign(set=job.data))
    found = pd.concat(frames, ignore_index=True).infer_objects()
    return found[["set", *found.columns.drop("set")]].round(5)


def main(arguments: list[str]) -> None:
    study, place = (Path(each) for each in arguments)
    found = gaps(study) if place.name.startswith("gap") else class_weights(study)
    how = {"method": "gzip", "mtime": 0} if place.suffix == ".gz" else None
    found.convert_dtypes().to_csv(place, index=False, lineterminator="\n", compression=how)
    print(f"{place.as_posix()}: {len(found)} rows")


if __name__ == "__main__":
    main(sys.argv[1:])
