"""Order and shapes of the parts of the packed parameter vector of `npx.rnn`."""

from __future__ import annotations

import math

__all__ = ["packed_input_size", "packed_shapes"]

_GATES = {"rnn_relu": 1, "rnn_tanh": 1, "lstm": 4, "gru": 3}


def packed_shapes(
    mode: str,
    num_layers: int,
    input_size: int,
    hidden_size: int,
    bidirectional: bool = False,
    projection_size: int | None = None,
) -> list[tuple[str, tuple[int, ...]]]:
    """Names and shapes of the pieces, in their order: all weights, then all biases.

    Parameters
    ----------
    mode : {"rnn_relu", "rnn_tanh", "lstm", "gru"}
    num_layers, input_size, hidden_size : int
    bidirectional : bool
    projection_size : int, optional
        Of the output of an LSTM.

    Returns
    -------
    list of (str, tuple of int)
        For example ``("l0_i2h_weight", (4 * hidden_size, input_size))``; names of the backward direction start with r.

    Raises
    ------
    ValueError
        If `mode` is unknown, a size is not positive, or `projection_size` is given for another mode than "lstm".
    """
    if mode not in _GATES:
        raise ValueError(f"`mode` must be one of {', '.join(_GATES)}, found {mode!r}")
    found = {"num_layers": num_layers, "input_size": input_size, "hidden_size": hidden_size}
    for name, size in {**found, "projection_size": projection_size or 1}.items():
        if size < 1:
            raise ValueError(f"`{name}` must be positive, found {size}")
    if projection_size and mode != "lstm":
        raise ValueError(f"`projection_size` is for the mode 'lstm' only, found {projection_size} with {mode!r}")
    rows, output = _GATES[mode] * hidden_size, projection_size or hidden_size
    directions = "lr" if bidirectional else "l"
    weights: list[tuple[str, tuple[int, ...]]] = []
    biases: list[tuple[str, tuple[int, ...]]] = []
    size = input_size
    for layer in range(num_layers):
        for direction in directions:
            prefix = f"{direction}{layer}_"
            weights += [(prefix + "i2h_weight", (rows, size)), (prefix + "h2h_weight", (rows, output))]
            if projection_size:
                weights.append((prefix + "h2r_weight", (projection_size, hidden_size)))
            biases += [(prefix + "i2h_bias", (rows,)), (prefix + "h2h_bias", (rows,))]
        size = output * len(directions)
    return weights + biases


def packed_input_size(
    total: int,
    mode: str,
    num_layers: int,
    hidden_size: int,
    bidirectional: bool = False,
    projection_size: int | None = None,
) -> int:
    """The input size for which the packed vector has a length.

    Parameters
    ----------
    total : int
        Length of the vector.
    mode, num_layers, hidden_size, bidirectional, projection_size
        See `packed_shapes`.

    Returns
    -------
    int

    Raises
    ------
    ValueError
        If there is no such size.
    """
    one, two = (
        sum(
            math.prod(shape)
            for _, shape in packed_shapes(mode, num_layers, size, hidden_size, bidirectional, projection_size)
        )
        for size in (1, 2)
    )
    more, rest = divmod(total - one, two - one)
    if rest or more < 0:
        raise ValueError(
            f"a packed vector of {total} numbers fits no input size: {mode} with {num_layers} layers of {hidden_size} "
            f"has {one} numbers for an input of size 1 and {two - one} more for each further one"
        )
    return 1 + more
