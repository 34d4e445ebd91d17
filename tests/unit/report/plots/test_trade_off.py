from crossgraft.report.plots import Interval, TradeOff, trade_off, trade_off_figure

LABELS = {"x_label": "Similarity", "y_label": "Accuracy", "identifier": "figure"}
SWEEP = [TradeOff(f"hcs:{value}", Interval(value), Interval(0.5), "hcs", value) for value in (0.2, 0.8)]


def test_each_measured_point_of_the_curve_is_a_dot():
    def num_dots(curve):
        return trade_off_figure(SWEEP, curve, **LABELS).count("<use")

    assert num_dots([(0.2, 0.4), (0.4, 0.5), (0.6, 0.6)]) == num_dots([(0.2, 0.4), (0.6, 0.6)]) + 1


def test_names_keep_away_from_the_lines_of_sweeps_too(monkeypatch):
    avoided = []

    class Watched(trade_off.LabelPlaces):
        def place(self, dot, width, height):
            avoided.extend(self.avoided)
            return super().place(dot, width, height)

    monkeypatch.setattr(trade_off, "LabelPlaces", Watched)
    trade_off_figure(SWEEP, [], **LABELS)
    assert len(avoided) > 10
    assert len({round(spot.y) for spot in avoided}) == 1  # both dots are equally high
