"""Two models beside each other: how alike their layers, features and mistakes are."""

from typing import TYPE_CHECKING

from crossgraft.faces import lazy_face

if TYPE_CHECKING:
    from crossgraft.compare.comparison import Comparison as Comparison
    from crossgraft.compare.geometry_subjects import OtherImages as OtherImages
    from crossgraft.compare.networks import ComparedNetwork as ComparedNetwork
    from crossgraft.compare.networks import StoredFeatures as StoredFeatures
    from crossgraft.compare.networks import are_stored_features as are_stored_features
    from crossgraft.compare.networks import network_of_backbone as network_of_backbone
    from crossgraft.compare.networks import network_of_saved as network_of_saved
    from crossgraft.compare.networks import read_stored_features as read_stored_features
    from crossgraft.compare.record import ComparedModels as ComparedModels
    from crossgraft.compare.words import AskedGeometry as AskedGeometry
    from crossgraft.compare.words import HowToCompare as HowToCompare
    from crossgraft.compare.words import read_geometry as read_geometry

lazy_face(__name__)
