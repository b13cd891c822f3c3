//! Memory pages and memory figures of the operating system; the only platform-specific code of the allocator.

use std::ptr::NonNull;

/// Size of a huge page on common machines. Mappings from this size on are aligned to it and request huge pages: with 4 KiB pages, page faults
/// dominate the time of computations on fresh memory.
#[cfg(unix)]
const HUGE_PAGE: usize = 2 << 20;

/// Allocates zeroed pages; `bytes` is a multiple of 4096.
#[cfg(unix)]
pub(super) fn map(bytes: usize) -> Option<NonNull<u8>> {
    let slack = if bytes >= HUGE_PAGE { HUGE_PAGE } else { 0 };
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANON;
    // SAFETY: a new anonymous mapping at an address of the system's choice does not affect existing memory.
    let start = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            bytes + slack,
            protection,
            flags,
            -1,
            0,
        )
    };
    if start == libc::MAP_FAILED {
        return None;
    }
    let start = start.cast::<u8>();
    if slack == 0 {
        return NonNull::new(start);
    }
    let before = start.align_offset(HUGE_PAGE).min(slack);
    // SAFETY: 1. both ends lie within the mapping and are not used; the block between them has `bytes` bytes. 2. The advice changes no content; if it
    // is refused, pages are small.
    unsafe {
        let block = start.add(before);
        if before > 0 {
            libc::munmap(start.cast(), before);
        }
        if slack > before {
            libc::munmap(block.add(bytes).cast(), slack - before);
        }
        #[cfg(target_os = "linux")]
        libc::madvise(block.cast(), bytes, libc::MADV_HUGEPAGE);
        NonNull::new(block)
    }
}

/// # Safety
///
/// The block must be from [`map`] with this length and is not used afterwards.
#[cfg(unix)]
pub(super) unsafe fn unmap(block: NonNull<u8>, bytes: usize) {
    // SAFETY: the caller's promise.
    unsafe { libc::munmap(block.as_ptr().cast(), bytes) };
}

#[cfg(not(unix))]
fn pages(bytes: usize) -> Option<std::alloc::Layout> {
    std::alloc::Layout::from_size_align(bytes, 4096).ok()
}

/// Allocates zeroed pages; `bytes` is a multiple of 4096.
#[cfg(not(unix))]
pub(super) fn map(bytes: usize) -> Option<NonNull<u8>> {
    // SAFETY: `bytes` is never 0.
    NonNull::new(unsafe { std::alloc::alloc_zeroed(pages(bytes)?) })
}

/// # Safety
///
/// The block must be from [`map`] with this length and is not used afterwards.
#[cfg(not(unix))]
pub(super) unsafe fn unmap(block: NonNull<u8>, bytes: usize) {
    if let Some(layout) = pages(bytes) {
        // SAFETY: the caller's promise.
        unsafe { std::alloc::dealloc(block.as_ptr(), layout) };
    }
}

/// Bytes of main memory that this process may use: the machine's memory, or its control group's limit if that is less; 8 GiB if neither is known.
pub fn limit() -> usize {
    let groups = [
        "/sys/fs/cgroup/memory.max",
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
    ];
    let group = groups
        .iter()
        .filter_map(|path| {
            std::fs::read_to_string(path)
                .ok()?
                .trim()
                .parse::<usize>()
                .ok()
        })
        .min();
    // If there is no limit, version 1 of control groups reports a number near 2^63.
    [physical(), group]
        .into_iter()
        .flatten()
        .min()
        .unwrap_or(8 << 30)
}

#[cfg(unix)]
fn physical() -> Option<usize> {
    // SAFETY: only reads two figures.
    let (pages, page) = unsafe {
        (
            libc::sysconf(libc::_SC_PHYS_PAGES),
            libc::sysconf(libc::_SC_PAGESIZE),
        )
    };
    usize::try_from(pages)
        .ok()?
        .checked_mul(usize::try_from(page).ok()?)
}

#[cfg(not(unix))]
fn physical() -> Option<usize> {
    None
}

/// Bytes of main memory that can be allocated now without swapping; the limit if the system does not report it.
pub(crate) fn available() -> usize {
    let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"));
    let kilobytes =
        line.and_then(|rest| rest.trim().strip_suffix("kB")?.trim().parse::<usize>().ok());
    kilobytes.map_or_else(limit, |n| (n * 1024).min(limit()))
}
