"""Figures show the numbers that they are given."""

import numpy as np
import pytest

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


def history(quantity, layers, steps=None):
    rows = 4
    values = {
        f"{quantity}/layer_{index}": [0.1 * index + 0.01 * row for row in range(rows)]
        for index in range(1, layers + 1)
    }
    epochs = [0, 0, 1, 1] if steps else list(range(rows))
    return {"epoch": epochs, "step": [10, 20, 30, 40], **values}


@pytest.mark.parametrize("layers", [1, 3, 50])
@pytest.mark.parametrize("steps", [False, True])
def test_gates_and_gradients_over_epochs_show_every_layer(layers, steps):
    figure, (gates, gradients) = plots.new_figure(columns=2)
    log = history("gate_mean", layers, steps)
    assert plots.plot_gates_over_epochs(log, ax=gates) is gates
    (image,) = gates.get_images()
    assert image.get_array().shape == (layers, 4)
    assert np.isclose(image.get_array()[-1, 2], 0.1 * layers + 0.02)
    assert image.get_extent() == ([5, 45] if steps else [0.5, 4.5]) + [0.5, layers + 0.5]
    log = {**history("gradient_norm", layers, steps), "gradient_norm/zero": [0.0] * 4}
    assert plots.plot_gradients_over_epochs(log, ax=gradients) is gradients
    lines = gradients.get_lines()
    assert len(lines) == layers + 1 and gradients.get_yscale() == "log"
    assert list(lines[0].get_xdata()) == ([10, 20, 30, 40] if steps else [1, 2, 3, 4])
    assert np.allclose(lines[0].get_ydata(), [0.1, 0.11, 0.12, 0.13])
    assert np.isnan(lines[-1].get_ydata()).all()
    assert gates.get_xlabel() == gradients.get_xlabel() == ("training step" if steps else "epoch")
    figure.canvas.draw()


def test_a_log_without_layers_is_refused_in_words():
    _, (ax,) = plots.new_figure()
    with pytest.raises(ValueError, match=r"start with 'gate_mean/'.*per_layer_logs=True"):
        plots.plot_gates_over_epochs({"loss": [1.0], "gate_mean": [0.1]}, ax=ax)


def test_figures_leave_pyplot_alone():
    import sys

    plots.new_figure(columns=3)
    if "matplotlib.pyplot" in sys.modules:
        assert not sys.modules["matplotlib.pyplot"].get_fignums()
