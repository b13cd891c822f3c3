//! Versions, the list of operators, the random seed, settings.

use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char};
use std::sync::OnceLock;

use mxnet::core::args::{Default, Param};
use mxnet::core::config::{self, Kind, Origin, Setting};
use mxnet::core::{OpDef, registry, rng};
use parking_lot::Mutex;
use serde_json::{Value as Json, json};

use crate::array::give_text;
use crate::foreign::{check_out, give, text};
use crate::invoke::find;
use crate::status::{guard, named};

/// The version of the ABI that this header describes. It is incremented by additions; functions and fields are never removed.
pub const MX_ABI_VERSION: u32 = 2;

const VERSION: &CStr =
    match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
        Ok(version) => version,
        Err(_) => c"",
    };

/// The version of the library's ABI. If it is less than the `MX_ABI_VERSION` that a program was compiled with, the library is too old.
#[unsafe(no_mangle)]
pub extern "C" fn mx_abi_version() -> u32 {
    MX_ABI_VERSION
}

/// The version of the library, such as "2.0.0". The text is constant.
#[unsafe(no_mangle)]
pub extern "C" fn mx_version() -> *const c_char {
    VERSION.as_ptr()
}

/// The names of all operators, separated by line feeds. Sets `len_bytes` to the required length including the terminating zero byte. Writes the text
/// if `capacity` is at least that.
///
/// # Safety
/// `names` is null or valid for `capacity` bytes; `len_bytes` is null or points to a variable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mx_op_names(
    names: *mut c_char,
    capacity: usize,
    len_bytes: *mut usize,
) -> i32 {
    guard("mx_op_names", || {
        let all: Vec<&str> = registry::all().map(|op| op.name).collect();
        // SAFETY: as the caller promises.
        unsafe { give_text(&all.join("\n"), names, capacity, len_bytes) }
    })
}

fn described_param(param: &Param) -> Json {
    let default = match param.default {
        Default::Required => {
            return json!({"name": param.name, "kind": format!("{:?}", param.kind)});
        }
        Default::None => Json::Null,
        Default::Bool(x) => json!(x),
        Default::Int(x) => json!(x),
        Default::Float(x) => json!(x),
        Default::Str(x) => json!(x),
        Default::Ints(x) => json!(x),
    };
    json!({"name": param.name, "kind": format!("{:?}", param.kind), "default": default})
}

fn described(op: &'static OpDef) -> CString {
    let params = op.full_signature.unwrap_or(op).params;
    let text = json!({
        "name": op.name,
        "version": op.version,
        "doc": op.doc,
        "params": params.iter().map(described_param).collect::<Vec<_>>(),
    });
    CString::new(text.to_string()).unwrap_or_default()
}

/// The signature of an operator, as JSON: `{"name", "version", "doc", "params": [{"name", "kind", "default"}]}`. A required parameter has no default.
/// The text is constant.
///
/// # Safety
/// `op` is null or a string; `description` is null or points to a variable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mx_op_describe(op: *const c_char, description: *mut *const c_char) -> i32 {
    static KNOWN: OnceLock<Mutex<HashMap<&'static str, &'static CStr>>> = OnceLock::new();
    guard("mx_op_describe", || {
        check_out(description, "description")?;
        // SAFETY: as the caller promises.
        let op = find(unsafe { text(op, "op")? })?;
        let mut known = KNOWN.get_or_init(Mutex::default).lock();
        let text = known
            .entry(op.name)
            .or_insert_with(|| Box::leak(described(op).into_boxed_c_str()));
        // SAFETY: as the caller promises.
        unsafe { give(description, text.as_ptr(), "description") }
    })
}

/// Seeds the random number generator of the process.
#[unsafe(no_mangle)]
pub extern "C" fn mx_random_seed(seed: u64) -> i32 {
    guard("mx_random_seed", || {
        rng::seed(seed);
        Ok(())
    })
}

/// Loads a module: a shared library that adds operators, kernels, devices or graph passes. Loading it again has no effect.
///
/// # Safety
/// `path` is null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mx_load_module(path: *const c_char) -> i32 {
    guard("mx_load_module", || {
        // SAFETY: as the caller promises.
        let path = unsafe { text(path, "path")? };
        let loaded = mxnet::module::load(std::path::Path::new(path));
        loaded.map(drop).map_err(named("mx_load_module"))
    })
}

/// Sets a setting; key and value are text: `mx_config_set("engine_mode", "sync")`.
///
/// # Safety
/// `key` and `value` are null or strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mx_config_set(key: *const c_char, value: *const c_char) -> i32 {
    guard("mx_config_set", || {
        // SAFETY: as the caller promises.
        let (name, value) = unsafe { (text(key, "key")?, text(value, "value")?) };
        let value = config::key(name)?.parse(value)?;
        config::set(name, value, Origin::Program)
    })
}

/// The value of a setting as text. Sets `len_bytes` to the required length including the terminating zero byte. Writes the text if `capacity` is at
/// least that.
///
/// # Safety
/// `key` is null or a string; `value` is null or valid for `capacity` bytes; `len_bytes` is null or points to a variable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mx_config_get(
    key: *const c_char,
    value: *mut c_char,
    capacity: usize,
    len_bytes: *mut usize,
) -> i32 {
    guard("mx_config_get", || {
        // SAFETY: as the caller promises.
        let found = setting_text(config::key(unsafe { text(key, "key")? })?.value());
        // SAFETY: as the caller promises.
        unsafe { give_text(&found, value, capacity, len_bytes) }
    })
}

fn setting_text(setting: Setting) -> String {
    match setting {
        Setting::Bool(x) => x.to_string(),
        Setting::Int(x) => x.to_string(),
        Setting::Word(x) => x.to_owned(),
    }
}

/// All settings as JSON: `[{"name", "doc", "kind", "value", "origin"}]`. Sets `len_bytes` to the required length including the terminating zero byte.
/// Writes the text if `capacity` is at least that.
///
/// # Safety
/// `list` is null or valid for `capacity` bytes; `len_bytes` is null or points to a variable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mx_config_list(
    list: *mut c_char,
    capacity: usize,
    len_bytes: *mut usize,
) -> i32 {
    guard("mx_config_list", || {
        let one = |key: &config::Key| {
            let kind = match key.kind {
                Kind::Bool => json!("bool"),
                Kind::Int(least, most) => json!([least, most]),
                Kind::Word(words) => json!(words),
                Kind::Text => json!("text"),
            };
            json!({
                "name": key.name,
                "doc": key.doc,
                "kind": kind,
                "value": setting_text(key.value()),
                "origin": key.origin().name(),
            })
        };
        let all: Vec<Json> = config::keys().iter().map(one).collect();
        let text = Json::from(all).to_string();
        // SAFETY: as the caller promises.
        unsafe { give_text(&text, list, capacity, len_bytes) }
    })
}
