"""Options of ``predict``."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from crossgraft.options._option import Options, option, options
from crossgraft.options.command import RUN_INPUT, Command, Input
from crossgraft.options.data import ImageOptions
from crossgraft.options.models import CodeOptions
from crossgraft.options.running import Device, Looking, Output, Page, Terminal, Workers


@options
class Batches(Options):
    """How many images go through the network together."""

    group: ClassVar[str] = "Computing"

    batch_size: int | None = option(
        "Images per batch; another size can change the last digits.", default=None, least=1, default_text="64"
    )


@options
class PredictOptions(Output, Workers, Batches, Device, Looking, Page, CodeOptions, ImageOptions):
    """Options of ``predict``."""

    show_names: bool = option("Write names of image files into the report, too; predictions.csv always has them.", default=False)
    device: str = option("auto, cpu, cuda, cuda:N or mps.", default="auto", is_common=True)
    dicom_sr: str | Path | None = option(
        "Folder for DICOM structured reports (TID 1500), one for each study of DICOM images; they name the patient as these do.",
        default=None,
        decides=False,
        only_if_given=True,
    )


COMMAND = Command(
    "predict",
    "Predict the class of images with a fine-tuned model: calibrated probability and decision.",
    example="predict runs/tune-breast new_images/",
    inputs=(RUN_INPUT, Input("images", "Image file, folder of images, CSV or TSV table of paths, .npz file …")),
    options=(PredictOptions, Terminal),
    verb="crossgraft.predict.verb:predict",
    notes="Images need no labels. Where they have some (folders, or a column, named as the classes of the model), metrics "
    "with intervals are measured as well. predictions.csv in the run directory has one row per image.",
    place=70,
)
