//! Vectorised quicksort and quickselect of signed keys: stable partitions between two arrays, and sorting networks for up to eight registers.
//!
//! The order of keys is total, so results depend neither on the instruction set nor on threads or pivots.

#![allow(
    clippy::needless_range_loop,
    reason = "registers by number; iterator adapters may be compiled apart, without the instruction set"
)]

#[cfg(target_arch = "x86_64")]
use std::mem::MaybeUninit;

#[cfg(target_arch = "x86_64")]
use super::lanes::{Avx2Keys32, Avx2Keys64, Avx512Keys32, Avx512Keys64, Lanes};
use crate::Threads;
use crate::isa::{Isa, isa};
use crate::scratch;

/// Number of keys from which on one row is sorted by several threads.
const LONG: usize = 64 * 1024;

/// A signed key of 32 or 64 bits.
pub(super) trait Word: Copy + Ord + Send + Sync + 'static {
    /// # Safety
    /// `x` has `n` keys, `spare` has room for `n`; nothing else accesses them during the call.
    unsafe fn sort_run(x: *mut Self, n: usize, spare: *mut Self);
    /// Partitions such that the key at `kth` is the one that sorting would put there: no key before it is larger, none after it smaller.
    ///
    /// # Safety
    /// Same as for `sort_run`; `kth < n`.
    unsafe fn select_run(x: *mut Self, n: usize, spare: *mut Self, kth: usize);
    /// Moves the keys below a pivot to the front and returns how many there are.
    ///
    /// # Safety
    /// Same as for `sort_run`; `n > 0`.
    unsafe fn split_run(x: *mut Self, n: usize, spare: *mut Self) -> usize;
    fn to_i64(self) -> i64;
    fn reversed(self) -> Self;
}

/// An uninitialised buffer for `n` keys.
fn buffer<W: Word>(spare: &mut Vec<W>, n: usize) -> *mut W {
    spare.clear();
    scratch::reserve(spare, n);
    spare.as_mut_ptr()
}

/// Partitions such that the key at `kth` is the one that sorting would put there: no key before it is larger, none after it smaller.
pub(super) fn select<W: Word>(x: &mut [W], kth: usize, spare: &mut Vec<W>) {
    assert!(kth < x.len(), "position {kth} of {}", x.len());
    // SAFETY: `buffer` reserved the memory.
    unsafe { W::select_run(x.as_mut_ptr(), x.len(), buffer(spare, x.len()), kth) }
}

/// Sorts the keys. `spare` is working memory that consecutive calls can share.
pub(super) fn sort<W: Word>(threads: &dyn Threads, x: &mut [W], spare: &mut Vec<W>) {
    let spare = buffer(spare, x.len());
    if x.len() < LONG || threads.count() < 2 {
        // SAFETY: `buffer` reserved the memory.
        return unsafe { W::sort_run(x.as_mut_ptr(), x.len(), spare) };
    }
    // Splits recursively until there are enough parts for all threads; the parts of one level are split in parallel.
    let (base, spare) = (x.as_mut_ptr() as usize, spare as usize);
    let mut parts = vec![(0, x.len())];
    for _ in 0..(2 * threads.count()).ilog2() {
        let mut below = vec![0_usize; parts.len()];
        let found = below.as_mut_ptr() as usize;
        threads.run(parts.len(), &|p| {
            let (start, len) = parts[p];
            if len >= LONG / 4 {
                // SAFETY: parts are disjoint in `x` and in the spare array; every task writes its own count.
                unsafe {
                    let (x, spare) = ((base as *mut W).add(start), (spare as *mut W).add(start));
                    *(found as *mut usize).add(p) = W::split_run(x, len, spare);
                }
            }
        });
        parts = parts
            .iter()
            .zip(&below)
            .flat_map(|(&(start, len), &count)| [(start, count), (start + count, len - count)])
            .filter(|part| part.1 > 0)
            .collect();
    }
    threads.run(parts.len(), &|p| {
        let (start, len) = parts[p];
        // SAFETY: as above.
        unsafe {
            W::sort_run(
                (base as *mut W).add(start),
                len,
                (spare as *mut W).add(start),
            )
        };
    });
}

/// Defines functions `avx512` and `avx2` that run `$body` on the registers of these instruction sets.
macro_rules! compiled {
    ($keys512:ident, $keys256:ident, $body:ident($($arg:ident: $ty:ty),*) -> $ret:ty) => {
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,movbe,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl")]
        unsafe fn avx512($($arg: $ty),*) -> $ret {
            // SAFETY: guaranteed by the caller.
            unsafe { $body::<$keys512>($($arg),*) }
        }
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,movbe,popcnt")]
        unsafe fn avx2($($arg: $ty),*) -> $ret {
            // SAFETY: guaranteed by the caller.
            unsafe { $body::<$keys256>($($arg),*) }
        }
    };
}

macro_rules! word {
    ($word:ty, $keys512:ident, $keys256:ident) => {
        impl Word for $word {
            unsafe fn sort_run(x: *mut Self, n: usize, spare: *mut Self) {
                compiled!($keys512, $keys256, quicksort(x: *mut $word, n: usize, spare: *mut $word) -> ());
                match isa() {
                    #[cfg(target_arch = "x86_64")]
                    // SAFETY: guaranteed by the caller; `isa()` found the features.
                    Isa::Avx512 => unsafe { avx512(x, n, spare) },
                    #[cfg(target_arch = "x86_64")]
                    // SAFETY: as above.
                    Isa::Avx2 => unsafe { avx2(x, n, spare) },
                    // SAFETY: guaranteed by the caller.
                    _ => unsafe { std::slice::from_raw_parts_mut(x, n) }.sort_unstable(),
                }
            }
            unsafe fn select_run(x: *mut Self, n: usize, spare: *mut Self, kth: usize) {
                compiled!($keys512, $keys256, quickselect(x: *mut $word, n: usize, spare: *mut $word, kth: usize) -> ());
                match isa() {
                    #[cfg(target_arch = "x86_64")]
                    // SAFETY: guaranteed by the caller; `isa()` found the features.
                    Isa::Avx512 => unsafe { avx512(x, n, spare, kth) },
                    #[cfg(target_arch = "x86_64")]
                    // SAFETY: as above.
                    Isa::Avx2 => unsafe { avx2(x, n, spare, kth) },
                    _ => {
                        // SAFETY: guaranteed by the caller.
                        unsafe { std::slice::from_raw_parts_mut(x, n) }.select_nth_unstable(kth);
                    }
                }
            }
            unsafe fn split_run(x: *mut Self, n: usize, spare: *mut Self) -> usize {
                compiled!($keys512, $keys256, halve(x: *mut $word, n: usize, spare: *mut $word) -> usize);
                match isa() {
                    #[cfg(target_arch = "x86_64")]
                    // SAFETY: guaranteed by the caller; `isa()` found the features.
                    Isa::Avx512 => unsafe { avx512(x, n, spare) },
                    #[cfg(target_arch = "x86_64")]
                    // SAFETY: as above.
                    Isa::Avx2 => unsafe { avx2(x, n, spare) },
                    _ => {
                        // SAFETY: guaranteed by the caller.
                        unsafe { std::slice::from_raw_parts_mut(x, n) }.select_nth_unstable(n / 2);
                        n / 2
                    }
                }
            }
            #[inline(always)]
            fn to_i64(self) -> i64 {
                self as i64
            }
            #[inline(always)]
            fn reversed(self) -> Self {
                !self
            }
        }
    };
}

word!(i32, Avx512Keys32, Avx2Keys32);
word!(i64, Avx512Keys64, Avx2Keys64);

/// Number of registers in a sorting network.
#[cfg(target_arch = "x86_64")]
const NETWORK: usize = 8;

/// Capacity of the stack of parts. Smaller parts are sorted first, so it never holds more parts than the length has bits.
#[cfg(target_arch = "x86_64")]
const WAITING: usize = 64;

/// Keys to be sorted: the result goes to `home`; the keys are now there or in `away`, which has the same size.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
struct Part<K> {
    home: *mut K,
    away: *mut K,
    is_home: bool,
    n: usize,
    /// Number of bad pivots left; at 0 the part is sorted by an algorithm with a worst-case bound.
    bad_pivots_left: u32,
}

/// # Safety
/// Same as for [`Word::sort_run`]; the CPU has the instruction set of `L`.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn quicksort<L: Lanes>(x: *mut L::Key, n: usize, spare: *mut L::Key) {
    let mut waiting = [const { MaybeUninit::<Part<L::Key>>::uninit() }; WAITING];
    let mut part = Part {
        home: x,
        away: spare,
        is_home: true,
        n,
        bad_pivots_left: 2 * (n | 1).ilog2() + 4,
    };
    let mut count = 0;
    loop {
        let from = if part.is_home { part.home } else { part.away };
        // SAFETY: the homes of parts are disjoint in `x`, their other arrays are disjoint in the spare array.
        unsafe {
            if part.n <= NETWORK * L::LEN {
                sort_by_network::<L>(from, part.home, part.n);
            } else if part.bad_pivots_left == 0 {
                if !part.is_home {
                    std::ptr::copy_nonoverlapping(from, part.home, part.n);
                }
                std::slice::from_raw_parts_mut(part.home, part.n).sort_unstable();
            } else {
                part.bad_pivots_left -= 1;
                let pivot = pivot::<L>(from, part.n);
                let mut below = partition::<L, false>(from, part.n, part.home, part.away, pivot);
                let mut done = 0;
                if below == 0 {
                    // The pivot is the smallest key: once the keys equal to it are in front, they are in place.
                    done = partition::<L, true>(part.away, part.n, part.home, part.away, pivot);
                    below = done;
                }
                let rest = part.n - below;
                let first = Part {
                    away: part.away.add(rest),
                    is_home: true,
                    n: below - done,
                    ..part
                };
                let last = Part {
                    home: part.home.add(below),
                    is_home: false,
                    n: rest,
                    ..part
                };
                let (now, later) = if first.n < last.n {
                    (first, last)
                } else {
                    (last, first)
                };
                waiting[count] = MaybeUninit::new(later);
                count += 1;
                part = now;
                continue;
            }
        }
        if count == 0 {
            return;
        }
        count -= 1;
        // SAFETY: parts `0..count` are initialised.
        part = unsafe { waiting[count].assume_init() };
    }
}

/// # Safety
/// Same as for [`Word::select_run`]; the CPU has the instruction set of `L`.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn quickselect<L: Lanes>(x: *mut L::Key, n: usize, spare: *mut L::Key, kth: usize) {
    let (mut x, mut n, mut kth) = (x, n, kth);
    for _ in 0..2 * (n | 1).ilog2() + 4 {
        // SAFETY: the part lies inside the caller's, and the spare array has the same length.
        unsafe {
            if n <= NETWORK * L::LEN {
                return sort_by_network::<L>(x, x, n);
            }
            let (below, done) = cut::<L>(x, n, spare);
            if kth < below {
                n = below;
            } else if kth < below + done {
                return;
            } else {
                (x, n, kth) = (x.add(below + done), n - below - done, kth - below - done);
            }
        }
    }
    // SAFETY: as above.
    unsafe { std::slice::from_raw_parts_mut(x, n) }.select_nth_unstable(kth);
}

/// # Safety
/// Same as for [`Word::split_run`]; the CPU has the instruction set of `L`.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn halve<L: Lanes>(x: *mut L::Key, n: usize, spare: *mut L::Key) -> usize {
    // SAFETY: guaranteed by the caller.
    unsafe {
        if n <= NETWORK * L::LEN {
            sort_by_network::<L>(x, x, n);
            return n / 2;
        }
        let (below, done) = cut::<L>(x, n, spare);
        below + done
    }
}

/// Partitions a part: smaller keys, then possibly keys that are all equal and so in place, then the others. Returns the number of smaller keys and
/// the number of keys in place. Never are all keys on one side.
///
/// # Safety
/// `x` has `n > NETWORK * LEN` keys, `spare` has room for `n`.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn cut<L: Lanes>(x: *mut L::Key, n: usize, spare: *mut L::Key) -> (usize, usize) {
    // SAFETY: guaranteed by the caller; the keys that are not below are copied back after those that are.
    unsafe {
        let pivot = pivot::<L>(x, n);
        let below = partition::<L, false>(x, n, x, spare, pivot);
        if below > 0 {
            std::ptr::copy_nonoverlapping(spare, x.add(below), n - below);
            return (below, 0);
        }
        // The pivot is the smallest key: once the keys equal to it are in front, they are in place.
        let equal = partition::<L, true>(spare, n, x, spare, pivot);
        std::ptr::copy_nonoverlapping(spare, x.add(equal), n - equal);
        (0, equal)
    }
}

/// The median of a sample of keys at regular distances.
///
/// # Safety
/// `x` has `n > NETWORK * LEN` keys.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn pivot<L: Lanes>(x: *const L::Key, n: usize) -> L::Key {
    // SAFETY: the positions lie inside `x`; the array has room for the sample.
    unsafe {
        let mut buffer = MaybeUninit::<[L::Key; 128]>::uninit();
        let sample = buffer.as_mut_ptr().cast::<L::Key>();
        let step = if n < 2048 {
            n / L::LEN
        } else {
            n / (NETWORK * L::LEN)
        };
        // Two calls, so that each sample has a constant length.
        if n < 2048 {
            for i in 0..L::LEN {
                *sample.add(i) = *x.add(i * step + step / 2);
            }
            network::<L, 1>(sample, sample, L::LEN);
            *sample.add(L::LEN / 2)
        } else {
            for i in 0..NETWORK * L::LEN {
                *sample.add(i) = *x.add(i * step + step / 2);
            }
            network::<L, NETWORK>(sample, sample, NETWORK * L::LEN);
            *sample.add(NETWORK * L::LEN / 2)
        }
    }
}

/// Stable partition: writes the keys below the pivot (`EQUAL`: and those equal to it) to `low`, the others to `high`. Returns how many are below.
///
/// # Safety
/// `from` has `n` keys; `low` and `high` have room for `n` and do not overlap; `from` may be one of them.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn partition<L: Lanes, const EQUAL: bool>(
    from: *const L::Key,
    n: usize,
    low: *mut L::Key,
    high: *mut L::Key,
    pivot: L::Key,
) -> usize {
    let (mut below, mut rest, mut i) = (0, 0, 0);
    // SAFETY: `below` and `rest` never exceed `i`, so registers stored there end before the end of the register that was read.
    unsafe {
        let bound = L::splat(pivot);
        while i + L::LEN <= n {
            let v = L::load(from.add(i));
            let count = L::split::<EQUAL>(v, bound, low.add(below), high.add(rest));
            below += count;
            rest += L::LEN - count;
            i += L::LEN;
        }
        while i < n {
            let key = *from.add(i);
            *low.add(below) = key;
            *high.add(rest) = key;
            let count = (key < pivot || (EQUAL && key == pivot)) as usize;
            below += count;
            rest += 1 - count;
            i += 1;
        }
    }
    below
}

/// Sorts up to eight registers of keys.
///
/// # Safety
/// `from` has `n <= NETWORK * LEN` keys, `to` has room for `n`; they are equal or do not overlap.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn sort_by_network<L: Lanes>(from: *const L::Key, to: *mut L::Key, n: usize) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        match n.div_ceil(L::LEN) {
            0 => {}
            1 => network::<L, 1>(from, to, n),
            2 => network::<L, 2>(from, to, n),
            3 | 4 => network::<L, 4>(from, to, n),
            _ => network::<L, NETWORK>(from, to, n),
        }
    }
}

/// Bitonic sort of `N` registers. Lanes after `n` are padded with the largest key and sort to the end.
///
/// # Safety
/// `from` has `n <= N * LEN` keys, `to` has room for `n`; they are equal or do not overlap.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn network<L: Lanes, const N: usize>(from: *const L::Key, to: *mut L::Key, n: usize) {
    // SAFETY: whole registers are loaded and stored inside the arrays; the last one goes through a local array.
    unsafe {
        let (full, left) = (n / L::LEN, n % L::LEN);
        let mut last = [L::LARGEST; 16];
        let mut v = [L::splat(L::LARGEST); N];
        for i in 0..N {
            if i < full {
                v[i] = L::load(from.add(i * L::LEN));
            } else if i == full && left > 0 {
                std::ptr::copy_nonoverlapping(from.add(full * L::LEN), last.as_mut_ptr(), left);
                v[i] = L::load(last.as_ptr());
            }
        }
        sort_each::<L, N>(&mut v);
        if N >= 2 {
            merge::<L, N, 1>(&mut v);
        }
        if N >= 4 {
            merge::<L, N, 2>(&mut v);
        }
        if N >= 8 {
            merge::<L, N, 4>(&mut v);
        }
        for i in 0..N {
            if i < full {
                L::store(to.add(i * L::LEN), v[i]);
            } else if i == full && left > 0 {
                L::store(last.as_mut_ptr(), v[i]);
                std::ptr::copy_nonoverlapping(last.as_ptr(), to.add(full * L::LEN), left);
            }
        }
    }
}

/// Sorts every register.
///
/// # Safety
/// The CPU has the instruction set of `L`.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn sort_each<L: Lanes, const N: usize>(v: &mut [L::Vector; N]) {
    macro_rules! step {
        ($($x:literal)*) => {
            // SAFETY: guaranteed by the caller; pairs lie inside a register.
            unsafe { $(for i in 0..N { v[i] = L::ordered::<$x>(v[i]); })* }
        };
    }
    step!(1 3 1);
    if L::LEN >= 8 {
        step!(7 2 1);
    }
    if L::LEN >= 16 {
        step!(15 4 2 1);
    }
}

/// Merges each sorted run of `W` registers with the next one.
///
/// # Safety
/// The CPU has the instruction set of `L`; `2 * W` divides `N`.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn merge<L: Lanes, const N: usize, const W: usize>(v: &mut [L::Vector; N]) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        // The second run is reversed: the minima of the pairs are then the smaller half of all keys, and both halves are bitonic. Pairs i and
        // W - 1 - i of a run exchange registers and are processed together.
        for i in 0..N {
            if i & W == 0 && i % W < W.div_ceil(2) {
                let j = (i | (W - 1)) - i % W;
                let (low_i, low_j) = (v[i], v[j]);
                let (high_i, high_j) = (L::backwards(v[j + W]), L::backwards(v[i + W]));
                v[i] = L::min(low_i, high_i);
                v[i + W] = L::max(low_i, high_i);
                if i != j {
                    v[j] = L::min(low_j, high_j);
                    v[j + W] = L::max(low_j, high_j);
                }
            }
        }
        if W >= 4 {
            halves::<L, N, 2>(v);
        }
        if W >= 2 {
            halves::<L, N, 1>(v);
        }
        macro_rules! step {
            ($x:literal) => {
                if L::LEN > $x {
                    for i in 0..N {
                        v[i] = L::ordered::<$x>(v[i]);
                    }
                }
            };
        }
        step!(8);
        step!(4);
        step!(2);
        step!(1);
    }
}

/// Compare-exchange of registers at distance `DISTANCE`.
///
/// # Safety
/// The CPU has the instruction set of `L`.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn halves<L: Lanes, const N: usize, const DISTANCE: usize>(v: &mut [L::Vector; N]) {
    for i in 0..N {
        if i & DISTANCE == 0 {
            let (a, b) = (v[i], v[i + DISTANCE]);
            // SAFETY: guaranteed by the caller.
            unsafe {
                v[i] = L::min(a, b);
                v[i + DISTANCE] = L::max(a, b);
            }
        }
    }
}
