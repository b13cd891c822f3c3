//! Operands of kernels: tensors as they are, or temporary copies where a kernel needs another dtype, a dense layout, or an array instead of a scalar.

use mxnet_core::context::{KernelContext, Workspace};
use mxnet_core::{Error, OperandFacts, Param, ParamKind, Result};
use mxnet_tensor::{DType, Dims, Layout, Scalar, Strides, Tensor};

use crate::launch::{Arg, Grid, fault, launch};

/// Elements on the device of a call. A temporary allocation is freed, in stream order, after the work that is enqueued when the operand is dropped.
pub(super) struct Operand<'a> {
    /// Address of the first element.
    pub ptr: u64,
    pub shape: Dims,
    /// Strides in elements.
    pub strides: Strides,
    pub dtype: DType,
    _held: Option<Workspace<'a>>,
}

impl<'a> Operand<'a> {
    /// A tensor on the device.
    pub fn of(x: &Tensor) -> Operand<'a> {
        Operand {
            ptr: x.data_ptr() as u64,
            shape: Dims::from_slice(x.shape()),
            strides: Strides::from_slice(x.layout().strides()),
            dtype: x.dtype(),
            _held: None,
        }
    }

    /// Elements at an address.
    pub fn at(ptr: u64, shape: &[usize], strides: &[isize], dtype: DType) -> Operand<'a> {
        Operand {
            ptr,
            shape: Dims::from_slice(shape),
            strides: Strides::from_slice(strides),
            dtype,
            _held: None,
        }
    }

    /// The storage of a tensor with another layout.
    pub fn with_layout(x: &Tensor, layout: Layout) -> Operand<'a> {
        Operand::of(&x.with_layout(layout))
    }

    /// Input `i`; a scalar becomes a 0-d array.
    pub fn input(context: &KernelContext<'a>, i: usize) -> Result<Operand<'a>> {
        match context.number(i) {
            Some(number) => Operand::filled(context, &[], context.input(i).dtype(), number),
            None => Ok(Operand::of(context.input(i))),
        }
    }

    /// Input `i` converted to `dtype`, with any layout.
    pub fn typed(context: &KernelContext<'a>, i: usize, dtype: DType) -> Result<Operand<'a>> {
        Operand::input(context, i)?.into_typed(context, dtype)
    }

    /// Input `i` converted to `dtype`, in C order.
    pub fn dense(context: &KernelContext<'a>, i: usize, dtype: DType) -> Result<Operand<'a>> {
        Operand::input(context, i)?.into_dense(context, dtype)
    }

    /// [`Operand::dense`] of an optional input.
    pub fn dense_or_none(
        context: &KernelContext<'a>,
        i: usize,
        dtype: DType,
    ) -> Result<Option<Operand<'a>>> {
        context
            .opt(i)
            .map(|_| Operand::dense(context, i, dtype))
            .transpose()
    }

    /// A new dense array, uninitialised.
    pub fn new(context: &KernelContext<'a>, shape: &[usize], dtype: DType) -> Result<Operand<'a>> {
        let len: usize = shape.iter().product();
        let held = context.workspace((len * dtype.size()).max(1))?;
        Ok(Operand {
            ptr: held.ptr() as u64,
            shape: Dims::from_slice(shape),
            strides: Strides::from_slice(Layout::contiguous(shape).strides()),
            dtype,
            _held: Some(held),
        })
    }

    /// A new dense array filled with a number.
    pub fn filled(
        context: &KernelContext<'a>,
        shape: &[usize],
        dtype: DType,
        number: Scalar,
    ) -> Result<Operand<'a>> {
        let x = Operand::new(context, shape, dtype)?;
        fill(context, &x, number)?;
        Ok(x)
    }

    /// Converted to `dtype`, with any layout.
    pub fn into_typed(self, context: &KernelContext<'a>, dtype: DType) -> Result<Operand<'a>> {
        if self.dtype == dtype {
            Ok(self)
        } else {
            self.copied(context, dtype)
        }
    }

    /// Converted to `dtype`, in C order.
    pub fn into_dense(self, context: &KernelContext<'a>, dtype: DType) -> Result<Operand<'a>> {
        if self.dtype == dtype && self.is_dense() {
            Ok(self)
        } else {
            self.copied(context, dtype)
        }
    }

    fn copied(&self, context: &KernelContext<'a>, dtype: DType) -> Result<Operand<'a>> {
        let to = Operand::new(context, &self.shape, dtype)?;
        copy(context, self, &to)?;
        Ok(to)
    }

    /// Whether the elements are contiguous in C order.
    pub fn is_dense(&self) -> bool {
        let mut step = 1;
        let mut is_dense = true;
        for (&len, &stride) in self.shape.iter().zip(&self.strides).rev() {
            is_dense &= len == 1 || stride == step;
            step *= len as isize;
        }
        is_dense || self.is_empty()
    }

    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn layout(&self) -> Result<Layout> {
        Ok(Layout::strided(&self.shape, &self.strides, 0)?)
    }

    /// The same elements with another shape and strides; the caller must derive valid ones.
    pub fn with(mut self, shape: &[usize], strides: &[isize]) -> Operand<'a> {
        self.shape = Dims::from_slice(shape);
        self.strides = Strides::from_slice(strides);
        self
    }
}

/// Shape and two sets of strides for a kernel (`walk.cuh`), without axes of length 1 and with contiguous axes merged.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Walk {
    pub n: i64,
    pub axes: i64,
    pub shape: [i64; 64],
    pub from: [i64; 64],
    pub to: [i64; 64],
}

impl Walk {
    pub fn new(shape: &[usize], from: &[isize], to: &[isize]) -> Walk {
        let mut walk = Walk {
            n: shape.iter().product::<usize>() as i64,
            axes: 0,
            shape: [0; 64],
            from: [0; 64],
            to: [0; 64],
        };
        for (&len, (&from, &to)) in shape.iter().zip(from.iter().zip(to)) {
            if len == 1 {
                continue;
            }
            let (len, from, to) = (len as i64, from as i64, to as i64);
            let at = walk.axes as usize;
            if at > 0 && walk.from[at - 1] == len * from && walk.to[at - 1] == len * to {
                walk.shape[at - 1] *= len;
                (walk.from[at - 1], walk.to[at - 1]) = (from, to);
                continue;
            }
            (walk.shape[at], walk.from[at], walk.to[at]) = (len, from, to);
            walk.axes += 1;
        }
        if walk.axes == 0 {
            (walk.axes, walk.shape[0]) = (1, 1);
        }
        walk
    }

    /// The struct as an argument of a launch.
    pub fn bytes(&self) -> &[u8] {
        bytes(self)
    }
}

/// The bytes of a `#[repr(C)]` struct of numbers without padding.
pub(super) fn bytes<T: Copy>(x: &T) -> &[u8] {
    // SAFETY: the slice borrows the value; callers pass structs without padding, so all bytes are initialised.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(x).cast::<u8>(), size_of::<T>()) }
}

/// The unsigned type of a dtype's size, for kernels that only move elements.
pub(super) fn moved(dtype: DType) -> &'static str {
    match dtype.size() {
        1 => "u8",
        2 => "u16",
        4 => "u32",
        8 => "u64",
        _ => "Pair",
    }
}

/// The bits of a number as an element of `dtype`, padded with zeros.
pub(super) fn pattern(number: Scalar, dtype: DType) -> [u8; 16] {
    let mut bits = [0; 16];
    // SAFETY: 16 bytes are enough for every dtype.
    unsafe { number.write(dtype, bits.as_mut_ptr()) };
    bits
}

/// Source of the struct `Walk`.
pub(super) const WALK: &str = include_str!("../text/walk.cuh");

/// Source of the function by which kernels report invalid values.
pub(super) const FAULT: &str = include_str!("../text/fault.cuh");

/// The fault argument of a kernel that may find an invalid value: the results of the call then fail with the error that `describe` makes of the three
/// reported numbers.
pub(super) fn report(
    context: &KernelContext,
    describe: impl Fn([i64; 3]) -> Error + Send + Sync + 'static,
) -> Result<Arg<'static>> {
    let (op, facts) = (context.op.name, facts(context));
    fault(context, move |numbers| {
        describe(numbers).in_op(op).with_operands(|| facts.clone())
    })
}

/// The operands of a call as errors show them.
fn facts(context: &KernelContext) -> Vec<OperandFacts> {
    let params: Vec<_> = context.op.array_params().collect();
    let is_list = |param: &Param| param.kind == ParamKind::Arrays;
    let num_lists = params.iter().filter(|param| is_list(param)).count();
    // The lists of a call have equal length.
    let num_others = params.len() - num_lists;
    let length = context.inputs.len().saturating_sub(num_others) / num_lists.max(1);
    let names = params.iter().flat_map(|param| match is_list(param) {
        true => (0..length)
            .map(|i| format!("{}[{i}]", param.name))
            .collect(),
        false => vec![param.name.to_owned()],
    });
    let given = names
        .zip(context.inputs)
        .filter_map(|(name, x)| Some((name, (*x)?)));
    let fact = |(name, x): (String, &Tensor)| OperandFacts {
        name,
        shape: x.shape().to_vec(),
        dtype: x.dtype(),
        device: x.device(),
    };
    given.map(fact).collect()
}

/// The source of a kernel: definitions followed by source files.
pub(super) fn source(parts: &[&str]) -> String {
    let mut text = String::from("using namespace mx;\n");
    for part in parts {
        text.push_str(part);
        text.push('\n');
    }
    text
}

/// A grid with one thread per element, or fewer threads that loop over several elements (grid-stride loops).
pub(super) fn for_each(n: usize) -> Grid {
    let threads = 256.min(n.next_multiple_of(32)).max(32);
    Grid {
        blocks: [n.div_ceil(threads).clamp(1, 1 << 16) as u32, 1, 1],
        threads: [threads as u32, 1, 1],
        shared_bytes: 0,
    }
}

/// Launches a kernel with a thread for each of `n` elements, or nothing if there are none.
///
/// # Errors
/// As [`launch`].
pub(super) fn launch_each(
    context: &KernelContext,
    n: usize,
    key: &str,
    text: impl FnOnce() -> String,
    args: &[Arg],
) -> Result<()> {
    match n {
        0 => Ok(()),
        _ => launch(context, key, text, for_each(n), args),
    }
}

/// Copies elements between operands of equal shape, converted to the dtype of `to`.
pub(super) fn copy(context: &KernelContext, from: &Operand, to: &Operand) -> Result<()> {
    if to.is_empty() {
        return Ok(());
    }
    let (source, target) = match from.dtype == to.dtype {
        true => (moved(from.dtype), moved(to.dtype)),
        false => (c_type(from.dtype), c_type(to.dtype)),
    };
    let walk = Walk::new(&to.shape, &from.strides, &to.strides);
    launch(
        context,
        &format!("operand:{source}:{target}"),
        || copy_text(source, target),
        for_each(to.len()),
        &[
            Arg::Pointer(from.ptr),
            Arg::Pointer(to.ptr),
            Arg::Bytes(walk.bytes()),
        ],
    )
}

fn copy_text(from: &str, to: &str) -> String {
    source(&[
        PAIR,
        WALK,
        &format!("typedef {from} From;\ntypedef {to} To;"),
        "extern \"C\" __global__ void kernel(const From* x, To* y, Walk walk) {
    EACH(e, walk.n) {
        i64 from, to;
        walk.at(e, from, to);
        y[to] = convert<To>(x[from]);
    }
}",
    ])
}

/// Fills with a number.
pub(super) fn fill(context: &KernelContext, x: &Operand, number: Scalar) -> Result<()> {
    if x.is_empty() {
        return Ok(());
    }
    let target = moved(x.dtype);
    let walk = Walk::new(&x.shape, &x.strides, &x.strides);
    launch(
        context,
        &format!("operand_fill:{target}"),
        || fill_text(target),
        for_each(x.len()),
        &[
            Arg::Bytes(&pattern(number, x.dtype)),
            Arg::Pointer(x.ptr),
            Arg::Bytes(walk.bytes()),
        ],
    )
}

fn fill_text(to: &str) -> String {
    source(&[
        PAIR,
        WALK,
        &format!("typedef {to} To;"),
        "extern \"C\" __global__ void kernel(Number number, To* y, Walk walk) {
    const To value = number.as<To>();
    EACH(e, walk.n) {
        i64 from, to;
        walk.at(e, from, to);
        y[to] = value;
    }
}",
    ])
}

/// A 16-byte element in kernels that only move elements.
pub(super) const PAIR: &str = "struct alignas(16) Pair { u64 words[2]; };";

/// The element types of such kernels.
pub(super) const MOVED: [&str; 5] = ["u8", "u16", "u32", "u64", "Pair"];

/// The C++ element type of a dtype.
pub(super) fn c_type(dtype: DType) -> &'static str {
    crate::text::type_name(dtype)
}

pub(super) fn texts(all: &mut Vec<(String, String)>) {
    for to in MOVED {
        all.push((format!("operand:{to}:{to}"), copy_text(to, to)));
        all.push((format!("operand_fill:{to}"), fill_text(to)));
    }
    for from in DType::ALL {
        for to in DType::ALL {
            if from != to {
                let (from, to) = (c_type(from), c_type(to));
                all.push((format!("operand:{from}:{to}"), copy_text(from, to)));
            }
        }
    }
}
