"""The oracle itself, against finite differences and the worked example of the lesson."""

import numpy as np
import pytest
import reference

rng = np.random.default_rng(0)
STEP = 1e-6
# Central differences in float64 with a step of 1e-6 are exact to about 1e-9.
TOLERANCE = 1e-7


def numeric_gradient(function, array):
    gradient = np.zeros_like(array)
    for index in np.ndindex(array.shape):
        kept = array[index]
        array[index] = kept + STEP
        above = function()
        array[index] = kept - STEP
        gradient[index] = (above - function()) / (2 * STEP)
        array[index] = kept
    return gradient


def dense(n_in, n_out):
    return reference.Dense(rng.normal(size=(n_in, n_out)), rng.normal(size=n_out))


def convolution(size, n_in, n_out, strides=(1, 1), dilation=(1, 1), groups=1, padding="same"):
    kernel = rng.normal(size=(*size, n_in // groups, n_out))
    return reference.Convolution(kernel, rng.normal(size=n_out), strides, dilation, groups, padding)


LAYERS = {
    **{
        mode: (
            reference.Highway(mode, "tanh", dense(3, 3), dense(3, 3), dense(3, 3)),
            (4, 3),
        )
        for mode in ("coupled", "independent", "transform_only", "carry_only")
    },
    "residual": (reference.Highway("residual", "tanh", dense(3, 3)), (4, 3)),
    "relu": (reference.Highway("coupled", "relu", dense(3, 3), dense(3, 3)), (4, 3)),
    "convolution": (
        reference.Highway(
            "coupled", "tanh", convolution((3, 2), 4, 4, groups=2), convolution((1, 1), 4, 4)
        ),
        (2, 4, 3, 4),
    ),
    "causal": (
        reference.Highway(
            "coupled",
            "tanh",
            convolution((3,), 2, 2, (1,), (2,), padding="causal"),
            convolution((3,), 2, 2, (1,), (2,), padding="causal"),
        ),
        (2, 6, 2),
    ),
    "project": (
        reference.Highway(
            "coupled",
            "tanh",
            convolution((3, 3), 2, 3, (2, 2)),
            convolution((3, 3), 2, 3, (2, 2)),
            shortcut=convolution((1, 1), 2, 3, (2, 2)),
        ),
        (2, 5, 4, 2),
    ),
    "pad": (
        reference.Highway(
            "coupled",
            "tanh",
            convolution((3, 3), 2, 3, (2, 2)),
            convolution((3, 3), 2, 3, (2, 2)),
            shortcut=reference.Pad(3, (2, 2)),
        ),
        (2, 5, 4, 2),
    ),
}


@pytest.mark.parametrize("name", LAYERS)
def test_backward_equals_finite_differences(name):
    layer, shape = LAYERS[name]
    x = rng.normal(size=shape)
    dy = rng.normal(size=layer.forward(x).shape)
    dx, gradients = layer.backward(dy)

    def total():
        return float((layer.forward(x) * dy).sum())

    assert np.allclose(dx, numeric_gradient(total, x), atol=TOLERANCE)
    assert gradients
    for path, gradient in gradients.items():
        part, weight = path.split("/")
        array = getattr(layer.maps[part], weight)
        assert np.allclose(gradient, numeric_gradient(total, array), atol=TOLERANCE), path


@pytest.mark.parametrize("kind", ["plain", "highway"])
def test_lesson_network_backward_equals_finite_differences(kind):
    network = reference.LessonNetwork(kind, 3, np.random.default_rng(0), width=6, inputs=5)
    x, y = rng.normal(size=(7, 5)), rng.integers(0, 10, 7)
    _, gradients = network.loss_and_gradients(x, y)
    for index, parameter in enumerate(network.parameters):
        numeric = numeric_gradient(lambda: network.loss_and_gradients(x, y)[0], parameter)
        assert np.allclose(gradients[index], numeric, atol=TOLERANCE), index


def test_convolution_of_one_pixel_is_the_kernel_turned_round():
    layer = convolution((3, 3), 1, 1)
    layer.bias[:] = 0
    image = np.zeros((1, 3, 3, 1))
    image[0, 1, 1, 0] = 1
    assert np.array_equal(layer.forward(image)[0, :, :, 0], layer.kernel[::-1, ::-1, 0, 0])
