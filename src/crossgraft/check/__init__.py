"""What makes results wrong: copies and patients across parts, wrong labels, damaged images."""

from typing import TYPE_CHECKING

from crossgraft.faces import lazy_face

if TYPE_CHECKING:
    from crossgraft.check.verb import check_data as check_data

lazy_face(__name__)
