//! Threads that Python ends while the interpreter exits.
//!
//! Before Python 3.14, a daemon thread that requests the GIL then is ended by `pthread_exit`, for which glibc unwinds its stack. Functions of this
//! library may be among the frames: those that call Python code, such as an operand's `__array__`. They would drop references without the GIL, and
//! Rust ends the process where it would catch the unwinding. Therefore Python's import of `pthread_exit` is replaced by a function that parks the
//! thread, as Python 3.14 and later do. Other systems end a thread without unwinding.
#![allow(unsafe_code)]

use pyo3::prelude::*;

/// Makes threads park that Python ends while the interpreter exits.
pub fn install(py: Python<'_>) {
    #[cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]
    if py.version_info() < (3, 14) {
        glibc::install();
    }
    #[cfg(not(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64")))]
    let _ = py;
}

#[cfg(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64"))]
mod glibc {
    use std::ffi::{CStr, c_int, c_void};
    use std::mem::transmute;
    use std::ptr;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicPtr, Ordering};

    /// `Py_IsFinalizing`.
    static IS_FINALIZING: OnceLock<unsafe extern "C" fn() -> c_int> = OnceLock::new();

    unsafe extern "C-unwind" {
        fn pthread_exit(value: *mut c_void) -> !;
    }

    /// What Python calls instead of `pthread_exit`.
    unsafe extern "C-unwind" fn exit_thread(value: *mut c_void) -> ! {
        // SAFETY: it reads one variable and needs no GIL.
        let is_finalizing = |ask: &unsafe extern "C" fn() -> c_int| unsafe { ask() != 0 };
        while IS_FINALIZING.get().is_some_and(is_finalizing) {
            std::thread::park();
        }
        // SAFETY: as its caller wants.
        unsafe { pthread_exit(value) }
    }

    pub fn install() {
        // The first is public since Python 3.13, the second before.
        let names = [c"Py_IsFinalizing", c"_Py_IsFinalizing"];
        // SAFETY: names that end with a zero byte.
        let mut found = names
            .map(|name| unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) })
            .into_iter();
        let Some(address) = found.find(|address| !address.is_null()) else {
            return;
        };
        // SAFETY: both names are of functions of this type.
        let is_finalizing =
            unsafe { transmute::<*mut c_void, unsafe extern "C" fn() -> c_int>(address) };
        if IS_FINALIZING.set(is_finalizing).is_ok() {
            // SAFETY: `visit` takes the address that is given on to it.
            unsafe { libc::dl_iterate_phdr(Some(visit), address) };
        }
    }

    /// An entry of the dynamic section (ELF-64).
    #[repr(C)]
    struct Dyn {
        tag: i64,
        value: u64,
    }

    /// A relocation with an addend (ELF-64).
    #[repr(C)]
    struct Rela {
        offset: u64,
        info: u64,
        addend: i64,
    }

    const DT_NULL: i64 = 0;
    const DT_PLTRELSZ: i64 = 2;
    const DT_STRTAB: i64 = 5;
    const DT_SYMTAB: i64 = 6;
    const DT_RELA: i64 = 7;
    const DT_RELASZ: i64 = 8;
    const DT_JMPREL: i64 = 23;

    /// The kinds of relocations that fill a slot with the address of an imported function: `GLOB_DAT` and `JUMP_SLOT`.
    const SLOT_KINDS: [u64; 2] = if cfg!(target_arch = "aarch64") {
        [1025, 1026]
    } else {
        [6, 7]
    };

    /// Replaces the import in the loaded file in which the address lies. The result ends the iteration if it is not 0.
    unsafe extern "C" fn visit(
        info: *mut libc::dl_phdr_info,
        _: usize,
        address: *mut c_void,
    ) -> c_int {
        // SAFETY: the loader gives a valid structure, whose program headers it keeps.
        let (base, headers) = unsafe {
            let info = &*info;
            (
                info.dlpi_addr,
                std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)),
            )
        };
        let find = |kind| headers.iter().find(|header| header.p_type == kind);
        let offset = (address as u64).wrapping_sub(base);
        let is_inside = headers.iter().any(|header| {
            header.p_type == libc::PT_LOAD
                && (header.p_vaddr..header.p_vaddr + header.p_memsz).contains(&offset)
        });
        let Some(dynamic) = find(libc::PT_DYNAMIC).filter(|_| is_inside) else {
            return 0;
        };
        let value_of = |tag| {
            let mut entry = (base + dynamic.p_vaddr) as *const Dyn;
            // SAFETY: the section is mapped, and ends with `DT_NULL`.
            unsafe {
                while (*entry).tag != DT_NULL && (*entry).tag != tag {
                    entry = entry.add(1);
                }
                ((*entry).tag == tag).then_some((*entry).value)
            }
        };
        // The loader has made addresses of the offsets, but not in a section that is read-only.
        let place =
            |tag| value_of(tag).map(|value| if value < base { base + value } else { value });
        let (Some(strings), Some(symbols)) = (place(DT_STRTAB), place(DT_SYMTAB)) else {
            return 1;
        };
        let relro = find(libc::PT_GNU_RELRO).map_or(0..0, |header| {
            let end = base + header.p_vaddr + header.p_memsz;
            base + header.p_vaddr..end - end % page_bytes()
        });
        for (table, bytes) in [(DT_JMPREL, DT_PLTRELSZ), (DT_RELA, DT_RELASZ)] {
            let (Some(table), Some(bytes)) = (place(table), value_of(bytes)) else {
                continue;
            };
            // SAFETY: the table is mapped and has so many bytes. On 64-bit ARM and x86, relocations have addends.
            let relocations = unsafe {
                std::slice::from_raw_parts(table as *const Rela, bytes as usize / size_of::<Rela>())
            };
            for relocation in relocations
                .iter()
                .filter(|relocation| SLOT_KINDS.contains(&(relocation.info & 0xffff_ffff)))
            {
                // SAFETY: a relocation names a symbol of the table, and a symbol a string of the other one.
                let name = unsafe {
                    let symbol =
                        (symbols as *const libc::Elf64_Sym).add((relocation.info >> 32) as usize);
                    CStr::from_ptr((strings + u64::from((*symbol).st_name)) as *const _)
                };
                if name == c"pthread_exit" {
                    replace(
                        (base + relocation.offset) as *mut c_void,
                        relro.contains(&(base + relocation.offset)),
                    );
                }
            }
        }
        1
    }

    fn page_bytes() -> u64 {
        // SAFETY: always allowed.
        unsafe { libc::sysconf(libc::_SC_PAGESIZE) as u64 }
    }

    /// Puts [`exit_thread`] into a slot for an imported function, which the loader may have protected.
    fn replace(slot: *mut c_void, is_protected: bool) {
        let page =
            ptr::without_provenance_mut(slot as usize - slot as usize % page_bytes() as usize);
        // SAFETY: the page is one of the loaded file. Only its protection changes, and is restored.
        let protect = |how| unsafe { libc::mprotect(page, page_bytes() as usize, how) == 0 };
        if is_protected && !protect(libc::PROT_READ | libc::PROT_WRITE) {
            return;
        }
        // SAFETY: the slot is aligned, holds the address of a function, and can be written now; others read it whole.
        unsafe { AtomicPtr::from_ptr(slot.cast()) }
            .store(exit_thread as *mut c_void, Ordering::Release);
        if is_protected {
            protect(libc::PROT_READ);
        }
    }
}
