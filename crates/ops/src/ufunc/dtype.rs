//! The dtypes an elementwise function has loops for, and the loop that a fold uses.

use mxnet_tensor::{DType, Promotion, promotion};
use smallvec::SmallVec;

use crate::Array;
use crate::args::ParamKind;
use crate::error::{Error, Result};
use crate::linalg::MATMUL;
use crate::opdef::{Cpu, OpDef};
use crate::reduce::accumulator;
use crate::types::{self, DTypes, Lift, Out, Types};

/// One loop of an elementwise function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loop {
    /// Compute dtype; the meaning of `dtype` in a call.
    pub compute: DType,
    /// Dtype that each input is converted to.
    pub inputs: SmallVec<[DType; 3]>,
    /// Dtype of each output.
    pub outputs: SmallVec<[DType; 2]>,
}

/// NumPy's order of dtypes: by kind, then size, signed before unsigned.
const ORDER: [DType; DType::COUNT] = [
    DType::Bool,
    DType::I8,
    DType::U8,
    DType::I16,
    DType::U16,
    DType::I32,
    DType::U32,
    DType::I64,
    DType::U64,
    DType::F16,
    DType::BF16,
    DType::F32,
    DType::F64,
    DType::C64,
    DType::C128,
];

/// Number of array inputs.
pub fn num_inputs(op: &OpDef) -> usize {
    let inputs = op.params.iter().filter(|p| p.kind == ParamKind::Array);
    inputs.count()
}

/// Number of outputs of an elementwise function.
pub fn num_outputs(op: &OpDef) -> usize {
    match (&op.cpu, op.types) {
        (Cpu::Map(rows), _) => rows.outs as usize,
        (
            _,
            Types::Promote {
                out: Out::Two(_), ..
            },
        ) => 2,
        _ => 1,
    }
}

/// All loops of a function of arrays, in NumPy's order.
pub fn loops(op: &OpDef) -> Vec<Loop> {
    // Generalised functions are matrix products, some of them composed.
    let types = match op.core_signature {
        "" => op.types,
        _ => MATMUL.types,
    };
    let (accepts, lift, out) = match types {
        Types::Promote { accepts, lift, out } => (accepts, lift, out),
        Types::Counted { accepts, lift } => (accepts, lift, Out::Same),
        Types::Choose => (DTypes::ALL, Lift::No, Out::Same),
        Types::First | Types::Infer => return Vec::new(),
    };
    let widest = lift == Lift::ToWidestFloat && promotion() == Promotion::NumPy;
    ORDER
        .into_iter()
        .filter(|&d| accepts.has(d) && (!widest || matches!(d, DType::F64 | DType::C128)))
        .map(|compute| {
            let inputs = (0..num_inputs(op))
                .map(|i| match (&op.cpu, op.types) {
                    (Cpu::Map(rows), _) => rows.in_elems[i].map_or(compute, dtype_of),
                    _ => compute,
                })
                .collect();
            let outputs = match out {
                Out::Two(second) => SmallVec::from_iter([compute, second.unwrap_or(compute)]),
                _ => SmallVec::from_elem(out.of(compute), num_outputs(op)),
            };
            Loop {
                compute,
                inputs,
                outputs,
            }
        })
        .collect()
}

/// The dtype of a kernel's element type.
fn dtype_of(elem: mxnet_kernels::Elem) -> DType {
    DType::ALL[elem as usize]
}

/// The dtype in which `op` folds elements of `x` and returns them; `asked` is the caller's `dtype`.
///
/// # Errors
/// [`Error::Value`] unless the function takes two arrays and returns one, [`Error::DType`] if no loop returns the dtype of its operands.
pub fn fold_dtype(
    op: &'static OpDef,
    method: &str,
    x: &Array,
    asked: Option<DType>,
) -> Result<DType> {
    foldable(op, method)?;
    let no_loop = |found: DType| {
        Error::dtype(
            op.name,
            format!(
                "{method}: `{}` has no loop for {} that returns the dtype of its operands",
                op.name,
                found.name()
            ),
        )
    };
    let Types::Promote { accepts, lift, out } = op.types else {
        return Err(no_loop(x.dtype()));
    };
    if out == Out::Bool {
        // Logical functions fold elements of any dtype. A comparison returns booleans, so it folds booleans only.
        let logical = op.fold.identity.is_some() || op.fold.reduce.is_some();
        return match asked.unwrap_or(DType::Bool) {
            // With `dtype=bool`, the elements are converted before they are compared.
            DType::Bool if logical || asked.is_some() || x.dtype() == DType::Bool => {
                Ok(DType::Bool)
            }
            DType::Bool => Err(no_loop(x.dtype())),
            other => Err(no_loop(other)),
        };
    }
    let natural = asked.or_else(|| sums(op).then(|| accumulator(x.dtype())));
    let operand = Some(x);
    let (compute, returned) =
        types::resolve(op.name, accepts, lift, out, &[operand, operand], natural)?;
    if returned == compute && asked.is_none_or(|asked| asked == compute) {
        Ok(compute)
    } else {
        Err(no_loop(asked.unwrap_or(compute)))
    }
}

/// Whether small integers are folded in 64 bits, as sums and products are.
fn sums(op: &OpDef) -> bool {
    op.fold
        .accumulate
        .is_some_and(|steps| matches!(steps.name, "cumsum" | "cumprod"))
}

/// An error for functions that cannot fold.
pub(crate) fn foldable(op: &'static OpDef, method: &str) -> Result<()> {
    let problem = if op.params.len() != 2 {
        format!("{method} only supported for binary functions")
    } else if num_outputs(op) != 1 {
        format!("{method} only supported for functions returning a single value")
    } else {
        return Ok(());
    };
    Err(Error::value(op.name, problem))
}
