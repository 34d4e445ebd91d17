"""The names that people give to columns, in lower case and with an underscore for a blank."""

PATH_COLUMNS = (
    "path",
    "image",
    "file",
    "filename",
    "file_name",
    "image_path",
    "filepath",
    "file_path",
    "image_id",
)
LABEL_COLUMNS = ("label", "class", "target", "dx", "diagnosis")
GROUP_COLUMNS = ("group", "patient", "patient_id", "subject", "subject_id", "lesion_id")
SPLIT_COLUMNS = ("split", "partition", "subset")
NO_GROUPS = "none"
"""What ``--group-column`` says where there are no groups, whatever columns are called."""
