"""Contract tests that authors of plug-ins can run on their own plug-ins.

One ``check_…`` a slot raises ``ContractError`` for the first promise that is broken; the tuples of contracts are for
``pytest.mark.parametrize``, one test a promise::

    from crossgraft.testing import check_regularizer
    from my_package import MyRegularizer

    def test_my_regularizer():
        check_regularizer(MyRegularizer(strength=0.1))
"""

from typing import TYPE_CHECKING

from crossgraft.faces import lazy_face

if TYPE_CHECKING:
    from crossgraft.testing.adapters import ADAPTER_CONTRACTS as ADAPTER_CONTRACTS
    from crossgraft.testing.augmentations import AUGMENTATION_CONTRACTS as AUGMENTATION_CONTRACTS
    from crossgraft.testing.augmentations import check_augmentation as check_augmentation
    from crossgraft.testing.batch_transforms import BATCH_TRANSFORM_CONTRACTS as BATCH_TRANSFORM_CONTRACTS
    from crossgraft.testing.batch_transforms import check_batch_transform as check_batch_transform
    from crossgraft.testing.confounders import CONFOUNDER_CONTRACTS as CONFOUNDER_CONTRACTS
    from crossgraft.testing.confounders import check_confounder as check_confounder
    from crossgraft.testing.contracts import NUM_IMAGES as NUM_IMAGES
    from crossgraft.testing.contracts import SCORE_CONTRACTS as SCORE_CONTRACTS
    from crossgraft.testing.contracts import check_score as check_score
    from crossgraft.testing.losses import LOSS_CONTRACTS as LOSS_CONTRACTS
    from crossgraft.testing.losses import check_loss as check_loss
    from crossgraft.testing.methods import METHOD_CONTRACTS as METHOD_CONTRACTS
    from crossgraft.testing.methods import check_method as check_method
    from crossgraft.testing.model_libraries import MODEL_LIBRARY_CONTRACTS as MODEL_LIBRARY_CONTRACTS
    from crossgraft.testing.model_libraries import check_model_library as check_model_library
    from crossgraft.testing.promises import ContractError as ContractError
    from crossgraft.testing.regularizers import REGULARIZER_CONTRACTS as REGULARIZER_CONTRACTS
    from crossgraft.testing.regularizers import check_regularizer as check_regularizer

lazy_face(__name__)
