"""Classical models of the domain `ai.onnx.ml`: scaling, linear models, ensembles of trees."""

from __future__ import annotations

from typing import Any

import numpy

from mxnet import numpy as np
from mxnet import numpy_extension as npx
from mxnet.base import dtype_name
from mxnet.onnx._importer.table import Call, operator

_ML = "ai.onnx.ml"
_TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
_AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")


@operator("Scaler", domain=_ML)
def scaler(call: Call, x: Any) -> Any:
    offset, scale = (np.array(call[name], dtype="float32") for name in ("offset", "scale"))
    return (x.astype("float32") - offset) * scale


@operator("Normalizer", domain=_ML)
def normalizer(call: Call, x: Any) -> Any:
    x = x.astype("float32")
    norm = call.choice("norm", "MAX", "L1", "L2")
    if norm == "MAX":
        length = np.max(np.absolute(x), axis=-1, keepdims=True)
    elif norm == "L1":
        length = np.sum(np.absolute(x), axis=-1, keepdims=True)
    else:
        length = np.sqrt(np.sum(np.square(x), axis=-1, keepdims=True))
    return x / np.where(length == 0, np.ones_like(length), length)


@operator("Binarizer", domain=_ML)
def binarizer(call: Call, x: Any) -> Any:
    return (x > call["threshold"]).astype(x.dtype)


@operator("Imputer", domain=_ML)
def imputer(call: Call, x: Any) -> Any:
    is_float = "float" in dtype_name(x.dtype)
    values = call["imputed_value_floats"] if is_float else call["imputed_value_int64s"]
    replaced = call["replaced_value_float"] if is_float else call["replaced_value_int64"]
    is_missing = np.isnan(x) if is_float and numpy.isnan(replaced) else x == replaced
    return np.where(is_missing, np.array(values, dtype=dtype_name(x.dtype)), x)


@operator("FeatureVectorizer", domain=_ML)
def feature_vectorizer(call: Call, *arrays: Any) -> Any:
    return np.concatenate([x.reshape((x.shape[0], -1)).astype("float32") for x in arrays], axis=1)


@operator("OneHotEncoder", domain=_ML)
def one_hot_encoder(call: Call, x: Any) -> Any:
    if call["cats_int64s"] is None:
        raise call.unsupported("there are no arrays of strings: encode categories as integers")
    return (np.expand_dims(x, -1).astype("int64") == np.array(call["cats_int64s"])).astype("float32")


@operator("LabelEncoder", domain=_ML)
def label_encoder(call: Call, x: Any) -> Any:
    keys, values = _mapping(call, "keys"), _mapping(call, "values")
    if keys is None or values is None:
        raise call.unsupported("there are no arrays of strings: map numbers to numbers")
    if call["default_tensor"] is not None:
        default = call["default_tensor"].reshape(())
    else:
        default = call["default_int64"] if values.dtype.kind == "i" else call["default_float"]
    known = np.array(keys.astype(dtype_name(x.dtype)))
    same = np.expand_dims(x, -1) == known
    if keys.dtype.kind == "f" and numpy.isnan(keys).any():
        same = same | (np.expand_dims(np.isnan(x), -1) & np.isnan(known))
    found = np.take(np.array(values), np.argmax(same, axis=-1))
    return np.where(np.any(same, axis=-1), found, np.full((), default, dtype=dtype_name(values.dtype)))


def _mapping(call: Call, name: str) -> numpy.ndarray | None:
    """The keys or values of a mapping; None if they are strings."""
    if call[f"{name}_tensor"] is not None:
        found: numpy.ndarray = call[f"{name}_tensor"].reshape(-1)
        return found
    for suffix, dtype in (("int64s", numpy.int64), ("floats", numpy.float32)):
        if call[f"{name}_{suffix}"]:
            return numpy.array(call[f"{name}_{suffix}"], dtype=dtype)
    return None


def _transformed(call: Call, scores: Any) -> Any:
    """What becomes of the scores."""
    kind = call.choice("post_transform", *_TRANSFORMS, default="NONE")
    if kind == "LOGISTIC":
        return npx.sigmoid(scores)
    if kind == "SOFTMAX":
        return npx.softmax(scores, axis=-1)
    if kind == "SOFTMAX_ZERO":
        powers = np.where(scores == 0, np.zeros_like(scores), np.exp(scores))
        return powers / np.sum(powers, axis=-1, keepdims=True)
    if kind == "PROBIT":
        return np.sqrt(2.0) * npx.erfinv(2 * scores - 1)
    return scores


@operator("LinearRegressor", domain=_ML)
def linear_regressor(call: Call, x: Any) -> Any:
    targets = call["targets"]
    weight = np.array(call["coefficients"], dtype="float32").reshape((targets, -1))
    y = np.matmul(x.astype("float32"), weight.T)
    return _transformed(call, y if call["intercepts"] is None else y + np.array(call["intercepts"], dtype="float32"))


@operator("LinearClassifier", domain=_ML)
def linear_classifier(call: Call, x: Any) -> Any:
    labels = _integer_labels(call)
    intercepts = call["intercepts"] or [0.0]
    weight = np.array(call["coefficients"], dtype="float32").reshape((len(intercepts), -1))
    scores = np.matmul(x.astype("float32"), weight.T) + np.array(intercepts, dtype="float32")
    return _classified(call, labels, scores)


def _integer_labels(call: Call) -> list[int]:
    labels: list[int] | None = call["classlabels_ints"] or call["classlabels_int64s"]
    if not labels:
        raise call.unsupported("there are no arrays of strings: train with integers as labels")
    return labels


def _classified(call: Call, labels: list[int], scores: Any) -> Any:
    """The label of the largest score, and the scores; one score is that of the second of two labels."""
    kind = call.choice("post_transform", *_TRANSFORMS, default="NONE")
    if scores.shape[-1] == 1 and len(labels) == 2:
        is_probability = kind == "NONE"
        positive = scores if kind in ("NONE", "LOGISTIC") else _transformed(call, scores)
        positive = npx.sigmoid(scores) if kind == "LOGISTIC" else positive
        negative = 1 - positive if is_probability or kind == "LOGISTIC" else -positive
        scores = np.concatenate([negative, positive], axis=-1)
    else:
        scores = _transformed(call, scores)
    return np.take(np.array(labels), np.argmax(scores, axis=-1)), scores


# ---- trees ----

_COMPARISONS = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")


class _Trees:
    """The nodes of all trees as arrays: features, thresholds, successors. Leaves lead to themselves.

    Parameters
    ----------
    call : Call
    prefix : str
        Of the attributes that say what leaves contribute: ``"target"`` or ``"class"``.
    num_targets : int
    """

    def __init__(self, call: Call, prefix: str, num_targets: int) -> None:
        trees, nodes = call["nodes_treeids"], call["nodes_nodeids"]
        index = {key: row for row, key in enumerate(zip(trees, nodes, strict=True))}
        modes = call["nodes_modes"]
        known = {*_COMPARISONS, "LEAF"}
        if unknown := sorted(set(modes) - known):
            raise call.unsupported(f"nodes of trees compare with {', '.join(_COMPARISONS)}, found {unknown[0]}")
        is_leaf = [mode == "LEAF" for mode in modes]

        def successors(name: str) -> list[int]:
            rows = zip(trees, call[name], is_leaf, strict=True)
            return [row if leaf else index[tree, node] for row, (tree, node, leaf) in enumerate(rows)]

        self.true, self.false = successors("nodes_truenodeids"), successors("nodes_falsenodeids")
        values = call["nodes_values_as_tensor"] if call["nodes_values_as_tensor"] is not None else call["nodes_values"]
        self.threshold = numpy.asarray(values, dtype=numpy.float32 if call["nodes_values"] else None)
        self.feature = numpy.asarray(call["nodes_featureids"])
        self.mode = numpy.array([_COMPARISONS.index(mode) if mode != "LEAF" else 0 for mode in modes])
        self.missing_is_true = numpy.array(call["nodes_missing_value_tracks_true"] or [0] * len(modes), dtype=bool)
        self.roots = sorted({tree: row for row, tree in reversed(list(enumerate(trees)))}.values())
        given = call[f"{prefix}_weights_as_tensor"]
        weights = given if given is not None else numpy.asarray(call[f"{prefix}_weights"], dtype=numpy.float32)
        self.weight = numpy.zeros((len(nodes), num_targets), dtype=weights.dtype)
        self.has_weight = numpy.zeros((len(nodes), num_targets), dtype=bool)
        rows = zip(call[f"{prefix}_treeids"], call[f"{prefix}_nodeids"], call[f"{prefix}_ids"], weights, strict=True)
        for tree, node, target, weight in rows:
            self.weight[index[tree, node], target] += weight
            self.has_weight[index[tree, node], target] = True
        self.depth = self._depth(is_leaf)

    def _depth(self, is_leaf: list[bool]) -> int:
        """The largest number of comparisons from a root to a leaf."""
        level, depth = set(self.roots), 0
        while level := {child for row in level if not is_leaf[row] for child in (self.true[row], self.false[row])}:
            depth += 1
            if depth > len(is_leaf):
                raise ValueError("the nodes of a tree lead back to themselves")
        return depth

    def leaves(self, x: Any) -> Any:
        """The leaf of each sample in each tree, (n, trees)."""
        at = np.broadcast_to(np.array(self.roots), (x.shape[0], len(self.roots)))
        feature, threshold = np.array(self.feature), np.array(self.threshold)
        true, false, mode = np.array(self.true), np.array(self.false), np.array(self.mode)
        modes = sorted(set(self.mode.tolist()))
        missing = np.array(self.missing_is_true) if self.missing_is_true.any() else None
        functions = (np.less_equal, np.less, np.greater_equal, np.greater, np.equal, np.not_equal)
        for _ in range(self.depth):
            found = np.take_along_axis(x, np.take(feature, at), axis=1)
            bound = np.take(threshold, at)
            answer = functions[modes[0]](found, bound)
            for number in modes[1:]:
                answer = np.where(np.take(mode, at) == number, functions[number](found, bound), answer)
            if missing is not None:
                answer = answer | (np.isnan(found) & np.take(missing, at))
            at = np.where(answer, np.take(true, at), np.take(false, at))
        return at

    def total(self, x: Any, function: str) -> Any:
        """What the leaves of all trees contribute to each target, (n, targets)."""
        at = self.leaves(x)
        parts = np.take(np.array(self.weight), at, axis=0)  # (n, trees, targets)
        if function in ("MIN", "MAX"):
            fill = np.full((), float("inf") if function == "MIN" else -float("inf"), dtype=dtype_name(parts.dtype))
            parts = np.where(np.take(np.array(self.has_weight), at, axis=0), parts, fill)
            return (np.min if function == "MIN" else np.max)(parts, axis=1)
        total = np.sum(parts, axis=1)
        return total / len(self.roots) if function == "AVERAGE" else total


@operator("TreeEnsembleRegressor", domain=_ML)
def tree_regressor(call: Call, x: Any) -> Any:
    trees = _Trees(call, "target", call["n_targets"])
    y = trees.total(x, call.choice("aggregate_function", *_AGGREGATES))
    base = call["base_values_as_tensor"] if call["base_values_as_tensor"] is not None else call["base_values"]
    if base is not None and len(base):
        y = y + np.array(base, dtype=dtype_name(y.dtype))
    return _transformed(call, y).astype("float32")


@operator("TreeEnsembleClassifier", domain=_ML)
def tree_classifier(call: Call, x: Any) -> Any:
    labels = _integer_labels(call)
    targets = sorted(set(call["class_ids"]))
    trees = _Trees(call, "class", len(labels))
    scores = trees.total(x, "SUM")
    base = call["base_values_as_tensor"] if call["base_values_as_tensor"] is not None else call["base_values"]
    if len(labels) == 2 and len(targets) == 1:
        # One score for two labels is that of the second.
        scores = scores[:, targets[0] : targets[0] + 1]
    if base is not None and len(base):
        scores = scores + np.array(base, dtype=dtype_name(scores.dtype))
    label, scores = _classified(call, labels, scores)
    return label, scores.astype("float32")


@operator("TreeEnsemble", domain=_ML)
def tree_ensemble(call: Call, x: Any) -> Any:
    old = _as_older(call)
    trees = _Trees(old, "target", call["n_targets"])
    y = trees.total(x, _AGGREGATES[call["aggregate_function"]])
    # Codes of ONNX: NONE 0, SOFTMAX 1, LOGISTIC 2, SOFTMAX_ZERO 3, PROBIT 4.
    old.attributes["post_transform"] = _TRANSFORMS[call["post_transform"]]
    return _transformed(old, y).astype(x.dtype)


def _as_older(call: Call) -> Call:
    """The attributes of `TreeEnsembleRegressor` for a node whose leaves are apart from its other nodes."""
    names = (*_COMPARISONS, "BRANCH_MEMBER")
    modes = [names[int(mode)] for mode in call["nodes_modes"]]
    num_inner, num_leaves = len(modes), len(call["leaf_targetids"])
    true, false = (
        [
            node + num_inner if leaf else node
            for node, leaf in zip(call[f"nodes_{k}nodeids"], call[f"nodes_{k}leafs"], strict=True)
        ]
        for k in ("true", "false")
    )
    tree_of = [0] * (num_inner + num_leaves)
    for number, root in enumerate(call["tree_roots"]):
        waiting = [root]
        while waiting:
            row = waiting.pop()
            tree_of[row] = number
            if row < num_inner:
                waiting += [true[row], false[row]]
    splits = call["nodes_splits"]
    rest = [0] * num_leaves
    everything = list(range(num_inner + num_leaves))
    attributes = {
        "nodes_treeids": tree_of,
        "nodes_nodeids": everything,
        "nodes_modes": modes + ["LEAF"] * num_leaves,
        "nodes_truenodeids": true + rest,
        "nodes_falsenodeids": false + rest,
        "nodes_values_as_tensor": numpy.concatenate([splits, numpy.zeros(num_leaves, splits.dtype)]),
        "nodes_featureids": list(call["nodes_featureids"]) + rest,
        "nodes_missing_value_tracks_true": [*(call["nodes_missing_value_tracks_true"] or [0] * num_inner), *rest],
        "target_treeids": tree_of[num_inner:],
        "target_nodeids": everything[num_inner:],
        "target_ids": call["leaf_targetids"],
        "target_weights_as_tensor": call["leaf_weights"],
    }
    return Call(call.domain, call.op_type, call.name, call.opset, attributes, call.is_output_used)
