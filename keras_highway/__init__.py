"""Highway networks for Keras 3: layers that learn how much of their input to transform.

    from keras_highway import HighwayDense

    model = keras.Sequential([keras.Input((64,)), HighwayDense(), keras.layers.Dense(10)])

Layers: `HighwayDense`, `HighwayConv1D`, `HighwayConv2D`, `HighwayConv3D`, and `Highway` around any
other Keras layer. Initializers: `GateBias` for their gates, `StandardUniform`, `NormalizedUniform`.
Callbacks that measure while `fit` trains: `GateLogger`, `GradientNormLogger`, `ActivationLogger`.

Modules that are imported by name: `keras_highway.analysis` (measurements of models), `.plots`
(figures of them), `.models` (ready-made networks), `.data` (data sets). The command line is
`keras-highway`, or `python -m keras_highway`.
"""

from keras_highway import quiet as quiet  # isort: skip  (before anything imports Keras)
from keras_highway.callbacks import ActivationLogger as ActivationLogger
from keras_highway.callbacks import GateLogger as GateLogger
from keras_highway.callbacks import GradientNormLogger as GradientNormLogger
from keras_highway.initializers import GateBias as GateBias
from keras_highway.initializers import NormalizedUniform as NormalizedUniform
from keras_highway.initializers import StandardUniform as StandardUniform
from keras_highway.layers import Highway as Highway
from keras_highway.layers import HighwayConv1D as HighwayConv1D
from keras_highway.layers import HighwayConv2D as HighwayConv2D
from keras_highway.layers import HighwayConv3D as HighwayConv3D
from keras_highway.layers import HighwayDense as HighwayDense

__version__ = "0.2.0"
