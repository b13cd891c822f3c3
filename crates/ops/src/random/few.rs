//! The short way of distributions: few samples with numbers or small arrays for parameters are made on the stack, without operators, attributes or
//! queue, by the kernels and elementwise rows that the operators would call. The numbers are the same to the last bit.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::mem::MaybeUninit;

use mxnet_engine::engine;
use mxnet_kernels::Elem;
use mxnet_kernels::cast::Cast;
use mxnet_kernels::isa::isa;
use mxnet_kernels::random::{Counts, Scale, Stream, fill, fill_angles, fill_counts, fill_gamma};
use mxnet_kernels::softmax::{Kind, Softmax, softmax};
use mxnet_tensor::{
    DType, Device, DeviceKind, Dims, Scalar, Storage, Tensor, checked_len, default_float,
};
use smallvec::SmallVec;

use crate::Array;
use crate::elementwise::arithmetic::{ADD, DIVIDE, MULTIPLY, SQUARE, SUBTRACT};
use crate::elementwise::explog::SQRT;
use crate::elementwise::select::CHOOSE;
use crate::error::{Error, Result};
use crate::interp::{Flags, current_device};
use crate::launch::{Pool, elem};
use crate::lone::Lone;
use crate::opdef::{Cpu, OpDef};
use crate::random::draw::{between, blocks, distribution};
use crate::random::parameter::{Drawing, Given, Sampling, Values};
use crate::random::reject::{check_samples, counts_of, holds};
use crate::random::stream::next;
use crate::types::promoted;

/// More samples than these are left to the operators.
const MOST: usize = 64;

/// How a distribution makes few samples.
pub type Drawn = for<'a> fn(&Few<'a>) -> Result<Handful<'a>>;

/// A parameter as it was given.
#[derive(Clone, Copy, Debug, Default)]
pub enum Parameter<'a> {
    /// Not.
    #[default]
    Missing,
    /// A Python number or truth value.
    Number(Scalar),
    /// An array of the shape of the result.
    Elements(&'a Array),
}

/// A parameter that is a list of Python floats.
pub type Row = SmallVec<[f64; 8]>;

/// A call of a distribution's function that may go the short way.
pub struct Few<'a> {
    op: &'static OpDef,
    parameters: &'a [Parameter<'a>],
    row: &'a [f64],
    len: usize,
    asked: Option<DType>,
    natural: DType,
    room: &'a Room,
}

/// Samples of a call with these parameters, behind which stands a list, if any, of shape `size` (`None`: that of the arrays), to which a list's
/// length is added. `None`: take the general way, which also words the errors.
///
/// # Errors
/// [`Error::Memory`].
#[inline]
pub fn few(
    op: &'static OpDef,
    drawn: Drawn,
    parameters: &[Parameter],
    row: Option<Row>,
    size: Option<&[usize]>,
    asked: Option<DType>,
) -> Result<Option<Array>> {
    let finish = |made: &Handful<'_>, shape: &[usize], device| {
        // SAFETY: as many numbers of this type were written; the output is new and dense, of as many bytes, and known to nobody else.
        let out = unsafe {
            if shape.is_empty() {
                let element = Storage::of_element(made.at, made.dtype.size(), device);
                Tensor::of_element(element, made.dtype)
            } else {
                let out = Tensor::empty(shape, made.dtype, device)?;
                std::ptr::copy_nonoverlapping(
                    made.at,
                    out.data_ptr(),
                    made.len * made.dtype.size(),
                );
                out
            }
        };
        Ok(Array::from_tensor(out))
    };
    draw(op, drawn, parameters, row, size, asked, finish)
}

/// One sample of a call with numbers for parameters: makes the element. Answers whether it did; else take the general way.
#[inline]
pub fn one(
    op: &'static OpDef,
    drawn: Drawn,
    parameters: &[Parameter],
    asked: Option<DType>,
    to: &mut MaybeUninit<Lone>,
) -> bool {
    let finish = |made: &Handful<'_>, _: &[usize], device| {
        // SAFETY: one number of this type was written.
        unsafe { Lone::of(to, made.at, made.dtype, device) };
        Ok(())
    };
    let done = draw(op, drawn, parameters, None, None, asked, finish);
    matches!(done, Ok(Some(())))
}

/// Makes samples on the stack, and what `finish` makes of them, their shape and their device.
#[inline]
fn draw<R>(
    op: &'static OpDef,
    drawn: Drawn,
    parameters: &[Parameter],
    mut row: Option<Row>,
    size: Option<&[usize]>,
    asked: Option<DType>,
    finish: impl FnOnce(&Handful<'_>, &[usize], Device) -> Result<R>,
) -> Result<Option<R>> {
    let flags = Flags::current();
    let mut arrays = SmallVec::<[Option<&Array>; 4]>::new();
    for parameter in parameters {
        if let Parameter::Elements(x) = parameter {
            arrays.push(Some(*x));
        }
    }
    let lead = arrays.first().copied().flatten();
    let mut shape = match (size, lead) {
        (Some(size), _) => Dims::from_slice(size),
        (None, Some(x)) => Dims::from_slice(x.shape()),
        (None, None) => Dims::new(),
    };
    let device = lead.map_or_else(current_device, Array::device);
    let fits = |x: &&Array| {
        x.shape() == shape.as_slice()
            && matches!(x.dtype(), DType::F32 | DType::F64)
            && x.layout().is_contiguous()
            && x.device() == device
    };
    // Nothing flows back into samples of numbers, so that recording makes no difference to them.
    if flags.is_intercepted()
        || flags.is_recording() && lead.is_some()
        || device.kind() != DeviceKind::Cpu
        || !arrays.iter().flatten().all(fits)
    {
        return Ok(None);
    }
    shape.extend(row.as_ref().map(|row| row.len()));
    let Ok(len @ 1..=MOST) = checked_len(&shape) else {
        return Ok(None);
    };
    // Such a list is an array of default floats.
    if let Some(row) = &mut row
        && default_float() == DType::F32
    {
        row.iter_mut().for_each(|x| *x = f64::from(*x as f32));
    }
    // Apart from the count: next to something that is written, the compiler has been seen to set all of it to zero, which takes longer than
    // everything else here.
    let mut places = MaybeUninit::<Places>::uninit();
    let room = Room {
        places: places.as_mut_ptr().cast(),
        taken: Cell::new(0),
    };
    let call = Few {
        op,
        parameters,
        row: row.as_deref().unwrap_or(&[]),
        len,
        asked,
        natural: match arrays.is_empty() {
            true => default_float(),
            false => promoted(&arrays),
        },
        room: &room,
    };
    // What is refused is so before anything has been drawn.
    let Ok(made) = drawn(&call) else {
        return Ok(None);
    };
    debug_assert_eq!(made.len, len);
    finish(&made, &shape, device).map(Some)
}

/// For what this way is not made; nobody sees it.
#[cold]
pub(super) fn closed(op: &'static OpDef) -> Error {
    Error::internal(op.name, "the short way is closed")
}

/// Where the steps of one call leave their numbers. Every step takes the next place, all of which are aligned for every vector.
pub(super) struct Room {
    /// The first place of [`Places`], which live as long as the room.
    places: *mut Place,
    taken: Cell<usize>,
}

#[repr(align(64))]
struct Places(#[expect(dead_code, reason = "seen through pointers")] [Place; Room::PLACES]);

/// Room for the numbers of one step: 512 bytes.
type Place = [u64; MOST];

impl Room {
    /// No distribution has so many steps.
    const PLACES: usize = 48;

    #[inline]
    fn take(&self) -> *mut u8 {
        let at = self.taken.get();
        assert!(at < Room::PLACES, "a distribution has more than {at} steps");
        self.taken.set(at + 1);
        // SAFETY: the place is one of the room's.
        unsafe { self.places.add(at).cast() }
    }
}

/// A few numbers of one dtype in a room.
#[derive(Clone, Copy)]
pub struct Handful<'a> {
    dtype: DType,
    len: usize,
    at: *const u8,
    room: &'a Room,
}

impl<'a> Handful<'a> {
    /// `len` numbers that `write` writes, which has room for as many of eight bytes each.
    ///
    /// # Safety
    /// `write` writes all of them.
    #[inline]
    unsafe fn made(
        room: &'a Room,
        dtype: DType,
        len: usize,
        write: impl FnOnce(*mut u8),
    ) -> Handful<'a> {
        assert!(len <= MOST && dtype.size() <= 8);
        let at = room.take();
        write(at);
        Handful {
            dtype,
            len,
            at,
            room,
        }
    }

    /// One number, which goes with any others.
    fn one(room: &'a Room, x: f64, dtype: DType) -> Handful<'a> {
        // SAFETY: one number is written; there is room for eight bytes.
        unsafe { Handful::made(room, dtype, 1, |to| Scalar::F64(x).write(dtype, to)) }
    }

    /// The numbers, if they are float64.
    #[inline]
    fn numbers(&self) -> Option<&'a [f64]> {
        // SAFETY: as in `doubles`.
        (self.dtype == DType::F64)
            .then(|| unsafe { std::slice::from_raw_parts(self.at.cast(), self.len) })
    }

    /// As many float64 numbers, of which `step` makes each.
    #[inline]
    fn mapped(&self, step: impl Fn(usize) -> f64) -> Handful<'a> {
        // SAFETY: all numbers are written, of eight bytes each.
        unsafe {
            Handful::made(self.room, DType::F64, self.len, |to| {
                let to = to.cast::<f64>();
                (0..self.len).for_each(|i| to.add(i).write(step(i)));
            })
        }
    }

    /// The numbers as float64.
    fn doubles(&self) -> Result<&'a [f64]> {
        let wide = self.astype(DType::F64)?;
        // SAFETY: `len` numbers of this type were written, at an address aligned for them, in a place that is written once.
        Ok(unsafe { std::slice::from_raw_parts(wide.at.cast(), wide.len) })
    }

    /// An elementwise operator.
    #[inline]
    fn apply<const N: usize>(
        op: &'static OpDef,
        operands: [&Handful<'a>; N],
    ) -> Result<Handful<'a>> {
        let last = operands[N - 1];
        let (Cpu::Map(rows), kind) = (&op.cpu, elem(last.dtype)) else {
            return Err(closed(op));
        };
        let Some(row) = (rows.get)(isa(), kind) else {
            return Err(closed(op));
        };
        assert!(rows.ins as usize == N && rows.outs == 1 && rows.params == 0 && N <= 3);
        let mut len = 1;
        for x in operands {
            len = len.max(x.len);
        }
        let (mut ptrs, mut strides) = ([std::ptr::null_mut::<u8>(); 4], [0_isize; 4]);
        for (i, x) in operands.iter().enumerate() {
            assert!(elem(x.dtype) == rows.in_elem(i, kind) && (x.len == len || x.len == 1));
            ptrs[i + 1] = x.at.cast_mut();
            if x.len == len {
                strides[i + 1] = x.dtype.size() as isize;
            }
        }
        let returned = DType::ALL[rows.out_elem(kind) as usize];
        strides[0] = returned.size() as isize;
        // SAFETY: 1. every operand has `len` numbers of the element that the row reads, or one with stride 0; it is only read. 2. the result has
        // room for as many of the element that the row writes, all of which it does. 3. the row takes no numbers of its own.
        Ok(unsafe {
            Handful::made(last.room, returned, len, |to| {
                ptrs[0] = to;
                row(ptrs.as_ptr(), strides.as_ptr(), len, std::ptr::null());
            })
        })
    }
}

type Step = fn(f64, f64) -> f64;

/// What an operator does with two float64 numbers, if that is one instruction, which rounds in one way only.
#[inline]
fn step_of(op: &'static OpDef) -> Option<Step> {
    let steps: [(&OpDef, Step); 4] = [
        (&ADD, |a, b| a + b),
        (&SUBTRACT, |a, b| a - b),
        (&MULTIPLY, |a, b| a * b),
        (&DIVIDE, |a, b| a / b),
    ];
    let mut steps = steps.into_iter();
    steps.find_map(|(of, step)| std::ptr::eq(of, op).then_some(step))
}

impl Values for Handful<'_> {
    #[inline]
    fn unary(&self, op: &'static OpDef) -> Result<Self> {
        match self.numbers() {
            Some(x) if std::ptr::eq(op, &SQRT) => Ok(self.mapped(|i| x[i].sqrt())),
            Some(x) if std::ptr::eq(op, &SQUARE) => Ok(self.mapped(|i| x[i] * x[i])),
            _ => Handful::apply(op, [self]),
        }
    }

    fn binary(&self, op: &'static OpDef, rhs: &Self) -> Result<Self> {
        if let (Some(a), Some(b), Some(step)) = (self.numbers(), rhs.numbers(), step_of(op))
            && a.len() == b.len()
        {
            return Ok(self.mapped(|i| step(a[i], b[i])));
        }
        if self.dtype == rhs.dtype {
            return Handful::apply(op, [self, rhs]);
        }
        // Only floats of two sizes meet.
        let [a, b] = [self.astype(DType::F64)?, rhs.astype(DType::F64)?];
        Handful::apply(op, [&a, &b])
    }

    fn with_number(&self, op: &'static OpDef, number: f64) -> Result<Self> {
        if let (Some(a), Some(step)) = (self.numbers(), step_of(op)) {
            return Ok(self.mapped(|i| step(a[i], number)));
        }
        Handful::apply(op, [self, &Handful::one(self.room, number, self.dtype)])
    }

    fn chosen(condition: &Self, x: &Self, y: &Self) -> Result<Self> {
        Handful::apply(&CHOOSE, [condition, x, y])
    }

    fn astype(&self, dtype: DType) -> Result<Self> {
        if dtype == self.dtype {
            return Ok(*self);
        }
        let cast = Cast::new(elem(self.dtype), elem(dtype));
        // SAFETY: `len` numbers of the one type are read and as many of the other written, elsewhere.
        Ok(unsafe {
            Handful::made(self.room, dtype, self.len, |to| {
                cast.row(self.at, to, self.len);
            })
        })
    }

    fn detached(&self) -> Result<Self> {
        Ok(*self)
    }
}

impl<'a> Few<'a> {
    /// Number `i` as it was given.
    pub(super) fn number(&self, i: usize) -> Option<Scalar> {
        match self.parameters.get(i) {
            Some(Parameter::Number(x)) => Some(*x),
            _ => None,
        }
    }

    /// The parameter that is a list.
    pub(super) fn row(&self) -> &'a [f64] {
        self.row
    }

    /// How many samples are made, each as long as the list.
    pub(super) fn rows(&self) -> usize {
        self.len / self.row.len().max(1)
    }

    /// The list, once for each sample.
    pub(super) fn repeated(&self) -> Given<Handful<'a>> {
        // SAFETY: as many numbers are written as there are elements, of eight bytes each.
        Given::Elements(unsafe {
            Handful::made(self.room, DType::F64, self.len, |to| {
                let elements = self.row.iter().cycle().take(self.len);
                let to = to.cast::<f64>();
                elements.enumerate().for_each(|(i, x)| *to.add(i) = *x);
            })
        })
    }

    /// Integers that `write` writes.
    ///
    /// # Safety
    /// `write` writes as many as there are elements.
    pub(super) unsafe fn counted(&self, write: impl FnOnce(*mut i64)) -> Handful<'a> {
        // SAFETY: the caller's.
        unsafe { Handful::made(self.room, DType::I64, self.len, |to| write(to.cast())) }
    }

    /// Integers from `low` to `last`, of an integer dtype or bool.
    pub(super) fn integers(&self, low: i128, last: i128, dtype: DType) -> Handful<'a> {
        let samples = self.of_dtype(dtype);
        // SAFETY: 1. the kernel writes all samples, for which there is room. 2. `low <= last`, at most 2^64 integers.
        unsafe {
            samples.written(blocks(self.len as u64), |stream, elem, n, to| {
                between(&Pool, stream, (low, last), elem, n, to);
            })
        }
    }

    /// Of rows as long as the list the shares of exponentials of float64 numbers in their sums.
    pub(super) fn shares(&self, logarithms: &Handful<'a>) -> Handful<'a> {
        assert!(logarithms.dtype == DType::F64 && logarithms.len == self.len);
        let geometry = Softmax {
            elem: Elem::F64,
            outer: self.rows(),
            len: self.row.len(),
            inner: 1,
            temperature: 1.0,
        };
        let (kind, lengths) = (Kind::Softmax, std::ptr::null());
        // SAFETY: both sides have as many float64 numbers as the geometry says, all of which are written.
        unsafe {
            Handful::made(self.room, DType::F64, self.len, |to| {
                softmax(&Pool, &geometry, kind, logarithms.at, lengths, to);
            })
        }
    }

    fn of_dtype(&self, dtype: DType) -> FewSamples<'a> {
        FewSamples {
            op: self.op,
            len: self.len,
            dtype,
            room: self.room,
        }
    }
}

impl<'a> Drawing for Few<'a> {
    type X = Handful<'a>;
    type Samples = FewSamples<'a>;

    fn function(&self) -> &'static OpDef {
        self.op
    }

    #[inline]
    fn given(&self, i: usize, default: f64) -> Result<Given<Handful<'a>>> {
        let x = match self.parameters.get(i) {
            Some(Parameter::Number(x)) => return Ok(Given::Number(x.as_f64())),
            Some(Parameter::Elements(x)) => *x,
            Some(Parameter::Missing) | None => return Ok(Given::Number(default)),
        };
        let reads = [x.tensor().storage().var()];
        let Some(guard) = engine().try_acquire(&reads, &[], x.len() as u64 + 1) else {
            return Err(closed(self.op));
        };
        if guard.poison().is_some() {
            return Err(closed(self.op));
        }
        let bytes = x.len() * x.dtype().size();
        // SAFETY: the array is dense and has the shape of the result; `guard` grants the read; all of its numbers are copied.
        Ok(Given::Elements(unsafe {
            Handful::made(self.room, x.dtype(), x.len(), |to| {
                std::ptr::copy_nonoverlapping(x.tensor().data_ptr(), to, bytes);
            })
        }))
    }

    fn watched(&self, x: Handful<'a>, _: &'static str, rule: &'static str) -> Result<Handful<'a>> {
        match x.doubles()?.iter().all(|&x| holds(rule, x)) {
            true => Ok(x),
            false => Err(closed(self.op)),
        }
    }

    fn asked(&self) -> Option<DType> {
        self.asked
    }

    #[inline]
    fn samples(&self) -> Result<FewSamples<'a>> {
        match self.asked.unwrap_or(self.natural) {
            dtype @ (DType::F32 | DType::F64) => Ok(self.of_dtype(dtype)),
            _ => Err(closed(self.op)),
        }
    }

    #[inline]
    fn samples_as(&self, dtype: DType) -> Result<FewSamples<'a>> {
        match dtype.is_integer() || matches!(dtype, DType::F32 | DType::F64) {
            true => Ok(self.of_dtype(dtype)),
            false => Err(closed(self.op)),
        }
    }
}

/// Samples in a room.
pub(super) struct FewSamples<'a> {
    op: &'static OpDef,
    len: usize,
    dtype: DType,
    room: &'a Room,
}

impl<'a> FewSamples<'a> {
    /// Samples that `write` writes, given the blocks they take, their type, how many they are and where they go.
    ///
    /// # Safety
    /// `write` writes all of them.
    #[inline]
    unsafe fn written(
        &self,
        blocks: u64,
        write: impl FnOnce(Stream, Elem, usize, *mut u8),
    ) -> Handful<'a> {
        let stream = next(blocks);
        // SAFETY: the caller's.
        unsafe {
            Handful::made(self.room, self.dtype, self.len, |to| {
                write(stream, elem(self.dtype), self.len, to);
            })
        }
    }

    /// A parameter as kernels take it: one number, or one for each sample.
    fn slice<'x>(&self, parameter: &'x Given<Handful<'a>>) -> Result<&'x [f64]> {
        match parameter {
            Given::Number(x) => Ok(std::slice::from_ref(x)),
            Given::Elements(x) => {
                assert!(x.len == self.len);
                x.doubles()
            }
        }
    }
}

impl<'a> Sampling for FewSamples<'a> {
    type X = Handful<'a>;

    fn dtype(&self) -> DType {
        self.dtype
    }

    #[inline]
    fn filled(&self, name: &'static str, numbers: [f64; 3]) -> Result<Handful<'a>> {
        let what = distribution(name, numbers);
        // SAFETY: the kernel writes all samples, for which there is room.
        Ok(unsafe {
            self.written(blocks(self.len as u64), |stream, elem, n, to| {
                fill(&Pool, stream, what, elem, n, to);
            })
        })
    }

    fn gamma(&self, shape: &Given<Handful<'a>>, log: bool) -> Result<Handful<'a>> {
        let scale = if log { Scale::Log } else { Scale::Linear };
        let shapes = self.slice(shape)?;
        // SAFETY: 1. the kernel writes all samples, for which there is room. 2. there is one shape, or as many as samples.
        Ok(unsafe {
            self.written(self.len as u64, |stream, elem, n, to| {
                fill_gamma(&Pool, stream, scale, shapes, elem, n, to);
            })
        })
    }

    fn counts(
        &self,
        name: &'static str,
        parameters: &[&Given<Handful<'a>>],
    ) -> Result<Handful<'a>> {
        let what = counts_of(name);
        let mut slices = SmallVec::<[&[f64]; 3]>::new();
        for x in parameters {
            slices.push(self.slice(x)?);
        }
        if what == Counts::Hypergeometric {
            check_samples(&slices)?;
        }
        // SAFETY: 1. the kernel writes all samples, for which there is room. 2. each parameter is one number, or as many as samples.
        Ok(unsafe {
            self.written(self.len as u64, |stream, elem, n, to| {
                fill_counts(&Pool, stream, what, &slices, elem, n, to);
            })
        })
    }

    fn angles(&self, concentration: &Given<Handful<'a>>) -> Result<Handful<'a>> {
        let concentrations = self.slice(concentration)?;
        // SAFETY: 1. the kernel writes all samples, for which there is room. 2. there is one parameter, or as many as samples.
        Ok(unsafe {
            self.written(self.len as u64, |stream, elem, n, to| {
                fill_angles(&Pool, stream, concentrations, elem, n, to);
            })
        })
    }

    fn operand(&self, parameter: &Given<Handful<'a>>) -> Result<Handful<'a>> {
        match parameter {
            Given::Number(x) => Ok(Handful::one(self.room, *x, self.dtype)),
            Given::Elements(x) => x.astype(self.dtype),
        }
    }

    fn alone(&self, parameter: &Given<Handful<'a>>) -> Result<Handful<'a>> {
        match (parameter, default_float()) {
            (Given::Number(x), dtype @ (DType::F32 | DType::F64)) => {
                Ok(Handful::one(self.room, *x, dtype))
            }
            (Given::Number(_), _) => Err(closed(self.op)),
            (Given::Elements(x), _) => Ok(*x),
        }
    }
}
