"""What the layers and weights inside a model are called in measurements."""

import collections
import itertools

import keras

from keras_highway.validation import did_you_mean, explain


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


def layer_names(model):
    """Dict from shortest unique path to layer: the model itself, and every layer inside of it."""
    found = [((model.name,), model), *layer_paths(model)]
    names = shortest_unique([path for path, _ in found])
    return dict(zip(names, (layer for _, layer in found), strict=True))


def unit_layers(model):
    """Those layers, by shortest unique path, that a reader of the model's summary counts.

    Nested models and wrappers are looked into; a layer that is made of layers is one.
    """
    units, seen = set(), {id(model)}

    def visit(parent):
        for layer in parent._flatten_layers(include_self=False, recursive=False):
            if id(layer) in seen:
                continue
            seen.add(id(layer))
            if isinstance(layer, (keras.Model, keras.layers.Wrapper)):
                visit(layer)
            elif not isinstance(layer, keras.layers.InputLayer):
                units.add(id(layer))

    visit(model)
    if not units and not isinstance(model, keras.Model):
        return {model.name: model}
    return {name: layer for name, layer in layer_names(model).items() if id(layer) in units}


def find_layers(owner, model, wanted):
    """The layers inside `model` that `wanted` names, by shortest unique path.

    Args:
        owner: Who asks, for the message.
        model: A Keras model.
        wanted: List of layers, or of names: the last parts of a path, as many as one likes.
    """
    paths = [((model.name,), model), *layer_paths(model)]
    names = layer_names(model)
    by_id = {id(layer): name for name, layer in names.items()}
    found = {}
    for one in wanted:
        if isinstance(one, str):
            parts = tuple(one.split("/"))
            matches = [layer for path, layer in paths if path[-len(parts) :] == parts]
            if one in names:
                matches = [names[one]]
        else:
            matches = [one] if id(one) in by_id else []
        if len(matches) != 1:
            received = repr(one) if isinstance(one, str) else f"the layer {one.name!r}"
            fix = (
                did_you_mean(one, names) if isinstance(one, str) else "Give its name in the model."
            )
            several = ", ".join(repr(by_id[id(layer)]) for layer in matches)
            raise ValueError(
                explain(
                    f"`{owner}(layers=...)` takes layers of the model, each by a name that is its "
                    "alone.",
                    f"{received}, which is {f'any of {several}' if matches else 'none'} of model "
                    f"{model.name!r}",
                    "Give a longer path." if matches else fix,
                )
            )
        found[by_id[id(matches[0])]] = matches[0]
    return found


def shortest_unique(paths):
    """For each path its last names, as many as no other path ends in, joined by `/`.

    A path that is the end of another one stays whole, and equal ones get a number.
    """
    ends = collections.Counter(
        path[-length:] for path in set(paths) for length in range(1, len(path) + 1)
    )
    names = []
    for path in paths:
        lengths = range(1, len(path) + 1)
        length = next((n for n in lengths if ends[path[-n:]] == 1), len(path))
        names.append("/".join(path[-length:]))
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
