"""Fine-tuning: what is trained, what is added to the loss, what is done to images; predicting with the result, handing it on."""

from typing import TYPE_CHECKING

from crossgraft.faces import lazy_face

if TYPE_CHECKING:
    from crossgraft.tune.augmentations import AUGMENTATIONS as AUGMENTATIONS
    from crossgraft.tune.batch_transforms import BATCH_TRANSFORMS as BATCH_TRANSFORMS
    from crossgraft.tune.engine.settings import TrainerSettings as TrainerSettings
    from crossgraft.tune.engine.trainer import train as train
    from crossgraft.tune.estimator import FineTunedClassifier as FineTunedClassifier
    from crossgraft.tune.feature_transforms import FEATURE_TRANSFORMS as FEATURE_TRANSFORMS
    from crossgraft.tune.methods import METHODS as METHODS
    from crossgraft.tune.objectives import OBJECTIVES as OBJECTIVES
    from crossgraft.tune.planning.plan import Plan as Plan
    from crossgraft.tune.predictions import Predictions as Predictions
    from crossgraft.tune.regularizers import REGULARIZERS as REGULARIZERS
    from crossgraft.tune.result import FineTuningResult as FineTuningResult
    from crossgraft.tune.saving.saved_model import SavedModel as SavedModel
    from crossgraft.tune.saving.saved_model import load_saved_model as load_saved_model
    from crossgraft.tune.sim import RhoSim as RhoSim
    from crossgraft.tune.sim import forward_with_SIM as forward_with_SIM
    from crossgraft.tune.sim import init_SIM as init_SIM
    from crossgraft.tune.sim import strip as strip

lazy_face(__name__)
