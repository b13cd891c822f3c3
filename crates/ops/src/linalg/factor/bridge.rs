//! Conversion of tensors to the byte slices that `mxnet-linalg` takes.
#![allow(unsafe_code)]

use mxnet_linalg::{Elem, Failure, Fault, Run};
use mxnet_tensor::{DType, Tensor};

use crate::context::{CallContext, KernelContext};
use crate::error::{Error, Result};
use crate::nn::operand;

/// The shape of a stack of matrices: (…, m, n).
#[derive(Clone, Copy)]
pub(super) struct Stack<'a> {
    /// The leading axes.
    pub lead: &'a [usize],
    /// Rows.
    pub m: usize,
    /// Columns.
    pub n: usize,
}

impl Stack<'_> {
    /// Number of matrices.
    pub fn count(&self) -> usize {
        self.lead.iter().product()
    }
}

/// Splits a shape that inference has accepted.
pub(super) fn stack(shape: &[usize]) -> Stack<'_> {
    let (lead, last) = shape.split_at(shape.len().saturating_sub(2));
    let &[m, n] = last else {
        return Stack { lead, m: 1, n: 1 };
    };
    Stack { lead, m, n }
}

/// Argument `i` as stacked matrices.
///
/// # Errors
/// [`Error::LinAlg`] if it has fewer than two axes.
pub(super) fn matrices<'a>(context: &CallContext<'a>, i: usize) -> Result<Stack<'a>> {
    let shape = context.shape(i);
    if shape.len() < 2 {
        return Err(context.linalg_error(format!(
            "matrices have at least 2 axes, found {}",
            shape.len()
        )));
    }
    Ok(stack(shape))
}

/// Argument `i` as stacked square matrices.
///
/// # Errors
/// [`Error::LinAlg`] if it is not a stack of square matrices.
pub(super) fn squares<'a>(context: &CallContext<'a>, i: usize) -> Result<Stack<'a>> {
    let found = matrices(context, i)?;
    if found.m == found.n {
        return Ok(found);
    }
    Err(context.linalg_error(format!(
        "the last two axes must be square, found {} x {}",
        found.m, found.n
    )))
}

/// The element type of a dtype that factorisations take.
pub(super) fn elem(dtype: DType) -> Elem {
    match dtype {
        DType::F32 => Elem::F32,
        DType::C64 => Elem::C32,
        DType::C128 => Elem::C64,
        // `Types::FACTORED` admits no other dtype.
        _ => Elem::F64,
    }
}

/// Input `i` in C order, as `dtype`.
///
/// # Errors
/// [`Error::Memory`].
pub(super) fn dense(context: &KernelContext, i: usize, dtype: DType) -> Result<Tensor> {
    operand::dense(context.input(i), dtype, context.threads)
}

/// The bytes of a dense tensor.
pub(super) fn bytes(x: &Tensor) -> &[u8] {
    debug_assert!(x.layout().is_contiguous(), "bytes of a strided tensor");
    let len = x.layout().len() * x.dtype().size();
    if len == 0 {
        return &[];
    }
    // SAFETY: a dense tensor's elements lie one after another within its storage, and the engine granted this kernel to read them.
    unsafe { std::slice::from_raw_parts(x.data_ptr(), len) }
}

/// The bytes of an output.
pub(super) fn bytes_mut<'a>(context: &KernelContext<'a>, i: usize) -> &'a mut [u8] {
    let x: &'a Tensor = context.outputs[i];
    debug_assert!(x.layout().is_contiguous(), "an output that is not dense");
    let len = x.layout().len() * x.dtype().size();
    if len == 0 {
        return &mut [];
    }
    // SAFETY: 1. outputs are dense, and the engine granted this kernel to write them. 2. they overlap no input. 3. every kernel here takes each
    // output once.
    unsafe { std::slice::from_raw_parts_mut(x.data_ptr(), len) }
}

/// Calls `body` with the kernel's threads.
pub(super) fn with_threads<R>(context: &KernelContext, body: impl FnOnce(Run) -> R) -> R {
    let threads = context.threads;
    body(&|n, task| threads.run(n, task))
}

/// The error of the first matrix of a batch that failed.
#[cold]
pub(super) fn failed(context: &KernelContext, failure: Failure) -> Error {
    let x = context.input(0);
    let lead = stack(x.shape()).lead;
    let which = if lead.is_empty() {
        "the matrix".to_owned()
    } else {
        let mut at = vec![0; lead.len()];
        let mut rest = failure.index;
        for (at, &len) in at.iter_mut().zip(lead).rev() {
            *at = rest % len.max(1);
            rest /= len.max(1);
        }
        let at: Vec<String> = at.iter().map(usize::to_string).collect();
        format!("matrix [{}]", at.join(", "))
    };
    // The text is NumPy's, because programs compare it.
    let problem = match failure.fault {
        Fault::Singular(pivot) => {
            format!("Singular matrix: {which} is singular: pivot {pivot} is zero")
        }
        Fault::NotPositiveDefinite(order) => format!(
            "Matrix is not positive definite: {which} is not positive definite: its leading minor of order {order} is not"
        ),
        Fault::NotFinite => format!(
            "{}: {which} holds infinities or NaNs",
            non_convergence_message(context.op.name)
        ),
        Fault::NoConvergence => {
            format!(
                "{}: those of {which}",
                non_convergence_message(context.op.name)
            )
        }
    };
    Error::linalg(context.op.name, problem)
}

/// NumPy's message if the iteration of a factorisation does not converge.
fn non_convergence_message(op: &str) -> &'static str {
    match op {
        "eig_complex" | "eigvals_complex" => "Array must not contain infs or NaNs",
        "eigh" | "eigvalsh_of" => "Eigenvalues did not converge",
        _ => "SVD did not converge",
    }
}
