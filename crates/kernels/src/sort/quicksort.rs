//! Quicksort and selection of signed keys in registers: stable partitions between two arrays, sorting networks for what
//! eight registers hold.
//!
//! The order of keys is total, so results depend neither on the instruction set nor on threads or pivots.

#![allow(
    clippy::needless_range_loop,
    reason = "registers by number; iterator adapters may be compiled apart, without the instruction set"
)]

#[cfg(target_arch = "x86_64")]
use std::mem::MaybeUninit;

#[cfg(target_arch = "x86_64")]
use super::lanes::{Half32, Half64, Lanes, Wide32, Wide64};
use crate::Threads;
use crate::isa::{Isa, isa};
use crate::scratch;

/// Keys from which on one row is worth several threads.
const LONG: usize = 64 * 1024;

/// A signed key, 32 or 64 bits wide.
pub(super) trait Word: Copy + Ord + Send + Sync + 'static {
    /// # Safety
    /// `x` has `n` keys, `spare` room for `n`; both are this call's alone.
    unsafe fn sort_run(x: *mut Self, n: usize, spare: *mut Self);
    /// Brings the key that belongs at `kth` there, no larger one before it and no smaller one after it.
    ///
    /// # Safety
    /// As for `sort_run`; `kth < n`.
    unsafe fn select_run(x: *mut Self, n: usize, spare: *mut Self, kth: usize);
    /// Brings the keys below one of them to the front and answers how many they are.
    ///
    /// # Safety
    /// As for `sort_run`; `n > 0`.
    unsafe fn split_run(x: *mut Self, n: usize, spare: *mut Self) -> usize;
    fn wide(self) -> i64;
    fn reversed(self) -> Self;
}

/// Room for `n` keys, its contents unspecified.
fn room<W: Word>(spare: &mut Vec<W>, n: usize) -> *mut W {
    spare.clear();
    scratch::reserve(spare, n);
    spare.as_mut_ptr()
}

/// Brings the key that belongs at `kth` there, no larger one before it and no smaller one after it.
pub(super) fn select<W: Word>(x: &mut [W], kth: usize, spare: &mut Vec<W>) {
    assert!(kth < x.len(), "position {kth} of {}", x.len());
    // SAFETY: `room` made the room.
    unsafe { W::select_run(x.as_mut_ptr(), x.len(), room(spare, x.len()), kth) }
}

/// Puts the keys in order. `spare` is memory that calls in a row can share.
pub(super) fn sort<W: Word>(threads: &dyn Threads, x: &mut [W], spare: &mut Vec<W>) {
    let spare = room(spare, x.len());
    if x.len() < LONG || threads.count() < 2 {
        // SAFETY: `room` made the room.
        return unsafe { W::sort_run(x.as_mut_ptr(), x.len(), spare) };
    }
    // Halves of halves until there are enough for all threads; the parts of a level are halved at the same time.
    let (base, spare) = (x.as_mut_ptr() as usize, spare as usize);
    let mut parts = vec![(0, x.len())];
    for _ in 0..(2 * threads.count()).ilog2() {
        let mut below = vec![0_usize; parts.len()];
        let found = below.as_mut_ptr() as usize;
        threads.run(parts.len(), &|p| {
            let (start, len) = parts[p];
            if len >= LONG / 4 {
                // SAFETY: parts lie apart in `x` and in the spare array; every task writes its own count.
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

/// Functions `avx512` and `avx2` that run `$body` on the registers of these instruction sets.
macro_rules! compiled {
    ($wide:ident, $half:ident, $body:ident($($arg:ident: $ty:ty),*) -> $ret:ty) => {
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,movbe,popcnt,avx512f,avx512bw,avx512cd,avx512dq,avx512vl")]
        unsafe fn avx512($($arg: $ty),*) -> $ret {
            // SAFETY: the caller's.
            unsafe { $body::<$wide>($($arg),*) }
        }
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,movbe,popcnt")]
        unsafe fn avx2($($arg: $ty),*) -> $ret {
            // SAFETY: the caller's.
            unsafe { $body::<$half>($($arg),*) }
        }
    };
}

macro_rules! word {
    ($word:ty, $wide:ident, $half:ident) => {
        impl Word for $word {
            unsafe fn sort_run(x: *mut Self, n: usize, spare: *mut Self) {
                compiled!($wide, $half, quicksort(x: *mut $word, n: usize, spare: *mut $word) -> ());
                match isa() {
                    #[cfg(target_arch = "x86_64")]
                    // SAFETY: the caller's; `isa()` found the features.
                    Isa::Avx512 => unsafe { avx512(x, n, spare) },
                    #[cfg(target_arch = "x86_64")]
                    // SAFETY: as above.
                    Isa::Avx2 => unsafe { avx2(x, n, spare) },
                    // SAFETY: the caller's.
                    _ => unsafe { std::slice::from_raw_parts_mut(x, n) }.sort_unstable(),
                }
            }
            unsafe fn select_run(x: *mut Self, n: usize, spare: *mut Self, kth: usize) {
                compiled!($wide, $half, quickselect(x: *mut $word, n: usize, spare: *mut $word, kth: usize) -> ());
                match isa() {
                    #[cfg(target_arch = "x86_64")]
                    // SAFETY: the caller's; `isa()` found the features.
                    Isa::Avx512 => unsafe { avx512(x, n, spare, kth) },
                    #[cfg(target_arch = "x86_64")]
                    // SAFETY: as above.
                    Isa::Avx2 => unsafe { avx2(x, n, spare, kth) },
                    _ => {
                        // SAFETY: the caller's.
                        unsafe { std::slice::from_raw_parts_mut(x, n) }.select_nth_unstable(kth);
                    }
                }
            }
            unsafe fn split_run(x: *mut Self, n: usize, spare: *mut Self) -> usize {
                compiled!($wide, $half, halve(x: *mut $word, n: usize, spare: *mut $word) -> usize);
                match isa() {
                    #[cfg(target_arch = "x86_64")]
                    // SAFETY: the caller's; `isa()` found the features.
                    Isa::Avx512 => unsafe { avx512(x, n, spare) },
                    #[cfg(target_arch = "x86_64")]
                    // SAFETY: as above.
                    Isa::Avx2 => unsafe { avx2(x, n, spare) },
                    _ => {
                        // SAFETY: the caller's.
                        unsafe { std::slice::from_raw_parts_mut(x, n) }.select_nth_unstable(n / 2);
                        n / 2
                    }
                }
            }
            #[inline(always)]
            fn wide(self) -> i64 {
                self as i64
            }
            #[inline(always)]
            fn reversed(self) -> Self {
                !self
            }
        }
    };
}

word!(i32, Wide32, Half32);
word!(i64, Wide64, Half64);

/// Registers that a sorting network fills.
#[cfg(target_arch = "x86_64")]
const NETWORK: usize = 8;

/// Parts that wait for their turn: the smaller ones are done first, so that there are never more than the length has bits.
#[cfg(target_arch = "x86_64")]
const WAITING: usize = 64;

/// Some keys that are to be sorted: `home` is where they end up, and they lie there or in `away`, which has room for as many.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
struct Part<K> {
    home: *mut K,
    away: *mut K,
    is_home: bool,
    n: usize,
    /// How many bad pivots it may still have; then it is left to a sort with a bound.
    patience: u32,
}

/// # Safety
/// As for [`Word::sort_run`]; the instruction set of `L`.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn quicksort<L: Lanes>(x: *mut L::Key, n: usize, spare: *mut L::Key) {
    let mut waiting = [const { MaybeUninit::<Part<L::Key>>::uninit() }; WAITING];
    let mut part = Part {
        home: x,
        away: spare,
        is_home: true,
        n,
        patience: 2 * (n | 1).ilog2() + 4,
    };
    let mut count = 0;
    loop {
        let from = if part.is_home { part.home } else { part.away };
        // SAFETY: the homes of parts lie apart inside `x`, their other places apart inside the spare array.
        unsafe {
            if part.n <= NETWORK * L::LEN {
                small::<L>(from, part.home, part.n);
            } else if part.patience == 0 {
                if !part.is_home {
                    std::ptr::copy_nonoverlapping(from, part.home, part.n);
                }
                std::slice::from_raw_parts_mut(part.home, part.n).sort_unstable();
            } else {
                part.patience -= 1;
                let pivot = pivot::<L>(from, part.n);
                let mut below = partition::<L, false>(from, part.n, part.home, part.away, pivot);
                let mut done = 0;
                if below == 0 {
                    // The pivot is the smallest key: what equals it is in place once it stands in front.
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
        // SAFETY: parts `0..count` were written.
        part = unsafe { waiting[count].assume_init() };
    }
}

/// # Safety
/// As for [`Word::select_run`]; the instruction set of `L`.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn quickselect<L: Lanes>(x: *mut L::Key, n: usize, spare: *mut L::Key, kth: usize) {
    let (mut x, mut n, mut kth) = (x, n, kth);
    for _ in 0..2 * (n | 1).ilog2() + 4 {
        // SAFETY: the part lies inside the caller's, and the spare array is as long.
        unsafe {
            if n <= NETWORK * L::LEN {
                return small::<L>(x, x, n);
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
/// As for [`Word::split_run`]; the instruction set of `L`.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn halve<L: Lanes>(x: *mut L::Key, n: usize, spare: *mut L::Key) -> usize {
    // SAFETY: the caller's.
    unsafe {
        if n <= NETWORK * L::LEN {
            small::<L>(x, x, n);
            return n / 2;
        }
        let (below, done) = cut::<L>(x, n, spare);
        below + done
    }
}

/// Cuts a part in two: smaller keys, then perhaps keys that are in place since they are all equal, then others. Answers how many are smaller and
/// how many in place; never are all keys on one side.
///
/// # Safety
/// `x` has `n > NETWORK * LEN` keys, `spare` room for as many.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn cut<L: Lanes>(x: *mut L::Key, n: usize, spare: *mut L::Key) -> (usize, usize) {
    // SAFETY: the caller's; the keys that are not below go back behind those that are.
    unsafe {
        let pivot = pivot::<L>(x, n);
        let below = partition::<L, false>(x, n, x, spare, pivot);
        if below > 0 {
            std::ptr::copy_nonoverlapping(spare, x.add(below), n - below);
            return (below, 0);
        }
        // The pivot is the smallest key: what equals it is in place once it stands in front.
        let equal = partition::<L, true>(spare, n, x, spare, pivot);
        std::ptr::copy_nonoverlapping(spare, x.add(equal), n - equal);
        (0, equal)
    }
}

/// The median of some keys at even distances.
///
/// # Safety
/// `x` has `n > NETWORK * LEN` keys.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn pivot<L: Lanes>(x: *const L::Key, n: usize) -> L::Key {
    // SAFETY: the positions lie inside `x`; the array has room for the sample.
    unsafe {
        let mut room = MaybeUninit::<[L::Key; 128]>::uninit();
        let sample = room.as_mut_ptr().cast::<L::Key>();
        let step = if n < 2048 {
            n / L::LEN
        } else {
            n / (NETWORK * L::LEN)
        };
        // Two loops, so that each has a length that is known.
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

/// Writes the keys below the pivot (`EQUAL`: and those equal to it) to `low`, the others to `high`, and answers how many are below. Keys of either
/// side keep their order.
///
/// # Safety
/// `from` has `n` keys, `low` and `high` have room for as many and lie apart; `from` may be one of them.
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
    // SAFETY: `below` and `rest` never exceed `i`: whole registers stored there end before the one that was read ends.
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

/// Sorts what eight registers hold, on the way from one place to another or the same.
///
/// # Safety
/// `from` has `n <= NETWORK * LEN` keys, `to` room for as many; they are the same or lie apart.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn small<L: Lanes>(from: *const L::Key, to: *mut L::Key, n: usize) {
    // SAFETY: the caller's.
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

/// Bitonic sort of `N` registers; those beyond `n` hold copies of the largest key, which stay behind.
///
/// # Safety
/// `from` has `n <= N * LEN` keys, `to` room for as many; they are the same or lie apart.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn network<L: Lanes, const N: usize>(from: *const L::Key, to: *mut L::Key, n: usize) {
    // SAFETY: whole registers are loaded and stored inside the places, the last one through an array of its own.
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
/// The instruction set of `L`.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn sort_each<L: Lanes, const N: usize>(v: &mut [L::Vector; N]) {
    macro_rules! step {
        ($($x:literal)*) => {
            // SAFETY: the caller's; pairs lie inside a register.
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

/// Merges each sorted run of `W` registers with the next.
///
/// # Safety
/// The instruction set of `L`; `2 * W` divides `N`.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn merge<L: Lanes, const N: usize, const W: usize>(v: &mut [L::Vector; N]) {
    // SAFETY: the caller's.
    unsafe {
        // The second run backwards: the pairs' smaller keys are the smaller half of all, and either half is bitonic. Pairs i and
        // W - 1 - i of a run read each other's places and are done together.
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

/// Orders the registers that are `APART`.
///
/// # Safety
/// The instruction set of `L`.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn halves<L: Lanes, const N: usize, const APART: usize>(v: &mut [L::Vector; N]) {
    for i in 0..N {
        if i & APART == 0 {
            let (a, b) = (v[i], v[i + APART]);
            // SAFETY: the caller's.
            unsafe {
                v[i] = L::min(a, b);
                v[i + APART] = L::max(a, b);
            }
        }
    }
}
