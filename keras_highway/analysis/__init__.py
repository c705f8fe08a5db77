"""Measurements of models: arrays in, NumPy out, nothing printed."""

from keras_highway.analysis.activations import activation_statistics as activation_statistics
from keras_highway.analysis.gates import mean_gates as mean_gates
from keras_highway.analysis.gradients import compute_gradients as compute_gradients
from keras_highway.analysis.gradients import gradient_norms as gradient_norms
