//! Elements packed with their position into one integer, so that sorting these integers is a stable argsort.

use super::key::OrderedWord;
use super::quicksort::{self, Word};
use super::rows::{Order, directed};
use crate::Threads;

/// How the elements of one row are packed: the distance from the smallest key in the upper bits, the position in the lower ones. If both need more
/// than
/// 64 bits, the `lost` lowest bits of the distance are dropped; runs that then look equal are ordered by the elements themselves.
pub(super) struct Numbered<'a, T> {
    order: Order,
    x: &'a [T],
    number_bits: u32,
    lost: u32,
}

impl<'a, T: OrderedWord> Numbered<'a, T> {
    /// Packs the row `x` into `items`.
    pub(super) fn new(order: Order, x: &'a [T], items: &mut [i64]) -> Self {
        let word = |x: T| directed(order, x.word()).to_i64();
        if size_of::<T::Word>() == 4 {
            for (i, (item, &x)) in items.iter_mut().zip(x).enumerate() {
                *item = word(x) << 32 | i as i64;
            }
            return Numbered {
                order,
                x,
                number_bits: 32,
                lost: 0,
            };
        }
        let (mut least, mut most) = (i64::MAX, i64::MIN);
        for &x in x {
            (least, most) = (least.min(word(x)), most.max(word(x)));
        }
        let number_bits = usize::BITS - x.len().saturating_sub(1).leading_zeros();
        let span_bits = u64::BITS - (most.wrapping_sub(least) as u64).leading_zeros();
        let lost = (span_bits + number_bits).saturating_sub(64);
        for (i, (item, &x)) in items.iter_mut().zip(x).enumerate() {
            let distance = word(x).wrapping_sub(least) as u64 >> lost;
            *item = (distance << number_bits | i as u64) as i64 ^ i64::MIN;
        }
        Numbered {
            order,
            x,
            number_bits,
            lost,
        }
    }

    /// Whether the items alone have the order of the elements.
    pub(super) fn is_exact(&self) -> bool {
        self.lost == 0
    }

    /// The position in an item.
    #[inline(always)]
    pub(super) fn number(&self, item: i64) -> usize {
        (item & ((1 << self.number_bits) - 1)) as usize
    }

    /// The upper bits of an item, which belong to the element.
    fn above(&self, item: i64) -> i64 {
        item >> self.number_bits
    }

    /// The full sort key of an item: the element's key, then its position.
    fn exactly(&self, item: i64) -> (T::Word, usize) {
        let i = self.number(item);
        (directed(self.order, self.x[i].word()), i)
    }

    /// Sorts items of the row.
    pub(super) fn sort(&self, threads: &dyn Threads, items: &mut [i64], spare: &mut Vec<i64>) {
        quicksort::sort(threads, items, spare);
        if self.lost > 0 {
            let alike = |a: &i64, b: &i64| self.above(*a) == self.above(*b);
            for run in items.chunk_by_mut(alike).filter(|run| run.len() > 1) {
                run.sort_unstable_by_key(|&item| self.exactly(item));
            }
        }
    }

    /// Partitions the items so that item `kth` is the one that sorting would put there.
    pub(super) fn select(&self, items: &mut [i64], kth: usize, spare: &mut Vec<i64>) {
        quicksort::select(items, kth, spare);
        if self.lost > 0 {
            // Items whose upper bits equal those of item `kth` may be on either side of it.
            let above = self.above(items[kth]);
            let origins: Vec<usize> = (0..items.len())
                .filter(|&i| self.above(items[i]) == above)
                .collect();
            let mut run: Vec<i64> = origins.iter().map(|&i| items[i]).collect();
            run.sort_unstable_by_key(|&item| self.exactly(item));
            origins
                .into_iter()
                .zip(run)
                .for_each(|(i, item)| items[i] = item);
        }
    }
}
