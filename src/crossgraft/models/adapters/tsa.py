"""TSA: a small map of channels beside, or behind, a convolution or a linear layer.

Source: Li, Liu and Bilen, *Cross-domain Few-shot Learning with Task-specific Adapters*, CVPR 2022 (arXiv 2107.00358):
``y = h(x) + α x`` (residual) and ``y = α h(x) + b`` (serial), where α is a matrix of channels or a vector.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, cast, get_args

import torch
import torch.nn.functional as F  # noqa: N812
from timm.layers.conv2d_same import Conv2dSame
from torch import Tensor, nn

from crossgraft.errors import UnknownNameError, UsageError
from crossgraft.models.adapters._adapter import Adapter, in_type_of

Connection = Literal["residual", "serial"]
Form = Literal["matrix", "vector"]
Start = Literal["identity", "random"]

_SMALL = 1e-4
"""A residual matrix starts as 1e-4 · I, as in the authors' code: not zero, because Adadelta starts slowly from there."""
_RANDOM_STD = 1e-3


def why_no_tsa(layer: nn.Module, connection: str = "residual") -> str | None:
    """Why TSA cannot stand at this layer; None: it can."""
    if isinstance(layer, nn.Linear):
        return None
    if not isinstance(layer, nn.Conv2d):
        return f"it is a {type(layer).__name__}, neither linear nor a convolution of images"
    if connection == "serial" or _crop(layer) is not None:
        return None
    return "its kernel has no middle, or its output is larger than its input, so that α x has no place there"


def _crop(layer: nn.Conv2d) -> tuple[int, int] | None:
    """Rows and columns at each edge of the input that are the middle of no output; None where outputs have no middle."""
    if isinstance(layer, Conv2dSame) or layer.padding == "same":
        return 0, 0
    padding = (0, 0) if isinstance(layer.padding, str) else layer.padding
    reach = [d * (k - 1) for d, k in zip(layer.dilation, layer.kernel_size, strict=True)]
    rows, columns = (r // 2 - int(p) for r, p in zip(reach, padding, strict=True))
    return (rows, columns) if min(rows, columns) >= 0 and not any(r % 2 for r in reach) else None


class TaskSpecificAdapter(Adapter):
    """``h(x) + α x``, or ``α h(x) + b``.

    Unlike other adapters it changes the output from the start on: a residual one by 1e-4 · x. A serial one stands behind the
    layer and starts as the identity.

    Attributes:
        alpha: α; of a convolution (outputs, inputs, 1, 1) or (1, channels, 1, 1), of a linear layer (outputs, inputs) or
            (channels,).
        bias: b of a serial one; None otherwise.
    """

    kind: ClassVar[str] = "tsa"

    alpha: nn.Parameter
    bias: nn.Parameter | None

    def __init__(self, host: nn.Conv2d | nn.Linear, *, connection: Connection, form: Form, init: Start) -> None:
        super().__init__()
        self.connection: Connection = connection
        self.init: Start = init
        outputs, inputs = host.weight.shape[0], host.weight.shape[1] * getattr(host, "groups", 1)
        inputs = outputs if connection == "serial" else inputs
        strides = host.stride if isinstance(host, nn.Conv2d) and connection == "residual" else (1, 1)
        self.stride = cast("tuple[int, int]", strides)
        self.crop = (_crop(host) if isinstance(host, nn.Conv2d) and connection == "residual" else None) or (0, 0)
        # a vector cannot change the number of channels or positions; the authors take a matrix there
        self.is_vector = form == "vector" and inputs == outputs and self.stride == (1, 1)
        ones = (1, 1) if isinstance(host, nn.Conv2d) else ()
        leading = ((1, outputs) if ones else (outputs,)) if self.is_vector else (outputs, inputs)
        self.alpha = nn.Parameter(host.weight.new_zeros(*leading, *ones))
        self.bias = (
            nn.Parameter(host.weight.new_zeros(*((1, outputs, 1, 1) if ones else (outputs,)))) if connection == "serial" else None
        )

    @classmethod
    def make(cls, host: nn.Module, options: Mapping[str, Any], *, name: str) -> Adapter:
        """One that fits a linear layer or a convolution.

        Args:
            host: The layer.
            options: ``connection`` (residual or serial), ``form`` (matrix or vector) and ``init`` (identity or random).
            name: Name of the layer.

        Raises:
            UsageError: It is another layer, or α x has not the size of its output.
            UnknownNameError: An option has no such value.
        """
        chosen: dict[str, Any] = {"connection": "residual", "form": "matrix", "init": "identity", **options}
        for option, values in (("connection", Connection), ("form", Form), ("init", Start)):
            if chosen[option] not in get_args(values):
                raise UnknownNameError(f"{option} of tsa", chosen[option], get_args(values))
        reason = why_no_tsa(host, chosen["connection"])
        if reason is not None:
            raise UsageError(f"TSA cannot adapt {name}: {reason}. Name other layers.")
        return cls(cast("nn.Conv2d | nn.Linear", host), **chosen)

    @classmethod
    def why_not_mergeable(cls) -> str | None:
        """It belongs to one episode."""
        return "it is taken out again after each episode"

    def draw(self, generator: torch.Generator) -> None:
        """The identity (serial) or 1e-4 of it (residual); or normal numbers, added to zero or to the identity."""
        scale = 1.0 if self.connection == "serial" else _SMALL
        rows = self.alpha.shape[0]
        eye = torch.ones(self.alpha.shape) if self.is_vector else torch.eye(rows, self.alpha.shape[1])
        start = scale * eye.reshape(self.alpha.shape)
        if self.init == "random":
            start = start if self.connection == "serial" else torch.zeros(self.alpha.shape)
            start = start + _RANDOM_STD * torch.randn(self.alpha.shape, generator=generator)
        in_type_of(start, self.alpha)
        if self.bias is not None:
            in_type_of(torch.zeros(self.bias.shape), self.bias)

    def watch(self, host: nn.Module) -> None:
        """Change what the layer gives."""
        host.register_forward_hook(self._change)

    def _change(self, host: nn.Module, inputs: tuple[Any, ...], output: Tensor) -> Tensor:
        if not self.is_on:
            return output
        if self.bias is None:
            return output + self._map(self._middles(inputs[0]))  # h(x) + α x
        return self._map(output) + self.bias  # α h(x) + b

    def _middles(self, x: Tensor) -> Tensor:
        """Inputs in the middle of what the convolution looks at: all of them where it pads, fewer where it does not."""
        rows, columns = self.crop
        return x[..., rows : x.shape[-2] - rows, columns : x.shape[-1] - columns] if rows or columns else x

    def _map(self, x: Tensor) -> Tensor:
        if self.is_vector:
            return x * self.alpha
        return F.linear(x, self.alpha) if self.alpha.ndim == 2 else F.conv2d(x, self.alpha, stride=self.stride)
