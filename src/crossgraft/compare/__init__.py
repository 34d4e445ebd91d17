"""Two models beside each other: how alike their layers, features and mistakes are."""

from crossgraft.compare.comparison import ComparedModels as ComparedModels
from crossgraft.compare.comparison import Comparison as Comparison
from crossgraft.compare.comparison import HowToCompare as HowToCompare
from crossgraft.compare.networks import ComparedNetwork as ComparedNetwork
from crossgraft.compare.networks import network_of_backbone as network_of_backbone
from crossgraft.compare.networks import network_of_saved as network_of_saved
from crossgraft.compare.stored_features import StoredFeatures as StoredFeatures
from crossgraft.compare.stored_features import are_stored_features as are_stored_features
from crossgraft.compare.stored_features import read_stored_features as read_stored_features
