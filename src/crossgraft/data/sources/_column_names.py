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
    "image_name",
    "image_file",
    "image_filename",
    "image_file_name",
    "image_index",
    "img",
    "img_id",
    "img_name",
    "img_path",
    "id_code",
)
LABEL_COLUMNS = ("label", "class", "target", "dx", "diagnosis", "finding_labels", "class_name", "label_name")
SPLIT_COLUMNS = ("split", "partition", "subset")
