"""What a compiled training step needs of each backend to have numbers carried out of it.

Everything that depends on the backend while a model is watched is in this file.
"""

import functools
import threading
from typing import Any

import keras
import numpy as np

from keras_highway.validation import explain


class Store:
    """Rows of numbers, outside of the model, which the training step writes and Python reads.

    The step captures the store, so that its numbers are never among the variables of the model or
    of its optimizer. Sums start at zero, and at zero again after each `take`.
    """

    dtype = "float64"

    def open(self, value=None):
        """Begins a step, on JAX with the numbers so far as the step received them."""

    def close(self):
        """Ends a step; on JAX gives the numbers to return from it."""

    def get(self, row):
        """One row, inside the step, as it was at its begin if it is added to."""
        raise NotImplementedError

    def set(self, row, values):
        """Replaces one row, inside the step."""
        raise NotImplementedError

    def add(self, row, values):
        """Adds to one row, inside the step. Over replicas the sum is taken.

        Args:
            row: Its number.
            values: A vector of the store's dtype, or a list of scalars of any.
        """
        if isinstance(values, list):
            values = keras.ops.stack([keras.ops.cast(value, self.dtype) for value in values])
        self.set(row, self.get(row) + values)

    def read(self):
        """All rows as a NumPy array, outside of the step."""
        raise NotImplementedError

    def clear(self):
        """Sets all rows to zero, outside of the step."""
        raise NotImplementedError

    def take(self):
        """Reads and clears."""
        values = np.asarray(self.read(), dtype="float64")
        self.clear()
        return values


class TensorFlowStore(Store):
    """One variable, that the step captures.

    What is added in the graph of the step itself is added at its end and at once: with an operation
    or two less for each layer a step of many small layers takes a tenth less.
    """

    def __init__(self, rows, columns, model, of_first_replica=False):
        import tensorflow as tf

        aggregation = tf.VariableAggregation
        self._zeros = np.zeros((rows, columns), self.dtype)
        self._step = threading.local()  # of each replica: its graph, and what is still to be added
        with tf.init_scope(), model.distribute_strategy.scope():
            self._variable = tf.Variable(
                self._zeros,
                trainable=False,
                synchronization=tf.VariableSynchronization.ON_READ,
                aggregation=(
                    aggregation.ONLY_FIRST_REPLICA if of_first_replica else aggregation.SUM
                ),
            )

    def open(self, value=None):
        self._step.graph, self._step.added = self._graph(), []

    def close(self):
        if added := self._step.added:
            self._add_at_once([row for row, _ in added], [values for _, values in added])
        self._step.graph, self._step.added = None, []

    def get(self, row):
        return self._variable.read_value()[row]

    def set(self, row, values):
        if len(self._zeros) > 1:
            raise NotImplementedError("a row among several is only added to")
        self._variable.assign(values[None])

    def add(self, row, values):
        if getattr(self._step, "graph", None) is self._graph():
            self._step.added.append((row, values))
        else:  # inside of a loop or a branch
            self._add_at_once([row], [values])

    def read(self):
        return self._variable.read_value().numpy()

    def clear(self):
        self._variable.assign(self._zeros)

    def _graph(self):
        import tensorflow as tf

        return "eager" if tf.executing_eagerly() else tf.compat.v1.get_default_graph()

    def _add_at_once(self, rows, values):
        import tensorflow as tf

        if isinstance(values[0], list):
            columns = [tf.stack(column) for column in zip(*values, strict=True)]
            values = tf.stack([tf.cast(column, self.dtype) for column in columns], axis=1)
        else:
            values = tf.stack(values)
        if rows != list(range(len(self._zeros))):
            values = tf.math.unsorted_segment_sum(values, rows, len(self._zeros))
        self._variable.assign_add(values)


class JaxStore(Store):
    """Goes into the compiled step and out of it with the state; inside it is a mutable array.

    A mutable array that the step captured would do without that, but JAX 0.10 dispatches a function
    with such an argument in Python, at some 20 us for each array of the state.
    """

    dtype = "float32"

    def __init__(self, rows, columns, model, of_first_replica=False):
        import jax

        if not hasattr(jax, "new_ref"):
            raise ImportError(
                explain(
                    "Watching a model on JAX needs JAX 0.7.2 or newer.",
                    f"JAX {jax.__version__}",
                    "Update it: pip install --upgrade jax",
                )
            )
        self._shape = (rows, columns)
        self._ref: Any = None
        self.clear()

    def get(self, row):
        return self._ref[row]

    def set(self, row, values):
        import jax

        try:
            self._ref[row] = jax.lax.stop_gradient(values)
        except Exception as error:
            if "batched" not in str(error):
                raise
            raise RuntimeError(
                explain(
                    "On JAX a layer that is watched cannot be mapped over a new axis.",
                    "a watched layer inside of jax.vmap or keras.ops.vectorized_map",
                    "Give the layer an input with that axis, or leave it out by `layers=`.",
                )
            ) from error

    def open(self, value=None):
        import jax

        self._ref = jax.new_ref(value)

    def close(self):
        value, self._ref = self._ref[...], None
        return value

    def read(self):
        return self.value

    def clear(self):
        zeros = np.zeros(self._shape, self.dtype)
        if (layout := jax_layout()) is not None:
            zeros = keras.distribution.distribute_tensor(zeros, layout)
        self.value = keras.ops.convert_to_tensor(zeros)


def jax_layout():
    """That of a store in `keras.distribution`, the same on all devices; `None` without it."""
    distribution = keras.distribution.distribution()
    if distribution is None:
        return None
    return keras.distribution.TensorLayout((None, None), distribution.device_mesh)


class TorchStore(Store):
    def __init__(self, rows, columns, model, of_first_replica=False):
        import torch

        device = keras.ops.zeros(()).device
        if device.type == "mps":  # has no double precision
            self.dtype = "float32"
        self._values = torch.zeros((rows, columns), dtype=getattr(torch, self.dtype), device=device)

    def get(self, row):
        return self._values[row]

    def set(self, row, values):
        self._values[row] = values.detach()

    def read(self):
        return self._values.cpu().numpy().copy()

    def clear(self):
        self._values.zero_()


def make_store(rows, columns, model, of_first_replica=False):
    """A `Store` for this backend.

    Args:
        rows, columns: Its size.
        model: The model whose step will write to it.
        of_first_replica: Whether replicas write the same number, of which the first is read,
            instead of parts of a sum. Defaults to `False`.
    """
    stores = {"tensorflow": TensorFlowStore, "jax": JaxStore, "torch": TorchStore}
    return stores[keras.backend.backend()](rows, columns, model, of_first_replica)


def with_stores(train_step, stores):
    """`train_step` that opens the stores and closes them, and on JAX carries them through itself.

    Args:
        train_step: The model's.
        stores: List of stores, complete when the result is first called.
    """

    @functools.wraps(train_step)
    def with_open_stores(*arguments, **keywords):
        opened = list(stores)
        for store in opened:
            store.open()
        logs = train_step(*arguments, **keywords)
        for store in opened:
            store.close()
        return logs

    @functools.wraps(train_step)
    def carrying(state, data):
        *others, metrics = state
        metrics, values = metrics[: -len(stores)], metrics[-len(stores) :]
        for store, value in zip(stores, values, strict=True):
            store.open(value)
        logs, (*others, metrics) = train_step((*others, metrics), data)
        return logs, (*others, [*metrics, *(store.close() for store in stores)])

    return carrying if keras.backend.backend() == "jax" else with_open_stores


def carry_into_execution(train_function, stores):
    """`train_function` that gives the stores to the step and takes them from it."""
    if keras.backend.backend() != "jax":
        return train_function

    @functools.wraps(train_function)
    def carrying(state, iterator):
        *others, metrics = state
        state = (*others, [*metrics, *(store.value for store in stores)])
        logs, (*others, metrics) = train_function(state, iterator)
        for store, value in zip(stores, metrics[-len(stores) :], strict=True):
            store.value = value
        return logs, (*others, metrics[: -len(stores)])

    return carrying


def state_shardings(model, stores):
    """What to replace so that the step's state may have the stores in `keras.distribution`.

    Returns:
        The name of the model's method that tells the shardings of the state, and its replacement;
        `None` where it is not asked for them.
    """
    if keras.backend.backend() != "jax" or keras.distribution.distribution() is None:
        return None
    name = "_get_state_sharding_spec"
    original = getattr(model, name)

    def spec():
        *others, metrics = original()
        return (*others, [*metrics, *(store.value.sharding for store in stores)])

    return name, spec


def build(model, data):
    """Makes the weights of `model` for batches like `data`, inside the step."""
    x, _, _ = keras.utils.unpack_x_y_sample_weight(data)
    model(keras.tree.map_structure(lambda leaf: keras.KerasTensor(leaf.shape, leaf.dtype), x))


def replica_id():
    """The number of the replica that this code runs for, while the step is traced or run."""
    if keras.backend.backend() != "tensorflow":
        return 0
    import tensorflow as tf

    context = tf.distribute.get_replica_context()
    # Where one trace serves all replicas it has no static number.
    return 0 if context is None else int(tf.get_static_value(context.replica_id_in_sync_group) or 0)


def is_end_of_data(error):
    """Whether a training function ended so because there are no more batches."""
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        return isinstance(error, (StopIteration, tf.errors.OutOfRangeError))
    return isinstance(error, StopIteration)


def norms_of(gradients, dtype, xla=False):
    """The l2 norm of each gradient, as one vector, inside the step.

    Squares of float32 numbers below 1e-19 or above 1e19 leave its range, and gradients do go there
    in very deep networks. Where the fast sum of squares is not safely inside, a careful one runs.

    Args:
        gradients: List of dense or sparse gradients; those of replicas are summed first.
        dtype: Of the result.
        xla: Whether the step is compiled by XLA.
    """
    return {"tensorflow": _tensorflow_norms, "jax": _jax_norms, "torch": _torch_norms}[
        keras.backend.backend()
    ](gradients, dtype, xla)


LOWEST_SQUARE, HIGHEST_SQUARE = 1e-30, 1e36


def _tensorflow_norms(gradients, dtype, xla):
    import tensorflow as tf

    context = tf.distribute.get_replica_context()
    if context is not None and context.num_replicas_in_sync > 1:
        gradients = context.all_reduce(tf.distribute.ReduceOp.SUM, gradients)

    def summed(gradient):
        """The values of a gradient, those of one row of a sparse one added up."""
        if not isinstance(gradient, tf.IndexedSlices):
            return gradient
        if xla:  # which does not know how many rows there are
            return tf.convert_to_tensor(gradient)
        rows, positions = tf.unique(gradient.indices)
        return tf.math.unsorted_segment_sum(gradient.values, positions, tf.size(rows))

    gradients = [summed(gradient) for gradient in gradients]
    gradients = [
        tf.cast(gradient, "float32") if gradient.dtype.size < 4 else gradient
        for gradient in gradients
    ]
    halves = [tf.nn.l2_loss(gradient) for gradient in gradients]
    if len({half.dtype for half in halves}) > 1:
        halves = [tf.cast(half, dtype) for half in halves]
    squares = tf.cast(tf.stack(halves), dtype)
    return tf.cond(
        tf.reduce_all((squares > LOWEST_SQUARE) & (squares < HIGHEST_SQUARE)),
        lambda: tf.sqrt(2.0 * squares),
        lambda: tf.stack([tf.norm(tf.cast(gradient, dtype)) for gradient in gradients]),
    )


def _jax_norms(gradients, dtype, xla):
    import jax.numpy as jnp

    def norm(gradient):
        # Relative to the mean size. Choosing a careful sum by `lax.cond`, as for TensorFlow, costs
        # more here: the step took 1.2 times as long, without its ever being taken.
        size = jnp.sum(jnp.abs(gradient)) / max(1, gradient.size)
        scale = jnp.where((size > 1e-37) & jnp.isfinite(size), size, 1.0)
        return scale * jnp.sqrt(jnp.sum(jnp.square(gradient * (1.0 / scale))))

    return jnp.stack([norm(gradient.astype(dtype)) for gradient in gradients])


def _torch_norms(gradients, dtype, xla):
    import torch

    dtype = getattr(torch, dtype)
    return torch.stack(
        [torch.linalg.vector_norm(gradient.detach(), dtype=dtype) for gradient in gradients]
    )


def root_of_squares(norms, segments, count):
    """The root of the sum of the squares of the `norms` of each segment, inside the step.

    Relative to the largest of the segment, so that no square leaves the range of numbers.

    Args:
        norms: Vector.
        segments: List of the segment of each, from zero, in order.
        count: How many segments there are; one without members gets zero.
    """
    ops = keras.ops
    segments = ops.convert_to_tensor(segments, "int32")
    largest = ops.segment_max(norms, segments, count)
    usable = (largest > 0) & ops.isfinite(largest)  # an empty segment has minus infinity
    scale = ops.where(usable, largest, ops.ones_like(largest))
    parts = norms / ops.take(scale, segments)
    return scale * ops.sqrt(ops.segment_sum(parts * parts, segments, count))


def at_least_float32(values):
    """Brings half precision to float32, in which a sum of many numbers is exact enough."""
    dtype = keras.backend.standardize_dtype(values.dtype)
    return keras.ops.cast(values, "float32") if dtype in ("float16", "bfloat16") else values
