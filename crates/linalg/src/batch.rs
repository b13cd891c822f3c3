//! Batches of matrices: access to single matrices in byte arrays, and errors of single matrices.
#![allow(unsafe_code)]

use std::sync::{Mutex, PoisonError};

/// Runs `task(0)`, …, `task(n - 1)`, each once, in any order, possibly in parallel. Returns when all have ended.
pub type Run<'a> = &'a (dyn Fn(usize, &(dyn Fn(usize) + Sync)) + Sync);

/// Element types of matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Elem {
    /// 32-bit float.
    F32,
    /// 64-bit float.
    F64,
    /// Two 32-bit floats.
    C32,
    /// Two 64-bit floats.
    C64,
}

/// Evaluates an expression with a type name bound to the element type.
macro_rules! by_elem {
    ($elem:expr, $t:ident => $body:expr) => {
        match $elem {
            $crate::Elem::F32 => {
                type $t = f32;
                $body
            }
            $crate::Elem::F64 => {
                type $t = f64;
                $body
            }
            $crate::Elem::C32 => {
                type $t = num_complex::Complex<f32>;
                $body
            }
            $crate::Elem::C64 => {
                type $t = num_complex::Complex<f64>;
                $body
            }
        }
    };
}
pub(crate) use by_elem;

/// Why a matrix has no such factorisation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The pivot at this index is exactly zero.
    Singular(usize),
    /// The leading minor of this order is not positive definite.
    NotPositiveDefinite(usize),
    /// The matrix contains infinities or NaNs.
    NotFinite,
    /// The iteration did not converge.
    NoConvergence,
}

/// The first matrix of a batch whose factorisation failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Its position in the batch.
    pub index: usize,
    /// What is wrong with it.
    pub fault: Fault,
}

/// A type for which every bit pattern is a valid value.
pub(crate) trait AnyBitPattern: Copy + Send + Sync {}
impl AnyBitPattern for f32 {}
impl AnyBitPattern for f64 {}
impl AnyBitPattern for num_complex::Complex<f32> {}
impl AnyBitPattern for num_complex::Complex<f64> {}

/// Views bytes as elements.
///
/// # Panics
/// If the bytes are not aligned for the type or their number is not a multiple of its size.
pub(crate) fn elements<T: AnyBitPattern>(bytes: &[u8]) -> &[T] {
    if bytes.is_empty() {
        return &[];
    }
    let fits =
        bytes.len().is_multiple_of(size_of::<T>()) && bytes.as_ptr().cast::<T>().is_aligned();
    assert!(fits, "{} bytes hold elements of another type", bytes.len());
    // SAFETY: aligned and of whole length (checked above); every bit pattern is a value of the type.
    unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len() / size_of::<T>()) }
}

/// Views bytes as mutable elements.
///
/// # Panics
/// As [`elements`].
pub(crate) fn elements_mut<T: AnyBitPattern>(bytes: &mut [u8]) -> &mut [T] {
    if bytes.is_empty() {
        return &mut [];
    }
    let fits =
        bytes.len().is_multiple_of(size_of::<T>()) && bytes.as_ptr().cast::<T>().is_aligned();
    assert!(fits, "{} bytes hold elements of another type", bytes.len());
    // SAFETY: as in `elements`; the borrow is exclusive.
    unsafe {
        std::slice::from_raw_parts_mut(bytes.as_mut_ptr().cast(), bytes.len() / size_of::<T>())
    }
}

/// An output of a batch: equal parts, one per matrix.
pub(crate) struct Parts<'a, T> {
    ptr: *mut T,
    part_len: usize,
    count: usize,
    whole: std::marker::PhantomData<&'a mut [T]>,
}

// SAFETY: each part is given to one task only, so tasks access disjoint memory.
unsafe impl<T: Send> Sync for Parts<'_, T> {}

impl<'a, T> Parts<'a, T> {
    /// Parts of `part_len` elements.
    pub fn new(whole: &'a mut [T], part_len: usize) -> Parts<'a, T> {
        let count = whole.len().checked_div(part_len).unwrap_or(usize::MAX);
        Parts {
            ptr: whole.as_mut_ptr(),
            part_len,
            count,
            whole: std::marker::PhantomData,
        }
    }

    /// Part `i`.
    ///
    /// # Safety
    /// No other reference to this part exists.
    #[expect(clippy::mut_from_ref, reason = "parts are disjoint, by the contract")]
    unsafe fn part(&self, i: usize) -> &mut [T] {
        assert!(i < self.count, "part {i} of {}", self.count);
        // SAFETY: within the whole (checked above) and unique, by the contract.
        unsafe { std::slice::from_raw_parts_mut(self.ptr.add(i * self.part_len), self.part_len) }
    }
}

/// Number of floating-point operations of a task, large enough to be worth running on another thread.
const TASK_FLOPS: usize = 100_000;

/// Calls `body(work, i, part of a, part of b, part of c)` for every matrix `i` of a batch, in tasks of about [`TASK_FLOPS`]. Each task has its own
/// workspace. Returns the first failure.
pub(crate) fn each<A: Send, B: Send, C: Send, W>(
    run: Run,
    count: usize,
    flops: usize,
    outputs: (Parts<A>, Parts<B>, Parts<C>),
    make: impl Fn() -> W + Sync,
    body: impl Fn(&mut W, usize, &mut [A], &mut [B], &mut [C]) -> Result<(), Fault> + Sync,
) -> Result<(), Failure> {
    if count == 0 {
        return Ok(());
    }
    let step = (TASK_FLOPS / flops.max(1)).max(1);
    let first: Mutex<Option<Failure>> = Mutex::new(None);
    let (a, b, c) = &outputs;
    let task = |t: usize| {
        let mut work = make();
        for index in t * step..count.min((t + 1) * step) {
            // SAFETY: every index belongs to one task, which takes its parts once.
            let (a, b, c) = unsafe { (a.part(index), b.part(index), c.part(index)) };
            if let Err(fault) = body(&mut work, index, a, b, c) {
                let mut first = first.lock().unwrap_or_else(PoisonError::into_inner);
                if first.is_none_or(|f| index < f.index) {
                    *first = Some(Failure { index, fault });
                }
            }
        }
    };
    let tasks = count.div_ceil(step);
    if tasks == 1 {
        task(0);
    } else {
        run(tasks, &task);
    }
    first
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner)
        .map_or(Ok(()), Err)
}

/// Row-major (m, n) to column-major.
pub(crate) fn to_columns<T: Copy>(rows: &[T], columns: &mut [T], m: usize, n: usize) {
    // Blocks of 16 x 16 elements keep both sides in the L1 cache.
    const BLOCK: usize = 16;
    debug_assert!(rows.len() == m * n && columns.len() == m * n);
    for i0 in (0..m).step_by(BLOCK) {
        for j0 in (0..n).step_by(BLOCK) {
            for j in j0..n.min(j0 + BLOCK) {
                for i in i0..m.min(i0 + BLOCK) {
                    columns[j * m + i] = rows[i * n + j];
                }
            }
        }
    }
}
