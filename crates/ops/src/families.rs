//! The operator families of this crate. An operator is registered only if its family is listed here.

use linkme::distributed_slice;
use mxnet_core::builtins::{BUILTINS, Builtins};
use mxnet_core::registry::{Family, LIBRARIES};

use crate::elementwise::{arithmetic, comparison, explog, logic, parts, special, trig};
use crate::{
    creation, elementwise, fft, index, linalg, nn, order, random, reduce, shape, signal, ufunc,
};

/// Every family of this crate.
static FAMILIES: &[Family] = &[
    Family {
        name: "arithmetic",
        ops: elementwise::arithmetic::OPS,
    },
    Family {
        name: "comparison",
        ops: elementwise::comparison::OPS,
    },
    Family {
        name: "closeness",
        ops: elementwise::close::OPS,
    },
    Family {
        name: "bitwise",
        ops: elementwise::bitwise::OPS,
    },
    Family {
        name: "bits",
        ops: elementwise::bits::OPS,
    },
    Family {
        name: "rounding",
        ops: elementwise::rounding::OPS,
    },
    Family {
        name: "exponential",
        ops: elementwise::explog::OPS,
    },
    Family {
        name: "trigonometric",
        ops: elementwise::trig::OPS,
    },
    Family {
        name: "special",
        ops: elementwise::special::OPS,
    },
    Family {
        name: "incomplete",
        ops: elementwise::incomplete::OPS,
    },
    Family {
        name: "parts",
        ops: elementwise::parts::OPS,
    },
    Family {
        name: "logic",
        ops: elementwise::logic::OPS,
    },
    Family {
        name: "network",
        ops: elementwise::network::OPS,
    },
    Family {
        name: "activation",
        ops: elementwise::activation::OPS,
    },
    Family {
        name: "quantisation",
        ops: elementwise::quantize::OPS,
    },
    Family {
        name: "selection",
        ops: elementwise::select::OPS,
    },
    Family {
        name: "creation",
        ops: creation::OPS,
    },
    Family {
        name: "shape",
        ops: shape::OPS,
    },
    Family {
        name: "reduction",
        ops: reduce::OPS,
    },
    Family {
        name: "folds of any function",
        ops: ufunc::OPS,
    },
    Family {
        name: "indexing",
        ops: index::OPS,
    },
    Family {
        name: "order",
        ops: order::OPS,
    },
    Family {
        name: "linear algebra",
        ops: linalg::OPS,
    },
    Family {
        name: "factorisations",
        ops: linalg::FACTORISATIONS,
    },
    Family {
        name: "Fourier transforms",
        ops: fft::OPS,
    },
    Family {
        name: "sequences",
        ops: signal::OPS,
    },
    Family {
        name: "neural networks",
        ops: nn::OPS,
    },
    Family {
        name: "random",
        ops: random::OPS,
    },
];

#[distributed_slice(LIBRARIES)]
static DENSE: &[Family] = FAMILIES;

/// The operators that arrays and autograd call.
#[distributed_slice(BUILTINS)]
static CALLED: Builtins = Builtins {
    absolute: &arithmetic::ABSOLUTE,
    add: &arithmetic::ADD,
    astype: &shape::ASTYPE,
    broadcast_to: &shape::BROADCAST_TO,
    cast: &shape::CAST,
    concatenate: &shape::CONCATENATE,
    conjugate: &arithmetic::CONJUGATE,
    copied: &shape::COPIED,
    copy: &shape::COPY,
    cos: &trig::COS,
    divide: &arithmetic::DIVIDE,
    equal: &comparison::EQUAL,
    exp: &explog::EXP,
    filled: &creation::FILLED,
    floor_divide: &arithmetic::FLOOR_DIVIDE,
    index: &index::INDEX,
    isfinite: &special::ISFINITE,
    isinf: &special::ISINF,
    isnan: &special::ISNAN,
    less: &comparison::LESS,
    log: &explog::LOG,
    logical_and: &logic::LOGICAL_AND,
    logical_not: &logic::LOGICAL_NOT,
    logical_or: &logic::LOGICAL_OR,
    matmul: &linalg::MATMUL,
    maximum: &arithmetic::MAXIMUM,
    mean: &reduce::MEAN,
    minimum: &arithmetic::MINIMUM,
    multiply: &arithmetic::MULTIPLY,
    negative: &arithmetic::NEGATIVE,
    power: &explog::POWER,
    real: &parts::REAL,
    reciprocal: &arithmetic::RECIPROCAL,
    reshape: &shape::RESHAPE,
    row_sparse_sum: &index::ROW_SPARSE_SUM,
    row_sparse_to_dense: &index::ROW_SPARSE_TO_DENSE,
    sign: &arithmetic::SIGN,
    sin: &trig::SIN,
    sqrt: &explog::SQRT,
    square: &arithmetic::SQUARE,
    subtract: &arithmetic::SUBTRACT,
    sum: &reduce::SUM,
    tanh: &trig::TANH,
    to_device: &shape::TO_DEVICE,
    transpose: &shape::TRANSPOSE,
    window: &index::WINDOW,
    window_assign: &index::WINDOW_ASSIGN,
};
