//! Sorting one row of items: by radix from a few hundred items on, on several threads from some ten thousand on.

use super::key::{DIGIT, Item};
use crate::Threads;

/// Below this many items comparisons are faster than histograms.
const FEW: usize = 256;
/// Above this many items a row is cut into parts that are merged.
const MANY: usize = 64 * 1024;
/// Items merged by one task.
const PIECE: usize = 32 * 1024;

/// The items in order. Items that are equal in all digits keep their order.
pub(super) fn sort<T: Item>(threads: &dyn Threads, mut items: Vec<T>) -> Vec<T> {
    let n = items.len();
    let parts = if n < MANY {
        1
    } else {
        threads.count().next_power_of_two().min(8)
    };
    if parts == 1 {
        return sort_part(items);
    }
    let bounds: Vec<usize> = (0..=parts).map(|p| n * p / parts).collect();
    let base = items.as_mut_ptr() as usize;
    threads.run(parts, &|p| {
        // SAFETY: parts lie apart in `items`, which outlives the call.
        let part = unsafe {
            std::slice::from_raw_parts_mut(
                (base as *mut T).add(bounds[p]),
                bounds[p + 1] - bounds[p],
            )
        };
        let sorted = sort_part(part.to_vec());
        part.copy_from_slice(&sorted);
    });
    let mut bounds = bounds;
    while bounds.len() > 2 {
        items = merge_pairs(threads, &items, &bounds);
        bounds = bounds.into_iter().step_by(2).collect();
    }
    items
}

fn sort_part<T: Item>(mut items: Vec<T>) -> Vec<T> {
    if items.len() < FEW || items.len() > T::MOST || T::PASSES == 0 {
        // Items that differ only in digits that are not looked at carry their number: their order is that of the numbers.
        items.sort_unstable();
        return items;
    }
    let mut counts = vec![[0usize; 1 << DIGIT]; T::PASSES];
    for &item in &items {
        for (pass, counts) in counts.iter_mut().enumerate() {
            counts[item.digit(pass)] += 1;
        }
    }
    let n = items.len();
    let mut other: Vec<T> = items.clone();
    for (pass, counts) in counts.iter_mut().enumerate() {
        if counts[items[0].digit(pass)] == n {
            continue;
        }
        let mut start = 0;
        for count in counts.iter_mut() {
            start += std::mem::replace(count, start);
        }
        for &item in &items {
            let place = &mut counts[item.digit(pass)];
            // SAFETY: the places of one digit are as many as its items, and all places together are `n`.
            unsafe { *other.get_unchecked_mut(*place) = item };
            *place += 1;
        }
        std::mem::swap(&mut items, &mut other);
    }
    items
}

/// Merges each sorted part `bounds[2i]..bounds[2i + 1]` with the next one. The number of parts is even.
fn merge_pairs<T: Item>(threads: &dyn Threads, items: &[T], bounds: &[usize]) -> Vec<T> {
    let mut out: Vec<T> = items.to_vec();
    let pairs: Vec<(usize, usize, usize)> = bounds
        .windows(3)
        .step_by(2)
        .map(|w| (w[0], w[1], w[2]))
        .collect();
    let tasks: Vec<(usize, usize)> = pairs
        .iter()
        .enumerate()
        .flat_map(|(i, p)| (0..p.2 - p.0).step_by(PIECE).map(move |at| (i, at)))
        .collect();
    let base = out.as_mut_ptr() as usize;
    threads.run(tasks.len(), &|task| {
        let (pair, at) = tasks[task];
        let (start, middle, end) = pairs[pair];
        let (a, b) = (&items[start..middle], &items[middle..end]);
        let n = PIECE.min(end - start - at);
        // SAFETY: pieces lie apart in `out`, which outlives the call.
        let out = unsafe { std::slice::from_raw_parts_mut((base as *mut T).add(start + at), n) };
        let mut i = taken_from_first(a, b, at);
        let mut j = at - i;
        for out in out {
            let first = j == b.len() || (i < a.len() && a[i] <= b[j]);
            *out = if first { a[i] } else { b[j] };
            i += first as usize;
            j += !first as usize;
        }
    });
    out
}

/// How many of the first `count` merged items come from `a`; of equals those of `a` come first.
fn taken_from_first<T: Ord>(a: &[T], b: &[T], count: usize) -> usize {
    let (mut low, mut high) = (count.saturating_sub(b.len()), count.min(a.len()));
    while low < high {
        let i = (low + high) / 2;
        if a[i] <= b[count - i - 1] {
            low = i + 1
        } else {
            high = i
        }
    }
    low
}
