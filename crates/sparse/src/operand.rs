//! Converts tensors of any layout and dtype to operands of kernels, and back; converts faults of index arrays to errors.
#![allow(unsafe_code)]

use std::borrow::Cow;
use std::ops::Deref;

use mxnet_core::context::CallContext;
use mxnet_core::{Array, Error, KernelContext, Result, Tuple, cpu};
use mxnet_kernels::Threads;
use mxnet_kernels::sparse::{Fault, Operand, Output, Pattern};
use mxnet_tensor::{DType, Device, Operand as Promoted, Tensor, promotion, result_type};

/// The dtype that kernels compute in: float32 for float16 and bfloat16, int64 for smaller integers, whose wrapped results are the same.
pub(crate) fn compute_dtype(dtype: DType) -> DType {
    match dtype {
        DType::F16 | DType::BF16 => DType::F32,
        DType::U64 | DType::F32 | DType::F64 | DType::C64 | DType::C128 => dtype,
        _ => DType::I64,
    }
}

/// The dtype that the values of two arrays promote to.
pub(crate) fn promoted(a: DType, b: DType) -> DType {
    result_type(&[Promoted::Array(a), Promoted::Array(b)], promotion())
}

/// Values in C order, in the dtype to compute in.
pub(crate) struct Values<'a>(Cow<'a, Tensor>);

impl Values<'_> {
    /// The operand of a kernel.
    pub(crate) fn operand(&self) -> Operand {
        Operand {
            ptr: self.0.data_ptr(),
            len: self.0.len(),
        }
    }
}

/// The elements of `x` converted to `dtype`, in C order.
pub(crate) fn values<'a>(x: &'a Tensor, dtype: DType, threads: &dyn Threads) -> Result<Values<'a>> {
    if x.dtype() == dtype && x.layout().is_contiguous() {
        return Ok(Values(Cow::Borrowed(x)));
    }
    let copy = Tensor::empty(x.shape(), dtype, x.device())?;
    cpu::copy(x, &copy, threads)?;
    Ok(Values(Cow::Owned(copy)))
}

/// Integers in C order, as int64.
pub(crate) struct Ints<'a>(Values<'a>);

impl Deref for Ints<'_> {
    type Target = [i64];

    fn deref(&self) -> &[i64] {
        let tensor = &self.0.0;
        if tensor.is_empty() {
            return &[];
        }
        // SAFETY: dense int64 elements (`integers`), complete and kept from being written while the kernel runs.
        unsafe { std::slice::from_raw_parts(tensor.data_ptr().cast(), tensor.len()) }
    }
}

/// Index array `x`.
pub(crate) fn integers<'a>(x: &'a Tensor, threads: &dyn Threads) -> Result<Ints<'a>> {
    values(x, DType::I64, threads).map(Ints)
}

/// The elements of an int64 output of this call. A kernel may call this once for each output.
#[expect(
    clippy::mut_from_ref,
    reason = "a tensor is a handle: the engine grants its elements to one kernel"
)]
pub(crate) fn integer_output(x: &Tensor) -> &mut [i64] {
    assert!(x.dtype() == DType::I64 && x.layout().is_contiguous());
    if x.is_empty() {
        return &mut [];
    }
    // SAFETY: dense int64 elements of an output of this call.
    unsafe { std::slice::from_raw_parts_mut(x.data_ptr().cast(), x.len()) }
}

/// Values and columns of a new sparse array.
pub(crate) struct Stored {
    pub(crate) data: Array,
    pub(crate) indices: Array,
}

impl Stored {
    /// Memory for `len` stored elements.
    pub(crate) fn new(len: usize, dtype: DType, device: Device) -> Result<Stored> {
        Ok(Stored {
            data: Array::uninitialised(&[len], dtype, device)?,
            indices: Array::uninitialised(&[len], DType::I64, device)?,
        })
    }

    /// The memory that a kernel writes.
    pub(crate) fn output(&self) -> Output {
        Output {
            data: self.data.tensor().data_ptr(),
            indices: self.indices.tensor().data_ptr().cast(),
        }
    }
}

/// Writes to an output through memory of the dtype that is computed in.
pub(crate) fn write(
    out: &Tensor,
    compute: DType,
    threads: &dyn Threads,
    body: impl FnOnce(*mut u8) -> Result<()>,
) -> Result<()> {
    if out.dtype() == compute && out.layout().is_contiguous() {
        return body(out.data_ptr());
    }
    let computed = Tensor::empty(out.shape(), compute, out.device())?;
    body(computed.data_ptr())?;
    cpu::copy(&computed, out, threads)
}

/// The pattern in two index arrays. `names` are the arguments' names, for errors.
pub(crate) fn pattern<'a>(
    op: &'static str,
    names: (&str, &str),
    indices: &'a Ints,
    indptr: &'a Ints,
) -> Result<Pattern<'a>> {
    Pattern::new(indices, indptr).map_err(|fault| error(op, names, fault, None))
}

/// Names of the index arrays of an operator with one pattern.
pub(crate) const NAMES: (&str, &str) = ("indices", "indptr");

/// The error for a fault of index arrays. `axis_len` is the length of the axis that the indices refer to.
pub(crate) fn error(
    op: &'static str,
    (indices, indptr): (&str, &str),
    fault: Fault,
    axis_len: Option<usize>,
) -> Error {
    match fault {
        Fault::NoOffsets => Error::value(op, format!("`{indptr}` must have at least 1 element")),
        Fault::FirstOffset(first) => {
            Error::value(op, format!("`{indptr}` must begin with 0, found {first}"))
        }
        Fault::Decreasing(at, before, offset) => Error::value(
            op,
            format!(
                "`{indptr}` must not decrease, but {indptr}[{}] is {before} and {indptr}[{at}] is {offset}",
                at - 1
            ),
        ),
        Fault::LastOffset(last, stored) => Error::value(
            op,
            format!(
                "`{indptr}` must end with the number of stored elements ({stored}), found {last}"
            ),
        ),
        Fault::OutOfRange(at, index) => {
            let at = at.map_or(String::new(), |at| format!("[{at}]"));
            let size = axis_len.map_or(String::new(), |n| format!(" of size {n}"));
            Error::index(
                op,
                format!("{indices}{at} is {index}, outside its axis{size}"),
            )
        }
    }
}

/// Checks that arguments are 1-d arrays of integers.
pub(crate) fn check_integers(context: &CallContext, arguments: &[usize]) -> Result<()> {
    let names: Vec<&str> = context.op.array_params().map(|param| param.name).collect();
    for &i in arguments {
        let x = context.input(i);
        if x.ndim() != 1 {
            return Err(context.shape_error(format!(
                "`{}` must have 1 axis, found {}",
                names[i],
                x.ndim()
            )));
        }
        if !x.dtype().is_integer() {
            return Err(context.dtype_error(format!(
                "`{}` must be integers, found {}",
                names[i],
                x.dtype().name()
            )));
        }
    }
    Ok(())
}

/// Checks that values have one row for each stored element.
pub(crate) fn check_stored(context: &CallContext, values: usize, indices: usize) -> Result<()> {
    let names: Vec<&str> = context.op.array_params().map(|param| param.name).collect();
    let (stored, given) = (
        context.shape(indices)[0],
        context.shape(values).first().copied(),
    );
    if given == Some(stored) {
        return Ok(());
    }
    Err(context.shape_error(format!(
        "`{}` must have one element for each of the {stored} in `{}`, found {}",
        names[values],
        names[indices],
        given.map_or("no axis".to_owned(), |n| n.to_string())
    )))
}

/// As [`check_stored`], for operators that take no heads: the values have one axis.
pub(crate) fn check_stored_row(context: &CallContext, values: usize, indices: usize) -> Result<()> {
    check_stored(context, values, indices)?;
    if context.shape(values).len() == 1 {
        return Ok(());
    }
    let names: Vec<&str> = context.op.array_params().map(|param| param.name).collect();
    Err(context.shape_error(format!(
        "`{}` must have one axis, found shape {}",
        names[values],
        Tuple(context.shape(values))
    )))
}

/// Attribute `name` as a length: not negative.
pub(crate) fn length(context: &CallContext, name: &str) -> Result<usize> {
    usize::try_from(context.int(name)).map_err(|_| {
        context.value_error(format!(
            "`{name}` must not be negative, found {}",
            context.int(name)
        ))
    })
}

/// The number of rows of a pattern: the length of its offsets minus 1.
pub(crate) fn num_rows(context: &CallContext, indptr: usize) -> Result<usize> {
    let names: Vec<&str> = context.op.array_params().map(|param| param.name).collect();
    context.shape(indptr)[0].checked_sub(1).ok_or_else(|| {
        context.value_error(format!("`{}` must have at least 1 element", names[indptr]))
    })
}

/// A new int64 array on the CPU.
pub(crate) fn from_integers(elements: &[i64]) -> Result<Array> {
    Array::from_slice(elements, &[elements.len()])
}

/// Arguments `i` and `i + 1` of a kernel as index arrays.
pub(crate) fn index_arrays<'a>(
    context: &KernelContext<'a>,
    i: usize,
) -> Result<(Ints<'a>, Ints<'a>)> {
    Ok((
        integers(context.input(i), context.threads)?,
        integers(context.input(i + 1), context.threads)?,
    ))
}
