//! Conversion between tensors of any layout and dtype and the dense float32 or float64 operands of kernels.

use std::sync::Arc;

use mxnet_kernels::Threads;
use mxnet_tensor::{DType, Kind, Storage, Tensor};
use smallvec::SmallVec;

use crate::context::{CallContext, KernelContext};
use crate::cpu;
use crate::error::Result;
use crate::types::promoted;
use crate::workspace;

/// The dtype that kernels compute in: float32 for float16 and bfloat16.
pub fn compute(dtype: DType) -> DType {
    match dtype {
        DType::F16 | DType::BF16 => DType::F32,
        other => other,
    }
}

/// The dtype of array argument `i`: its own if that is a real float, the default float for integers and booleans.
///
/// # Errors
/// [`crate::Error::DType`] for complex arguments.
pub fn float_of(context: &CallContext, i: usize) -> Result<DType> {
    let dtype = context.dtype_of(i);
    match dtype.kind() {
        Kind::Float => Ok(dtype),
        Kind::Bool | Kind::Integer => Ok(mxnet_tensor::default_float()),
        Kind::Complex => Err(context.dtype_error(format!(
            "no kernel for dtype {}; it takes real numbers",
            dtype.name()
        ))),
    }
}

/// The dtype that the first `n` array arguments promote to; the default float if that is an integer or a boolean.
///
/// # Errors
/// [`crate::Error::DType`] for complex arguments.
pub fn float_promoted(context: &CallContext, n: usize) -> Result<DType> {
    for i in 0..n {
        float_of(context, i)?;
    }
    Ok(match promoted(&context.inputs[..n]) {
        dtype if dtype.kind() == Kind::Float => dtype,
        _ => mxnet_tensor::default_float(),
    })
}

/// The tensor as `dtype`, in any layout: the tensor itself, or a temporary copy.
///
/// # Errors
/// [`crate::Error::Memory`].
pub fn typed(x: &Tensor, dtype: DType, threads: &dyn Threads) -> Result<Tensor> {
    if x.dtype() == dtype {
        return Ok(x.clone());
    }
    copied(x, dtype, threads)
}

/// The tensor as `dtype` in C order: the tensor itself, or a temporary copy.
///
/// # Errors
/// [`crate::Error::Memory`].
pub fn dense(x: &Tensor, dtype: DType, threads: &dyn Threads) -> Result<Tensor> {
    if x.dtype() == dtype && x.layout().is_contiguous() {
        return Ok(x.clone());
    }
    copied(x, dtype, threads)
}

fn copied(x: &Tensor, dtype: DType, threads: &dyn Threads) -> Result<Tensor> {
    let copy = Tensor::empty(x.shape(), dtype, x.device())?;
    cpu::copy(x, &copy, threads)?;
    Ok(copy)
}

/// [`dense`] of an argument that may be absent.
///
/// # Errors
/// [`crate::Error::Memory`].
pub fn dense_or_none(
    x: Option<&Tensor>,
    dtype: DType,
    threads: &dyn Threads,
) -> Result<Option<Tensor>> {
    x.map(|x| dense(x, dtype, threads)).transpose()
}

/// Address of the first element; null for an absent tensor.
pub fn pointer(x: Option<&Tensor>) -> *mut u8 {
    x.map_or(std::ptr::null_mut(), Tensor::data_ptr)
}

/// The packed forms that kernels keep with arrays, see [`KernelContext::packed`].
#[derive(Clone, Copy)]
#[repr(usize)]
pub enum Form {
    /// Weights of a convolution.
    Convolution,
    /// Weights of a fully connected layer, and those from the input of a recurrent layer.
    Linear,
    /// Weights from the state of a recurrent layer.
    RecurrentState,
    /// Weights of 8 bits.
    Int8,
}

/// [`KernelContext::packed`] of a form that is packed from elements of `dtype`.
///
/// # Errors
/// What `pack` reports.
pub fn packed(
    context: &KernelContext,
    x: &Tensor,
    form: Form,
    dtype: DType,
    key: &[usize],
    len_bytes: usize,
    pack: impl FnOnce(*mut u8) -> Result<()>,
) -> Result<Option<Arc<Storage>>> {
    let mut words: SmallVec<[usize; 16]> = SmallVec::from_slice(&[form as usize, dtype as usize]);
    words.extend_from_slice(key);
    context.packed(x, &words, len_bytes, pack)
}

/// A packed form that is kept with an array, or was made for one call.
pub enum PackedWeights {
    /// Kept.
    Kept(Arc<Storage>),
    /// Made for the call.
    Own(Tensor),
}

impl PackedWeights {
    /// Address of the form.
    pub fn ptr(&self) -> *mut u8 {
        match self {
            PackedWeights::Kept(storage) => storage.ptr(),
            PackedWeights::Own(tensor) => tensor.data_ptr(),
        }
    }
}

/// [`packed`], or where no form is kept with the array, one for this call.
///
/// # Errors
/// What `pack` reports; [`crate::Error::Memory`].
pub fn packed_or_own(
    context: &KernelContext,
    x: &Tensor,
    form: Form,
    dtype: DType,
    key: &[usize],
    len_bytes: usize,
    pack: impl Fn(*mut u8) -> Result<()>,
) -> Result<PackedWeights> {
    if let Some(kept) = packed(context, x, form, dtype, key, len_bytes, &pack)? {
        return Ok(PackedWeights::Kept(kept));
    }
    let own = workspace::take(len_bytes)?;
    pack(own.data_ptr())?;
    Ok(PackedWeights::Own(own))
}

/// A destination for a kernel that writes dense elements of `dtype`; `finish` converts them into `target`.
pub struct Staged {
    target: Tensor,
    buffer: Tensor,
}

impl Staged {
    /// Uses the target itself if it is dense and of `dtype`, else a buffer.
    ///
    /// # Errors
    /// [`crate::Error::Memory`].
    pub fn new(target: &Tensor, dtype: DType) -> Result<Staged> {
        let fits = target.dtype() == dtype && target.layout().is_contiguous();
        let buffer = if fits {
            target.clone()
        } else {
            Tensor::empty(target.shape(), dtype, target.device())?
        };
        Ok(Staged {
            target: target.clone(),
            buffer,
        })
    }

    /// The dense tensor to write to. The elements of a buffer are uninitialised.
    pub fn tensor(&self) -> &Tensor {
        &self.buffer
    }

    /// Address to write to.
    pub fn ptr(&self) -> *mut u8 {
        self.buffer.data_ptr()
    }

    /// Copies the buffer, if there is one, to the target.
    ///
    /// # Errors
    /// None in practice: buffer and target have the same shape.
    pub fn finish(self, threads: &dyn Threads) -> Result<()> {
        if self.buffer.dtype() == self.target.dtype() && self.target.layout().is_contiguous() {
            return Ok(());
        }
        cpu::copy(&self.buffer, &self.target, threads)
    }
}
