"""Data sets that the experiments train on, as NumPy arrays."""

from keras_highway.data.arrays import load_arrays as load_arrays
from keras_highway.data.dataset import Dataset as Dataset
from keras_highway.data.digits import digits as digits
from keras_highway.data.mnist import mnist as mnist
