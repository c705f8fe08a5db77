"""Highway layers."""

from keras_highway.layers.highway import Highway as Highway
from keras_highway.layers.highway_conv import HighwayConv1D as HighwayConv1D
from keras_highway.layers.highway_conv import HighwayConv2D as HighwayConv2D
from keras_highway.layers.highway_conv import HighwayConv3D as HighwayConv3D
from keras_highway.layers.highway_dense import HighwayDense as HighwayDense
