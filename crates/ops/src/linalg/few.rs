//! Sums of products of few elements, one after the other: no operators in between.
#![allow(unsafe_code)]

use mxnet_engine::engine;
use mxnet_tensor::{DType, DeviceKind, Dims, Layout, Tensor};
use smallvec::SmallVec;

use crate::Array;
use crate::error::Result;
use crate::interp::Flags;

/// Most operands that go this way.
const OPERANDS: usize = 3;

/// Most different letters.
const LETTERS: usize = 6;

/// Most products: more are worth products of matrices.
const PRODUCTS: usize = 512;

/// A loop over one letter.
#[derive(Clone, Copy, Default)]
struct Loop {
    letter: u8,
    len: usize,
    /// How far each operand's element moves with a step. A letter that an operand has twice walks along its diagonal.
    steps: [isize; OPERANDS],
    /// How often it occurs in the operands.
    count: usize,
}

/// The loops that subscripts stand for: those over the result's axes, then those that are summed.
struct Loops {
    loops: [Loop; LETTERS],
    len: usize,
    /// How many of them are axes of the result.
    kept: usize,
}

impl Loops {
    /// `None` if the subscripts are wrong, have an ellipsis or broadcast: the general way takes those, or says what is wrong.
    fn of(subscripts: &str, operands: &[&Array]) -> Option<Loops> {
        let (inputs, wanted) = match subscripts.split_once("->") {
            Some((inputs, wanted)) => (inputs, Some(wanted)),
            None => (subscripts, None),
        };
        let mut found = [Loop::default(); LETTERS];
        let mut len = 0;
        let (mut operand, mut axis) = (0, 0);
        for letter in inputs.bytes() {
            let x = operands.get(operand)?;
            match letter {
                b' ' => {}
                b',' => {
                    if axis != x.ndim() {
                        return None;
                    }
                    (operand, axis) = (operand + 1, 0);
                }
                b'a'..=b'z' | b'A'..=b'Z' => {
                    let (&n, &step) = (x.shape().get(axis)?, x.layout().strides().get(axis)?);
                    let at = match found[..len].iter().position(|l| l.letter == letter) {
                        Some(at) => at,
                        None if len == LETTERS => return None,
                        None => {
                            (found[len].letter, found[len].len) = (letter, n);
                            len += 1;
                            len - 1
                        }
                    };
                    if found[at].len != n {
                        return None;
                    }
                    found[at].steps[operand] += step;
                    found[at].count += 1;
                    axis += 1;
                }
                _ => return None,
            }
        }
        if operand + 1 != operands.len() || axis != operands[operand].ndim() {
            return None;
        }
        let found = &mut found[..len];
        let mut loops = Loops {
            loops: [Loop::default(); LETTERS],
            len,
            kept: 0,
        };
        match wanted {
            None => {
                found.sort_unstable_by_key(|l| (l.count > 1, l.letter));
                loops.kept = found.iter().filter(|l| l.count == 1).count();
                loops.loops[..len].copy_from_slice(found);
            }
            Some(wanted) => {
                for letter in wanted.bytes().filter(|&b| b != b' ') {
                    let at = found.iter().position(|l| l.letter == letter)?;
                    if found[at].count == 0 {
                        return None;
                    }
                    loops.loops[loops.kept] = found[at];
                    loops.kept += 1;
                    found[at].count = 0;
                }
                let summed = found.iter().filter(|l| l.count > 0);
                for (place, summed) in loops.loops[loops.kept..].iter_mut().zip(summed) {
                    *place = *summed;
                }
            }
        }
        Some(loops)
    }

    /// # Safety
    /// `data` are the first elements of the operands that the loops were made of; `out` has room for one element per round of the kept loops.
    unsafe fn run<T: Number>(&self, data: &[*const T], out: *mut T) {
        let (kept, summed) = self.loops[..self.len].split_at(self.kept);
        let (summed, last) = match summed {
            [summed @ .., last] => (summed, *last),
            [] => (
                summed,
                Loop {
                    len: 1,
                    ..Loop::default()
                },
            ),
        };
        let mut written = 0;
        let mut row = Rounds::new(kept);
        while let Some(start) = row.next() {
            let mut sum = T::Sum::default();
            let mut term = Rounds::from(summed, start);
            while let Some(mut at) = term.next() {
                for _ in 0..last.len {
                    // SAFETY: an element of an operand within its layout.
                    let element = |i: usize| unsafe { (*data[i].offset(at[i])).widened() };
                    let product = (1..data.len())
                        .fold(element(0), |product, i| T::times(product, element(i)));
                    sum = T::plus(sum, product);
                    for (offset, step) in at.iter_mut().zip(last.steps) {
                        *offset += step;
                    }
                }
            }
            // SAFETY: the rounds of the kept loops visit every element of the result once, in C order.
            unsafe { *out.add(written) = T::narrowed(sum) };
            written += 1;
        }
    }
}

/// The rounds of nested loops, the last one fastest: how far each operand's element has moved.
struct Rounds<'a> {
    loops: &'a [Loop],
    done: [usize; LETTERS],
    at: [isize; OPERANDS],
    is_over: bool,
}

impl<'a> Rounds<'a> {
    fn new(loops: &'a [Loop]) -> Rounds<'a> {
        Rounds::from(loops, [0; OPERANDS])
    }

    /// All loops have rounds.
    fn from(loops: &'a [Loop], at: [isize; OPERANDS]) -> Rounds<'a> {
        Rounds {
            loops,
            done: [0; LETTERS],
            at,
            is_over: false,
        }
    }

    #[inline]
    fn next(&mut self) -> Option<[isize; OPERANDS]> {
        if self.is_over {
            return None;
        }
        let current = self.at;
        for (i, l) in self.loops.iter().enumerate().rev() {
            self.done[i] += 1;
            let back = if self.done[i] == l.len {
                l.len as isize - 1
            } else {
                -1
            };
            for (offset, step) in self.at.iter_mut().zip(l.steps) {
                *offset -= back * step;
            }
            if back < 0 {
                return Some(current);
            }
            self.done[i] = 0;
        }
        self.is_over = true;
        Some(current)
    }
}

/// An element, and what its products are summed in.
trait Number: Copy {
    type Sum: Copy + Default;
    fn widened(self) -> Self::Sum;
    fn narrowed(sum: Self::Sum) -> Self;
    fn times(a: Self::Sum, b: Self::Sum) -> Self::Sum;
    fn plus(a: Self::Sum, b: Self::Sum) -> Self::Sum;
}

macro_rules! number {
    ($($t:ty, $sum:ty, $times:expr, $plus:expr);*) => { $(
        impl Number for $t {
            type Sum = $sum;
            fn widened(self) -> $sum { self as $sum }
            fn narrowed(sum: $sum) -> $t { sum as $t }
            fn times(a: $sum, b: $sum) -> $sum { $times(a, b) }
            fn plus(a: $sum, b: $sum) -> $sum { $plus(a, b) }
        }
    )* };
}
number! {
    f32, f64, |a, b| a * b, |a, b| a + b;
    f64, f64, |a, b| a * b, |a, b| a + b;
    i64, i64, i64::wrapping_mul, i64::wrapping_add
}

/// The result for few elements of one dtype while nothing records. A view if one operand is not summed. `None`: take the general way.
///
/// # Errors
/// [`crate::Error::Memory`].
pub(super) fn few(subscripts: &str, operands: &[&Array]) -> Result<Option<Array>> {
    let Some(lead) = operands.first() else {
        return Ok(None);
    };
    let dtype = lead.dtype();
    let is_open =
        |x: &&Array| x.dtype() == dtype && x.device().kind() == DeviceKind::Cpu && !x.is_weak();
    if operands.len() > OPERANDS
        || !matches!(dtype, DType::F32 | DType::F64 | DType::I64)
        || !operands.iter().all(is_open)
        || !Flags::current().is_plain()
    {
        return Ok(None);
    }
    let Some(loops) = Loops::of(subscripts, operands) else {
        return Ok(None);
    };
    let (all, kept) = (&loops.loops[..loops.len], &loops.loops[..loops.kept]);
    let products: usize = all.iter().map(|l| l.len).product();
    if operands.len() == 1 && loops.kept == loops.len {
        let shape: Dims = kept.iter().map(|l| l.len).collect();
        let strides: SmallVec<[isize; LETTERS]> = kept.iter().map(|l| l.steps[0]).collect();
        let layout = Layout::strided(&shape, &strides, lead.layout().offset())?;
        return Ok(Some(lead.seen_as(layout)));
    }
    if products == 0 || products > PRODUCTS {
        return Ok(None);
    }
    let mut reads = [lead.tensor().storage().var(); OPERANDS];
    let mut num_reads = 1;
    for x in &operands[1..] {
        let var = x.tensor().storage().var();
        if !reads[..num_reads]
            .iter()
            .any(|read| std::ptr::eq(*read, var))
        {
            reads[num_reads] = var;
            num_reads += 1;
        }
    }
    let Some(guard) = engine().try_acquire(&reads[..num_reads], &[], products as u64) else {
        return Ok(None);
    };
    if guard.poison().is_some() {
        return Ok(None);
    }
    let mut shape = [0; LETTERS];
    for (n, axis) in shape.iter_mut().zip(kept) {
        *n = axis.len;
    }
    let result = Tensor::empty(&shape[..loops.kept], dtype, lead.device())?;
    let mut data = [lead.tensor().data_ptr().cast_const(); OPERANDS];
    for (at, x) in data.iter_mut().zip(operands) {
        *at = x.tensor().data_ptr();
    }
    macro_rules! run {
        ($t:ty) => {{
            let data = data.map(|x| x.cast::<$t>());
            // SAFETY: 1. the operands have this dtype, and the loops are made of their layouts. 2. `guard` grants the reads; the result is new, has
            // an element for each round of the kept loops, and is known to nobody else.
            unsafe { loops.run(&data[..operands.len()], result.data_ptr().cast()) }
        }};
    }
    match dtype {
        DType::F32 => run!(f32),
        DType::F64 => run!(f64),
        _ => run!(i64),
    }
    drop(guard);
    Ok(Some(Array::from_tensor(result)))
}
