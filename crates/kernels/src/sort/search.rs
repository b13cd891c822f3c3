//! Binary search in sorted rows.

use super::key::{Key, Keyed, OrderedWord, with_keys};
use crate::reduce::by_isa;
use crate::scratch;
use crate::threads::split;
use crate::{Elem, Threads};

/// Insertion position among equal elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// Before them.
    Left,
    /// After them.
    Right,
}

/// With at most this many values, each is searched on its own.
const DIRECT_LEN: usize = 16;

/// For each of `m` values, writes the position at which it would be inserted into the `n` ascending elements at `sorted`.
///
/// # Safety
/// `sorted` and `values` hold `n` and `m` contiguous elements of type `elem`; `out` has room for `m` integers and overlaps neither.
#[expect(clippy::too_many_arguments, reason = "plain data of one small kernel")]
pub unsafe fn search_sorted(
    threads: &dyn Threads,
    side: Side,
    elem: Elem,
    sorted: *const u8,
    n: usize,
    values: *const u8,
    m: usize,
    out: *mut i64,
) {
    with_keys!(elem, T => {
        if m <= DIRECT_LEN {
            // For so few values, computing the keys of all elements would take longer than the searches.
            // SAFETY: guaranteed by the caller.
            let (sorted, values, out) = unsafe {
                (
                    std::slice::from_raw_parts(sorted.cast::<T>(), n),
                    std::slice::from_raw_parts(values.cast::<T>(), m),
                    std::slice::from_raw_parts_mut(out, m),
                )
            };
            for (value, out) in values.iter().zip(out) {
                let word = value.word();
                *out = match side {
                    Side::Left => sorted.partition_point(|x| x.word() < word),
                    Side::Right => sorted.partition_point(|x| x.word() <= word),
                } as i64;
            }
            return;
        }
        // SAFETY: guaranteed by the caller.
        let sorted = unsafe { Sorted::new(std::slice::from_raw_parts(sorted.cast::<T>(), n)) };
        each_chunk(threads, values.cast::<T>(), m, out, &|values, out| sorted.positions(side, values, out));
    }, C => {
        // SAFETY: guaranteed by the caller.
        let sorted = unsafe { std::slice::from_raw_parts(sorted.cast::<C>(), n) };
        each_chunk(threads, values.cast::<C>(), m, out, &|values, out| {
            for (value, out) in values.iter().zip(out) {
                let key = value.key();
                *out = match side {
                    Side::Left => sorted.partition_point(|x| x.key() < key),
                    Side::Right => sorted.partition_point(|x| x.key() <= key),
                } as i64;
            }
        });
    });
}

/// Calls `task` with the values and results of each chunk.
fn each_chunk<T: Sync>(
    threads: &dyn Threads,
    values: *const T,
    m: usize,
    out: *mut i64,
    task: &(dyn Fn(&[T], &mut [i64]) + Sync),
) {
    const CHUNK: usize = 1024;
    let (values, out) = (values as usize, out as usize);
    split(threads, m.div_ceil(CHUNK), m * 16, &|chunk| {
        let (start, end) = (chunk * CHUNK, m.min((chunk + 1) * CHUNK));
        // SAFETY: `search_sorted`'s caller gives `m` values and room for `m` results; chunks of the output are disjoint.
        let (values, out) = unsafe {
            (
                std::slice::from_raw_parts((values as *const T).add(start), end - start),
                std::slice::from_raw_parts_mut((out as *mut i64).add(start), end - start),
            )
        };
        task(values, out);
    });
}

/// Keys of ascending real elements, to search in.
pub(super) struct Sorted<T: OrderedWord> {
    keys: Vec<T::Word>,
}

/// Values searched together: each step of their binary searches is vectorised, and cache misses overlap.
const BATCH: usize = 64;

impl<T: OrderedWord> Sorted<T>
where
    T::Word: SearchKey,
{
    pub(super) fn new(elements: &[T]) -> Sorted<T> {
        let mut keys = scratch::filled(elements.len(), T::Word::LEAST);
        // SAFETY: there are as many keys as elements.
        unsafe { make_keys(elements.as_ptr(), elements.len(), keys.as_mut_ptr()) };
        Sorted { keys }
    }

    /// Writes for each value how many elements come before it.
    pub(super) fn positions(&self, side: Side, values: &[T], out: &mut [i64]) {
        let n = self.keys.len();
        let mut wanted = [T::Word::LEAST; BATCH];
        let mut found = [0_i64; BATCH];
        for (values, out) in values.chunks(BATCH).zip(out.chunks_mut(BATCH)) {
            // SAFETY: at most `BATCH` values; `n` keys; as many results as values.
            unsafe {
                make_keys(values.as_ptr(), values.len(), wanted.as_mut_ptr());
                match (side, i32::try_from(n)) {
                    (Side::Left, Ok(_)) => {
                        halve::<T::Word, <T::Word as SearchKey>::At, false>(
                            self.keys.as_ptr(),
                            n,
                            &wanted,
                            &mut found,
                        );
                    }
                    (Side::Right, Ok(_)) => {
                        halve::<T::Word, <T::Word as SearchKey>::At, true>(
                            self.keys.as_ptr(),
                            n,
                            &wanted,
                            &mut found,
                        );
                    }
                    (Side::Left, Err(_)) => {
                        halve::<T::Word, i64, false>(self.keys.as_ptr(), n, &wanted, &mut found)
                    }
                    (Side::Right, Err(_)) => {
                        halve::<T::Word, i64, true>(self.keys.as_ptr(), n, &wanted, &mut found)
                    }
                }
            }
            out.copy_from_slice(&found[..out.len()]);
        }
    }
}

by_isa! {
    unsafe fn make_keys [T: OrderedWord] [T] (elements: *const T, n: usize, keys: *mut T::Word) {
        for i in 0..n {
            // SAFETY: the caller gives `n` elements and room for `n` keys.
            unsafe { *keys.add(i) = (*elements.add(i)).word() };
        }
    }
}

/// A key, and the integer type for positions among the elements: of the key's size, so that a vector register has as many lanes of it as of keys.
/// Serves arrays whose elements the type can count.
pub(super) trait SearchKey: Key {
    type At: Position;
}

impl SearchKey for i32 {
    type At = i32;
}

impl SearchKey for i64 {
    type At = i64;
}

/// A position among the elements.
pub(super) trait Position: Copy {
    const ZERO: Self;
    fn of(n: usize) -> Self;
    fn plus(self, step: Self) -> Self;
    fn offset(self) -> isize;
}

macro_rules! positions {
    ($($t:ty),*) => { $(impl Position for $t {
        const ZERO: $t = 0;
        #[inline(always)]
        fn of(n: usize) -> $t { n as $t }
        #[inline(always)]
        fn plus(self, step: $t) -> $t { self.wrapping_add(step) }
        #[inline(always)]
        fn offset(self) -> isize { self as isize }
    })* };
}
positions!(i32, i64);

by_isa! {
    /// Branch-free binary search: how many of the `n` ascending keys are less than each wanted one (or equal to it, if `RIGHT`).
    unsafe fn halve [K: Key, P: Position, const RIGHT: bool] [K, P, RIGHT]
        (keys: *const K, n: usize, wanted: &[K; BATCH], found: &mut [i64; BATCH])
    {
        let mut base = [P::ZERO; BATCH];
        let mut len = n;
        while len > 0 {
            // The last round, with one key left, decides whether that one counts too.
            let half = len.div_ceil(2);
            let (step, middle) = (P::of(half), keys.wrapping_add(half - 1));
            for i in 0..BATCH {
                // SAFETY: `base + len` never exceeds `n`, the number of keys.
                let key = unsafe { *middle.offset(base[i].offset()) };
                let before = if RIGHT { key <= wanted[i] } else { key < wanted[i] };
                base[i] = base[i].plus(if before { step } else { P::ZERO });
            }
            len -= half;
        }
        for i in 0..BATCH {
            found[i] = base[i].offset() as i64;
        }
    }
}
