//! The short way of elementwise operators for small, contiguous operands of one dtype: no inference, no queue, no allocation but the result's.
//! Copies of small arrays are in `copies.rs`.
#![allow(unsafe_code)]

mod copies;

use std::mem::MaybeUninit;

use mxnet_engine::{Access, Var, engine};
use mxnet_kernels::Elem;
use mxnet_kernels::cast::Cast;
use mxnet_kernels::map::Rows;
use mxnet_tensor::{DType, Device, DeviceKind, Kind, Layout, Scalar, Source, Tensor, checked_len};
use smallvec::SmallVec;

use crate::args::{Args, Attrs};
use crate::cpu::{FEW, fill};
use crate::cx::{KernelCx, RngState};
use crate::eager::{Pool, elem};
use crate::error::Result;
use crate::index::{keeps, put_few};
use crate::interp::{Flags, current_device};
use crate::invoke::Call;
use crate::laid::axes_as;
use crate::opdef::{Cost, Cpu, OpDef};
use crate::types::{self, DTypes, Lift, Out, Types};
use crate::{Array, autograd, floats};

use copies::small_copy;
pub(crate) use copies::{at_hand, convert, relaid, small};
pub use copies::{duplicate, duplicate_fortran, flat, flat_layout};

/// Up to this many elements the set-up of the general driver costs more than the work.
pub(crate) const SMALL_LEN: usize = 4096;

/// Up to this many undefined elements are made at once; of more, the general way words that there is no memory for them.
const UNDEFINED_LEN: usize = 1 << 24;

/// Up to this many elements, rows whose operator's cost says so run at once: the driver would not share them out either.
const MEDIUM_LEN: usize = 16 * 1024;

/// What runs at once takes at most this long.
const MEDIUM_NS: usize = 20_000;

/// Most operands of an elementwise operator that goes this way.
const MOST: usize = 3;

/// An operand: an array, or a Python number, which promotes by its kind only.
#[derive(Clone, Copy)]
pub enum Quick<'a> {
    /// An array.
    Array(&'a Array),
    /// A number, where it is: moving one costs more than looking at it, since it was written in parts a moment ago.
    Number(&'a Scalar),
}

/// Calls `op`, and records it if a gradient flows, if the short way is open: nothing intercepts, and the operands qualify. `None`: take the general way.
///
/// # Errors
/// [`crate::Error::Overflow`] for a number the dtype cannot hold; [`crate::Error::Memory`].
#[inline]
pub fn quick(op: &'static OpDef, operands: &[Quick]) -> Result<Option<Array>> {
    made(|to| quick_to(op, operands, to))
}

/// [`quick`], written to the place where the result shall stay: moved about right behind its parts, it would wait for the processor's store buffer, a
/// sixth of what the call costs. Answers whether it was.
///
/// # Errors
/// As there.
#[inline]
pub fn quick_to(
    op: &'static OpDef,
    operands: &[Quick],
    to: &mut MaybeUninit<Array>,
) -> Result<bool> {
    let flags = Flags::current();
    if flags.is_plain() {
        return Ok(called(op, operands, to)? || of_copies(op, operands, to)?);
    }
    if flags.is_intercepted() {
        // Results that are watched are looked at, unless somebody else wants to see the call.
        return match flags.may_move() {
            true => Ok(watched(op, operands)?.map(|y| to.write(y)).is_some()),
            false => Ok(false),
        };
    }
    let is_stale = |x: &Quick| matches!(x, Quick::Array(x) if x.is_stale());
    if operands.iter().any(is_stale) {
        return Ok(false);
    }
    let is_recorded = |x: &Quick| matches!(x, Quick::Array(x) if x.entry().is_some());
    if !operands.iter().any(is_recorded) {
        return called(op, operands, to);
    }
    Ok(match made(|to| called(op, operands, to))? {
        Some(y) => {
            to.write(autograd::record_quick(op, operands, y)?);
            true
        }
        None => false,
    })
}

/// What `make` writes to the place that it is given, if it does.
#[inline]
fn made(make: impl FnOnce(&mut MaybeUninit<Array>) -> Result<bool>) -> Result<Option<Array>> {
    let mut room = MaybeUninit::uninit();
    // SAFETY: it says whether it is written.
    Ok(make(&mut room)?.then(|| unsafe { room.assume_init() }))
}

/// Calls `op` whatever the thread's flags.
#[inline]
fn called(op: &'static OpDef, operands: &[Quick], to: &mut MaybeUninit<Array>) -> Result<bool> {
    match op.types == Types::Choose {
        true => compute::<true>(op, operands, To::New(to)),
        false => compute::<false>(op, operands, To::New(to)),
    }
}

/// Where a result goes.
enum To<'a> {
    /// A new array at this place.
    New(&'a mut MaybeUninit<Array>),
    /// The elements of this one.
    Into(&'a Array),
}

impl<'a> To<'a> {
    /// The array that is written to.
    #[inline]
    fn array(&self) -> Option<&'a Array> {
        match *self {
            To::New(_) => None,
            To::Into(into) => Some(into),
        }
    }
}

/// A result: where its elements go.
enum Room<'a> {
    New(Source, &'a mut MaybeUninit<Array>),
    Into(&'a Array),
}

impl<'a> Room<'a> {
    /// For `n` elements of this type; those of `into` are about to be written.
    #[inline]
    fn of(to: To<'a>, n: usize, dtype: DType, device: Device) -> Result<Room<'a>> {
        Ok(match to {
            To::New(to) => Room::New(Source::fresh(n, dtype, device)?, to),
            To::Into(into) => {
                into.tensor().storage().bump_version();
                Room::Into(into)
            }
        })
    }

    /// The first element.
    #[inline]
    fn ptr(&self) -> *mut u8 {
        match self {
            Room::New(source, _) => source.storage().ptr(),
            Room::Into(into) => into.tensor().data_ptr(),
        }
    }

    /// The elements as they lie in `lead`.
    fn like(&self, lead: &Array) -> Result<Tensor> {
        Ok(match self {
            Room::New(source, _) => source.clone().seen(lead.layout().with_offset(0))?,
            Room::Into(into) => into.tensor().clone(),
        })
    }

    /// Makes the array of the elements, which lie as in `lead`.
    #[inline]
    fn finish(self, lead: &Array) -> bool {
        let Room::New(source, to) = self else {
            return true;
        };
        let like = |to: &mut MaybeUninit<Layout>| {
            lead.layout().copy_dense_to(to);
            true
        };
        // SAFETY: as many elements as `lead` has, which lie without gaps; the place is one for an array.
        unsafe { Array::write_view(source, like, to.as_mut_ptr()) }
    }
}

/// The same of few elements that do not all lie in C order, of one dtype and shape, whose result does: of copies that do.
#[inline(never)]
fn of_copies(op: &'static OpDef, operands: &[Quick], to: &mut MaybeUninit<Array>) -> Result<bool> {
    if !matches!((&op.cpu, &op.types), (Cpu::Map(_), Types::Promote { .. })) {
        return Ok(false);
    }
    let arrays = operands.iter().filter_map(|operand| match operand {
        Quick::Array(x) if x.ndim() > 0 => Some(*x),
        _ => None,
    });
    let Some(lead) = arrays.clone().next() else {
        return Ok(false);
    };
    let is_open = |x: &Array| {
        x.shape() == lead.shape() && x.dtype() == lead.dtype() && x.len() <= FEW && !x.is_weak()
    };
    if !arrays.clone().all(is_open) || arrays.clone().all(|x| x.layout().is_contiguous()) {
        return Ok(false);
    }
    let layouts: SmallVec<[&Layout; MOST]> = arrays.map(Array::layout).collect();
    if axes_as(&layouts, lead.ndim()).is_some() {
        return Ok(false);
    }
    let mut copies: SmallVec<[Option<Array>; MOST]> = SmallVec::new();
    for operand in operands {
        copies.push(match operand {
            Quick::Array(x) if !x.layout().is_contiguous() => match small_copy(x, x.dtype())? {
                Some(copy) => Some(copy),
                None => return Ok(false),
            },
            _ => None,
        });
    }
    let dense = operands.iter().zip(&copies);
    let dense: SmallVec<[Quick; MOST]> = dense
        .map(|(operand, copy)| copy.as_ref().map_or(*operand, Quick::Array))
        .collect();
    compute::<false>(op, &dense, To::New(to))
}

/// Calls `op` and writes the result into `out`, if nothing intercepts or records and the operands qualify: `x += y`. Answers whether that was
/// done; if not, take the general way.
///
/// # Errors
/// [`crate::Error::Overflow`] for a number the dtype cannot hold.
#[inline]
pub fn quick_into(op: &'static OpDef, operands: &[Quick], out: &Array) -> Result<bool> {
    let flags = Flags::current();
    if !flags.is_plain() {
        return match flags.may_move() {
            true => watched_into(op, operands, out),
            false => Ok(false),
        };
    }
    compute::<false>(op, operands, To::Into(out))
}

/// As [`quick`] while results are watched.
#[inline(never)]
fn watched(op: &'static OpDef, operands: &[Quick]) -> Result<Option<Array>> {
    let is_clean = |y: &Array| floats::is_clean(op, operands, y);
    floats::tried(op, || quick(op, operands), is_clean)
}

/// The same while results are watched: made apart, for an error is looked for in what the operands were.
#[inline(never)]
fn watched_into(op: &'static OpDef, operands: &[Quick], out: &Array) -> Result<bool> {
    let Some(y) = watched(op, operands)? else {
        return Ok(false);
    };
    if y.shape() != out.shape() || y.dtype() != out.dtype() {
        return Ok(false);
    }
    floats::unwatched(|| put_few(out, out.layout(), &y))
}

/// A small contiguous array on the CPU with all elements equal, or one of undefined elements for `None`. `None`: take the general way.
///
/// # Errors
/// [`crate::Error::Memory`].
#[inline]
pub fn constant(shape: &[usize], value: Option<Scalar>, dtype: DType) -> Result<Option<Array>> {
    let Some(source) = constant_elements(shape, value, dtype)? else {
        return Ok(None);
    };
    let tensor = source.seen(Layout::contiguous(shape))?;
    Ok(Some(Array::from_tensor(tensor)))
}

/// The elements of such an array, in C order: what the caller writes to its place itself.
///
/// # Errors
/// [`crate::Error::Memory`].
#[inline]
pub fn constant_elements(
    shape: &[usize],
    value: Option<Scalar>,
    dtype: DType,
) -> Result<Option<Source>> {
    let device = current_device();
    // Nothing flows back into a constant, so recording makes no difference.
    if Flags::current().is_stacked() || device.kind() != DeviceKind::Cpu {
        return Ok(None);
    }
    let len = match checked_len(shape) {
        // Nothing has to be done for elements that are undefined.
        Ok(len) if len <= SMALL_LEN || value.is_none() && len <= UNDEFINED_LEN => len,
        _ => return Ok(None),
    };
    if value.is_some_and(|v| v.kind() > dtype.kind() || !v.fits(dtype) || !keeps(dtype, &v)) {
        return Ok(None);
    }
    if let Some(value) = value.filter(|value| !matches!(value, Scalar::I64(0))) {
        let row = Tensor::empty(&[len], dtype, device)?;
        fill(&row, value, &Pool);
        return Ok(Some(row.into_source()));
    }
    let source = Source::fresh(len, dtype, device)?;
    if value.is_some() {
        // SAFETY: `len` elements, which nobody else knows yet; zero is all-zero bits in every dtype.
        unsafe { source.storage().ptr().write_bytes(0, len * dtype.size()) };
    }
    Ok(Some(source))
}

/// A short range of integers of the default dtype. `None`: take the general way.
///
/// # Errors
/// [`crate::Error::Memory`].
pub fn range(start: i64, stop: i64, step: i64) -> Result<Option<Array>> {
    let device = current_device();
    if step == 0 {
        return Ok(None);
    }
    // Steps that go down are counted as the way up from the other end.
    let size = i128::from(step).abs();
    let way = (i128::from(stop) - i128::from(start)) * i128::from(step.signum());
    let n = ((way + size - 1).div_euclid(size)).max(0) as usize;
    if Flags::current().is_stacked()
        || device.kind() != DeviceKind::Cpu
        || n > SMALL_LEN
        || types::default_dtype(Kind::Integer) != DType::I64
    {
        return Ok(None);
    }
    let tensor = Tensor::empty(&[n], DType::I64, device)?;
    let first = tensor.data_ptr().cast::<i64>();
    for i in 0..n {
        // A product beyond the type comes back with the sum, which lies before `stop`.
        // SAFETY: the tensor is new and dense, with `n` elements of this type.
        unsafe { *first.add(i) = start.wrapping_add((i as i64).wrapping_mul(step)) };
    }
    Ok(Some(Array::from_tensor(tensor)))
}

/// The short way for a call that has reached eager execution.
#[inline]
pub(crate) fn call(call: &Call) -> Result<Option<Array>> {
    let n = call.inputs.len();
    if !call.outs.is_empty() || call.dtype.is_some() || n == 0 || n > MOST {
        return Ok(None);
    }
    let mut numbers = [const { None::<Scalar> }; MOST];
    let mut operands = [Quick::Number(&Scalar::Bool(false)); MOST];
    for ((slot, number), x) in operands.iter_mut().zip(&mut numbers).zip(call.inputs) {
        let Some(x) = x else { return Ok(None) };
        *number = x.number();
        *slot = match number {
            Some(value) => Quick::Number(value),
            None => Quick::Array(x),
        };
    }
    made(|to| compute::<false>(call.op, &operands[..n], To::New(to)))
}

/// With `CHOOSE` the first operand is a condition, an array of bool, and the others are what it chooses from. Answers whether the result is where it
/// should go; if not, nothing has been written.
#[inline]
fn compute<const CHOOSE: bool>(op: &'static OpDef, operands: &[Quick], to: To) -> Result<bool> {
    let (rows, accepts, out) = match (&op.cpu, &op.types) {
        (Cpu::Map(rows), Types::Promote { accepts, lift, out })
            if !CHOOSE && *lift != Lift::ToWidestFloat =>
        {
            (rows, *accepts, *out)
        }
        (Cpu::Map(rows), Types::Choose) if CHOOSE => (rows, DTypes::ALL, Out::Same),
        (Cpu::Map(rows), Types::Counted { accepts, .. }) => {
            return match to {
                To::New(to) => Ok(counted(rows, *accepts, operands)?
                    .map(|y| to.write(y))
                    .is_some()),
                To::Into(_) => Ok(false),
            };
        }
        _ => return Ok(false),
    };
    if rows.outs != 1
        || rows.params != 0
        || op.refuses.is_some() && operands_are_integers(operands) && !operands.iter().all(is_array)
        || operands.len() > MOST
        || operands.len() != rows.ins as usize
    {
        return Ok(false);
    }
    // The first array with axes fixes shape and dtype; the others must be like it, or one element of its dtype.
    let mut lead: Option<&Array> = None;
    let mut has_single = false;
    for operand in &operands[usize::from(CHOOSE)..] {
        let Quick::Array(x) = operand else { continue };
        if x.is_weak() {
            return Ok(false);
        }
        match lead {
            None => lead = Some(x),
            Some(found) if std::ptr::eq(found, *x) || is_like(x, found) => {}
            Some(found) if !CHOOSE && is_single(x, found) => has_single = true,
            Some(found) if !CHOOSE && is_single(found, x) && !has_single => {
                (lead, has_single) = (Some(*x), true);
            }
            Some(_) => return Ok(false),
        }
    }
    let Some(lead) = lead else { return Ok(false) };
    let is_lone = |x: &Array| has_single && x.ndim() == 0;
    let (dtype, n) = (lead.dtype(), lead.len());
    let kind = elem(dtype);
    if n > SMALL_LEN && !runs_at_once(op, n * dtype.size() * (operands.len() + 1))
        || n > MEDIUM_LEN
        || !accepts.has(dtype)
        || lead.device().kind() != DeviceKind::Cpu
        || !lead.layout().is_contiguous() && (CHOOSE || !lead.layout().is_fortran())
    {
        return Ok(false);
    }
    if CHOOSE {
        let Quick::Array(condition) = operands[0] else {
            return Ok(false);
        };
        if condition.dtype() != DType::Bool
            || condition.shape() != lead.shape()
            || !condition.layout().is_contiguous()
            || condition.device() != lead.device()
        {
            return Ok(false);
        }
    }
    let returned = out.of(dtype);
    if let Some(into) = to.array()
        && (op.refuses.is_some() && dtype.is_integer()
            || !takes(into, lead, returned)
            || is_spoiled(into, operands))
    {
        return Ok(false);
    }
    let Some(row) = (rows.get)(mxnet_kernels::isa::isa(), kind) else {
        if CHOOSE || has_single || kind.compute() == kind {
            return Ok(false);
        }
        return in_float32(rows, operands, lead, returned, to);
    };

    let mut scalars = [[0_u64; 2]; MOST];
    let mut ptrs = [std::ptr::null_mut::<u8>(); MOST + 1];
    let mut strides = [kind.size() as isize; MOST + 1];
    let mut reads: [&Var; MOST] = [lead.tensor().storage().var(); MOST];
    let mut num_reads = 1;
    for (i, operand) in operands.iter().enumerate() {
        match operand {
            Quick::Array(x) => {
                ptrs[i + 1] = x.tensor().data_ptr();
                if CHOOSE && i == 0 {
                    strides[1] = 1;
                } else if is_lone(x) {
                    strides[i + 1] = 0;
                }
                // `lead` is there already; an operand that is there twice is acquired once.
                if !std::ptr::eq(*x, lead) {
                    reads[num_reads] = x.tensor().storage().var();
                    num_reads += 1;
                }
            }
            Quick::Number(value) => {
                if value.kind() > dtype.kind() {
                    return Ok(false);
                }
                if !value.fits(dtype) {
                    // Comparisons with numbers beyond the dtype have an answer.
                    if out == Out::Bool {
                        return Ok(false);
                    }
                    return Err(types::out_of_bounds(op.name, **value, dtype));
                }
                let slot = scalars[i].as_mut_ptr().cast::<u8>();
                // SAFETY: a slot has 16 bytes, aligned to 8, enough for every dtype.
                unsafe { value.write(dtype, slot) };
                ptrs[i + 1] = slot;
                strides[i + 1] = 0;
            }
        }
    }
    let written = to
        .array()
        .map(|into| (into.tensor().storage().var(), Access::Write));
    let Some(guard) = engine().try_acquire(&reads[..num_reads], written.as_slice(), n as u64 + 1)
    else {
        return Ok(false);
    };
    if guard.poison().is_some() {
        return Ok(false);
    }
    let result = Room::of(to, n, returned, lead.device())?;
    if let Some(refuses) = op.refuses
        && dtype.is_integer()
    {
        let mut inputs = [None; MOST];
        for (slot, x) in inputs.iter_mut().zip(operands) {
            if let Quick::Array(x) = x {
                *slot = Some(x.tensor());
            }
        }
        let made = result.like(lead)?;
        let work = KernelCx {
            op,
            inputs: &inputs[..operands.len()],
            outputs: &[&made],
            args: Args {
                params: op.params,
                attrs: &Attrs::none(),
            },
            training: false,
            rng: RngState { seed: 0, offset: 0 },
            threads: &Pool,
        };
        refuses(&work, dtype).map_err(|e| e.in_op(op.name))?;
    }
    ptrs[0] = result.ptr();
    strides[0] = returned.size() as isize;
    if n > 0 {
        // SAFETY: 1. every operand is contiguous with `n` elements of the row's type, or one element with stride 0; the result has `n`
        // elements of the row's output type. 2. `guard` grants the reads; the result is known to nobody else, or `guard` grants the write and
        // an operand that shares its memory is it.
        unsafe { row(ptrs.as_ptr(), strides.as_ptr(), n, std::ptr::null()) };
    }
    drop(guard);
    Ok(result.finish(lead))
}

/// `ldexp` of an array of floats and as many integers, or one.
#[inline(never)]
fn counted(rows: &Rows, accepts: DTypes, operands: &[Quick]) -> Result<Option<Array>> {
    /// Counts that are converted on the stack.
    const MOST_COUNTS: usize = 64;
    let &[Quick::Array(x), counts] = operands else {
        return Ok(None);
    };
    let (dtype, n) = (x.dtype(), x.len());
    let kind = elem(dtype);
    let Some(row) = (rows.get)(mxnet_kernels::isa::isa(), kind) else {
        return Ok(None);
    };
    if n > SMALL_LEN
        || x.is_weak()
        || !accepts.has(dtype)
        || x.device().kind() != DeviceKind::Cpu
        || !x.layout().is_contiguous()
    {
        return Ok(None);
    }
    let mut reads: [&Var; 2] = [x.tensor().storage().var(); 2];
    let mut buffer = [0_i64; MOST_COUNTS];
    let (mut count, mut step) = (buffer.as_mut_ptr().cast::<u8>(), 8);
    let mut to_convert = None;
    match counts {
        Quick::Array(y) => {
            let whole = y.dtype().is_integer() && y.dtype() != DType::U64;
            let same = y.shape() == x.shape() && y.layout().is_contiguous();
            if !whole || !same || y.is_weak() || y.device() != x.device() {
                return Ok(None);
            }
            reads[1] = y.tensor().storage().var();
            if y.dtype() == DType::I64 {
                count = y.tensor().data_ptr();
            } else if n <= MOST_COUNTS {
                to_convert = Some(y);
            } else {
                return Ok(None);
            }
        }
        Quick::Number(&Scalar::I64(value)) if i32::try_from(value).is_ok() => {
            // SAFETY: the first place of the buffer.
            unsafe { *count.cast::<i64>() = value };
            step = 0;
        }
        Quick::Number(_) => return Ok(None),
    }
    let is_lone = step == 0 || std::ptr::eq(reads[0], reads[1]);
    let reads = if is_lone { &reads[..1] } else { &reads[..] };
    let Some(guard) = engine().try_acquire(reads, &[], n as u64 + 1) else {
        return Ok(None);
    };
    if guard.poison().is_some() {
        return Ok(None);
    }
    let result = Tensor::empty(x.shape(), dtype, x.device())?;
    let ptrs = [result.data_ptr(), x.tensor().data_ptr(), count];
    let strides = [kind.size() as isize, kind.size() as isize, step];
    // SAFETY: 1. all operands are dense with `n` elements of the row's types; converted counts have `n <= MOST_COUNTS` places in the buffer, and one
    // number has stride 0. 2. `guard` grants the reads; the result is known to nobody else.
    unsafe {
        if let Some(y) = to_convert {
            Cast::new(elem(y.dtype()), Elem::I64).row(y.tensor().data_ptr(), count, n);
        }
        row(ptrs.as_ptr(), strides.as_ptr(), n, std::ptr::null());
    }
    drop(guard);
    Ok(Some(Array::from_tensor(result)))
}

/// Both results of an elementwise operator that has two, of small dense arrays of one shape and dtype, while nobody records. `None`: take the
/// general way.
///
/// # Errors
/// [`crate::Error::Memory`].
pub fn two(op: &'static OpDef, operands: &[&Array]) -> Result<Option<[Array; 2]>> {
    let (Cpu::Map(rows), Types::Promote { accepts, out, .. }) = (&op.cpu, &op.types) else {
        return Ok(None);
    };
    let Some((lead, rest)) = operands.split_first() else {
        return Ok(None);
    };
    let (dtype, n) = (lead.dtype(), lead.len());
    let Some(row) = (rows.get)(mxnet_kernels::isa::isa(), elem(dtype)) else {
        return Ok(None);
    };
    if !Flags::current().is_plain()
        || rows.outs != 2
        || rows.ins as usize != operands.len()
        || operands.len() > 2
        || !matches!(out, Out::Same | Out::Two(None))
        || op.refuses.is_some()
        || n > SMALL_LEN
        || !accepts.has(dtype)
        || operands.iter().any(|x| x.is_weak())
        || lead.device().kind() != DeviceKind::Cpu
        || !lead.layout().is_contiguous()
        || !rest.iter().all(|x| is_like(x, lead))
    {
        return Ok(None);
    }
    let other = rest.first().unwrap_or(lead).tensor();
    let reads = [lead.tensor().storage().var(), other.storage().var()];
    let is_lone = std::ptr::eq(reads[0], reads[1]);
    let Some(guard) = engine().try_acquire(&reads[usize::from(is_lone)..], &[], n as u64 + 1)
    else {
        return Ok(None);
    };
    if guard.poison().is_some() {
        return Ok(None);
    }
    let results = [
        Tensor::empty(lead.shape(), dtype, lead.device())?,
        Tensor::empty(lead.shape(), dtype, lead.device())?,
    ];
    let ptrs = [
        results[0].data_ptr(),
        results[1].data_ptr(),
        lead.tensor().data_ptr(),
        other.data_ptr(),
    ];
    let strides = [elem(dtype).size() as isize; 4];
    // SAFETY: 1. all operands are dense with `n` elements of the row's type. 2. `guard` grants the reads; the results are known to nobody else.
    unsafe { row(ptrs.as_ptr(), strides.as_ptr(), n, std::ptr::null()) };
    drop(guard);
    Ok(Some(results.map(Array::from_tensor)))
}

/// Whether work on so many bytes is too short to be shared out.
#[cold]
fn runs_at_once(op: &OpDef, bytes: usize) -> bool {
    matches!(op.cost, Cost::PerKiB(ns) if bytes / 1024 * ns as usize <= MEDIUM_NS)
}

/// Halves, of which there are rows in float32 only: they are converted on the way in and out.
#[inline(never)]
fn in_float32(
    rows: &Rows,
    operands: &[Quick],
    lead: &Array,
    returned: DType,
    to: To,
) -> Result<bool> {
    /// Elements that are computed on the stack.
    const MOST_HALVES: usize = 256;
    let (dtype, n) = (lead.dtype(), lead.len());
    let kind = elem(dtype);
    let isa = mxnet_kernels::isa::isa();
    let (Some(row), true) = ((rows.get)(isa, Elem::F32), n <= MOST_HALVES) else {
        return Ok(false);
    };
    if returned != dtype && returned != DType::Bool {
        return Ok(false);
    }
    let mut buffers = [const { MaybeUninit::<[f32; MOST_HALVES]>::uninit() }; MOST + 1];
    let mut ptrs = buffers
        .each_mut()
        .map(|buffer| buffer.as_mut_ptr().cast::<u8>());
    let mut strides = [4_isize; MOST + 1];
    let mut reads: [&Var; MOST] = [lead.tensor().storage().var(); MOST];
    let mut num_reads = 1;
    for operand in operands {
        match operand {
            Quick::Array(x) if std::ptr::eq(*x, lead) => {}
            Quick::Array(x) => {
                reads[num_reads] = x.tensor().storage().var();
                num_reads += 1;
            }
            // Rounded to a half like any operand, which the general way words the errors of.
            Quick::Number(value) if value.kind() > dtype.kind() || !value.fits(dtype) => {
                return Ok(false);
            }
            Quick::Number(_) => {}
        }
    }
    let written = to
        .array()
        .map(|into| (into.tensor().storage().var(), Access::Write));
    let Some(guard) = engine().try_acquire(&reads[..num_reads], written.as_slice(), n as u64 + 1)
    else {
        return Ok(false);
    };
    if guard.poison().is_some() {
        return Ok(false);
    }
    let result = Room::of(to, n, returned, lead.device())?;
    let widen = Cast::new(kind, Elem::F32);
    // SAFETY: 1. every operand is contiguous with `n <= MOST_HALVES` elements of its dtype, or one number, converted into a buffer of its own; a
    // slot has 8 bytes, enough for a half. 2. the result has `n` elements of one byte if it is bool, else of the halves that `ptrs[0]` is converted
    // to. 3. `guard` grants the reads; the result is known to nobody else, or `guard` grants the write and operands are converted before it.
    unsafe {
        for (i, operand) in operands.iter().enumerate() {
            match operand {
                Quick::Array(x) => widen.row(x.tensor().data_ptr(), ptrs[i + 1], n),
                Quick::Number(value) => {
                    let mut slot = 0_u64;
                    value.write(dtype, (&raw mut slot).cast());
                    widen.row((&raw const slot).cast(), ptrs[i + 1], 1);
                    strides[i + 1] = 0;
                }
            }
        }
        if returned == DType::Bool {
            (ptrs[0], strides[0]) = (result.ptr(), 1);
        }
        row(ptrs.as_ptr(), strides.as_ptr(), n, std::ptr::null());
        if returned != DType::Bool {
            Cast::new(Elem::F32, kind).row(ptrs[0], result.ptr(), n);
        }
    }
    drop(guard);
    Ok(result.finish(lead))
}

fn is_array(operand: &Quick) -> bool {
    matches!(operand, Quick::Array(_))
}

/// Whether the operands' values may be refused.
#[cold]
fn operands_are_integers(operands: &[Quick]) -> bool {
    operands
        .iter()
        .any(|x| matches!(x, Quick::Array(x) if x.dtype().is_integer()))
}

/// Whether results like `lead`, of dtype `returned`, can be written to `into`.
fn takes(into: &Array, lead: &Array, returned: DType) -> bool {
    into.dtype() == returned
        && into.shape() == lead.shape()
        && into.layout().strides() == lead.layout().strides()
        && into.device() == lead.device()
        && !into.is_weak()
        && !into.tensor().is_read_only()
}

/// Whether an operand shares the memory of `into` and is not the same elements: they would be written before they are read.
fn is_spoiled(into: &Array, operands: &[Quick]) -> bool {
    let (storage, place) = (into.tensor().storage(), into.tensor().data_ptr());
    operands.iter().any(|operand| match operand {
        Quick::Number(_) => false,
        Quick::Array(x) => {
            let same = x.tensor().data_ptr() == place
                && x.dtype() == into.dtype()
                && x.shape() == into.shape();
            std::sync::Arc::ptr_eq(x.tensor().storage(), storage) && !same
        }
    })
}

/// Whether `x` is one element of the dtype and device of `lead`, which has axes.
#[inline]
fn is_single(x: &Array, lead: &Array) -> bool {
    x.ndim() == 0 && lead.ndim() > 0 && x.dtype() == lead.dtype() && x.device() == lead.device()
}

/// Whether `x` has the dtype, shape, strides and device of `lead`.
#[inline]
fn is_like(x: &Array, lead: &Array) -> bool {
    x.dtype() == lead.dtype()
        && x.shape() == lead.shape()
        && x.layout().strides() == lead.layout().strides()
        && x.device() == lead.device()
}
