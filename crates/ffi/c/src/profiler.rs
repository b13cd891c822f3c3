//! The profiler. Its settings are also settings of `mx_config_set`.

use std::cell::RefCell;
use std::ffi::c_char;

use mxnet::core::{Error, Result};
use mxnet::profiler::{
    self, Counter, Format, Instant, Scope, SortBy, Span, SpanKind, SummaryOptions,
};

use crate::array::give_text;
use crate::foreign::{check_out, text};
use crate::status::guard;

thread_local! {
    /// The open scopes and ranges of this thread, the innermost last.
    static SCOPES: RefCell<Vec<Scope>> = const { RefCell::new(Vec::new()) };
    static RANGES: RefCell<Vec<Span>> = const { RefCell::new(Vec::new()) };
}

/// Sets what the profiler records, and which file `mx_profiler_dump` writes. `what` is a list such as "operators,graphs,memory,calls", or "all".
///
/// # Safety
/// `filename` and `what` are null or strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mx_profiler_configure(
    filename: *const c_char,
    what: *const c_char,
) -> i32 {
    guard("mx_profiler_configure", || {
        // SAFETY: as the caller promises.
        let (filename, what) = unsafe { (text(filename, "filename")?, text(what, "what")?) };
        if filename.is_empty() {
            return Err(Error::value("", "`filename` is empty"));
        }
        let mut profile = profiler::Profile::NOTHING;
        for word in what.split(',').map(str::trim) {
            match word {
                "operators" => profile.operators = true,
                "graphs" => profile.graphs = true,
                "memory" => profile.memory = true,
                "calls" => profile.calls = true,
                "all" => profile = profiler::Profile::ALL,
                other => {
                    let problem = format!(
                        "`what` must list operators, graphs, memory, calls or all, not '{other}'"
                    );
                    return Err(Error::value("", problem));
                }
            }
        }
        profiler::configure(|settings| {
            settings.profile = profile;
            settings.filename = filename.into();
        });
        Ok(())
    })
}

/// Starts to record. After a finished dump, a new trace begins.
#[unsafe(no_mangle)]
pub extern "C" fn mx_profiler_start() -> i32 {
    guard("mx_profiler_start", || {
        profiler::start();
        Ok(())
    })
}

/// Stops recording, after the operations that were called before.
#[unsafe(no_mangle)]
pub extern "C" fn mx_profiler_stop() -> i32 {
    guard("mx_profiler_stop", || {
        profiler::stop();
        Ok(())
    })
}

/// Pauses the profiler (1), or continues (0).
#[unsafe(no_mangle)]
pub extern "C" fn mx_profiler_pause(is_paused: i32) -> i32 {
    guard("mx_profiler_pause", || {
        match is_paused {
            0 => profiler::resume(),
            _ => profiler::pause(),
        }
        Ok(())
    })
}

/// Writes the trace, JSON in Chrome's format for trace events, to the file of the settings. `is_finished` (1) stops the profiler.
#[unsafe(no_mangle)]
pub extern "C" fn mx_profiler_dump(is_finished: i32) -> i32 {
    guard("mx_profiler_dump", || profiler::dump(is_finished != 0))
}

/// The statistics as text. `format` is "table" or "json", `sort_by` "total", "avg", "min", "max" or "count"; null pointers mean the first of each.
/// Sets `len_bytes` to the required length including the terminating zero byte. Writes the text if `capacity` is at least that; new statistics begin
/// then if `is_reset` is 1. Events between two calls may make the text longer.
///
/// # Safety
/// `format` and `sort_by` are null or strings; `summary` is null or valid for `capacity` bytes; `len_bytes` is null or points to a variable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mx_profiler_summary(
    format: *const c_char,
    sort_by: *const c_char,
    is_ascending: i32,
    is_reset: i32,
    summary: *mut c_char,
    capacity: usize,
    len_bytes: *mut usize,
) -> i32 {
    guard("mx_profiler_summary", || {
        check_out(len_bytes, "len_bytes")?;
        let mut options = SummaryOptions {
            ascending: is_ascending != 0,
            ..SummaryOptions::default()
        };
        if !format.is_null() {
            // SAFETY: as the caller promises.
            options.format = Format::of(unsafe { text(format, "format")? })?;
        }
        if !sort_by.is_null() {
            // SAFETY: as the caller promises.
            options.sort_by = SortBy::of(unsafe { text(sort_by, "sort_by")? })?;
        }
        let found = profiler::summary(&options);
        // SAFETY: as the caller promises.
        unsafe { give_text(&found, summary, capacity, len_bytes)? };
        if is_reset != 0 && found.len() < capacity {
            profiler::summary(&SummaryOptions {
                reset: true,
                ..options
            });
        }
        Ok(())
    })
}

/// Longest name of a scope, with those around it, in bytes. The library keeps the name of each scope, which contains those around it, so a program that does not end its scopes would
/// take more and more memory.
const MAX_SCOPE_BYTES: usize = 1 << 12;

/// Names the operators of this thread until `mx_profiler_scope_end`. Scopes nest; their names together have at most 4096 bytes.
///
/// # Safety
/// `name` is null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mx_profiler_scope_begin(name: *const c_char) -> i32 {
    guard("mx_profiler_scope_begin", || {
        // SAFETY: as the caller promises.
        let name = unsafe { text(name, "name")? };
        let len = profiler::current_scope().name().len() + name.len();
        if len > MAX_SCOPE_BYTES {
            let problem = format!(
                "the names of the open scopes have {len} bytes, {MAX_SCOPE_BYTES} are allowed"
            );
            let hint = "end each scope by mx_profiler_scope_end";
            return Err(Error::value("", problem).with_hint(hint));
        }
        let scope = Scope::enter(name);
        SCOPES.with_borrow_mut(|scopes| scopes.push(scope));
        Ok(())
    })
}

fn popped<T>(list: &RefCell<Vec<T>>, what: &str) -> Result<T> {
    let popped = list.borrow_mut().pop();
    popped.ok_or_else(|| Error::value("", format!("this thread has no open {what}")))
}

/// Ends the innermost scope of this thread.
#[unsafe(no_mangle)]
pub extern "C" fn mx_profiler_scope_end() -> i32 {
    guard("mx_profiler_scope_end", || {
        SCOPES.with(|scopes| popped(scopes, "scope")).map(drop)
    })
}

/// Begins a range of this thread, which the trace shows as a task of `domain`. Ranges nest.
///
/// # Safety
/// `domain` and `name` are null or strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mx_profiler_range_begin(
    domain: *const c_char,
    name: *const c_char,
) -> i32 {
    guard("mx_profiler_range_begin", || {
        // SAFETY: as the caller promises.
        let (domain, name) = unsafe { (text(domain, "domain")?, text(name, "name")?) };
        let span = Span::new(SpanKind::Task, domain, name);
        span.start();
        RANGES.with_borrow_mut(|ranges| ranges.push(span));
        Ok(())
    })
}

/// Ends the innermost range of this thread.
#[unsafe(no_mangle)]
pub extern "C" fn mx_profiler_range_end() -> i32 {
    guard("mx_profiler_range_end", || {
        RANGES.with(|ranges| popped(ranges, "range"))?.stop()
    })
}

/// Records the value of a counter.
///
/// # Safety
/// `domain` and `name` are null or strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mx_profiler_counter(
    domain: *const c_char,
    name: *const c_char,
    value: i64,
) -> i32 {
    guard("mx_profiler_counter", || {
        // SAFETY: as the caller promises.
        let (domain, name) = unsafe { (text(domain, "domain")?, text(name, "name")?) };
        Counter::new(domain, name).set(value);
        Ok(())
    })
}

/// Records an instant. `reach` is "global", "process" or "thread".
///
/// # Safety
/// `domain`, `name` and `reach` are null or strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mx_profiler_marker(
    domain: *const c_char,
    name: *const c_char,
    reach: *const c_char,
) -> i32 {
    guard("mx_profiler_marker", || {
        // SAFETY: as the caller promises.
        let (domain, name) = unsafe { (text(domain, "domain")?, text(name, "name")?) };
        // SAFETY: as the caller promises.
        let reach = Instant::of(unsafe { text(reach, "reach")? })?;
        profiler::mark(domain, name, reach);
        Ok(())
    })
}
