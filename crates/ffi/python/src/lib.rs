//! The PyO3 module `mxnet._core`: extracts arguments, calls the core, wraps results. Operators' logic, defaults and docs are elsewhere.

mod abstracts;
mod array;
mod array_function;
mod arrow;
mod atomic_file;
mod autograd;
mod buffer_protocol;
mod call;
mod construct;
mod convert;
mod custom;
mod device;
mod digits;
mod dlpack;
mod docstrings;
mod dtypes;
mod engine;
mod equality;
mod error;
mod exported_buffer;
mod files;
mod flat;
mod gil_cell;
mod gil_release;
mod graph;
mod images;
mod index;
mod index_key;
mod interop;
mod keywords;
mod memory;
mod modes;
mod modules;
mod namespaces;
mod nested_sequence;
mod numbers;
mod numpy_abi;
mod numpy_dtype;
mod numpy_export;
mod once_box;
mod op_hook;
mod operators;
mod panic_guard;
mod pickle;
mod printing;
mod profiler;
mod random;
mod reading;
mod registry;
mod row_iter;
mod scalar_protocol;
mod settings;
mod sharing;
mod thread_exit;
mod typed;
mod ufunc;
mod values;
mod witness;
mod writing;

use once_box::OnceBox;
use pyo3::exceptions::PyImportError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The compiled core of the package.
#[pymodule(gil_used = true)]
mod _core {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::abstracts::{abstract_array, is_abstract};
    #[pymodule_export]
    use crate::arrow::arrow_capsules;
    #[pymodule_export]
    use crate::atomic_file::{AtomicFile, check_file};
    #[pymodule_export]
    use crate::autograd::{
        are_gradients_fresh, backward, batched, checkpoint, custom_function, grad, graph_input,
        mark_variables, set_gradient_fresh, set_row_gradient, tape_entry, version_of,
    };
    #[pymodule_export]
    use crate::buffer_protocol::of_buffer;
    #[pymodule_export]
    use crate::construct::{array, asanyarray, asarray, ascontiguousarray, asfortranarray};
    #[pymodule_export]
    use crate::custom::{add_operator, added_operator};
    #[pymodule_export]
    use crate::device::{
        PyDevice, add_simulated_devices, cuda_devices, cuda_libraries, cuda_texts, device_memory,
        device_memory_stats, empty_cache, num_devices,
    };
    #[pymodule_export]
    use crate::digits::shortest_digits;
    #[pymodule_export]
    use crate::dlpack::from_dlpack;
    #[pymodule_export]
    use crate::dtypes::{
        can_cast, default_dtype, is_fortran, may_overlap, memory_location, promote_types,
        result_type,
    };
    #[pymodule_export]
    use crate::engine::{
        engine_mode, engine_stats, memory_stats, num_threads, plan_counters, reset_memory_peak,
        set_debug, set_element_path, set_engine_mode, set_num_threads, set_plan_cache, waitall,
        waits,
    };
    #[pymodule_export]
    use crate::files::{load_safetensors, save_safetensors};
    #[pymodule_export]
    use crate::graph::{
        CompiledGraph, JitFunction, LoadedGraph, classes_of_lengths, graph_passes, outside_trace,
        parameters_replaced, register_partitioner, register_pass, switch_off_passes,
        trace_is_active, unregister_pass,
    };
    #[pymodule_export]
    use crate::images::{image_batch, image_decode, image_encode, image_resize};
    #[pymodule_export]
    use crate::memory::ArrayFlags;
    #[pymodule_export]
    use crate::modes::{
        Mode, autocast, is_recording, is_training, set_autocast, set_recording, set_training,
    };
    #[pymodule_export]
    use crate::modules::{blas_libraries, load_module, loaded_modules, served_operators};
    #[pymodule_export]
    use crate::op_hook::with_op_hook;
    #[pymodule_export]
    use crate::pickle::element_of_state;
    #[pymodule_export]
    use crate::profiler::{
        ProfilerCounter, ProfilerSpan, profiler_dump, profiler_dumps, profiler_enter_block,
        profiler_leave_block, profiler_mark, profiler_scope, profiler_set_paused,
        profiler_set_running, profiler_set_scope, profiler_uses_scopes,
    };
    #[pymodule_export]
    use crate::random::{GeneratorBase, RandomStream, add_distribution};
    #[pymodule_export]
    use crate::reading::{of_iterator, of_text};
    #[pymodule_export]
    use crate::registry::registry;
    #[pymodule_export]
    use crate::settings::{
        common_device, config_get, config_keys, config_set, current_device, device_kinds, features,
        float_reactions, install_float_reporter, numpy_promotion, random_state, seed,
        set_current_device, set_float_reactions, set_numpy_promotion, set_random_state,
    };

    #[pymodule_export]
    use crate::ufunc::_ufunc;
    #[pymodule_export]
    use crate::witness::{WitnessedCall, storage_of, witnessed};
    #[pymodule_export]
    use crate::writing::{write_along, write_at, write_diagonal, write_masked, write_over};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        super::init(module)
    }
}

/// The module, once it has been created.
static MODULE: OnceBox<Py<PyModule>> = OnceBox::new();

/// Fills a new module. Types, functions and handlers exist only once in a process: if the package is imported again (after its removal from
/// `sys.modules`), the new module gets the objects of the first one.
fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    check_interpreter(py)?;
    if let Some(first) = MODULE.get() {
        let own = module.dict();
        for (name, value) in first.bind(py).dict() {
            if !(own.contains(&name)? && name.to_string().starts_with("__")) {
                own.set_item(name, value)?;
            }
        }
        return Ok(());
    }
    numpy_dtype::init(py)?;
    numpy_abi::init(py)?;
    module.add("partition_parts", PyDict::new(py))?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    error::register(module)?;
    device::register_cuda(py)?;
    namespaces::register(module)?;
    construct::add_one_arg_entries(module)?;
    gil_release::register_at_fork(py)?;
    thread_exit::install(py);
    mxnet::core::interrupt::install(engine::interrupted);
    mxnet::core::call_site::install(engine::running_line);
    mxnet::core::config::load();
    profiler::register(py)?;
    mxnet::core::mode::install_task_modes(modes::task_modes);
    make_types(py);
    MODULE.set(module.clone().unbind());
    Ok(())
}

/// The objects that exist once in a process belong to the main interpreter; others are refused.
fn check_interpreter(py: Python<'_>) -> PyResult<()> {
    // SAFETY: the thread is attached to an interpreter.
    let id = unsafe { ffi::PyInterpreterState_GetID(ffi::PyInterpreterState_Get()) };
    match id {
        0 => Ok(()),
        -1 => Err(PyErr::fetch(py)),
        _ => Err(PyImportError::new_err(
            "mxnet is for the main interpreter of a process and cannot be imported in a subinterpreter: use threads or processes",
        )),
    }
}

/// Creates the types that PyO3 would otherwise create at first use: a fork during that would leave a lock held in the child.
fn make_types(py: Python<'_>) {
    py.get_type::<row_iter::RowIter>();
    py.get_type::<exported_buffer::Window>();
    py.get_type::<pyo3::panic::PanicException>();
}
