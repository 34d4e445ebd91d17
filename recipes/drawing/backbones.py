"""What docs/results/backbones.md shows of each family of timm and torchvision that studies/timm_families.py has tried."""

from __future__ import annotations

from pathlib import Path

from tables import read_csv, row_of, sections

HEAD = """| family | smallest model | input | parameters | head | features | difference | layers | scores | seconds |
|---|---|---|---:|---|---:|---:|---:|---|---:|"""


def fields(results: Path, figures: Path) -> dict[str, str]:
    rows = read_csv(results / "backbones" / "families.csv")
    tables: dict[str, str] = {}
    for library, of in rows.groupby("library", sort=False):
        lines = [HEAD]
        for row in of.itertuples():
            named = [row.family, row.model.removeprefix("torchvision:")]
            side, size = f"{row.image_size}×{row.image_size}", f"{row.millions} M"
            found = [row.head, row.num_features, f"{row.difference:.0e}", row.num_layers, row.scores, row.seconds]
            failed = [f"**fails**: {row.failure}", "", "", "", "", row.seconds]
            is_right = not isinstance(row.failure, str)
            lines.append(row_of([*named, side if is_right else "", size, *(found if is_right else failed)]))
        tables[f"{library}: {of['failure'].isna().sum()} of {len(of)} families work"] = "\n".join(lines)
    return {"versions": rows["versions"].iloc[0], "tables": sections(tables)}
