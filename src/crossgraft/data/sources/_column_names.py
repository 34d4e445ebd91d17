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
SPLIT_COLUMNS = ("split", "partition", "subset")
