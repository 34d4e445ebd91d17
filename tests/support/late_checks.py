"""Checks of types and shapes that jaxtyping's import hook puts around functions, made when they are first needed, and made short.

The hook would compile two checks for each of thousands of functions while they are imported, most of which no test of a process
calls. What is found wrong is told by jaxtyping itself.
"""

import functools
import inspect
import types
from collections.abc import Callable, Iterator
from typing import Any, get_args

import jaxtyping
from beartype.roar import BeartypeCallHintParamViolation, BeartypeCallHintReturnViolation
from jaxtyping import AbstractArray, _decorator
from jaxtyping._storage import pop_shape_memo, push_shape_memo

_of_jaxtyping = _decorator.jaxtyped
_of_inner: dict[tuple, tuple[inspect.Signature, Callable, Callable | None]] = {}
"""What looks at functions inside functions: by code, annotations and type checker."""


def check_late() -> None:
    """From now on, in every module that the hook loads and every function that one defines inside another."""
    _decorator._destring_annotation = remember_found(_decorator._destring_annotation)
    _decorator.jaxtyped = jaxtyping.jaxtyped = jaxtyped  # type: ignore[assignment]


def jaxtyped(fn: Any = None, *, typechecker: Callable) -> Any:
    """As jaxtyping's, which looks for the functions in classes and properties."""
    if fn is None:
        return functools.partial(jaxtyped, typechecker=typechecker)
    if not isinstance(fn, types.FunctionType):
        return _of_jaxtyping(fn, typechecker=typechecker)
    checked: Callable | None = None

    @functools.wraps(fn)
    def called(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        nonlocal checked
        if jaxtyping.config.jaxtyping_disable:
            return fn(*args, **kwargs)
        if checked is None:
            checked = with_checks(fn, typechecker)
        return checked(*args, **kwargs)

    return called


def with_checks(fn: types.FunctionType, typechecker: Callable) -> Callable:
    """The shortest check that its annotations allow."""
    is_inner = "<locals>" in fn.__qualname__  # defined again and again
    key = (fn.__code__, *fn.__annotations__.values(), typechecker)
    if is_inner and key in _of_inner:
        return with_shapes(fn, *_of_inner[key], typechecker)
    signature = resolved(fn)
    annotations = [value.annotation for value in signature.parameters.values()] + [signature.return_annotation]
    arrays = [array for annotation in annotations for array in arrays_in(annotation)]
    computes_sizes = any("{" in array.dim_str for array in arrays)  # from arguments
    if computes_sizes or hasattr(fn, "__no_type_check__") or hasattr(fn, "__wrapped__"):
        return _of_jaxtyping(fn, typechecker=typechecker)
    if not arrays and not is_inner:
        return with_types(fn, signature, typechecker)
    looks = looks_of(fn, signature, typechecker)
    if is_inner:
        _of_inner[key] = looks
    return with_shapes(fn, *looks, typechecker)


def resolved(fn: types.FunctionType) -> inspect.Signature:
    """The signature without annotations that are text."""
    signature, find = inspect.signature(fn), _decorator._destring_annotation
    parameters = [value.replace(annotation=find(value.annotation, fn.__globals__)) for value in signature.parameters.values()]
    return signature.replace(parameters=parameters, return_annotation=find(signature.return_annotation, fn.__globals__))


def arrays_in(annotation: Any) -> Iterator[type[AbstractArray]]:
    if isinstance(annotation, type) and issubclass(annotation, AbstractArray):
        yield annotation
    for part in annotation if isinstance(annotation, (list, tuple)) else get_args(annotation):
        yield from arrays_in(part)


def with_types(fn: types.FunctionType, signature: inspect.Signature, typechecker: Callable) -> Callable:
    """No shapes: the type checker alone, in one step."""
    copy = types.FunctionType(fn.__code__, fn.__globals__, fn.__name__, fn.__defaults__, fn.__closure__)
    copy.__kwdefaults__, copy.__qualname__, copy.__module__ = fn.__kwdefaults__, fn.__qualname__, fn.__module__
    known = {name: value.annotation for name, value in signature.parameters.items()} | {"return": signature.return_annotation}
    copy.__annotations__ = {name: value for name, value in known.items() if value is not inspect.Signature.empty}
    checked = typechecker(copy)

    def called(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        try:
            return checked(*args, **kwargs)
        except BeartypeCallHintParamViolation:
            return _of_jaxtyping(fn, typechecker=typechecker)(*args, **kwargs)  # which names the parameter
        except BeartypeCallHintReturnViolation as error:
            raise jaxtyping.TypeCheckError(f"The return value of {fn.__module__}.{fn.__qualname__}: {error}") from error

    return called


def looks_of(
    fn: types.FunctionType, signature: inspect.Signature, typechecker: Callable
) -> tuple[inspect.Signature, Callable, Callable | None]:
    """The signature, and two functions that look at arguments and at what is returned."""
    make = functools.partial(_decorator._make_fn_with_signature, fn.__name__, fn.__qualname__, fn.__module__)
    take = typechecker(make(signature.replace(return_annotation=Any), output=False))
    if signature.return_annotation is inspect.Signature.empty:
        return signature, take, None
    made, name = make(inspect.Signature(return_annotation=signature.return_annotation), output=True)
    looked = typechecker(made)
    return signature, take, lambda out: looked(**{name: out})


def with_shapes(
    fn: types.FunctionType, signature: inspect.Signature, take: Callable, give: Callable | None, typechecker: Callable
) -> Callable:
    """Arguments, then what is returned with the sizes that those gave; arguments are not looked at a second time."""

    def tell(result: Callable, *args: Any, **kwargs: Any) -> Any:
        """By jaxtyping, which looks again."""
        again = functools.wraps(fn)(lambda *_, **__: result())
        again.__signature__ = signature  # type: ignore[attr-defined]
        return _of_jaxtyping(again, typechecker=typechecker)(*args, **kwargs)

    def called(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        push_shape_memo({})
        try:
            try:
                take(*args, **kwargs)
            except Exception:
                return tell(lambda: fn(*args, **kwargs), *args, **kwargs)
            out = fn(*args, **kwargs)
            if give is not None:
                try:
                    give(out)
                except Exception:
                    return tell(lambda: out, *args, **kwargs)
            return out
        finally:
            pop_shape_memo()

    return called


def remember_found(destring: Callable) -> Callable:
    """An annotation that is written as text means the same in all of a module; what is not found yet is looked for again."""
    found: dict[tuple[str, int], tuple[Any, dict]] = {}

    def destring_once(annotation: Any, names: dict) -> Any:
        if not isinstance(annotation, str):
            return destring(annotation, names)
        key = annotation, id(names)
        if key not in found:
            meaning = destring(annotation, names)
            if meaning is Any:
                return meaning
            found[key] = meaning, names  # kept, so that no other module takes its place
        return found[key][0]

    return destring_once
