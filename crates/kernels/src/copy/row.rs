//! Copy of one contiguous row of bytes.

/// Size of the pieces where glibc's `memcpy` of the whole row would be slow: below every threshold at which `memcpy` changes its strategy.
const PIECE_BYTES: usize = 1024;

/// From this length on, `memcpy` may use `rep movsb`.
const LONG_BYTES: usize = 2 * PIECE_BYTES;

/// Copies `len` bytes.
///
/// For some kilobytes to about a megabyte, glibc's `memcpy` uses `rep movsb`. If the destination address is 1 to 63 bytes after the source address,
/// modulo the page size of 4096 bytes, some AMD processors (Zen 5) then copy more than ten times more slowly. Shifted copies of whole arrays (`roll`,
/// `insert`, `x[1:]`) are such rows; they are copied in pieces.
///
/// # Safety
/// `src` is valid for reading `len` bytes, `dst` for writing them, and the two do not overlap.
#[inline]
pub unsafe fn copy_row(src: *const u8, dst: *mut u8, len: usize) {
    let ahead = dst.addr().wrapping_sub(src.addr()) % 4096;
    // SAFETY: guaranteed by the caller.
    unsafe {
        if len >= LONG_BYTES && (1..64).contains(&ahead) {
            in_pieces(src, dst, len);
        } else {
            std::ptr::copy_nonoverlapping(src, dst, len);
        }
    }
}

/// # Safety
/// Same as for [`copy_row`]; `len` is at least 64.
#[inline(never)]
unsafe fn in_pieces(src: *const u8, dst: *mut u8, len: usize) {
    // `black_box` keeps the compiler from merging pieces of known length into one call.
    let piece = std::hint::black_box(PIECE_BYTES);
    let head = dst.align_offset(64).min(len);
    // SAFETY: the consecutive pieces lie inside the `len` bytes.
    unsafe {
        std::ptr::copy_nonoverlapping(src, dst, head);
        let mut at = head;
        while at < len {
            let n = piece.min(len - at);
            std::ptr::copy_nonoverlapping(src.add(at), dst.add(at), n);
            at += n;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_copied_at_every_relative_offset() {
        let src: Vec<u8> = (0..40_000u32).map(|i| (i * 7 + i / 256) as u8).collect();
        for len in [0, 1, 63, 1023, 2047, 2048, 2049, 5000, 20_000] {
            for ahead in [0, 1, 12, 63, 64, 4000] {
                let mut memory = vec![0u8; 48_000];
                let start = (src.as_ptr().addr() + 8)
                    .wrapping_add(ahead)
                    .wrapping_sub(memory.as_ptr().addr())
                    % 4096;
                // SAFETY: both vectors are longer than their offset plus the row.
                unsafe { copy_row(src.as_ptr().add(8), memory.as_mut_ptr().add(start), len) };
                assert_eq!(memory[start..start + len], src[8..8 + len]);
                assert!(memory[..start].iter().all(|&byte| byte == 0));
                assert!(memory[start + len..].iter().all(|&byte| byte == 0));
            }
        }
    }
}
