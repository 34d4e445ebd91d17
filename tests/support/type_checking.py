"""The type checker of shapes under pytest: an int is a float, as it is for pyright and PEP 484."""

from beartype import BeartypeConf, beartype

typechecked = beartype(conf=BeartypeConf(is_pep484_tower=True))
