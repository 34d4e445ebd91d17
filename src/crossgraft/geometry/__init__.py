"""How networks lie to one another: in the space of weights, of features, of images, and around a minimum of the loss."""

from typing import TYPE_CHECKING

from crossgraft.faces import lazy_face

if TYPE_CHECKING:
    from crossgraft.geometry.attention_map import AttentionMaps as AttentionMaps
    from crossgraft.geometry.attention_map import attention_map as attention_map
    from crossgraft.geometry.attention_map import attention_overlap as attention_overlap
    from crossgraft.geometry.feature_map import FeatureMap as FeatureMap
    from crossgraft.geometry.feature_map import TsneMap as TsneMap
    from crossgraft.geometry.feature_map import feature_map as feature_map
    from crossgraft.geometry.feature_map import tsne_maps as tsne_maps
    from crossgraft.geometry.filters import FirstLayerFilters as FirstLayerFilters
    from crossgraft.geometry.filters import first_layer_filters as first_layer_filters
    from crossgraft.geometry.filters import gabor_r2 as gabor_r2
    from crossgraft.geometry.forgetting import Forgetting as Forgetting
    from crossgraft.geometry.forgetting import forgetting as forgetting
    from crossgraft.geometry.forgetting import forgetting_of_features as forgetting_of_features
    from crossgraft.geometry.interpolation_path import InterpolationPath as InterpolationPath
    from crossgraft.geometry.interpolation_path import interpolate as interpolate
    from crossgraft.geometry.interpolation_path import interpolation_path as interpolation_path
    from crossgraft.geometry.interpolation_path import with_body_of as with_body_of
    from crossgraft.geometry.parameter_distance import CentreDistances as CentreDistances
    from crossgraft.geometry.parameter_distance import ParameterDistance as ParameterDistance
    from crossgraft.geometry.parameter_distance import TaskAtCentre as TaskAtCentre
    from crossgraft.geometry.parameter_distance import centre_quality as centre_quality
    from crossgraft.geometry.parameter_distance import distances_to_centre as distances_to_centre
    from crossgraft.geometry.parameter_distance import parameter_distance as parameter_distance
    from crossgraft.geometry.parameter_distance import with_body_at_centre as with_body_at_centre
    from crossgraft.geometry.sharpness import Sharpness as Sharpness
    from crossgraft.geometry.sharpness import sharpness as sharpness

lazy_face(__name__)
