"""What training minimises, image by image: one file each."""

from crossgraft.losses._loss import Loss as Loss
from crossgraft.losses._loss import activate as activate
from crossgraft.losses.cross_entropy import CrossEntropy as CrossEntropy
from crossgraft.losses.focal import Focal as Focal
from crossgraft.losses.mse import SquaredError as SquaredError
from crossgraft.losses.multi_label import MultiLabel as MultiLabel
from crossgraft.registry import Registry

LOSSES: Registry[type[Loss]] = Registry("loss", group="crossgraft.losses", plugin_type=type)
LOSSES.add("cross_entropy", CrossEntropy)
LOSSES.add("focal", Focal)
LOSSES.add("mse", SquaredError)
LOSSES.add("multi_label", MultiLabel)
