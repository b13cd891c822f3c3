//! Size classes of the allocator.

use std::alloc::Layout;

/// Largest size that threads cache, in bytes.
pub(super) const MAX_THREAD_BYTES: usize = 1 << 16;

/// Number of classes up to [`MAX_THREAD_BYTES`].
pub(super) const NUM_THREAD_CLASSES: usize = 48;

/// Largest size of a block.
pub(super) const MAX_POOL_BYTES: usize = 1 << 47;

/// Number of classes above [`MAX_THREAD_BYTES`].
pub(super) const NUM_POOL_CLASSES: usize = 31 * 8;

/// Class of a block of `1..=MAX_THREAD_BYTES` bytes.
#[inline]
pub(super) const fn thread_class(len: usize) -> usize {
    debug_assert!(len > 0 && len <= MAX_THREAD_BYTES);
    if len <= 256 {
        (len - 1) / 16
    } else {
        // Four classes for each power of two.
        let shift = (len - 1).ilog2();
        16 + (shift as usize - 8) * 4 + (((len - 1) >> (shift - 2)) & 3)
    }
}

/// Size of the blocks of a class that threads cache.
#[inline]
pub(super) const fn thread_class_bytes(class: usize) -> usize {
    if class < 16 {
        (class + 1) * 16
    } else {
        (class % 4 + 5) << ((class - 16) / 4 + 6)
    }
}

/// Allocation layout of the blocks of a class that threads cache.
pub(super) const fn thread_class_layout(class: usize) -> Layout {
    match Layout::from_size_align(thread_class_bytes(class), if class < 16 { 16 } else { 64 }) {
        Ok(layout) => layout,
        Err(_) => panic!("at most 64 KiB, aligned to a power of two"),
    }
}

/// Class of a block of `MAX_THREAD_BYTES + 1 ..= MAX_POOL_BYTES` bytes.
#[inline]
pub(super) const fn pool_class(len: usize) -> usize {
    debug_assert!(len > MAX_THREAD_BYTES && len <= MAX_POOL_BYTES);
    let shift = (len - 1).ilog2();
    (shift as usize - 16) * 8 + (((len - 1) >> (shift - 3)) & 7)
}

/// Size of the blocks of a class of the shared pool.
#[inline]
pub(super) const fn pool_class_bytes(class: usize) -> usize {
    (class % 8 + 9) << (class / 8 + 13)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_classes_waste_little_memory() {
        for len in 1..=MAX_THREAD_BYTES {
            let class = thread_class(len);
            assert!(thread_class_bytes(class) >= len && class < NUM_THREAD_CLASSES);
            assert!(class == 0 || thread_class_bytes(class - 1) < len, "{len}");
            assert_eq!(
                thread_class_bytes(class) % thread_class_layout(class).align(),
                0
            );
            assert!(len <= 256 || thread_class_layout(class).align() == 64);
        }
        let mut len = MAX_THREAD_BYTES + 1;
        while len <= MAX_POOL_BYTES {
            for len in [len - 1, len, len + 1]
                .into_iter()
                .filter(|len| (MAX_THREAD_BYTES + 1..=MAX_POOL_BYTES).contains(len))
            {
                let class = pool_class(len);
                assert!(
                    pool_class_bytes(class) >= len && class < NUM_POOL_CLASSES,
                    "{len}"
                );
                assert!(class == 0 || pool_class_bytes(class - 1) < len, "{len}");
                assert_eq!(pool_class_bytes(class) % 4096, 0);
            }
            len += len / 7;
        }
        assert_eq!(pool_class_bytes(pool_class(MAX_POOL_BYTES)), MAX_POOL_BYTES);
    }
}
