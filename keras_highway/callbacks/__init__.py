"""Callbacks that measure layers inside of an ordinary `fit`."""

from keras_highway.callbacks.activation_logger import ActivationLogger as ActivationLogger
from keras_highway.callbacks.gate_logger import GateLogger as GateLogger
from keras_highway.callbacks.gradient_norm_logger import GradientNormLogger as GradientNormLogger
