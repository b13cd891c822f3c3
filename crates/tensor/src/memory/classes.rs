//! Size classes of the allocator.

use std::alloc::Layout;

/// Largest size that threads cache, in bytes.
pub(super) const SMALL: usize = 1 << 16;

/// Number of classes up to [`SMALL`].
pub(super) const NUM_SMALL: usize = 48;

/// Largest size of a block.
pub(super) const LARGEST: usize = 1 << 47;

/// Number of classes above [`SMALL`].
pub(super) const NUM_LARGE: usize = 31 * 8;

/// Class of a block of `1..=SMALL` bytes.
#[inline]
pub(super) const fn small(len: usize) -> usize {
    debug_assert!(len > 0 && len <= SMALL);
    if len <= 256 {
        (len - 1) / 16
    } else {
        // Four classes for each power of two.
        let shift = (len - 1).ilog2();
        16 + (shift as usize - 8) * 4 + (((len - 1) >> (shift - 2)) & 3)
    }
}

/// Size of the blocks of a small class.
#[inline]
pub(super) const fn small_bytes(class: usize) -> usize {
    if class < 16 {
        (class + 1) * 16
    } else {
        (class % 4 + 5) << ((class - 16) / 4 + 6)
    }
}

/// Allocation layout of the blocks of a small class.
pub(super) const fn small_layout(class: usize) -> Layout {
    match Layout::from_size_align(small_bytes(class), if class < 16 { 16 } else { 64 }) {
        Ok(layout) => layout,
        Err(_) => panic!("at most 64 KiB, aligned to a power of two"),
    }
}

/// Class of a block of `SMALL + 1 ..= LARGEST` bytes.
#[inline]
pub(super) const fn large(len: usize) -> usize {
    debug_assert!(len > SMALL && len <= LARGEST);
    let shift = (len - 1).ilog2();
    (shift as usize - 16) * 8 + (((len - 1) >> (shift - 3)) & 7)
}

/// Size of the blocks of a large class.
#[inline]
pub(super) const fn large_bytes(class: usize) -> usize {
    (class % 8 + 9) << (class / 8 + 13)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_classes_waste_little_memory() {
        for len in 1..=SMALL {
            let class = small(len);
            assert!(small_bytes(class) >= len && class < NUM_SMALL);
            assert!(class == 0 || small_bytes(class - 1) < len, "{len}");
            assert_eq!(small_bytes(class) % small_layout(class).align(), 0);
            assert!(len <= 256 || small_layout(class).align() == 64);
        }
        let mut len = SMALL + 1;
        while len <= LARGEST {
            for len in [len - 1, len, len + 1]
                .into_iter()
                .filter(|len| (SMALL + 1..=LARGEST).contains(len))
            {
                let class = large(len);
                assert!(large_bytes(class) >= len && class < NUM_LARGE, "{len}");
                assert!(class == 0 || large_bytes(class - 1) < len, "{len}");
                assert_eq!(large_bytes(class) % 4096, 0);
            }
            len += len / 7;
        }
        assert_eq!(large_bytes(large(LARGEST)), LARGEST);
    }
}
