"""The NumPy oracle: slow, obvious code that defines what the layers and the lesson compute.

Channels come last throughout. Forward and backward are written out by hand; nothing here imports
Keras. `test_reference.py` checks the backward pass against finite differences.
"""

import itertools

import numpy as np


def sigmoid(z):
    return 1.0 / (1.0 + np.exp(-z))


# Each activation with its derivative, written in terms of the activation's value.
ACTIVATIONS = {
    "linear": (lambda z: z, lambda a: np.ones_like(a)),
    "relu": (lambda z: np.maximum(0.0, z), lambda a: (a > 0).astype(a.dtype)),
    "sigmoid": (sigmoid, lambda a: a * (1.0 - a)),
    "tanh": (np.tanh, lambda a: 1.0 - a**2),
    "elu": (lambda z: np.where(z > 0, z, np.expm1(z)), lambda a: np.where(a > 0, 1.0, a + 1.0)),
}


class Dense:
    """z = x @ kernel + bias over the last axis."""

    def __init__(self, kernel, bias):
        self.kernel, self.bias = kernel, bias

    def forward(self, x):
        self.x = x
        return x @ self.kernel + self.bias

    def backward(self, dz):
        rows, drows = self.x.reshape(-1, self.x.shape[-1]), dz.reshape(-1, dz.shape[-1])
        return dz @ self.kernel.T, {"kernel": rows.T @ drows, "bias": drows.sum(0)}


class Convolution:
    """A sum over the kernel's offsets, each a product of a shifted input with one matrix."""

    def __init__(self, kernel, bias, strides, dilation_rate, groups, padding):
        self.kernel, self.bias = kernel, bias
        self.strides, self.dilation, self.groups = strides, dilation_rate, groups
        self.padding = padding

    def forward(self, x):
        size = self.kernel.shape[:-2]
        self.output_size, self.pads = [], []
        for n, k, s, d in zip(x.shape[1:-1], size, self.strides, self.dilation, strict=True):
            output = -(-n // s)
            reach = (k - 1) * d
            total = max((output - 1) * s + reach + 1 - n, 0)
            before = reach if self.padding == "causal" else total // 2
            self.output_size.append(output)
            self.pads.append((before, max(total - before, 0)))
        self.x_shape = x.shape
        self.x = np.pad(x, [(0, 0), *self.pads, (0, 0)])
        z = np.zeros((x.shape[0], *self.output_size, self.kernel.shape[-1]), x.dtype)
        for offset, window in self._windows():
            for inputs, outputs in self._groups():
                z[..., outputs] += self.x[window][..., inputs] @ self.kernel[offset][:, outputs]
        return z + self.bias

    def backward(self, dz):
        dx, dkernel = np.zeros_like(self.x), np.zeros_like(self.kernel)
        for offset, window in self._windows():
            for inputs, outputs in self._groups():
                shifted, matrix = self.x[window][..., inputs], self.kernel[offset][:, outputs]
                rows = shifted.reshape(-1, shifted.shape[-1])
                drows = dz[..., outputs].reshape(-1, matrix.shape[-1])
                dkernel[offset][:, outputs] += rows.T @ drows
                dx[window][..., inputs] += dz[..., outputs] @ matrix.T
        inside = tuple(
            slice(before, before + n)
            for (before, _), n in zip(self.pads, self.x_shape[1:-1], strict=True)
        )
        dbias = dz.reshape(-1, dz.shape[-1]).sum(0)
        return dx[(slice(None), *inside)], {"kernel": dkernel, "bias": dbias}

    def _windows(self):
        for offset in itertools.product(*map(range, self.kernel.shape[:-2])):
            steps = zip(offset, self.output_size, self.strides, self.dilation, strict=True)
            yield (
                offset,
                (
                    slice(None),
                    *(slice(o * d, o * d + (n - 1) * s + 1, s) for o, n, s, d in steps),
                ),
            )

    def _groups(self):
        inputs, outputs = self.kernel.shape[-2], self.kernel.shape[-1] // self.groups
        for group in range(self.groups):
            yield (
                slice(group * inputs, (group + 1) * inputs),
                slice(group * outputs, (group + 1) * outputs),
            )


class Pad:
    """Sub-samples in space and appends zeros to the features."""

    def __init__(self, features, strides):
        self.features = features
        self.window = (slice(None), *(slice(None, None, stride) for stride in strides))

    def forward(self, x):
        self.x_shape = x.shape
        kept = x[self.window]
        missing = np.zeros((*kept.shape[:-1], self.features - kept.shape[-1]), x.dtype)
        return np.concatenate([kept, missing], axis=-1)

    def backward(self, dz):
        dx = np.zeros(self.x_shape, dz.dtype)
        dx[self.window] = dz[..., : self.x_shape[-1]]
        return dx, {}


class Identity:
    def forward(self, x):
        return x

    def backward(self, dz):
        return dz, {}


class Highway:
    """A highway layer: affine maps for transform, gate and carry, and a shortcut."""

    def __init__(self, mode, activation, transform, gate=None, carry=None, shortcut=None):
        self.mode = mode
        self.activation, self.slope = ACTIVATIONS[activation]
        self.maps = {
            "transform": transform,
            "gate": gate,
            "carry": carry,
            "shortcut": shortcut or Identity(),
        }

    def forward(self, x):
        self.h = h = self.activation(self.maps["transform"].forward(x))
        self.x = x = self.maps["shortcut"].forward(inputs := x)
        if self.mode == "residual":
            return h + x
        self.t = t = sigmoid(self.maps["gate"].forward(inputs))
        if self.mode == "coupled":
            return h * t + x * (1 - t)
        if self.mode == "transform_only":
            return h * t + x
        if self.mode == "carry_only":
            return h + x * (1 - t)
        self.c = c = sigmoid(self.maps["carry"].forward(inputs))
        return h * t + x * c

    def backward(self, dy):
        """The gradient of sum(dy * y): that of the input, and those of the weights by path."""
        mode, h, x = self.mode, self.h, self.x
        dh = dy if mode in ("carry_only", "residual") else dy * self.t
        upstream = {"transform": dh * self.slope(h)}
        if mode == "coupled":
            dx, dt = dy * (1 - self.t), dy * (h - x)
        elif mode == "transform_only":
            dx, dt = dy, dy * h
        elif mode == "carry_only":
            dx, dt = dy * (1 - self.t), -dy * x
        elif mode == "independent":
            dx, dt = dy * self.c, dy * h
            upstream["carry"] = dy * x * self.c * (1 - self.c)
        else:
            dx = dy
        upstream["shortcut"] = dx
        if mode != "residual":
            upstream["gate"] = dt * self.t * (1 - self.t)
        total, gradients = 0.0, {}
        for name, dz in upstream.items():
            d_inputs, d_weights = self.maps[name].backward(dz)
            total = total + d_inputs
            gradients.update({f"{name}/{weight}": value for weight, value in d_weights.items()})
        return total, gradients


# ---- the network of the NumPy lesson: a plain first layer, `depth` layers, a linear output


def lesson_affine(rng, n_in, n_out):
    limit = 1.0 / np.sqrt(n_in)
    return rng.uniform(-limit, limit, (n_in, n_out)), rng.uniform(-limit, limit, n_out)


class LessonNetwork:
    """`parameters` lists every array in the order first, layers, last, drawn as in the lesson."""

    def __init__(self, kind, depth, rng, width=64, inputs=64, classes=10, gate_bias=-2.0):
        self.kind, self.depth = kind, depth
        first = lesson_affine(rng, inputs, width)
        last = lesson_affine(rng, width, classes)
        layers = []
        for _ in range(depth):
            layers.extend(lesson_affine(rng, width, width))
            if kind == "highway":
                gate_kernel, _ = lesson_affine(rng, width, width)
                layers.extend([gate_kernel, np.full(width, gate_bias)])
        self.parameters = [*first, *layers, *last]

    def _layers(self):
        size = 4 if self.kind == "highway" else 2
        for index in range(self.depth):
            start = 2 + index * size
            yield start, self.parameters[start : start + size]

    def forward(self, x):
        self.steps = [(None, x, h := np.maximum(0, x @ self.parameters[0] + self.parameters[1]))]
        self.gates = []
        for _, weights in self._layers():
            transformed = np.maximum(0, h @ weights[0] + weights[1])
            if self.kind == "highway":
                t = sigmoid(h @ weights[2] + weights[3])
                self.gates.append(t)
                self.steps.append((h, transformed, t))
                h = t * transformed + (1 - t) * h
            else:
                self.steps.append((h, transformed, None))
                h = transformed
        self.last = h
        return h @ self.parameters[-2] + self.parameters[-1]

    def loss_and_gradients(self, x, y):
        logits = self.forward(x)
        p = np.exp(logits - logits.max(1, keepdims=True))
        p /= p.sum(1, keepdims=True)
        rows = np.arange(len(y))
        loss = -np.log(p[rows, y]).mean()
        p[rows, y] -= 1
        d_logits = p / len(y)
        gradients = [None] * len(self.parameters)
        gradients[-2:] = [self.last.T @ d_logits, d_logits.sum(0)]
        dh = d_logits @ self.parameters[-2].T
        for (start, weights), (h, transformed, t) in zip(
            reversed(list(self._layers())), reversed(self.steps[1:]), strict=True
        ):
            dz = dh * (transformed > 0) * (1.0 if t is None else t)
            gradients[start : start + 2] = [h.T @ dz, dz.sum(0)]
            if t is None:
                dh = dz @ weights[0].T
                continue
            dg = dh * (transformed - h) * t * (1 - t)
            gradients[start + 2 : start + 4] = [h.T @ dg, dg.sum(0)]
            dh = dh * (1 - t) + dz @ weights[0].T + dg @ weights[2].T
        _, _, h = self.steps[0]
        dz = dh * (h > 0)
        gradients[:2] = [x.T @ dz, dz.sum(0)]
        return loss, gradients

    def transform_gradient_norms(self, x, y):
        """The norm of the gradient of each layer's transform kernel, first layer first."""
        _, gradients = self.loss_and_gradients(x, y)
        return [float(np.linalg.norm(gradients[start])) for start, _ in self._layers()]

    def train(self, x, y, rng, epochs=30, batch=64, rate=1e-3, epsilon=1e-8):
        """Adam as the lesson writes it; yields the examples' order after each epoch."""
        first = [np.zeros_like(p) for p in self.parameters]
        second = [np.zeros_like(p) for p in self.parameters]
        step = 0
        for _ in range(epochs):
            order = rng.permutation(len(x))
            for start in range(0, len(x), batch):
                rows = order[start : start + batch]
                _, gradients = self.loss_and_gradients(x[rows], y[rows])
                step += 1
                for p, g, m, v in zip(self.parameters, gradients, first, second, strict=True):
                    m += 0.1 * (g - m)
                    v += 0.001 * (g * g - v)
                    p -= rate * (m / (1 - 0.9**step)) / (np.sqrt(v / (1 - 0.999**step)) + epsilon)
            yield order

    def accuracy(self, x, y):
        return float((self.forward(x).argmax(1) == y).mean())
