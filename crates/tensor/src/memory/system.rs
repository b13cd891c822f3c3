//! Memory pages and figures of the operating system. The only platform code of the allocator.

use std::ptr::NonNull;

/// Length of a huge page on the machines we know. Mappings from here on are aligned to them and ask for them: with 4 KiB
/// pages, faults dominate whatever is computed on fresh memory.
#[cfg(unix)]
const HUGE_PAGE: usize = 2 << 20;

/// Fresh zero pages; `bytes` is a multiple of 4096.
#[cfg(unix)]
pub(super) fn map(bytes: usize) -> Option<NonNull<u8>> {
    let slack = if bytes >= HUGE_PAGE { HUGE_PAGE } else { 0 };
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANON;
    // SAFETY: a new anonymous mapping at an address of the system's choice touches nothing that exists.
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
    // SAFETY: 1. both ends lie within the mapping and are not handed out; the block between them is `bytes` long.
    // 2. Advice changes no content; where it is refused, pages are small.
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
/// The block must be from [`map`] with this length and is not used any more.
#[cfg(unix)]
pub(super) unsafe fn unmap(block: NonNull<u8>, bytes: usize) {
    // SAFETY: as the caller promises.
    unsafe { libc::munmap(block.as_ptr().cast(), bytes) };
}

#[cfg(not(unix))]
fn pages(bytes: usize) -> Option<std::alloc::Layout> {
    std::alloc::Layout::from_size_align(bytes, 4096).ok()
}

/// Fresh zero pages; `bytes` is a multiple of 4096.
#[cfg(not(unix))]
pub(super) fn map(bytes: usize) -> Option<NonNull<u8>> {
    // SAFETY: nobody asks for 0 bytes.
    NonNull::new(unsafe { std::alloc::alloc_zeroed(pages(bytes)?) })
}

/// # Safety
///
/// The block must be from [`map`] with this length and is not used any more.
#[cfg(not(unix))]
pub(super) unsafe fn unmap(block: NonNull<u8>, bytes: usize) {
    if let Some(layout) = pages(bytes) {
        // SAFETY: as the caller promises.
        unsafe { std::alloc::dealloc(block.as_ptr(), layout) };
    }
}

/// Bytes of main memory that this process may use: the machine's, or its control group's limit if that is less; 8 GiB
/// where neither is known.
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
    // Without a limit, version 1 of control groups says a number near 2^63.
    [physical(), group]
        .into_iter()
        .flatten()
        .min()
        .unwrap_or(8 << 30)
}

#[cfg(unix)]
fn physical() -> Option<usize> {
    // SAFETY: asks for two figures.
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

/// Bytes of main memory that could be allocated now without swapping; the limit where the system does not say.
pub(crate) fn available() -> usize {
    let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"));
    let kilobytes =
        line.and_then(|rest| rest.trim().strip_suffix("kB")?.trim().parse::<usize>().ok());
    kilobytes.map_or_else(limit, |n| (n * 1024).min(limit()))
}
