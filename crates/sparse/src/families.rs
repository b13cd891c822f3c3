//! The operator families of this crate. The registry contains only operators that are listed here.

use linkme::distributed_slice;
use mxnet_core::registry::{Family, LIBRARIES};

use crate::{gather, pattern, product, segment, sum};

static FAMILIES: &[Family] = &[
    Family {
        name: "sparse patterns",
        ops: pattern::OPS,
    },
    Family {
        name: "sparse values",
        ops: gather::OPS,
    },
    Family {
        name: "sparse products",
        ops: product::OPS,
    },
    Family {
        name: "sparse sums",
        ops: sum::OPS,
    },
    Family {
        name: "segments",
        ops: segment::OPS,
    },
];

#[distributed_slice(LIBRARIES)]
static SPARSE: &[Family] = FAMILIES;
