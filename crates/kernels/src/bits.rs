//! `packbits` and `unpackbits`: eight booleans as the bits of one byte.

use crate::Threads;
use crate::reduce::by_isa;
use crate::threads::split;

/// Order of the bits in a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BitOrder {
    /// The first value is the most significant bit.
    Big,
    /// The first value is the least significant bit.
    Little,
}

/// The least (most) significant bit of every byte of a word.
const LOW: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = LOW << 7;
/// Multiplier for `BitOrder::Big`: byte `i` of the little-endian word is `1 << (7 - i)`.
const FALLING: u64 = 0x0102_0408_1020_4080;
/// Multiplier for `BitOrder::Little`: byte `i` of the little-endian word is `1 << i`.
const RISING: u64 = 0x8040_2010_0804_0201;

/// Bytes of output per task.
const CHUNK: usize = 8192;

/// Packs `rows` rows of `n` bytes (nonzero is true) into rows of `ceil(n / 8)` bytes. The unused bits of a row's last byte are 0.
///
/// # Safety
/// `src` has `rows * n` bytes; `out` has room for the result and does not overlap `src`.
pub unsafe fn pack(
    threads: &dyn Threads,
    order: BitOrder,
    rows: usize,
    n: usize,
    src: *const u8,
    out: *mut u8,
) {
    let width = n.div_ceil(8);
    let chunks = width.div_ceil(CHUNK);
    let (src, out) = (src as usize, out as usize);
    split(threads, rows * chunks, rows * n / 4, &|task| {
        let (row, first) = (task / chunks, task % chunks * CHUNK);
        let count = CHUNK.min(width - first);
        // SAFETY: the `count` result bytes of one row and their up to `8 * count` source bytes lie in the caller's arrays.
        unsafe {
            let from = (src as *const u8).add(row * n + 8 * first);
            let to = (out as *mut u8).add(row * width + first);
            let whole = count.min((n - 8 * first) / 8);
            pack_words(order, from, whole, to);
            if whole < count {
                let mut last = [0_u8; 8];
                std::ptr::copy_nonoverlapping(
                    from.add(8 * whole),
                    last.as_mut_ptr(),
                    n - 8 * (first + whole),
                );
                pack_words(order, last.as_ptr(), 1, to.add(whole));
            }
        }
    });
}

by_isa! {
    /// Packs `8 * n` booleans into `n` bytes.
    unsafe fn pack_words [] [] (order: BitOrder, from: *const u8, n: usize, to: *mut u8) {
        // The multiplication moves each value into one bit of the highest byte. No two products share a bit, so nothing carries.
        let gather = if order == BitOrder::Big { RISING } else { FALLING };
        for i in 0..n {
            // SAFETY: guaranteed by the caller.
            unsafe {
                let word = u64::from_le(from.add(8 * i).cast::<u64>().read_unaligned());
                let truths = ((((word & !HIGH) + !HIGH) | word) & HIGH) >> 7;
                *to.add(i) = (truths.wrapping_mul(gather) >> 56) as u8;
            }
        }
    }
}

/// Unpacks `n` bytes into `8 * n` bytes that are 0 or 1.
///
/// # Safety
/// `src` has `n` bytes; `out` has room for the result and does not overlap `src`.
pub unsafe fn unpack(
    threads: &dyn Threads,
    order: BitOrder,
    n: usize,
    src: *const u8,
    out: *mut u8,
) {
    let (src, out) = (src as usize, out as usize);
    split(threads, n.div_ceil(CHUNK), 2 * n, &|chunk| {
        let first = chunk * CHUNK;
        // SAFETY: the chunk's bytes and their results lie in the caller's arrays.
        unsafe {
            unpack_words(
                order,
                (src as *const u8).add(first),
                CHUNK.min(n - first),
                (out as *mut u8).add(8 * first),
            );
        }
    });
}

by_isa! {
    unsafe fn unpack_words [] [] (order: BitOrder, from: *const u8, n: usize, to: *mut u8) {
        let own = if order == BitOrder::Big { FALLING } else { RISING };
        for i in 0..n {
            // SAFETY: guaranteed by the caller.
            unsafe {
                // The byte is repeated eight times and each copy is masked to its own bit. The addition then carries into the top bit of each nonzero
                // byte.
                let bits = (u64::from(*from.add(i)) * LOW) & own;
                let truths = ((bits + !HIGH) >> 7) & LOW;
                to.add(8 * i).cast::<u64>().write_unaligned(truths.to_le());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reduce::fixtures::Noise;
    use crate::threads::Scoped;

    #[test]
    fn packed_bits_match_a_scalar_loop_and_round_trip() {
        let mut noise = Noise(3);
        for (rows, n) in [(1, 0), (1, 1), (3, 7), (2, 8), (5, 29), (1, 9 * CHUNK + 3)] {
            let values: Vec<u8> = (0..rows * n)
                .map(|_| [0, 0, 1, 2, 128, 255][noise.below(6)])
                .collect();
            let width = n.div_ceil(8);
            for order in [BitOrder::Big, BitOrder::Little] {
                let mut packed = vec![77_u8; rows * width];
                // SAFETY: sizes are those of the vectors.
                unsafe {
                    pack(
                        &Scoped(3),
                        order,
                        rows,
                        n,
                        values.as_ptr(),
                        packed.as_mut_ptr(),
                    );
                }
                let mut wanted = vec![0_u8; rows * width];
                for (i, value) in values.iter().enumerate() {
                    let bit = if order == BitOrder::Big {
                        7 - i % n % 8
                    } else {
                        i % n % 8
                    };
                    wanted[i / n * width + i % n / 8] |= u8::from(*value != 0) << bit;
                }
                assert_eq!(packed, wanted, "{rows} rows of {n}, {order:?}");
                let mut back = vec![77_u8; 8 * packed.len()];
                // SAFETY: sizes are those of the vectors.
                unsafe {
                    unpack(
                        &Scoped(3),
                        order,
                        packed.len(),
                        packed.as_ptr(),
                        back.as_mut_ptr(),
                    );
                }
                for (i, value) in values.iter().enumerate() {
                    let at = i / n * 8 * width + i % n;
                    assert_eq!(back[at], u8::from(*value != 0), "value {i}, {order:?}");
                }
            }
        }
    }
}
