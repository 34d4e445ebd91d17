import math

from hypothesis import given
from hypothesis import strategies as st

from crossgraft.report.plots.scatter import LabelPlaces, Spot

SPOTS = st.lists(st.tuples(st.integers(60, 540), st.integers(60, 300)), min_size=1, max_size=6, unique=True)
ROOM = {"left": 50, "right": 550, "bottom": 50, "top": 310}
SIZE = (60, 12)


def box(place):
    x, y, _ = place
    return x, y, x + SIZE[0], y + SIZE[1]


@given(SPOTS)
def test_names_of_a_few_dots_cover_neither_dots_nor_each_other(spots):
    dots = [Spot(*spot) for spot in spots]
    places = LabelPlaces(**ROOM, dots=dots)
    boxes = [box(places.place(dot, *SIZE)) for dot in dots]
    for number, (left, bottom, right, top) in enumerate(boxes):
        assert not any(left < x < right and bottom < y < top for x, y in dots)
        for other in boxes[:number]:
            assert right <= other[0] or other[2] <= left or top <= other[1] or other[3] <= bottom


def test_a_lone_dot_has_its_name_to_the_right_and_near():
    dot = Spot(200, 200)
    x, y, is_far = LabelPlaces(**ROOM, dots=[dot]).place(dot, *SIZE)
    assert (x, is_far) == (207, False)
    assert math.isclose(y + SIZE[1] / 2, dot.y)


def test_a_name_goes_elsewhere_where_a_curve_runs():
    dot = Spot(200, 200)
    curve = [Spot(200 + 8 * step, 200) for step in range(30)]
    x, y, _ = LabelPlaces(**ROOM, dots=[dot], avoided=curve).place(dot, *SIZE)
    assert not y < 200 < y + SIZE[1] or x < 200
