"""What the layers and weights inside a model are called in measurements."""

import itertools

import keras

from keras_highway.validation import explain


def layer_paths(model):
    """Every layer inside `model`, once, in its order.

    Args:
        model: A Keras model or layer.

    Returns:
        A list of pairs: the names of the layers that lead to it, as a tuple, and the layer.
    """
    found, seen = [], {id(model)}

    def visit(parent, path):
        for layer in parent._flatten_layers(include_self=False, recursive=False):
            if id(layer) not in seen:
                seen.add(id(layer))
                found.append(((*path, layer.name), layer))
                visit(layer, (*path, layer.name))

    visit(model, ())
    return found


def shortest_unique(paths):
    """For each path its last names, as many as no other path ends in, joined by `/`.

    A path that is the end of another one stays whole, and equal ones get a number.
    """
    names = []
    for path in paths:
        others = [other for other in paths if other != path]
        for length in range(1, len(path) + 1):
            end = path[-length:]
            if not any(other[-length:] == end for other in others):
                break
        names.append("/".join(end))
    return _numbered(names)


def variable_names(model):
    """The path in `model`, such as `"layer_1/transform/kernel"`, of each trainable variable."""
    owners = {id(variable): (variable.name,) for variable in model.trainable_variables}
    for path, layer in layer_paths(model):  # an inner layer comes after the one around it
        for variable in layer.trainable_variables:
            owners[id(variable)] = (*path, variable.name)
    return _numbered(["/".join(owners[id(variable)]) for variable in model.trainable_variables])


def length_of(x):
    """The number of examples in `x`, an array or a structure of arrays."""
    leaves = keras.tree.flatten(x)
    if not leaves or not all(getattr(leaf, "shape", ()) for leaf in leaves):
        raise TypeError(
            explain(
                "The inputs must be an array (examples, ...), or a list or dict of arrays.",
                f"an object of type {type(x).__name__}",
                "Give arrays: numpy.asarray(x) of a list of numbers, some batches of a data set.",
            )
        )
    return len(leaves[0])


def rows_of(x, start, stop):
    """The examples from `start` to `stop` of an array or a structure of arrays."""
    return keras.tree.map_structure(lambda array: array[start:stop], x)


def _numbered(names):
    unique: dict[str, None] = {}
    for name in names:
        free = (f"{name}_{number}" if number else name for number in itertools.count())
        unique[next(candidate for candidate in free if candidate not in unique)] = None
    return list(unique)
