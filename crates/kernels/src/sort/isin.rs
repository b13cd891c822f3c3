//! Membership: which elements of one array occur in another (`isin`).

use super::key::{Key, Keyed};
use crate::reduce::{by_isa, with_elem};
use crate::scratch;
use crate::threads::split;
use crate::{Elem, Threads};

/// Method of the lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lookup {
    /// Comparison with each member if there are at most [`MAX_COMPARED`]; otherwise a table of truth values over the range of the members if that is
    /// small enough; otherwise hashing.
    Auto,
    /// Hashing.
    Hash,
    /// Merging: values and members are in ascending order, NaNs last.
    Ascending,
}

/// A table of flags is used for up to this many flags per element.
const FLAGS: usize = 8;

/// Up to this many members are compared with each value. A loop of comparisons is vectorised; a lookup takes one value at a time.
const MAX_COMPARED: usize = 24;

/// Writes for each of `m` values whether it equals one of the `n` members. NaN equals nothing.
///
/// # Safety
/// `values` and `members` hold `m` and `n` contiguous elements of type `elem`; `out` has room for `m` bytes and overlaps neither.
#[expect(clippy::too_many_arguments, reason = "plain data of one small kernel")]
pub unsafe fn contains(
    threads: &dyn Threads,
    lookup: Lookup,
    elem: Elem,
    values: *const u8,
    m: usize,
    members: *const u8,
    n: usize,
    out: *mut u8,
) {
    const CHUNK: usize = 4096;
    if lookup == Lookup::Ascending {
        // SAFETY: guaranteed by the caller.
        return unsafe { contains_ascending(threads, elem, values, m, members, n, out) };
    }
    let (values, out) = (values as usize, out as usize);
    with_elem!(elem, T => {
        // SAFETY: guaranteed by the caller.
        let members = unsafe { std::slice::from_raw_parts(members.cast::<T>(), n) };
        let set = (lookup == Lookup::Hash || n > MAX_COMPARED).then(|| {
            let keys = scratch::collected(n, members.iter().filter(|x| !Keyed::is_nan(**x)).map(|x| x.key()));
            Set::new(lookup, &keys, m)
        });
        split(threads, m.div_ceil(CHUNK), m * 8, &|chunk| {
            let (start, end) = (chunk * CHUNK, m.min((chunk + 1) * CHUNK));
            // SAFETY: the caller's arrays; chunks of the output are disjoint.
            let (values, out) = unsafe {
                (
                    std::slice::from_raw_parts((values as *const T).add(start), end - start),
                    std::slice::from_raw_parts_mut((out as *mut u8).add(start), end - start),
                )
            };
            let Some(set) = &set else {
                // SAFETY: as many results as values.
                return unsafe { equal_any::<T>(values, members, out) };
            };
            for (out, value) in out.iter_mut().zip(values) {
                *out = u8::from(!Keyed::is_nan(*value) && set.has(value.key()));
            }
        });
    });
}

by_isa! {
    /// Writes for each value whether it equals one of the members.
    ///
    /// # Safety
    /// `out` is as long as `values`.
    unsafe fn equal_any [T: Copy + PartialEq] [T] (values: &[T], members: &[T], out: &mut [u8]) {
        out.fill(0);
        for &member in members {
            for i in 0..values.len() {
                // SAFETY: i < n.
                unsafe { *out.get_unchecked_mut(i) |= u8::from(*values.get_unchecked(i) == member) };
            }
        }
    }
}

/// # Safety
/// Same as for [`contains`].
unsafe fn contains_ascending(
    threads: &dyn Threads,
    elem: Elem,
    values: *const u8,
    m: usize,
    members: *const u8,
    n: usize,
    out: *mut u8,
) {
    const CHUNK: usize = 32 * 1024;
    let (values, out) = (values as usize, out as usize);
    with_elem!(elem, T => {
        // SAFETY: guaranteed by the caller.
        let members = unsafe { std::slice::from_raw_parts(members.cast::<T>(), n) };
        split(threads, m.div_ceil(CHUNK), 4 * m, &|chunk| {
            let (start, end) = (chunk * CHUNK, m.min((chunk + 1) * CHUNK));
            // SAFETY: the caller's arrays; chunks of the output are disjoint.
            let (values, out) = unsafe {
                (
                    std::slice::from_raw_parts((values as *const T).add(start), end - start),
                    std::slice::from_raw_parts_mut((out as *mut u8).add(start), end - start),
                )
            };
            let (first, last) = (values[0].key(), values[values.len() - 1].key());
            let start = members.partition_point(|x| x.key() < first);
            let near = &members[start..][..members[start..].partition_point(|x| x.key() <= last)];
            // Keys are computed beforehand, because every step of the merge waits for the one before it.
            let wanted: Vec<_> = values.iter().map(|x| x.key()).collect();
            let keys: Vec<_> = near.iter().map(|x| x.key()).collect();
            let (mut i, mut j) = (0, 0);
            // Each iteration advances one of both, without a branch that depends on elements.
            while i < wanted.len() && j < keys.len() {
                let (value, member) = (wanted[i], keys[j]);
                out[i] = u8::from(value == member);
                let passed = usize::from(member < value);
                j += passed;
                i += 1 - passed;
            }
            out[i..].fill(0);
            // NaNs are last and equal nothing.
            for (out, _) in out.iter_mut().zip(values).rev().take_while(|(_, x)| Keyed::is_nan(**x)) {
                *out = 0;
            }
        });
    });
}

/// Keys to look up.
enum Set<K> {
    Empty,
    /// One flag per key from `least` on.
    Flags {
        least: K,
        flags: Vec<bool>,
    },
    /// Open addressing; an empty slot has the greatest key.
    Hash {
        slots: Vec<K>,
        has_greatest: bool,
        shift: u32,
    },
}

impl<K: Key> Set<K> {
    fn new(lookup: Lookup, keys: &[K], lookups: usize) -> Set<K> {
        let (Some(&least), Some(&greatest)) = (keys.iter().min(), keys.iter().max()) else {
            return Set::Empty;
        };
        let most = match lookup {
            Lookup::Auto => FLAGS * (keys.len() + lookups),
            Lookup::Hash | Lookup::Ascending => 0,
        };
        if let Some(span) = greatest.distance_from(least)
            && span < most
        {
            let mut flags = scratch::filled(span + 1, false);
            for key in keys {
                if let Some(i) = key.distance_from(least) {
                    flags[i] = true;
                }
            }
            return Set::Flags { least, flags };
        }
        let bits = (2 * keys.len()).next_power_of_two().ilog2().max(4);
        let mut slots = scratch::filled(1 << bits, K::GREATEST);
        let shift = 64 - bits;
        for &key in keys.iter().filter(|&&key| key != K::GREATEST) {
            let mut i = key.mixed() as usize >> shift;
            while slots[i] != K::GREATEST && slots[i] != key {
                i = (i + 1) & (slots.len() - 1);
            }
            slots[i] = key;
        }
        Set::Hash {
            slots,
            has_greatest: keys.contains(&K::GREATEST),
            shift,
        }
    }

    #[inline]
    fn has(&self, key: K) -> bool {
        match self {
            Set::Empty => false,
            Set::Flags { least, flags } => {
                key >= *least && key.distance_from(*least).and_then(|i| flags.get(i)) == Some(&true)
            }
            Set::Hash { has_greatest, .. } if key == K::GREATEST => *has_greatest,
            Set::Hash { slots, shift, .. } => {
                let mut i = key.mixed() as usize >> shift;
                while slots[i] != K::GREATEST && slots[i] != key {
                    i = (i + 1) & (slots.len() - 1);
                }
                slots[i] == key
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reduce::fixtures::Noise;
    use crate::threads::Scoped;

    fn found<T: Copy>(elem: Elem, lookup: Lookup, values: &[T], members: &[T]) -> Vec<bool> {
        let mut out = vec![2_u8; values.len()];
        // SAFETY: lengths are those of the slices.
        unsafe {
            contains(
                &Scoped(3),
                lookup,
                elem,
                values.as_ptr().cast(),
                values.len(),
                members.as_ptr().cast(),
                members.len(),
                out.as_mut_ptr(),
            );
        }
        out.iter().map(|&x| x == 1).collect()
    }

    #[test]
    fn lookup_methods_agree_with_a_search() {
        let mut noise = Noise(5);
        for spread in [10, 1000, 1_000_000] {
            let mut draw =
                |n: usize| -> Vec<i64> { (0..n).map(|_| noise.below(spread) as i64 - 5).collect() };
            let (values, members) = (draw(20_000), draw(300));
            let wanted: Vec<bool> = values.iter().map(|v| members.contains(v)).collect();
            for lookup in [Lookup::Auto, Lookup::Hash] {
                assert_eq!(found(Elem::I64, lookup, &values, &members), wanted);
            }
            let (mut values, mut members) = (values, members);
            values.sort_unstable();
            members.sort_unstable();
            let wanted: Vec<bool> = values.iter().map(|v| members.contains(v)).collect();
            assert_eq!(
                found(Elem::I64, Lookup::Ascending, &values, &members),
                wanted
            );
        }
    }

    #[test]
    fn isin_of_range_ends_zeros_and_nan() {
        let ends = [i64::MIN, i64::MAX, 0];
        let all = [i64::MIN, i64::MIN + 1, -1, 0, i64::MAX - 1, i64::MAX];
        let wanted = [true, false, false, true, false, true];
        for lookup in [Lookup::Auto, Lookup::Hash] {
            assert_eq!(found(Elem::I64, lookup, &all, &ends), wanted);
        }
        let members = [-0.0, 3.0, f64::NAN];
        let values = [-1.0, 0.0, 0.5, 3.0, 4.0, f64::NAN];
        let wanted = [false, true, false, true, false, false];
        assert_eq!(
            found(Elem::F64, Lookup::Ascending, &values, &members),
            wanted
        );
        assert_eq!(
            found(Elem::F64, Lookup::Ascending, &values, &[]),
            [false; 6]
        );
        let members = [0.0, f64::NAN, f64::INFINITY];
        let values = [-0.0, f64::NAN, f64::INFINITY, 1.0];
        let wanted = [true, false, true, false];
        for lookup in [Lookup::Auto, Lookup::Hash] {
            assert_eq!(found(Elem::F64, lookup, &values, &members), wanted);
        }
        assert_eq!(
            found(Elem::U8, Lookup::Auto, &[1_u8, 2], &[]),
            [false, false]
        );
        assert_eq!(
            found(Elem::U8, Lookup::Hash, &[0_u8, 255], &[255_u8]),
            [false, true]
        );
    }
}
