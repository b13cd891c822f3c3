//! From tensors to pointers: the safe interface to elementwise kernels and to single elements.
//!
//! Every `unsafe` here relies on two facts: a `Tensor`'s layout lies within its storage (checked when it is made), and the engine has granted access
//! before a function here runs in an operation.
#![allow(unsafe_code)]

use mxnet_kernels::Elem;
use mxnet_kernels::cast::{Cast, cast_nd};
use mxnet_kernels::copy::copy_nd;
use mxnet_kernels::map::{InnerLoops, Loops, Operand};
use mxnet_kernels::scratch;
use mxnet_tensor::{DType, Layout, Scalar, Strides, Tensor, Transfer, backend_of};
use smallvec::SmallVec;

use crate::args::Value;
use crate::array::Element;
use crate::context::KernelContext;
use crate::error::Result;
use crate::launch::{Pool, elem};
use crate::opdef::Cpu;

pub use crate::generated::{Generated, fill_diagonal, fill_stretches, generate};

/// Up to this many bytes, one thread fills faster than several.
const MAX_SERIAL_BYTES: usize = 64 * 1024;

/// Loops of an elementwise operator over arrays of `shape`, prepared for outputs of these layouts, dtypes and addresses (null: no operand overlaps)
/// and for operands with the layouts and dtypes of `inputs`.
pub(crate) fn loops<'a>(
    rows: &'static InnerLoops,
    compute: Elem,
    shape: &[usize],
    outs: &[(&Layout, DType, *mut u8)],
    inputs: impl Iterator<Item = &'a Tensor> + Clone,
) -> Result<Loops> {
    let bytes = |strides: &[isize], dtype: DType| -> Strides {
        strides.iter().map(|s| s * dtype.size() as isize).collect()
    };
    let mut strides = SmallVec::<[Strides; 4]>::new();
    for (layout, dtype, _) in outs {
        strides.push(bytes(layout.strides(), *dtype));
    }
    for x in inputs.clone() {
        let layout = x.layout().broadcast_to(shape)?;
        strides.push(bytes(layout.strides(), x.dtype()));
    }
    let forms = outs.iter().map(|&(_, dtype, ptr)| (dtype, ptr));
    let forms = forms.chain(inputs.map(|x| (x.dtype(), x.data_ptr())));
    let operands: SmallVec<[Operand; 4]> = forms
        .zip(&strides)
        .map(|((dtype, ptr), strides)| Operand {
            ptr,
            elem: elem(dtype),
            strides,
        })
        .collect();
    let (outs, ins) = operands.split_at(outs.len());
    Ok(Loops::new(rows, compute, shape, outs, ins))
}

/// Runs prepared loops over operands with the layouts and dtypes that they were prepared for.
#[inline]
pub(crate) fn run_loops<'a>(
    loops: &Loops,
    outputs: impl Iterator<Item = &'a Tensor>,
    inputs: impl Iterator<Item = &'a Tensor>,
    params: &[f64],
) {
    let mut ptrs = [std::ptr::null_mut(); Loops::MAX_OPERANDS];
    for (ptr, tensor) in ptrs.iter_mut().zip(outputs.chain(inputs)) {
        *ptr = tensor.data_ptr();
    }
    // SAFETY: 1. the loops were prepared for these layouts and dtypes, which are part of the key of the plan; each layout lies within its storage.
    // 2. overlap between outputs and inputs other than element by element was resolved by the caller.
    unsafe { loops.run(&Pool, ptrs, params) };
}

/// Runs the CPU kernel of an operator. Devices whose memory the host can access use it, too.
///
/// # Errors
/// What the kernel reports; [`crate::Error::Device`] if the operator has no kernel.
pub fn run_kernel(context: &KernelContext) -> Result<()> {
    let (Cpu::Map(rows), Some(compute)) = (context.op.cpu, context.compute) else {
        return match context.op.cpu {
            Cpu::Kernel(kernel) | Cpu::AnyDevice(kernel) => kernel(context),
            _ => Err(crate::Error::device(
                context.op.name,
                "has no kernel of its own",
            )),
        };
    };
    if let Some(refuses) = context.op.refuses {
        refuses(context, compute)?;
    }
    let form = |y: &&'_ Tensor| (y.layout().clone(), y.dtype(), y.data_ptr());
    let outs: SmallVec<[_; 2]> = context.outputs.iter().map(form).collect();
    let outs: SmallVec<[_; 2]> = outs
        .iter()
        .map(|(layout, dtype, ptr)| (layout, *dtype, *ptr))
        .collect();
    let inputs = context.inputs.iter().copied().flatten();
    let loops = loops(
        rows,
        row_elem(rows, compute),
        context.output(0).shape(),
        &outs,
        inputs.clone(),
    )?;
    let params: SmallVec<[f64; 4]> = context.args.attrs.values().iter().map(row_param).collect();
    run_loops(&loops, context.outputs.iter().copied(), inputs, &params);
    Ok(())
}

/// The dtype that inner loops compute in: float16 and bfloat16 use float32, unless the operator only moves elements.
pub fn row_elem(rows: &InnerLoops, dtype: mxnet_tensor::DType) -> Elem {
    let kind = elem(dtype);
    if rows.supports(kind) {
        kind
    } else {
        kind.compute()
    }
}

/// An attribute as inner loops take it.
pub(crate) fn row_param(value: &Value) -> f64 {
    match value {
        Value::Float(x) => *x,
        Value::Int(x) => *x as f64,
        Value::Bool(x) => f64::from(u8::from(*x)),
        Value::Scalar(x) => x.as_f64(),
        _ => f64::NAN,
    }
}

/// Whether the address ranges of two tensors intersect.
pub fn overlaps(a: &Tensor, b: &Tensor) -> bool {
    match (extent(a), extent(b)) {
        (Some((a0, a1)), Some((b0, b1))) => a0 < b1 && b0 < a1,
        _ => false,
    }
}

/// Address of the first byte of a tensor and the address behind its last byte; `None` if it has no elements.
pub fn extent(t: &Tensor) -> Option<(usize, usize)> {
    let (low, high) = t.layout().span()?;
    let base = t.storage().ptr() as usize;
    let size = t.dtype().size();
    Some((base + low * size, base + (high + 1) * size))
}

/// Whether two tensors are the same elements in the same order.
pub fn same_elements(a: &Tensor, b: &Tensor) -> bool {
    a.data_ptr() == b.data_ptr()
        && a.dtype().size() == b.dtype().size()
        && a.shape() == b.shape()
        && a.layout().strides() == b.layout().strides()
}

/// Reads the first element. The caller must know that all writes to the tensor are done.
pub fn read_scalar(tensor: &Tensor) -> Scalar {
    debug_assert!(!tensor.is_empty());
    // SAFETY: the tensor has an element; no operation writes it (premise of the function).
    unsafe { Scalar::read(tensor.dtype(), tensor.data_ptr()) }
}

/// The smallest element of a tensor of integers or booleans; 0 if it is empty. Unsigned values beyond `i64::MAX` wrap.
pub fn smallest_integer(tensor: &Tensor, threads: &dyn mxnet_kernels::Threads) -> i64 {
    use mxnet_kernels::reduce::{Reduce, Source, Target, reduce};
    if tensor.is_empty() || !tensor.dtype().is_signed() {
        return 0;
    }
    if tensor.dtype() == DType::I64
        && tensor.len() <= MAX_ONE_BY_ONE_LEN
        && tensor.layout().is_contiguous()
    {
        // SAFETY: dense elements of this type, which the caller may read.
        let elements =
            unsafe { std::slice::from_raw_parts(tensor.data_ptr().cast::<i64>(), tensor.len()) };
        return elements.iter().copied().fold(i64::MAX, i64::min);
    }
    let mut smallest = 0_i64;
    let shape = tensor.shape();
    let source = Source {
        ptr: tensor.data_ptr(),
        elem: elem(tensor.dtype()),
        shape,
        strides: &tensor.byte_strides(),
    };
    let target = Target {
        ptr: (&raw mut smallest).cast(),
        elem: Elem::I64,
        strides: &SmallVec::<[isize; 8]>::from_elem(0, shape.len()),
    };
    let axes = SmallVec::<[bool; 8]>::from_elem(true, shape.len());
    // SAFETY: 1. the layout lies within its storage, and the caller may read it. 2. the target is one integer of 64 bits.
    unsafe { reduce(threads, Reduce::Min, &source, &axes, &target) };
    smallest
}

/// Writes the first element of a tensor that nobody else uses.
pub(crate) fn write_scalar(tensor: &Tensor, value: Scalar) {
    debug_assert!(!tensor.is_empty());
    // SAFETY: the tensor has an element and was just allocated by the caller.
    unsafe { value.write(tensor.dtype(), tensor.data_ptr()) }
}

/// Fills a fresh dense tensor.
pub fn fill_from<T: Element>(tensor: &Tensor, elements: &[T]) {
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

/// Copies a dense tensor to a `Vec`. The caller must know that all writes to it are done.
///
/// # Panics
/// If there is no memory, with the allocator's error, which the launch of a kernel converts to [`crate::Error::Memory`].
pub fn read_dense<T: Element>(tensor: &Tensor) -> Vec<T> {
    assert!(tensor.dtype() == T::DTYPE && tensor.layout().is_contiguous());
    // SAFETY: dense, of this element type, complete (the caller waited); every bit pattern our kernels write is valid for `T`.
    let elements =
        unsafe { std::slice::from_raw_parts(tensor.data_ptr().cast::<T>(), tensor.len()) };
    scratch::collected(elements.len(), elements.iter().copied())
}

/// Whether all elements of a dense tensor are finite. All writes to it must be done.
pub(crate) fn is_finite(tensor: &Tensor) -> bool {
    assert!(tensor.layout().is_contiguous());
    // SAFETY: dense, complete (the caller waited), aligned for its dtype.
    unsafe { are_finite(tensor.data_ptr(), tensor.len(), tensor.dtype()) }
}

/// Whether all of `len` elements are finite. Integers and booleans always are.
///
/// # Safety
/// `from` is valid for reading `len` elements of `dtype`, and aligned for them.
pub unsafe fn are_finite(from: *const u8, len: usize, dtype: DType) -> bool {
    /// Infinities and NaN have an exponent of ones only.
    macro_rules! lack {
        ($bits:ty, $exponent:expr, $len:expr) => {
            // SAFETY: the caller's promise.
            unsafe { std::slice::from_raw_parts(from.cast::<$bits>(), $len) }
                .chunks(1024)
                .all(|some| {
                    let found = |so_far: bool, &x: &$bits| so_far | (x & $exponent == $exponent);
                    !some.iter().fold(false, found)
                })
        };
    }
    match dtype {
        DType::F16 => lack!(u16, 0x7c00, len),
        DType::BF16 => lack!(u16, 0x7f80, len),
        DType::F32 => lack!(u32, 0x7f80_0000, len),
        DType::C64 => lack!(u32, 0x7f80_0000, 2 * len),
        DType::F64 => lack!(u64, 0x7ff0_0000_0000_0000, len),
        DType::C128 => lack!(u64, 0x7ff0_0000_0000_0000, 2 * len),
        _ => true,
    }
}

/// Fills a dense tensor.
pub fn fill(tensor: &Tensor, value: Scalar, threads: &dyn mxnet_kernels::Threads) {
    debug_assert!(tensor.layout().is_contiguous());
    let is_zero = !value.as_bool() && !value.as_f64().is_sign_negative();
    if is_zero && !matches!(value, Scalar::C128(_)) {
        // SAFETY: the tensor is dense, so its elements are these bytes; zero is all-zero bits in every dtype.
        unsafe { mxnet_kernels::copy::zero(threads, tensor.data_ptr(), tensor.len_bytes()) };
        return;
    }
    if tensor.len_bytes() <= MAX_SERIAL_BYTES {
        fill_row(tensor, &value);
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

/// Fills a tensor of at most 64 KiB, with any strides, without queueing, if nobody uses its storage. Returns whether it did.
pub fn try_fill(tensor: &Tensor, value: &Scalar) -> bool {
    let storage = tensor.storage();
    if tensor.len_bytes() > MAX_SERIAL_BYTES
        || tensor.device().kind() != mxnet_tensor::DeviceKind::Cpu
    {
        return false;
    }
    let writes = [(storage.var(), mxnet_engine::Access::Write)];
    let Some(guard) = mxnet_engine::engine().try_acquire(&[], &writes, tensor.len() as u64) else {
        return false;
    };
    if guard.poison().is_some() {
        return false;
    }
    storage.bump_version();
    if tensor.len() == 1 {
        // SAFETY: the tensor has one element, at `data_ptr`; `guard` grants the write.
        unsafe { value.write(tensor.dtype(), tensor.data_ptr()) };
        return true;
    }
    if tensor.layout().is_contiguous() {
        fill_row(tensor, value);
        return true;
    }
    let mut pattern = [0_u64; 2];
    let pattern = pattern.as_mut_ptr().cast::<u8>();
    // SAFETY: 1. the pattern has 16 bytes, enough for every dtype. 2. the layout lies within its storage; `guard` grants the write.
    unsafe {
        value.write(tensor.dtype(), pattern);
        mxnet_kernels::copy::fill_nd(
            &mxnet_kernels::Serial,
            tensor.dtype().size(),
            tensor.shape(),
            tensor.data_ptr(),
            &tensor.byte_strides(),
            pattern,
        );
    }
    true
}

/// Writes one value to all elements of a dense tensor, which the caller may write.
fn fill_row(tensor: &Tensor, value: &Scalar) {
    let mut pattern = [0_u64; 2];
    let pattern = pattern.as_mut_ptr().cast::<u8>();
    let (to, n) = (tensor.data_ptr(), tensor.len());
    macro_rules! fill {
        ($word:ty) => {
            // SAFETY: the pattern has 16 bytes, enough for every dtype; there are `n` dense elements as wide as this word, and aligned to it or, if
            // they have 16 bytes, to 8.
            unsafe {
                value.write(tensor.dtype(), pattern);
                std::slice::from_raw_parts_mut(to.cast::<$word>(), n).fill(*pattern.cast::<$word>());
            }
        };
    }
    match tensor.dtype().size() {
        1 => fill!(u8),
        2 => fill!(u16),
        4 => fill!(u32),
        8 => fill!(u64),
        _ => fill!([u64; 2]),
    }
}

/// Largest number of elements for which planning a copy costs more than copying element by element.
pub const MAX_ONE_BY_ONE_LEN: usize = 128;

/// Copies elements of `size` bytes one by one; strides in elements.
///
/// # Safety
/// All offsets of the strides within `shape` are valid for reading from `src` and for writing to `dst`; the two sides do not overlap.
pub unsafe fn copy_one_by_one(
    shape: &[usize],
    size: usize,
    (src, src_strides): (*const u8, &[isize]),
    (dst, dst_strides): (*mut u8, &[isize]),
) {
    /// # Safety
    /// As of `copy_one_by_one`.
    unsafe fn walk<T: Copy>(
        shape: &[usize],
        src: *const T,
        src_strides: &[isize],
        dst: *mut T,
        dst_strides: &[isize],
    ) {
        match (shape, src_strides, dst_strides) {
            // SAFETY: the only element.
            ([], _, _) => unsafe { dst.write_unaligned(src.read_unaligned()) },
            (&[n], &[from], &[to]) => {
                for i in 0..n as isize {
                    // SAFETY: element `i` of this axis.
                    unsafe {
                        dst.offset(i * to)
                            .write_unaligned(src.offset(i * from).read_unaligned())
                    };
                }
            }
            ([n, inner @ ..], [from, src_strides @ ..], [to, dst_strides @ ..]) => {
                for i in 0..*n as isize {
                    // SAFETY: row `i` of this axis.
                    unsafe {
                        walk(
                            inner,
                            src.offset(i * from),
                            src_strides,
                            dst.offset(i * to),
                            dst_strides,
                        )
                    };
                }
            }
            _ => {}
        }
    }
    if shape.contains(&0) {
        return;
    }
    // SAFETY: the caller's promise.
    unsafe {
        match size {
            1 => walk(shape, src, src_strides, dst, dst_strides),
            2 => walk::<u16>(shape, src.cast(), src_strides, dst.cast(), dst_strides),
            4 => walk::<u32>(shape, src.cast(), src_strides, dst.cast(), dst_strides),
            8 => walk::<u64>(shape, src.cast(), src_strides, dst.cast(), dst_strides),
            _ => walk::<u128>(shape, src.cast(), src_strides, dst.cast(), dst_strides),
        }
    }
}

/// The kernel that copies input 0 to output 0, converting its dtype.
pub fn copy_kernel(context: &KernelContext) -> Result<()> {
    copy(context.input(0), context.output(0), context.threads)
}

/// The kernel that copies the bytes of input 0 to output 0, which may be on another device. Both are dense.
pub fn transfer_kernel(context: &KernelContext) -> Result<()> {
    let (from, to) = (context.input(0), context.output(0));
    let len_bytes = to.len_bytes();
    if len_bytes == 0 {
        return Ok(());
    }
    let transfer = Transfer {
        dst: to.data_ptr(),
        dst_device: to.device(),
        src: from.data_ptr(),
        src_device: from.device(),
        len_bytes,
    };
    // SAFETY: 1. both are dense and as long. 2. the output was allocated for this call, so they do not overlap. 3. the engine grants the access, and an
    // event behind the copy keeps others away until it is done.
    unsafe { backend_of(context.device)?.copy(transfer, context.stream)? };
    Ok(())
}

/// [`copy_kernel`] on one thread.
pub(crate) fn copy_serial(context: &KernelContext) -> Result<()> {
    copy(context.input(0), context.output(0), &mxnet_kernels::Serial)
}

/// Copies `from`, broadcast, to `to`, with conversion of the dtype. They must not overlap.
pub fn copy(from: &Tensor, to: &Tensor, threads: &dyn mxnet_kernels::Threads) -> Result<()> {
    let (from_elem, to_elem) = (elem(from.dtype()), elem(to.dtype()));
    let is_row = to.len() <= MAX_SERIAL_BYTES / 16
        && from.shape() == to.shape()
        && from.layout().is_contiguous()
        && to.layout().is_contiguous();
    if is_row {
        // SAFETY: as below; both are dense and as long.
        unsafe { Cast::new(from_elem, to_elem).row(from.data_ptr(), to.data_ptr(), to.len()) };
        return Ok(());
    }
    let layout = from.layout().broadcast_to(to.shape())?;
    let size = from.dtype().size() as isize;
    let from_strides: SmallVec<[isize; 4]> = layout.strides().iter().map(|s| s * size).collect();
    let to_strides = to.byte_strides();
    // SAFETY: both layouts lie within their storages; the caller resolved overlap.
    unsafe {
        if from.dtype() == to.dtype() && to.len() <= MAX_ONE_BY_ONE_LEN {
            copy_one_by_one(
                to.shape(),
                to.dtype().size(),
                (from.data_ptr(), layout.strides()),
                (to.data_ptr(), to.layout().strides()),
            );
        } else if from.dtype() == to.dtype() {
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
