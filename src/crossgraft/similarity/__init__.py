"""How alike two representations, or the predictions, of the same images are."""

from typing import TYPE_CHECKING

from crossgraft.faces import lazy_face

if TYPE_CHECKING:
    from crossgraft.similarity._features import Similarity as Similarity
    from crossgraft.similarity.cca import cca as cca
    from crossgraft.similarity.cca import pwcca as pwcca
    from crossgraft.similarity.cca import svcca as svcca
    from crossgraft.similarity.layer_cka import LayerCka as LayerCka
    from crossgraft.similarity.layer_cka import LayerSimilarity as LayerSimilarity
    from crossgraft.similarity.linear_cka import CkaPair as CkaPair
    from crossgraft.similarity.linear_cka import both_linear_cka as both_linear_cka
    from crossgraft.similarity.linear_cka import linear_cka as linear_cka
    from crossgraft.similarity.minibatch_cka import MinibatchCka as MinibatchCka
    from crossgraft.similarity.minibatch_cka import minibatch_cka as minibatch_cka
    from crossgraft.similarity.prediction_similarity import PredictionSimilarity as PredictionSimilarity
    from crossgraft.similarity.prediction_similarity import prediction_similarity as prediction_similarity
    from crossgraft.similarity.procrustes import procrustes as procrustes
    from crossgraft.similarity.rbf_cka import batch_rbf_cka as batch_rbf_cka
    from crossgraft.similarity.rbf_cka import rbf_cka as rbf_cka
    from crossgraft.similarity.rsa import rsa as rsa
    from crossgraft.similarity.streaming_cka import StreamingCka as StreamingCka

lazy_face(__name__)
