"""Figures. Each function takes numbers, draws on `ax` and returns it; Matplotlib is imported
only when one is called."""

import numpy as np

from keras_highway.data.dataset import require
from keras_highway.validation import explain

# Blue and orange of Okabe and Ito's palette, which colour-blind readers can tell apart.
COLORS = {"highway": "#0072B2", "plain": "#D55E00"}


def new_figure(columns=1, width=6.4, height=4.2):
    """A Matplotlib figure with `columns` axes side by side, apart from pyplot's global state."""
    figure_module = require("matplotlib.figure", "matplotlib", "Drawing figures")
    figure = figure_module.Figure(figsize=(width * columns, height), layout="constrained", dpi=150)
    axes = figure.subplots(1, columns, squeeze=False)[0]
    return figure, list(axes)


def plot_accuracy_by_depth(accuracies, *, ax, chance=None, published=None):
    """Test accuracy against depth: the mean over the seeds, every seed as a dot.

    Args:
        accuracies: Dict from kind to a dict from depth to a list of accuracies between 0 and 1,
            one a seed.
        ax: Matplotlib axes.
        chance: Accuracy of the best constant answer, drawn as a line. Defaults to `None`.
        published: Like `accuracies`, one number for each depth, drawn as crosses. Defaults to
            `None`.

    Returns:
        `ax`.
    """
    depths = sorted({depth for by_depth in accuracies.values() for depth in by_depth})
    positions = {depth: index for index, depth in enumerate(depths)}
    for shift, (kind, by_depth) in zip((-0.05, 0.05), accuracies.items(), strict=False):
        color = COLORS[kind]
        known = sorted(by_depth)
        x = np.array([positions[depth] + shift for depth in known])
        ax.plot(
            x,
            [100 * np.mean(by_depth[depth]) for depth in known],
            color=color,
            label=f"{kind}, mean",
        )
        for position, depth in zip(x, known, strict=True):
            values = 100 * np.asarray(by_depth[depth])
            label = f"{kind}, one seed" if depth == known[0] else None
            dots = np.full(len(values), position)
            ax.scatter(dots, values, s=16, color=color, alpha=0.5, label=label)
        crosses = sorted(set(known) & set((published or {}).get(kind, ())))
        if crosses:
            ax.scatter(
                [positions[depth] + 2.2 * shift for depth in crosses],
                [100 * published[kind][depth] for depth in crosses],
                marker="x",
                s=45,
                color=color,
                label=f"{kind}, published (one seed)",
            )
    if chance is not None:
        ax.axhline(100 * chance, color="0.5", linestyle=":", label="most frequent label")
    ax.set_xticks(range(len(depths)), [str(depth) for depth in depths])
    ax.set_xlim(-0.5, len(depths) - 0.5)
    ax.set_ylim(0, 102)
    ax.set_xlabel("layers between the first and the output")
    ax.set_ylabel("test accuracy (%)")
    ax.grid(axis="y", color="0.9")
    # Below the axes, since results may lie anywhere inside.
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=2, fontsize="small")
    return ax


def plot_mean_gates(gates, *, ax, start=None, title=None):
    """Mean transform gate by layer, one line a seed.

    Args:
        gates: List of lists of mean gates, first layer first.
        ax: Matplotlib axes.
        start: The gate on zero input before training, drawn as a line. Defaults to `None`.
        title: Defaults to `None`.

    Returns:
        `ax`.
    """
    gates = np.asarray(gates, dtype="float64")
    mean = gates.mean(axis=0)
    layers = np.arange(1, len(mean) + 1)
    color = COLORS["highway"]
    if len(gates) > 1:
        for index, values in enumerate(gates):
            label = "one seed" if index == 0 else None
            ax.plot(layers, values, color=color, alpha=0.3, linewidth=1, label=label)
    label = "mean over seeds" if len(gates) > 1 else "after training"
    ax.plot(layers, mean, color=color, marker=".", label=label)
    if start is not None:
        ax.axhline(start, color="0.5", linestyle=":", label="sigmoid(gate bias) at the start")
    top = max(np.nan_to_num(gates).max(), start or 0.0)
    ax.set_ylim(bottom=0, top=1.15 * top if top else 1.0)
    _label_layers(ax, layers)
    ax.set_ylabel("mean transform gate T")
    if title:
        ax.set_title(title)
    ax.grid(color="0.9")
    ax.legend(fontsize="small")
    return ax


def plot_gradient_norms(norms, *, ax, title=None):
    """Gradient norm by layer on a log scale, the mean over the seeds (of the logarithms).

    Args:
        norms: Dict from kind to a list of lists of norms, first layer first, one list a seed.
        ax: Matplotlib axes.
        title: Defaults to `None`.

    Returns:
        `ax`.
    """
    for kind, lines in norms.items():
        values = np.asarray(lines, dtype="float64")
        with np.errstate(divide="ignore"):
            mean = np.exp(np.log(values).mean(axis=0))
        layers = np.arange(1, values.shape[1] + 1)
        ax.plot(layers, mean, color=COLORS[kind], marker=".", label=kind)
        if len(values) > 1:
            low, high = values.min(axis=0), values.max(axis=0)
            label = f"{kind}, lowest to highest seed"
            ax.fill_between(layers, low, high, color=COLORS[kind], alpha=0.2, lw=0, label=label)
    ax.set_yscale("log")
    _label_layers(ax, layers)
    ax.set_ylabel("gradient norm of the kernel of H")
    if title:
        ax.set_title(title)
    ax.grid(color="0.9")
    ax.legend(fontsize="small")
    return ax


def plot_gates_over_epochs(log, *, ax, title=None):
    """Mean transform gate by layer over epochs, as a heat map, of what `GateLogger` measured.

    Args:
        log: A `GateLogger` after `fit`, its `history`, or a `History` with its keys.
        ax: Matplotlib axes.
        title: Defaults to `None`.

    Returns:
        `ax`.

    Raises:
        ValueError: If `log` has no gates of layers.
    """
    names, values, positions, unit = _by_layer(log, "gate_mean")
    image = ax.imshow(
        values,
        aspect="auto",
        origin="lower",
        interpolation="nearest",
        cmap="viridis",
        vmin=0.0,
        extent=(*_edges(positions), 0.5, len(names) + 0.5),
    )
    ax.figure.colorbar(image, ax=ax, label="mean transform gate T")
    _name_layers(ax, names)
    ax.set_xlabel(unit)
    ax.xaxis.get_major_locator().set_params(integer=True, min_n_ticks=1)
    if title:
        ax.set_title(title)
    return ax


def plot_gradients_over_epochs(log, *, ax, title=None):
    """Gradient norm over epochs, one line a layer, on a log scale, of `GradientNormLogger`.

    Args:
        log: A `GradientNormLogger` after `fit`, its `history`, or a `History` with its keys.
        ax: Matplotlib axes.
        title: Defaults to `None`.

    Returns:
        `ax`.

    Raises:
        ValueError: If `log` has no norms of layers.
    """
    names, values, positions, unit = _by_layer(log, "gradient_norm")
    colormap = require("matplotlib", "matplotlib", "Drawing figures").colormaps["viridis"]
    few = len(names) <= 8
    for index, (name, norms) in enumerate(zip(names, values, strict=True)):
        color = colormap(0.9 * index / max(1, len(names) - 1))
        shown = np.where(norms > 0, norms, np.nan)  # a norm of zero has no place on a log scale
        marker = "." if few or len(positions) == 1 else None
        label = name if few else None
        ax.plot(positions, shown, color=color, marker=marker, linewidth=1, label=label)
    ax.set_yscale("log")
    ax.set_xlabel(unit)
    ax.xaxis.get_major_locator().set_params(integer=True, min_n_ticks=1)
    ax.set_ylabel("gradient norm")
    if few:
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=2, fontsize="small")
    else:
        cm = require("matplotlib.cm", "matplotlib", "Drawing figures")
        colors = require("matplotlib.colors", "matplotlib", "Drawing figures")
        shades = colors.ListedColormap(colormap(np.linspace(0, 0.9, 256)))
        scale = cm.ScalarMappable(colors.Normalize(1, len(names)), shades)
        ax.figure.colorbar(scale, ax=ax, label="layer, from the input")
    ax.grid(color="0.9")
    if title:
        ax.set_title(title)
    return ax


def _by_layer(log, quantity):
    """Names of layers, an array (layers, measurements), where these lie, and on what axis."""
    history = getattr(log, "history", log)
    prefix = f"{quantity}/"
    names = [key.removeprefix(prefix) for key in history if key.startswith(prefix)]
    if not names:
        raise ValueError(
            explain(
                f"There is nothing to draw without keys that start with {prefix!r}.",
                f"keys {sorted(history)}",
                "Give the logger after `fit`, or a History logged with per_layer_logs=True.",
            )
        )
    values = np.array([history[prefix + name] for name in names], dtype="float64")
    epochs = np.asarray(history.get("epoch", range(values.shape[1])))
    if len(set(epochs)) < len(epochs):  # several measurements an epoch
        return names, values, np.asarray(history["step"]), "training step"
    return names, values, epochs + 1, "epoch"


def _edges(positions):
    half = (positions[-1] - positions[0]) / max(1, len(positions) - 1) / 2 or 0.5
    return positions[0] - half, positions[-1] + half


def _name_layers(ax, names):
    if len(names) <= 12:
        ax.set_yticks(range(1, len(names) + 1), names)
    else:
        ax.set_ylabel("layer, from the input")
        ax.yaxis.get_major_locator().set_params(integer=True)


def _label_layers(ax, layers):
    ax.set_xlabel("layer")
    ax.set_xlim(min(layers) - 0.5, max(layers) + 0.5)
    ax.xaxis.get_major_locator().set_params(integer=True, min_n_ticks=1)
