"""What a network looks at once a linear probe was fitted to its frozen features: the gradient of the loss of the probe."""

from __future__ import annotations

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from torch import Tensor, nn

from crossgraft.audit import LearningPriority, learning_priority
from crossgraft.data import Dataset
from crossgraft.features import extract_features
from crossgraft.models import Backbone


class Probed(nn.Module):
    """A frozen network, and logits of a probe on its features."""

    def __init__(self, backbone: Backbone, weight: np.ndarray, bias: float) -> None:
        super().__init__()
        self.module = backbone.module
        self.read_out = backbone.read_out
        self.weight = torch.from_numpy(weight).float()
        self.bias = bias

    def forward(self, images: Tensor) -> Tensor:
        """Of the other classes and of the one in question."""
        logit = self.read_out(images).features @ self.weight + self.bias
        return torch.stack([torch.zeros_like(logit), logit], dim=1)


def probe_priority(backbone: Backbone, train: Dataset, test: Dataset, inputs: Tensor, positive: str) -> LearningPriority:
    """Learning priority of logistic regression on standardised features of ``train``, with the true labels of ``test``.

    Args:
        backbone: The network.
        train: Images that the probe is fitted to, without any artefact.
        test: Images that gradients are of.
        inputs: The same, prepared.
        positive: Class that is told from all others.
    """
    features = np.asarray(extract_features(train, backbone, num_threads=1).features, dtype=np.float64)
    scaler = StandardScaler().fit(features)
    regression = LogisticRegression(max_iter=1000).fit(scaler.transform(features), is_of(train, positive))
    weight = regression.coef_[0] / scaler.scale_
    bias = float(regression.intercept_[0] - weight @ scaler.mean_)
    return learning_priority(Probed(backbone, weight, bias), inputs, is_of(test, positive).astype(np.int64))


def is_of(images: Dataset, positive: str) -> np.ndarray:
    return np.array(images.class_names)[images.targets] == positive
