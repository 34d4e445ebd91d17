"""A device that is not there: computes on the CPU, but takes no tensor of the CPU for one of its own, and counts waiting.

What a GPU would refuse ("Expected all tensors to be on the same device") is refused here, and each place at which the host would
wait for a GPU (a number that Python wants, a copy that is not asynchronous, an operation whose shape depends on values) is
written down. Results are those of the CPU to the bit.
"""

import traceback
from contextlib import contextmanager

import torch
from lightning_fabric import Fabric
from lightning_fabric.accelerators.cpu import CPUAccelerator
from lightning_fabric.strategies.single_device import SingleDeviceStrategy
from torch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing
from torch.utils._pytree import tree_flatten, tree_map

from crossgraft.tune.engine import launch

DEVICE = "lazy:0"  # torch's own name of a device that autograd treats like the CPU, and that has no operations here
_VALUES_DECIDE = {"nonzero", "_unique2", "unique_dim", "masked_select", "equal", "is_nonzero", "_linalg_svd", "_linalg_eigh"}
_HOST_INDEX_IS_FINE = {"index", "index_put_", "_index_put_impl_"}


class Held(torch.Tensor):
    """A tensor of the device."""

    @staticmethod
    def __new__(cls, inside):
        return torch.Tensor._make_wrapper_subclass(
            cls, inside.size(), strides=inside.stride(), storage_offset=inside.storage_offset(), dtype=inside.dtype,
            layout=inside.layout, device=DEVICE,
        )  # fmt: skip

    def __init__(self, inside):
        self.inside = inside

    def __repr__(self):
        return f"Held({self.inside!r})"

    def tolist(self):
        _wait("tolist")
        return self.inside.tolist()

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return _run(func, args, kwargs or {})


_waits: list[str] = []


class _Mode(TorchDispatchMode):
    """Sees what makes tensors of the device; ``torch.tensor`` makes them on the CPU and sends them, as it does for a GPU."""

    def __enter__(self):
        torch._C._set_only_lift_cpu_tensors(True)
        return super().__enter__()

    def __exit__(self, *error):
        torch._C._set_only_lift_cpu_tensors(False)
        super().__exit__(*error)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return _run(func, args, kwargs or {})


def _run(func, args, kwargs):
    name = func._schema.name.split("::")[1]
    tensors = [each for each in tree_flatten((args, kwargs))[0] if isinstance(each, torch.Tensor)]
    held = [each for each in tensors if isinstance(each, Held)]
    wanted = kwargs.get("device")
    goes_to = None if wanted is None else torch.device(wanted).type
    inside_kwargs = {**kwargs, "device": "cpu"} if goes_to == "lazy" else kwargs
    if not held and goes_to != "lazy":
        return func(*args, **kwargs)
    _refuse_mixed(name, tensors, held)
    _note_waiting(name, args, kwargs, held, goes_to)
    inside = tree_map(lambda each: each.inside if isinstance(each, Held) else each, (args, inside_kwargs))
    out = func(*inside[0], **inside[1])
    if goes_to == "cpu" or (name == "copy_" and not isinstance(args[0], Held)):
        return args[0] if name == "copy_" else out
    wrapped = tree_map(lambda each: Held(each) if isinstance(each, torch.Tensor) and not isinstance(each, Held) else each, out)
    return return_and_correct_aliasing(func, args, kwargs, wrapped) if held else wrapped


def _refuse_mixed(name, tensors, held):
    if name == "copy_" or not held:
        return
    strangers = [each for each in tensors if not isinstance(each, Held) and each.ndim > 0]
    if name in _HOST_INDEX_IS_FINE and isinstance(tensors[0], Held):
        strangers = [each for each in strangers if each.is_floating_point()]
    if strangers:
        raise RuntimeError(f"Expected all tensors to be on the same device, but {name} got {DEVICE} and cpu")


def _note_waiting(name, args, kwargs, held, goes_to):
    if name == "_local_scalar_dense" or name in _VALUES_DECIDE:
        _wait(name)
    elif name == "_to_copy" and goes_to is not None and not kwargs.get("non_blocking"):
        if goes_to == "cpu" or not held:
            _wait(f"copy to {goes_to}")
    elif name == "copy_" and isinstance(args[0], Held) != isinstance(args[1], Held):
        asynchronous = kwargs.get("non_blocking") or (len(args) > 2 and args[2])
        if not asynchronous:
            _wait("copy_")
    elif name in _HOST_INDEX_IS_FINE:
        for index in args[1]:
            if index is not None and (index.dtype == torch.bool or not isinstance(index, Held)):
                _wait(f"{name} by {index.dtype}")


def _wait(what):
    frames = [each for each in traceback.extract_stack() if "crossgraft" in each.filename and "/src/" in each.filename]
    where = f"{frames[-1].filename.rpartition('/')[2]}:{frames[-1].lineno}" if frames else "?"
    _waits.append(f"{what} at {where}")


def held(tensor):
    """``tensor`` on the device."""
    return tensor.to(DEVICE)


def on_host(tensor):
    """The numbers of a tensor of the device, or of none, without waiting."""
    return tensor.inside if isinstance(tensor, Held) else tensor


class _Accelerator(CPUAccelerator):
    def setup_device(self, device):
        pass


def fabric_of_device():
    """As ``make_fabric`` gives it."""
    strategy = SingleDeviceStrategy(device=torch.device(DEVICE), accelerator=_Accelerator())
    fabric = Fabric(strategy=strategy, plugins=[launch._OurProcesses(0, 1, 0)])
    fabric.launch()
    return fabric


@contextmanager
def pretend_device(monkeypatch):
    """Inside the block the device is there; gives the list of places at which the host waited for it."""
    from crossgraft.tune.engine import trainer
    from crossgraft.tune.feed import batches

    with monkeypatch.context() as patched, _Mode():
        executor, autocast = batches.ThreadPoolExecutor, torch.autocast
        patched.setattr(torch, "autocast", lambda kind, **options: autocast("cpu" if kind == "lazy" else kind, **options))
        patched.setattr(trainer, "make_fabric", lambda *_, **__: fabric_of_device())
        patched.setattr(
            batches, "ThreadPoolExecutor", lambda **options: executor(**options, initializer=lambda: _Mode().__enter__())
        )
        _waits.clear()
        yield _waits
