"""Cases of images, tables and other data."""

import gzip
import json
import shutil
import sys

import numpy as np
import tifffile
from PIL import Image

from crossgraft import compute
from crossgraft.data.medical import dicom_file
from support.documented_errors import ALL_ROWS, MODELS, PLAIN
from support.medical import ct_slice, dicom_dataset, write_ct, write_nifti
from support.tiny import make_images


def missing_folder(folder, _):
    return "rank", "imges", *MODELS


def data_before_models(folder, _):
    return "rank", "imges", "--models", "gone.safetensors"


def empty_folder(folder, _):
    (folder / "void").mkdir()
    return "rank", "void", *MODELS


def one_class(folder, _):
    make_images(folder / "single", {"benign": 4})
    return "rank", "single", *MODELS


def class_with_one_image(folder, _):
    make_images(folder / "rare", {"benign": 8, "malignant": 1})
    return "rank", "rare", *MODELS, *ALL_ROWS


def empty_class(folder, _):
    (folder / "images" / "normal").mkdir()
    return PLAIN


def label_table(folder, header, rows):
    """`table.csv` about the images of the folder `images`, in turn."""
    files = [path.relative_to(folder) for path in sorted((folder / "images").rglob("*.png"))]
    lines = [f"{files[i % len(files)].as_posix()},{row}" for i, row in enumerate(rows)]
    (folder / "table.csv").write_text("\n".join([f"path,{header}", *lines]) + "\n")
    return "rank", "table.csv", *MODELS, *ALL_ROWS


def label_uncertain(folder, _):
    return *label_table(folder, "effusion,nodule", ["1,0", "0,-1", "1,1"]), "--label-column", "effusion,nodule"


def label_neither_yes_nor_no(folder, _):
    return *label_table(folder, "effusion,nodule", ["1,0", "0,", "1,1"]), "--label-column", "effusion,nodule"


def several_labels_in_cells(folder, _):
    return label_table(folder, "label", ["effusion|nodule", "nodule"] * 12)


def rare_labels(folder, _):
    rows = [f"{int(i < 5)},{int(i == 9)}" for i in range(24)]
    return *label_table(folder, "effusion,nodule", rows), "--label-column", "effusion,nodule"


def per_class_of_several_labels(folder, _):
    rows = [f"{i % 2},{i % 3 % 2}" for i in range(24)]
    return *label_table(folder, "effusion,nodule", rows), "--label-column", "effusion,nodule", "--per-class", "3"


def feature_maps_of_several_labels(folder, _):
    return *per_class_of_several_labels(folder, _)[:-2], "--feature-maps", "1"


def scenario_without_its_score(folder, _):
    return *PLAIN, "--scenario", "architectures"


def share_of_an_unknown_class(folder, _):
    return *PLAIN, "--class-shares", "malignat=0.3"


def class_shares_beyond_one(folder, _):
    return *PLAIN, "--class-shares", "benign=0.7,malignant=0.7"


def class_shares_out_of_reach(folder, _):
    make_images(folder / "few", {"benign": 2, "malignant": 2})
    return "rank", "few", *MODELS, *ALL_ROWS, "--class-shares", "malignant=0.03"


def nothing_to_pair(folder, _):
    arguments = label_table(folder, "finding,patient", [f"{finding},{finding}" for finding in ("effusion", "nodule") * 4])
    return *arguments, "--label-column", "finding", "--pair-by", "patient"


def class_in_two_parts(folder, _):
    split = {"train": ["benign"], "test": ["benign", "malignant"]}
    (folder / "images_splits.json").write_text(json.dumps(split))
    return "fewshot", "images", "--model", "resnet18", "--class-split", "images_splits.json"


def joined_with(folder, header, rows, *flags):
    label_table(folder, header, rows)
    (folder / "table.csv").rename(folder / "clinic.csv")
    return "check", "images", "--join", "clinic.csv", *flags


def join_of_other_classes(folder, _):
    return joined_with(folder, "label", ["grade 1", "grade 2"] * 6)


def join_of_other_kinds_of_labels(folder, _):
    np.savez(folder / "clinic.npz", images=np.zeros((4, 8, 8), np.uint8), labels=np.array([[0, 1], [1, 1], [0, 0], [1, 0]]))
    return "check", "clinic.npz", "--join", "images"


def join_with_a_split(folder, _):
    return joined_with(folder, "label,split", ["benign,train", "malignant,train", "benign,test", "malignant,test"] * 3)


def join_with_a_column_source(folder, _):
    return joined_with(folder, "label,source", ["benign,a", "malignant,b"] * 6)


def join_of_one_set(folder, _):
    return "check", "images", "--join", "./images"


def join_of_fewer_classes(folder, _):
    return joined_with(folder, "label,patient", ["benign,p1", "benign,p2"] * 6, *ALL_ROWS)


def unknown_class_name(folder, _):
    (folder / "names.txt").write_text("benign\nmalignat\n")
    return *PLAIN, "--class-names", "names.txt"


def classes_that_differ_by_case(folder, _):
    return label_table(folder, "label", ["Benign", "benign", "malignant"] * 8)


def table_path_outside(folder, _):
    command = label_table(folder, "label", ["a", "b"])
    (folder / "table.csv").write_text((folder / "table.csv").read_text().replace("label\n", "label\n../elsewhere/scan.png,a\n"))
    return command


def group_missing(folder, _):
    return label_table(folder, "label,patient", ["a,P1", "b,", "a,P2"])


def several_group_columns(folder, _):
    return label_table(folder, "label,patient,lesion_id", ["a,P1,1", "b,P2,2"])


def data_path_too_long(folder, _):
    return "check", "x" * 5000


def image_root_in_a_circle(folder, _):
    (folder / "round").symlink_to("round")
    return *label_table(folder, "label", ["a", "b"]), "--image-root", "round"


def linked_in_a_circle(folder, _):
    (folder / "images" / "benign" / "round.png").symlink_to("round.png")
    return PLAIN


def float_image_out_of_range(folder, _):
    import numpy as np
    from PIL import Image

    samples = np.zeros((16, 16), np.float32)
    samples[0, 0] = 7
    Image.fromarray(samples).save(folder / "images" / "benign" / "f.tif")
    return PLAIN


def arrays(folder, **headers):
    """`a.npz` with six images and labels; `images` replaces the shape that its header announces."""
    import io
    import zipfile

    import numpy as np

    with zipfile.ZipFile(folder / "a.npz", "w", zipfile.ZIP_DEFLATED) as file:
        for name, array in (("images", np.zeros((6, 16, 16), np.uint8)), ("labels", np.arange(6) % 2)):
            buffer = io.BytesIO()
            np.lib.format.write_array_header_1_0(
                buffer, {"descr": array.dtype.str, "fortran_order": False, "shape": headers.get(name, array.shape)}
            )
            file.writestr(f"{name}.npy", buffer.getvalue() + array.tobytes())
    return "rank", "a.npz", *MODELS


def npz_larger_than_memory(folder, monkeypatch):
    import numpy as np

    monkeypatch.setattr("crossgraft.compute.available_memory", lambda: 1_000_000)
    np.savez_compressed(folder / "a.npz", images=np.zeros((6, 1000, 1000), np.uint8), labels=np.arange(6) % 2)
    return "rank", "a.npz", *MODELS


def npz_announces_too_much(folder, _):
    return arrays(folder, images=(8, 10**5, 10**4))


def out_of_memory(folder, monkeypatch):
    def fail(*_, **__):
        raise MemoryError

    monkeypatch.setattr("crossgraft.data.listing.inspect_images", fail)
    return PLAIN


def scans(folder):
    """A folder of CT files."""
    for seed, name in enumerate(("benign", "malignant")):
        for i in range(3):
            write_ct(folder / "scans" / name / f"{i}.dcm", ct_slice(10 * seed + i), patient=f"P{seed}{i}")
    return "rank", "scans", *MODELS, *ALL_ROWS


def published_table_without_results(folder, _):
    (folder / "mine.csv").write_text("target,model,auc\na,m,0.9\n")
    return "rank", "--published", "mine.csv"


def published_typo(folder, _):
    return "rank", "--published", "thesi"


def dicom_folder(folder, monkeypatch):
    command = scans(folder)
    monkeypatch.setitem(sys.modules, "pydicom", None)
    return command


def dicom_without_pixels(folder, _):
    command = scans(folder)
    plan = dicom_dataset(ct_slice(0), SOPClassUID="1.2.840.10008.5.1.4.1.1.481.5")
    del plan.PixelData
    plan.save_as(folder / "scans" / "benign" / "plan.dcm", enforce_file_format=True)
    return command


def dicom_truncated(folder, _):
    command = scans(folder)
    file = folder / "scans" / "benign" / "0.dcm"
    file.write_bytes(file.read_bytes()[:-100])
    return command


def dicom_frame_truncated(folder, _):
    from pydicom.encaps import encapsulate, get_frame
    from pydicom.uid import RLELossless

    command = scans(folder)
    packed = dicom_dataset(ct_slice(0))
    packed.compress(RLELossless, generate_instance_uid=False)
    packed.PixelData = encapsulate([get_frame(packed.PixelData, 0, number_of_frames=1)[:-100]])
    packed.save_as(folder / "scans" / "benign" / "0.dcm", enforce_file_format=True)
    return command


def nifti_with_nan(folder, _):
    for seed, name in enumerate(("benign", "malignant")):
        for i in range(3):
            values = np.random.default_rng(10 * seed + i).random((4, 4, 4), dtype=np.float32)
            values[0, 0, 0] = np.nan if (seed, i) == (0, 0) else 0
            write_nifti(folder / "volumes" / name / f"{i}.nii.gz", values)
    return "rank", "volumes", *MODELS, *ALL_ROWS


def window_typo(folder, _):
    return *scans(folder), "--window", "lungs"


def slices_typo(folder, _):
    return *scans(folder), "--slices", "every"


def table(folder, label, *, column="label"):
    rows = [f"images/{name}/{i:02d}.png,{label(name, i)}" for name in ("benign", "malignant") for i in range(12)]
    (folder / "table.csv").write_text("\n".join([f"path,{column}", *rows]) + "\n")
    return "rank", "table.csv", *MODELS, *ALL_ROWS


def float_labels(folder, _):
    return table(folder, lambda name, i: f"{0.13 * i:.2f}")


def labels_do_not_match(folder, _):
    np.savez(folder / "a.npz", images=np.zeros((6, 8, 8), np.uint8), labels=np.arange(5) % 2)
    return "rank", "a.npz", *MODELS


def missing_label_column(folder, _):
    return table(folder, lambda name, i: name, column="remark")


def table_without_header(folder, _):
    (folder / "table.csv").write_text("images/benign/00.png,benign,P001\nimages/malignant/00.png,malignant,P002\n")
    return "rank", "table.csv", *MODELS, *ALL_ROWS


def truncate(folder):
    for file in sorted((folder / "images" / "benign").iterdir()):
        Image.open(file).resize((64, 64)).save(file.with_suffix(".jpg"))
        file.unlink()
    broken = folder / "images" / "benign" / "05.jpg"
    broken.write_bytes(broken.read_bytes()[:-400])


def truncated_image(folder, _):
    truncate(folder)
    return PLAIN


def image_larger_than_memory(folder, monkeypatch):
    Image.new("1", (4000, 4000)).save(folder / "images" / "benign" / "large.png")
    monkeypatch.setattr(compute, "available_memory", lambda: 10**8)
    return PLAIN


def tiff_of_complex_numbers(folder, _):
    tifffile.imwrite(folder / "images" / "benign" / "fourier.tif", np.zeros((8, 8), np.complex64))
    return PLAIN


def dicom_larger_than_announced(folder, monkeypatch):
    monkeypatch.setattr(dicom_file, "_UNPACKED_AT_FIRST", 2**12)
    command = scans(folder)
    file = folder / "scans" / "benign" / "0.dcm"
    file.with_name("0.dcm.gz").write_bytes(gzip.compress(file.read_bytes() + bytes(10**5)))
    file.unlink()
    return command


def nifti_in_two_files(folder, _):
    import nibabel

    nibabel.save(nibabel.Nifti1Pair(np.zeros((4, 4, 4), np.int16), np.eye(4)), folder / "scan.hdr")
    (folder / "table.csv").write_text("path,label\nscan.hdr,a\nimages/benign/00.png,b\nimages/benign/01.png,a\n")
    return "rank", "table.csv", *MODELS, *ALL_ROWS


def copy_into_the_other_class(folder):
    shutil.copy(folder / "images" / "benign" / "00.png", folder / "images" / "malignant" / "copy.png")


def unsound_and_strict(folder, _):
    copy_into_the_other_class(folder)
    return *PLAIN, "--strict"


def unsound_rows(folder, _):
    copy_into_the_other_class(folder)
    return PLAIN


def check_of_unsound_data(folder, _):
    copy_into_the_other_class(folder)
    return "check", "images"


def check_of_unreadable_images(folder, _):
    truncate(folder)
    return "check", "images"


def check_without_a_split(folder, _):
    return "check", "images", *ALL_ROWS


def skip_unreadable(folder, _):
    truncate(folder)
    return *PLAIN, "--skip-unreadable"


def images_of_different_sizes(folder, _):
    make_images(folder / "images", {"small": 6}, size=9)
    make_images(folder / "images", {"large": 6}, size=40)
    return PLAIN


def saved_dataset(folder, columns, **features):
    import datasets

    datasets.disable_progress_bars()
    made = datasets.Dataset.from_dict({"label": ["a", "b"] * 2, **columns})
    made.cast(datasets.Features({**made.features, **features})).save_to_disk(folder / "chest")
    return "rank", "chest", *MODELS


def saved_dataset_without_images(folder, _):
    return saved_dataset(folder, {"pixels": [[[0, 1], [2, 3]]] * 4})


def saved_dataset_with_two_images(folder, _):
    import datasets

    files = [str(folder / "images" / "benign" / f"{i:02d}.png") for i in range(4)]
    return saved_dataset(folder, {"scan": files, "mask": files}, scan=datasets.Image(), mask=datasets.Image())


def saved_state(folder, files):
    command = saved_dataset(folder, {"scan": ["images/benign/00.png"] * 4})
    (folder / "chest" / "state.json").write_text(json.dumps({"_data_files": files}))
    return command


def saved_dataset_of_other_files(folder, _):
    return saved_state(folder, [{"filename": "../other/data.arrow"}])


def saved_dataset_linked_outside(folder, _):
    command, name = saved_dataset(folder, {"scan": ["images/benign/00.png"] * 4}), "data-00000-of-00001.arrow"
    (folder / "chest" / name).rename(folder / name)
    (folder / "chest" / name).symlink_to(folder / name)
    return command


def saved_dataset_damaged(folder, _):
    return saved_state(folder, "abc")


def hub_dataset_not_here(folder, monkeypatch):
    import datasets

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", folder / "cache")
    return "rank", "hf:owner/chest", *MODELS


def hub_dataset_malformed(folder, _):
    return "rank", "hf:a/b/c", *MODELS
