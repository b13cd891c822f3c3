//! Membership: which elements of one array occur in another (`isin`).
#![allow(unsafe_code)]

use mxnet_kernels::sort::{Lookup, contains};
use mxnet_tensor::{DType, Dims};

use crate::args::Param;
use crate::index::dense;
use crate::launch::elem;
use crate::opdef::{Cost, Cpu, Grad, OpDef, Probe, one_of};

/// The kernel of `isin`.
pub static CONTAINS: OpDef = OpDef {
    name: "contains",
    params: &[
        Param::array("members"),
        Param::array("values"),
        Param::bool("ascending", false),
    ],
    doc: "For each of the values whether it equals one of the members, which are of the same dtype. NaN equals nothing. `ascending` says that both \
        are in ascending order: then they are merged.",
    infer: |context| {
        if context.dtype_of(0) != context.dtype_of(1) {
            return Err(context.dtype_error("`members` and `values` must have the same dtype"));
        }
        one_of(Dims::from_slice(context.shape(1)), DType::Bool)
    },
    cpu: Cpu::Kernel(|context| {
        let (members, values) = (
            dense(context.input(0), context.threads)?,
            dense(context.input(1), context.threads)?,
        );
        // SAFETY: both inputs are dense and of one dtype; the output has a byte for each value, allocated for this call.
        unsafe {
            contains(
                context.threads,
                if context.bool("ascending") {
                    Lookup::Ascending
                } else {
                    Lookup::Auto
                },
                elem(values.dtype()),
                values.data_ptr(),
                values.len(),
                members.data_ptr(),
                members.len(),
                context.output(0).data_ptr(),
            );
        }
        Ok(())
    }),
    grad: Grad::Stop("booleans have no gradient"),
    cost: Cost::PerKiB(1000),
    probe: Probe::calls(&[
        "i((5,), 9), i((3, 4), 9)",
        "f((5,)), f((2, 3))",
        "f((0,)), f((4,))",
        "b((2,)), b((3,))",
        "np.sort(i((50,), 90)), np.sort(i((40,), 90)), True",
    ])
    .against("lambda members, values, ascending=False: numpy.isin(values, members)"),
    ..OpDef::DEFAULT
};
