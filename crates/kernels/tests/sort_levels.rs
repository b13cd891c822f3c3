//! Results of sorting and selecting integers are equal at every instruction-set level. A single test, because the level is global.

use mxnet_kernels::isa::{Isa, limit_isa, machine};
use mxnet_kernels::sort::{Order, Rows, partition, sort};
use mxnet_kernels::{Elem, Scoped, Serial, Threads};

/// A generator of Marsaglia's xorshift family.
fn noise(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// Inputs that are difficult for quicksort: the key at position i of n.
const ARRANGEMENTS: [fn(&mut u64, usize, usize) -> i64; 8] = [
    |state, _, _| noise(state) as i64,
    |state, _, _| (noise(state) % 3) as i64,
    |_, i, _| i as i64,
    |_, i, n| (n - i) as i64,
    |_, i, n| i.min(n - i) as i64,
    |_, _, _| i64::MAX,
    |state, _, _| {
        if noise(state) & 1 == 0 {
            i64::MIN
        } else {
            i64::MAX
        }
    },
    // The sample for the first pivot contains only the smallest keys.
    |_, i, n| {
        if i % (n / 16).max(1) == n / 32 {
            0
        } else {
            i as i64
        }
    },
];

fn check<T: Copy + Ord + std::fmt::Debug>(elem: Elem, element: fn(i64) -> T, level: Isa) {
    let mut state = 7;
    for n in (0..40).chain([63, 64, 65, 127, 128, 129, 130, 255, 257, 1000, 5001, 70_000]) {
        for (which, arrangement) in ARRANGEMENTS.iter().enumerate() {
            let keys: Vec<T> = (0..n)
                .map(|i| element(arrangement(&mut state, i, n)))
                .collect();
            let mut want = keys.clone();
            want.sort_unstable();
            let what = format!("{elem:?}, {level:?}, arrangement {which} of {n}");
            for threads in [&Serial as &dyn Threads, &Scoped(3)] {
                let mut got = keys.clone();
                let rows = Rows {
                    ptr: got.as_ptr().cast(),
                    elem,
                    rows: 1,
                    n,
                };
                // SAFETY: one row of `n` elements, sorted in place.
                unsafe { sort(threads, Order::Ascending, &rows, got.as_mut_ptr().cast()) };
                assert_eq!(got, want, "{what}");
            }
            if n > 0 {
                let kth = noise(&mut state) as usize % n;
                let mut got = keys.clone();
                let rows = Rows {
                    ptr: got.as_ptr().cast(),
                    elem,
                    rows: 1,
                    n,
                };
                // SAFETY: as above; `kth` lies in the row.
                unsafe { partition(&Serial, kth, &rows, got.as_mut_ptr().cast()) };
                assert_eq!(got[kth], want[kth], "{what}, {kth}");
                assert!(got[..kth].iter().all(|&x| x <= want[kth]), "{what}, {kth}");
                assert!(got[kth..].iter().all(|&x| x >= want[kth]), "{what}, {kth}");
                got.sort_unstable();
                assert_eq!(got, want, "{what}, {kth}");
            }
        }
    }
}

#[test]
fn every_level_sorts_and_selects() {
    for level in [Isa::Baseline, Isa::Avx2, Isa::Avx512] {
        limit_isa(level);
        check(Elem::I32, |key| key as i32, level);
        check(Elem::I64, |key| key, level);
        check(Elem::I16, |key| key as i16, level);
        check(Elem::U8, |key| key as u8, level);
    }
    limit_isa(machine());
}
