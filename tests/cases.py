"""One row a layer: each buys it the whole battery of `test_battery.py`."""

from collections.abc import Callable
from dataclasses import dataclass

import keras

from keras_highway import Highway, HighwayConv1D, HighwayConv2D, HighwayConv3D, HighwayDense


@dataclass(frozen=True)
class Case:
    name: str
    make: Callable[..., Highway]  # takes keywords that override the layer's own
    shape: tuple[int, ...]  # of one input, without the batch
    free: tuple[int, ...] = ()  # axes of `shape` that the layer must not need to know

    @property
    def free_shape(self):
        return tuple(None if i in self.free else size for i, size in enumerate(self.shape))


def case(name, layer, shape, free=(), **arguments):
    arguments = {"activation": "elu", "gate_bias": -1.0, **arguments}
    return Case(name, lambda **changes: layer(**{**arguments, **changes}), shape, free)


def wrapper(name, transform, shape, free=(), **arguments):
    return Case(
        name,
        lambda **changes: Highway(transform(), **{"gate_bias": -1.0, **arguments, **changes}),
        shape,
        free,
    )


MODES = ("coupled", "independent", "transform_only", "carry_only", "residual")

CASES = [
    *(case(f"dense-{mode}", HighwayDense, (6,), gate_mode=mode) for mode in MODES),
    case("dense-relu", HighwayDense, (6,), activation="relu"),
    case("dense-tanh", HighwayDense, (6,), activation="tanh"),
    case("dense-sequence", HighwayDense, (5, 6), free=(0,)),
    case("dense-project", HighwayDense, (6,), units=9, shortcut="project"),
    case("dense-project-narrower", HighwayDense, (6,), units=4, shortcut="project"),
    case("dense-pad", HighwayDense, (6,), units=9, shortcut="pad"),
    *(case(f"conv1d-{mode}", HighwayConv1D, (7, 4), (0,), gate_mode=mode) for mode in MODES),
    case("conv1d-causal", HighwayConv1D, (9, 4), (0,), padding="causal", dilation_rate=2),
    case("conv1d-strided", HighwayConv1D, (9, 4), (0,), strides=2, shortcut="pad"),
    *(case(f"conv2d-{mode}", HighwayConv2D, (6, 5, 4), (0, 1), gate_mode=mode) for mode in MODES),
    case("conv2d-even-kernel", HighwayConv2D, (6, 5, 4), (0, 1), kernel_size=(2, 4)),
    case("conv2d-dilated", HighwayConv2D, (7, 7, 3), (0, 1), dilation_rate=2),
    case("conv2d-groups", HighwayConv2D, (6, 5, 4), (0, 1), groups=2),
    case("conv2d-small-gate", HighwayConv2D, (6, 5, 4), (0, 1), gate_kernel_size=1),
    case(
        "conv2d-project", HighwayConv2D, (7, 6, 4), (0, 1), filters=6, strides=2, shortcut="project"
    ),
    case("conv2d-pad", HighwayConv2D, (7, 6, 4), (0, 1), filters=6, strides=2, shortcut="pad"),
    *(
        case(f"conv3d-{mode}", HighwayConv3D, (4, 3, 5, 2), (0, 1, 2), gate_mode=mode)
        for mode in MODES
    ),
    case("conv3d-project", HighwayConv3D, (4, 3, 5, 2), (0, 1, 2), filters=3, shortcut="project"),
    wrapper("wrapper-dense", lambda: keras.layers.Dense(6, activation="elu"), (6,)),
    wrapper(
        "wrapper-conv2d-strided",
        lambda: keras.layers.Conv2D(6, 3, strides=2, padding="same", activation="elu"),
        (7, 6, 4),
        (0, 1),
        shortcut="project",
    ),
]
