"""Figures show the numbers that they are given."""

import numpy as np

from keras_highway import plots


def test_accuracy_by_depth_shows_means_seeds_and_published():
    _, (ax,) = plots.new_figure()
    accuracies = {"plain": {5: [0.9, 0.8], 20: [0.1, 0.1]}, "highway": {5: [0.95, 0.97]}}
    returned = plots.plot_accuracy_by_depth(
        accuracies, ax=ax, chance=0.1, published={"plain": {20: 0.36}}
    )
    assert returned is ax
    lines = {line.get_label(): line.get_ydata() for line in ax.get_lines()}
    assert np.allclose(lines["plain, mean"], [85, 10])
    assert np.allclose(lines["highway, mean"], [96])
    crosses = [c for c in ax.collections if c.get_label() == "plain, published (one seed)"]
    assert np.allclose(crosses[0].get_offsets()[:, 1], 36)
    assert [label.get_text() for label in ax.get_xticklabels()] == ["5", "20"]


def test_mean_gates_show_every_seed_and_the_mean():
    _, (ax,) = plots.new_figure()
    plots.plot_mean_gates([[0.1, 0.2], [0.3, 0.4]], ax=ax, start=0.12)
    lines = [np.asarray(line.get_ydata(), dtype=float) for line in ax.get_lines()]
    assert any(np.allclose(line, [0.2, 0.3]) for line in lines)
    assert len(lines) == 4


def test_gradient_norms_are_drawn_on_a_log_scale():
    _, (ax,) = plots.new_figure()
    plots.plot_gradient_norms({"plain": [[1e-20, 1e-2], [1e-22, 1e-2]]}, ax=ax)
    assert ax.get_yscale() == "log"
    assert np.allclose(ax.get_lines()[0].get_ydata(), [1e-21, 1e-2], rtol=1e-6)
    _, (ax,) = plots.new_figure()
    plots.plot_gradient_norms({"plain": [[0.0, 1e-2]]}, ax=ax)


def test_figures_leave_pyplot_alone():
    import sys

    plots.new_figure(columns=3)
    if "matplotlib.pyplot" in sys.modules:
        assert not sys.modules["matplotlib.pyplot"].get_fignums()
