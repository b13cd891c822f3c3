//! Where tensors become pointers: the safe bridge from arrays to the elementwise kernels and to single elements.
//!
//! A `Tensor`'s layout lies within its storage (checked when it is made), and the engine grants access before any function here runs in
//! an operation: those two facts are the premises of every `unsafe` below.
#![allow(unsafe_code)]

use mxnet_engine::engine;
use mxnet_kernels::Elem;
use mxnet_kernels::cast::cast_nd;
use mxnet_kernels::copy::copy_nd;
use mxnet_kernels::map::{self, Operand, Rows};
use mxnet_tensor::{Scalar, Tensor};
use smallvec::SmallVec;

use crate::Array;
use crate::args::Value;
use crate::array::Element;
use crate::cx::KernelCx;
use crate::eager::elem;
use crate::error::Result;
use crate::invoke::Call;
use crate::types::{self, Types};

/// Up to this many bytes one thread fills fastest.
const SMALL_BYTES: usize = 64 * 1024;

/// Up to this many elements the set-up of the general driver costs more than the work.
const SMALL_LEN: usize = 4096;

/// The short way for small, contiguous operands of one dtype (Python numbers included); `None` when the general way must be taken.
#[inline]
pub(crate) fn map_small(call: &Call, rows: &'static Rows) -> Result<Option<Array>> {
    let Types::Promote { accepts, lift, out } = call.op.types else {
        return Ok(None);
    };
    if !call.outs.is_empty()
        || call.dtype.is_some()
        || rows.outs != 1
        || !call.attrs.values().is_empty()
        || call.inputs.len() > 3
    {
        return Ok(None);
    }
    // The operand that fixes the shape: the first that is no Python number.
    let Some(lead) = call.inputs.iter().flatten().find(|x| !x.is_weak()) else {
        return Ok(None);
    };
    let n = lead.len();
    if n > SMALL_LEN
        || !lead.layout().is_contiguous()
        || lead.device().kind() != mxnet_tensor::DeviceKind::Cpu
    {
        return Ok(None);
    }
    for x in call.inputs {
        match x {
            Some(x) if x.is_weak() => {}
            Some(x)
                if x.dtype() == lead.dtype()
                    && x.shape() == lead.shape()
                    && x.layout().is_contiguous()
                    && x.device() == lead.device() => {}
            _ => return Ok(None),
        }
    }
    let (compute, returned) = types::resolve(call.op.name, accepts, lift, out, call.inputs, None)?;
    let kind = elem(compute);
    if compute != lead.dtype() || kind.compute() != kind {
        return Ok(None);
    }
    let Some(row) = (rows.get)(mxnet_kernels::isa::isa(), kind) else {
        return Ok(None);
    };
    let mut reads: [&mxnet_engine::Var; 3] = [lead.tensor().storage().var(); 3];
    let mut count = 0;
    for x in call.inputs.iter().flatten().filter(|x| !x.is_weak()) {
        reads[count] = x.tensor().storage().var();
        count += 1;
    }
    let Some(guard) = engine().try_acquire(&reads[..count], &[], (n as u64).max(1)) else {
        return Ok(None);
    };
    if guard.poison().is_some() {
        return Ok(None);
    }
    let result = Array::uninitialised(lead.shape(), returned, lead.device())?;
    let mut scalars = [[0_u64; 2]; 3];
    let mut ptrs = [result.tensor().data_ptr(); 4];
    let mut strides = [elem(returned).size() as isize; 4];
    for (i, x) in call.inputs.iter().flatten().enumerate() {
        if x.is_weak() {
            let value = read_scalar(x.tensor());
            if !value.fits(compute) {
                return Err(types::out_of_bounds(call.op.name, value, compute));
            }
            let slot = scalars[i].as_mut_ptr().cast::<u8>();
            // SAFETY: a slot has 16 bytes, aligned to 8, enough for every dtype.
            unsafe { value.write(compute, slot) };
            ptrs[i + 1] = slot;
            strides[i + 1] = 0;
        } else {
            ptrs[i + 1] = x.tensor().data_ptr();
            strides[i + 1] = kind.size() as isize;
        }
    }
    if n > 0 {
        // SAFETY: 1. every operand is contiguous with `n` elements of the row's type, or one element with stride 0.
        // 2. `guard` grants the reads; the result is known to nobody else.
        unsafe { row(ptrs.as_ptr(), strides.as_ptr(), n, std::ptr::null()) };
    }
    drop(guard);
    Ok(Some(result))
}

/// Runs rows over the operands of an operation, broadcast to the first output's shape.
pub(crate) fn map_rows(
    work: &KernelCx,
    rows: &'static Rows,
    compute: Elem,
    params: &[f64],
) -> Result<()> {
    let shape = work.output(0).shape();
    let mut outs = SmallVec::<[(&Tensor, SmallVec<[isize; 4]>); 2]>::new();
    for t in work.outputs {
        outs.push((t, t.byte_strides()));
    }
    let mut ins = SmallVec::<[(&Tensor, SmallVec<[isize; 4]>); 4]>::new();
    for t in work.inputs.iter().flatten() {
        let layout = t.layout().broadcast_to(shape)?;
        let size = t.dtype().size() as isize;
        ins.push((t, layout.strides().iter().map(|s| s * size).collect()));
    }
    let outs: SmallVec<[Operand; 2]> = outs.iter().map(operand).collect();
    let ins: SmallVec<[Operand; 4]> = ins.iter().map(operand).collect();
    // SAFETY: 1. each operand's strides are those of its layout broadcast to `shape`, which lies within its storage.
    // 2. overlap between outputs and inputs other than element by element was resolved by the caller.
    unsafe { map::run(work.threads, rows, compute, shape, &outs, &ins, params) };
    Ok(())
}

/// A tensor with the byte strides of its broadcast layout.
fn operand<'a>((tensor, strides): &'a (&Tensor, SmallVec<[isize; 4]>)) -> Operand<'a> {
    Operand {
        ptr: tensor.data_ptr(),
        elem: elem(tensor.dtype()),
        strides,
    }
}

/// What rows compute a dtype in: halves go through float32 unless the operator only moves elements.
pub(crate) fn row_elem(rows: &Rows, dtype: mxnet_tensor::DType) -> Elem {
    let kind = elem(dtype);
    if rows.supports(kind) {
        kind
    } else {
        kind.compute()
    }
}

/// An attribute as rows take it.
pub(crate) fn row_param(value: &Value) -> f64 {
    match value {
        Value::Float(x) => *x,
        Value::Int(x) => *x as f64,
        Value::Bool(x) => f64::from(u8::from(*x)),
        Value::Scalar(x) => x.as_f64(),
        _ => f64::NAN,
    }
}

/// Whether the bytes that two tensors may touch intersect.
pub(crate) fn overlaps(a: &Tensor, b: &Tensor) -> bool {
    let range = |t: &Tensor| {
        t.layout().span().map(|(low, high)| {
            let base = t.storage().ptr() as usize;
            let size = t.dtype().size();
            (base + low * size, base + (high + 1) * size)
        })
    };
    match (range(a), range(b)) {
        (Some((a0, a1)), Some((b0, b1))) => a0 < b1 && b0 < a1,
        _ => false,
    }
}

/// Whether two tensors are the same elements in the same order.
pub(crate) fn same_elements(a: &Tensor, b: &Tensor) -> bool {
    a.data_ptr() == b.data_ptr()
        && a.dtype().size() == b.dtype().size()
        && a.shape() == b.shape()
        && a.layout().strides() == b.layout().strides()
}

/// Reads the first element. The caller waited, or knows that the tensor is complete.
pub(crate) fn read_scalar(tensor: &Tensor) -> Scalar {
    debug_assert!(!tensor.is_empty());
    // SAFETY: the tensor has an element; no operation writes it (premise of the function).
    unsafe { Scalar::read(tensor.dtype(), tensor.data_ptr()) }
}

/// Writes the first element of a tensor that nobody else knows.
pub(crate) fn write_scalar(tensor: &Tensor, value: Scalar) {
    debug_assert!(!tensor.is_empty());
    // SAFETY: the tensor has an element and was just allocated by the caller.
    unsafe { value.write(tensor.dtype(), tensor.data_ptr()) }
}

/// Fills a fresh dense tensor.
pub(crate) fn fill_from<T: Element>(tensor: &Tensor, elements: &[T]) {
    assert!(
        tensor.len() == elements.len()
            && tensor.dtype() == T::DTYPE
            && tensor.layout().is_contiguous()
    );
    // SAFETY: same length and element type, checked above; the tensor was just allocated by the caller, so the two do not overlap.
    unsafe {
        std::ptr::copy_nonoverlapping(
            elements.as_ptr(),
            tensor.data_ptr().cast::<T>(),
            elements.len(),
        )
    }
}

/// Reads a complete dense tensor.
pub(crate) fn read_dense<T: Element>(tensor: &Tensor) -> Vec<T> {
    assert!(tensor.dtype() == T::DTYPE && tensor.layout().is_contiguous());
    // SAFETY: dense, of this element type, complete (the caller waited); every bit pattern our kernels write is valid for `T`.
    unsafe { std::slice::from_raw_parts(tensor.data_ptr().cast::<T>(), tensor.len()) }.to_vec()
}

/// Fills a dense tensor.
pub(crate) fn fill(tensor: &Tensor, value: Scalar, threads: &dyn mxnet_kernels::Threads) {
    debug_assert!(tensor.layout().is_contiguous());
    if !value.as_bool() && !value.as_f64().is_sign_negative() && tensor.len_bytes() <= SMALL_BYTES {
        // SAFETY: the tensor is dense, so its elements are these bytes; zero is all-zero bits in every dtype.
        unsafe { tensor.data_ptr().write_bytes(0, tensor.len_bytes()) };
        return;
    }
    let mut pattern = [0_u64; 2];
    let pattern = pattern.as_mut_ptr().cast::<u8>();
    // SAFETY: 1. the pattern has 16 bytes, enough for every dtype. 2. the tensor is dense, so its elements are the bytes from `data_ptr` on.
    unsafe {
        value.write(tensor.dtype(), pattern);
        mxnet_kernels::copy::fill_nd(
            threads,
            tensor.dtype().size(),
            tensor.shape(),
            tensor.data_ptr(),
            &tensor.byte_strides(),
            pattern,
        );
    }
}

/// Copies `from`, broadcast, to `to`, converting between dtypes. They do not overlap.
pub(crate) fn copy(from: &Tensor, to: &Tensor, threads: &dyn mxnet_kernels::Threads) -> Result<()> {
    let layout = from.layout().broadcast_to(to.shape())?;
    let size = from.dtype().size() as isize;
    let from_strides: SmallVec<[isize; 4]> = layout.strides().iter().map(|s| s * size).collect();
    let to_strides = to.byte_strides();
    // SAFETY: both layouts lie within their storages; the caller resolved overlap.
    unsafe {
        if from.dtype() == to.dtype() {
            copy_nd(
                threads,
                to.dtype().size(),
                to.shape(),
                to.data_ptr(),
                &to_strides,
                from.data_ptr(),
                &from_strides,
            );
        } else {
            let (from_elem, to_elem) = (elem(from.dtype()), elem(to.dtype()));
            cast_nd(
                threads,
                to.shape(),
                to.data_ptr(),
                to_elem,
                &to_strides,
                from.data_ptr(),
                from_elem,
                &from_strides,
            );
        }
    }
    Ok(())
}

/// Numbers that [`generate`] makes.
pub(crate) trait Generated: Copy + Send + Sync {
    /// Their element type.
    const ELEM: Elem;
}

impl Generated for i64 {
    const ELEM: Elem = Elem::I64;
}

impl Generated for f64 {
    const ELEM: Elem = Elem::F64;
}

/// Fills a dense tensor with a function of the position, converted to its dtype.
pub(crate) fn generate<T: Generated>(
    tensor: &Tensor,
    value: impl Fn(usize) -> T + Sync,
    threads: &dyn mxnet_kernels::Threads,
) -> Result<()> {
    const TILE: usize = 512;
    let (n, size) = (tensor.len(), tensor.dtype().size());
    let start = tensor.data_ptr() as usize;
    let convert = mxnet_kernels::cast::Cast::new(T::ELEM, elem(tensor.dtype()));
    threads.run(n.div_ceil(TILE), &|tile| {
        let first = tile * TILE;
        let len = TILE.min(n - first);
        let values: SmallVec<[T; TILE]> = (first..first + len).map(&value).collect();
        // SAFETY: 1. the tensor is dense, so elements `first..first + len` lie at these bytes; tiles do not overlap. 2. `values` has `len` elements.
        unsafe {
            convert.row(
                values.as_ptr().cast::<u8>(),
                (start + first * size) as *mut u8,
                len,
            )
        };
    });
    Ok(())
}
