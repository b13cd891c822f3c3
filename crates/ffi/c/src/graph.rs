//! Networks that were exported from Python: loaded from files, and run by any number of threads at the same time.

use std::ffi::c_char;
use std::sync::Arc;

use mxnet::Graph;
use serde_json::{Value as Json, json};

use crate::array::give_text;
use crate::foreign::{check_out, give, list, text};
use crate::handles::{self, Object, mx_handle};
use crate::invoke::{mx_outputs, output_struct, put};
use crate::status::{guard, named};

/// Loads what `HybridBlock.export` wrote: the graph (`<name>-symbol.json`) and its arrays (`<name>-0000.params`). Free it with `mx_free`. The files
/// can only call operators, not execute other code.
///
/// # Safety
/// `symbol_file` and `param_file` are null or strings; `graph` is null or points to a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mx_graph_load(
    symbol_file: *const c_char,
    param_file: *const c_char,
    graph: *mut mx_handle,
) -> i32 {
    guard("mx_graph_load", || {
        check_out(graph, "graph")?;
        // SAFETY: as the caller promises.
        let (symbol, params) = unsafe {
            (
                text(symbol_file, "symbol_file")?,
                text(param_file, "param_file")?,
            )
        };
        let loaded = Arc::new(Graph::load(symbol, params).map_err(named("mx_graph_load"))?);
        let handle = handles::add(Object::Graph(loaded))?;
        // SAFETY: as the caller promises.
        unsafe { give(graph, handle, "graph") }
    })
}

/// Sets `num_arguments` to the number of arrays that a graph takes.
///
/// # Safety
/// `num_arguments` is null or points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mx_graph_num_arguments(
    graph: mx_handle,
    num_arguments: *mut usize,
) -> i32 {
    guard("mx_graph_num_arguments", || {
        let found = handles::graph(graph)?.arguments().len();
        // SAFETY: as the caller promises.
        unsafe { give(num_arguments, found, "num_arguments") }
    })
}

/// Describes the arrays that a graph takes, as JSON: `[{"shape", "dtype", "dynamic_axes"}]`. Axes listed in `dynamic_axes` may have any length; their
/// sizes in `shape` are an example. Sets `len_bytes` to the required length including the terminating zero byte. Writes the text if `capacity` is at
/// least that.
///
/// # Safety
/// `description` is null or valid for `capacity` bytes; `len_bytes` is null or points to a variable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mx_graph_describe(
    graph: mx_handle,
    description: *mut c_char,
    capacity: usize,
    len_bytes: *mut usize,
) -> i32 {
    guard("mx_graph_describe", || {
        let graph = handles::graph(graph)?;
        let one = |(at, (shape, dtype)): (usize, (Vec<usize>, mxnet::DType))| json!({"shape": shape, "dtype": dtype.name(), "dynamic_axes": graph.dynamic_axes(at)});
        let all: Vec<Json> = graph.arguments().into_iter().enumerate().map(one).collect();
        // SAFETY: as the caller promises.
        unsafe {
            give_text(
                &Json::from(all).to_string(),
                description,
                capacity,
                len_bytes,
            )
        }
    })
}

/// Runs a graph on `len` arrays. The results are new arrays. Several threads may run the graph at the same time.
///
/// # Safety
/// `arrays` is null or points to `len` handles; `out` is null or points to a structure whose `size` is set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mx_graph_run(
    graph: mx_handle,
    arrays: *const mx_handle,
    len: usize,
    out: *mut mx_outputs,
) -> i32 {
    guard("mx_graph_run", || {
        // SAFETY: as the caller promises.
        let (arrays, out) = unsafe { (list(arrays, len, "arrays")?, output_struct(out)?) };
        let graph = handles::graph(graph)?;
        let given: Vec<mxnet::Array> = arrays
            .iter()
            .map(|&handle| handles::array(handle).map(mxnet::Array::from))
            .collect::<Result<_, _>>()?;
        let given: Vec<&mxnet::Array> = given.iter().collect();
        let mut made = Vec::new();
        for result in graph.run(&given)? {
            made.push((handles::add(Object::Array(result.into()))?, true));
        }
        // SAFETY: as the caller promises.
        unsafe { put(out, "graph", made) }
    })
}
