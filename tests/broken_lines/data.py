"""Images and their labels: patients in one part, patients that nobody knows, checks."""

MUTATIONS = {
    "unit/data/test_joining.py": [("data/joining.py", 'f"{name}: {group}"', 'f"{group}"')],
    "unit/data/test_class_shares.py": [
        ("data/sampling.py", "np.abs(numbers / numbers.sum() - shares) > NEAR_ENOUGH", "shares > 9"),
        ("data/sampling.py", "is_empty(group) or not here.min()", "not here.min()"),
    ],
    "unit/data/checks/test_split_differences.py": [
        ("data/checks/split_differences.py", "difference.effect >= least", "True"),
        ("data/checks/split_differences.py", "p_value <= SIGNIFICANT", "True"),
        ("data/checks/split_differences.py", "None if survey.groups is None else survey.groups[rows]", "None"),
    ],
    "unit/data/test_splits.py": [
        ("data/splits.py", "[group_of_row.ravel()]", "[np.roll(group_of_row.ravel(), 1)]"),
        ("data/splits.py", "parts_of_group > 1", "parts_of_group > 9"),
        ("data/splits.py", "if groups is None else StratifiedGroupKFold", "if True else StratifiedGroupKFold"),
        ("data/splits.py", "if len(set(rows)) != len(rows):", "if False:"),
        ("data/splits.py", 'in ("", rows.listing_fingerprint)', "is not None"),
    ],
    "unit/data/sources/test_csv_table.py": [("data/_groups.py", "if is_no_id(group)]\n    if", "if group is None]\n    if")],
    "unit/data/medical/test_medical_sources.py": [
        ("data/medical/files.py", "patient or row for row", "patient for row"),
        ("data/medical/files.py", 'f"patient {numbers.setdefault', 'f"{key} {numbers.setdefault'),
    ],
    "security/test_patients.py": [("data/_groups.py", "np.unique(groups, return_inverse=True)[1]", "groups")],
    "unit/data/checks/test_check_data.py": [
        (
            "data/checks/label_leakage.py",
            "rows in _rows_by_group(survey.groups) if len(survey.splits_of(rows)) > 1",
            "rows in _rows_by_group(survey.groups) if len(survey.splits_of(rows)) > 2",
        )
    ],
    "unit/data/medical/test_dicom.py": [("data/medical/display.py", "1 - bright if self.inverted", "bright if self.inverted")],
}
