//! Where a reduction finds its elements: in memory, or computed when they are read.

/// The elements of a reduction. An element is named by its distance in bytes from the first one.
pub(super) trait Elements: Sync {
    /// Memory for elements that are computed.
    type Buffer;
    /// The memory of one task.
    fn buffer() -> Self::Buffer;
    /// Its first byte.
    fn start(buffer: &mut Self::Buffer) -> *mut u8;

    /// `n` neighbouring elements from byte `at` on; at most a block. `buffer` is the task's, and its contents are lost.
    ///
    /// # Safety
    /// The elements exist.
    unsafe fn row(&self, at: isize, n: usize, buffer: *mut u8) -> *const u8;

    /// Up to `count` rows of `n` elements, `stride` bytes apart: the first row, the distance of the rows, and how many there are, at least one. Fewer
    /// than `count` rows are a multiple of four if four rows fit in a block: [`super::kernel::Kernel::rows`] adds rows in groups of four.
    ///
    /// # Safety
    /// The elements exist, and a row fits in a block.
    unsafe fn rows(
        &self,
        at: isize,
        stride: isize,
        count: usize,
        n: usize,
        buffer: *mut u8,
    ) -> (*const u8, isize, usize);

    /// Time to read an element, relative to one in memory.
    fn cost(&self) -> usize;
}

/// Elements in memory, from this address on.
pub(super) struct Memory(pub *const u8);

// SAFETY: the caller of the reduction keeps the memory alive and unchanged.
unsafe impl Sync for Memory {}

impl Elements for Memory {
    type Buffer = ();

    #[inline(always)]
    fn buffer() {}

    #[inline(always)]
    fn start(_: &mut ()) -> *mut u8 {
        std::ptr::null_mut()
    }

    #[inline(always)]
    unsafe fn row(&self, at: isize, _n: usize, _buffer: *mut u8) -> *const u8 {
        self.0.wrapping_offset(at)
    }

    #[inline(always)]
    unsafe fn rows(
        &self,
        at: isize,
        stride: isize,
        count: usize,
        _n: usize,
        _buffer: *mut u8,
    ) -> (*const u8, isize, usize) {
        (self.0.wrapping_offset(at), stride, count)
    }

    #[inline(always)]
    fn cost(&self) -> usize {
        1
    }
}
