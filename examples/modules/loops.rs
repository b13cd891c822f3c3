//! A module in Rust with a backend: it takes neighbouring elementwise nodes and runs each group in one loop, without arrays in between.
//!
//! `rustc --crate-type cdylib loops.rs` builds it; `net.optimize_for(x, backend="loops")` uses it.

#![allow(non_camel_case_types, reason = "names of the table")]

#[path = "../../crates/module/src/abi.rs"]
#[allow(dead_code, reason = "a module needs a part of the table")]
mod abi;

use std::ffi::{CStr, c_char, c_void};
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

use abi::*;

const FLOAT32: i32 = 11;
const FLOAT64: i32 = 12;

type Failure = (i32, String);

/// What a node computes. The operators of these are exact or rounded once, so that results have the bits of the engine's own.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Work {
    Add,
    Subtract,
    Multiply,
    Divide,
    Negative,
    Absolute,
    Square,
    Sqrt,
}

impl Work {
    fn of(op: &str) -> Option<Work> {
        Some(match op {
            "add" => Work::Add,
            "subtract" => Work::Subtract,
            "multiply" => Work::Multiply,
            "divide" => Work::Divide,
            "negative" => Work::Negative,
            "absolute" => Work::Absolute,
            "square" => Work::Square,
            "sqrt" => Work::Sqrt,
            _ => return None,
        })
    }

    fn num_operands(self) -> usize {
        match self {
            Work::Add | Work::Subtract | Work::Multiply | Work::Divide => 2,
            _ => 1,
        }
    }
}

/// An operand of a step: an array, the result of an earlier step, or a number.
#[derive(Clone, Copy, Debug)]
enum Source {
    Argument(usize),
    Step(usize),
    Number(f64),
}

/// A compiled part.
struct Program {
    steps: Vec<(Work, Source, Source)>,
    /// The step of each result.
    results: Vec<usize>,
    dtype: i32,
}

/// Number of compiled parts that are alive; the operator `loops_programs` returns it.
static PROGRAMS: AtomicUsize = AtomicUsize::new(0);

impl Drop for Program {
    fn drop(&mut self) {
        PROGRAMS.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Whether elements with these strides lie in C order without gaps.
fn is_c_order(shape: &[i64], strides: &[i64]) -> bool {
    let mut step = 1;
    for (&n, &stride) in shape.iter().zip(strides).rev() {
        if n != 1 && stride != step {
            return false;
        }
        step *= n;
    }
    true
}

/// The functions of a graph, with Rust's types.
struct Graph<'a>(&'a mx_graph);

macro_rules! ask {
    ($graph:ident.$function:ident($($given:expr),*)) => {
        match $graph.0.$function {
            // SAFETY: a function of the engine's table, called while the table is valid.
            Some(function) => unsafe { function($graph.0.context $(, $given)*) },
            None => return Err((MX_MODULE_FAILED, concat!("the table has no ", stringify!($function)).to_owned())),
        }
    };
}

const NOTHING: mx_operand = mx_operand { kind: MX_OPERAND_NONE, dtype: -1, value: -1, integer: 0, real: 0.0 };
const NO_SPEC: mx_spec = mx_spec { ndim: 0, dtype: 0, shape: [0; MX_MODULE_MAX_NDIM] };

impl Graph<'_> {
    fn op(&self, node: mx_node) -> Result<&str, Failure> {
        let name = ask!(self.op(node));
        // SAFETY: the name of an existing node; it lives until the function of the module returns.
        Ok(unsafe { CStr::from_ptr(name) }.to_str().unwrap_or(""))
    }

    fn input(&self, node: mx_node, index: usize) -> Result<mx_operand, Failure> {
        let mut found = NOTHING;
        match ask!(self.input(node, index, &raw mut found)) {
            MX_MODULE_OK => Ok(found),
            status => Err((status, String::new())),
        }
    }

    fn spec(&self, value: mx_value) -> Result<mx_spec, Failure> {
        let mut found = NO_SPEC;
        match ask!(self.spec(value, &raw mut found)) {
            MX_MODULE_OK => Ok(found),
            status => Err((status, String::new())),
        }
    }

    fn output(&self, node: mx_node) -> Result<mx_value, Failure> {
        Ok(ask!(self.output(node, 0)))
    }

    /// Whether the elements of a value lie in C order without gaps.
    fn is_dense(&self, value: mx_value) -> Result<bool, Failure> {
        let (spec, mut strides, mut offset) = (self.spec(value)?, [0; MX_MODULE_MAX_NDIM], 0);
        if ask!(self.strides(value, strides.as_mut_ptr(), &raw mut offset)) != MX_MODULE_OK {
            return Ok(false);
        }
        let ndim = spec.ndim as usize;
        Ok(is_c_order(&spec.shape[..ndim], &strides[..ndim]))
    }

    /// Whether the module computes a node: all arrays are dense, of one shape and of one floating-point type.
    fn takes(&self, node: mx_node) -> Result<bool, Failure> {
        let Some(work) = Work::of(self.op(node)?) else {
            return Ok(false);
        };
        let output = self.spec(self.output(node)?)?;
        if output.dtype != FLOAT32 && output.dtype != FLOAT64 || ask!(self.num_inputs(node)) != work.num_operands() {
            return Ok(false);
        }
        for index in 0..work.num_operands() {
            let operand = self.input(node, index)?;
            match operand.kind {
                MX_OPERAND_VALUE => {
                    let spec = self.spec(operand.value)?;
                    let is_same = spec.dtype == output.dtype && spec.ndim == output.ndim && spec.shape == output.shape;
                    if !is_same || !self.is_dense(operand.value)? {
                        return Ok(false);
                    }
                }
                MX_OPERAND_INT if operand.integer.unsigned_abs() < 1 << 24 => {}
                MX_OPERAND_REAL => {}
                _ => return Ok(false),
            }
        }
        Ok(true)
    }

    fn compiled(&self) -> Result<Program, Failure> {
        // Where each value of the part comes from.
        let mut known: Vec<(mx_value, Source)> = Vec::new();
        for index in 0..ask!(self.num_arguments()) {
            known.push((ask!(self.argument(index)), Source::Argument(index)));
        }
        let (mut steps, mut dtype) = (Vec::new(), FLOAT32);
        for position in 0..ask!(self.num_nodes()) {
            let node = ask!(self.node_at(position));
            let refused = || (MX_MODULE_VALUE, format!("node {position} was not taken"));
            // Parts from files are compiled without a pass that took their nodes.
            if !self.takes(node)? {
                return Err(refused());
            }
            let work = Work::of(self.op(node)?).ok_or_else(refused)?;
            let mut from = [Source::Number(0.0); 2];
            for (index, from) in from.iter_mut().enumerate().take(work.num_operands()) {
                let operand = self.input(node, index)?;
                *from = match operand.kind {
                    MX_OPERAND_INT => Source::Number(operand.integer as f64),
                    MX_OPERAND_REAL => Source::Number(operand.real),
                    _ => known.iter().find(|(value, _)| *value == operand.value).ok_or_else(refused)?.1,
                };
            }
            let output = self.output(node)?;
            dtype = self.spec(output)?.dtype;
            known.push((output, Source::Step(steps.len())));
            steps.push((work, from[0], from[1]));
        }
        let mut results = Vec::new();
        for index in 0..ask!(self.num_results()) {
            let result = ask!(self.result(index));
            match known.iter().find(|(value, _)| *value == result) {
                Some((_, Source::Step(step))) => results.push(*step),
                _ => return Err((MX_MODULE_VALUE, format!("result {index} is not computed"))),
            }
        }
        PROGRAMS.fetch_add(1, Ordering::Relaxed);
        Ok(Program { steps, results, dtype })
    }
}

unsafe extern "C" fn take(call: *const mx_take_call) -> i32 {
    // SAFETY: the engine's structure, and the graph in it, are valid for the call.
    let (call, graph) = unsafe { (&*call, Graph(&*(*call).graph)) };
    let mut is_taken = false;
    // SAFETY: the engine gives a buffer for a message.
    let status = unsafe {
        guarded(call.message, call.message_capacity, || {
            is_taken = graph.takes(call.node)?;
            Ok(())
        })
    };
    match status {
        MX_MODULE_OK if !is_taken => MX_MODULE_DECLINED,
        status => status,
    }
}

unsafe extern "C" fn compile(call: *const mx_compile_call) -> i32 {
    // SAFETY: the engine's structure, and the graph in it, are valid for the call.
    let (call, graph) = unsafe { (&*call, Graph(&*(*call).graph)) };
    // SAFETY: the engine gives a buffer for a message and one for the handle.
    unsafe {
        guarded(call.message, call.message_capacity, || {
            let program = Box::new(graph.compiled()?);
            call.handle.write(Box::into_raw(program).cast());
            Ok(())
        })
    }
}

unsafe extern "C" fn free(_state: *mut c_void, handle: *mut c_void) {
    // SAFETY: a handle that `compile` gave, which is freed once.
    drop(unsafe { Box::from_raw(handle.cast::<Program>()) });
}

/// The sizes and strides of an array.
///
/// # Safety
/// The array is valid for the call.
unsafe fn sizes(x: &mx_tensor) -> (&[i64], &[i64]) {
    // SAFETY: an array has `ndim` sizes and strides; both pointers are valid, also for none.
    unsafe {
        let list = |at| std::slice::from_raw_parts(at, x.ndim as usize);
        (list(x.shape), list(x.strides))
    }
}

/// Computes the results of a program element by element.
macro_rules! run_as {
    ($type:ty, $program:ident, $inputs:ident, $outputs:ident, $count:ident) => {{
        let mut values = vec![<$type>::default(); $program.steps.len()];
        for i in 0..$count {
            for (at, &(work, a, b)) in $program.steps.iter().enumerate() {
                let get = |source| match source {
                    // SAFETY: `run` has checked that the array has `count` elements of this type, one after the other.
                    Source::Argument(k) => unsafe { *$inputs[k].data.cast::<$type>().add(i) },
                    Source::Step(step) => values[step],
                    Source::Number(x) => x as $type,
                };
                let (a, b) = (get(a), get(b));
                values[at] = match work {
                    Work::Add => a + b,
                    Work::Subtract => a - b,
                    Work::Multiply => a * b,
                    Work::Divide => a / b,
                    Work::Negative => -a,
                    Work::Absolute => a.abs(),
                    Work::Square => a * a,
                    Work::Sqrt => a.sqrt(),
                };
            }
            for (result, &step) in $outputs.iter().zip(&$program.results) {
                // SAFETY: as for the arguments; nobody else uses the memory of results.
                unsafe { result.data.cast::<$type>().add(i).write(values[step]) };
            }
        }
    }};
}

unsafe extern "C" fn run(call: *const mx_kernel_call) -> i32 {
    // SAFETY: the engine's structure is valid for the call, and its state is the handle of a part.
    let (call, program) = unsafe { (&*call, &*(*call).state.cast::<Program>()) };
    let list = |at: *const mx_tensor, len| match len {
        0 => &[],
        // SAFETY: the engine gives that many arrays, which are valid for the call.
        len => unsafe { std::slice::from_raw_parts(at, len) },
    };
    let (inputs, outputs) = (list(call.inputs, call.num_inputs), list(call.outputs, call.num_outputs));
    let body = || {
        let refused = |what: &str, k: usize| {
            let of = if k < inputs.len() { ("argument", k) } else { ("result", k - inputs.len()) };
            Err((MX_MODULE_VALUE, format!("{} {} of a part {what}", of.0, of.1)))
        };
        let Some(first) = outputs.first() else { return Ok(()) };
        // SAFETY: the array is valid for the call.
        let shape = unsafe { sizes(first) }.0;
        for (k, x) in inputs.iter().chain(outputs).enumerate() {
            // SAFETY: the array is valid for the call.
            let (own, strides) = unsafe { sizes(x) };
            if x.dtype != program.dtype || own != shape {
                return refused("has another shape or data type than the others", k);
            }
            // The engine may pass any view of a buffer, and graphs from files do.
            if !is_c_order(own, strides) {
                return refused("is not in C order", k);
            }
        }
        let count = shape.iter().product::<i64>() as usize;
        match program.dtype {
            FLOAT32 => run_as!(f32, program, inputs, outputs, count),
            _ => run_as!(f64, program, inputs, outputs, count),
        }
        Ok(())
    };
    // SAFETY: the engine gives a buffer for a message.
    unsafe { guarded(call.message, call.message_capacity, body) }
}

unsafe extern "C" fn one_number(call: *const mx_infer_call) -> i32 {
    // SAFETY: the operator has one output.
    unsafe { (*call).outputs.write(mx_spec { ndim: 0, dtype: FLOAT64, shape: [0; MX_MODULE_MAX_NDIM] }) };
    MX_MODULE_OK
}

unsafe extern "C" fn programs(call: *const mx_kernel_call) -> i32 {
    // SAFETY: the output is a number of float64.
    unsafe { (*(*call).outputs).data.cast::<f64>().write(PROGRAMS.load(Ordering::Relaxed) as f64) };
    MX_MODULE_OK
}

unsafe extern "C" fn init(host: *const mx_host, message: *mut c_char, capacity: usize) -> i32 {
    // SAFETY: the engine's table is valid while this runs, and there is a buffer for a message.
    unsafe {
        guarded(message, capacity, || {
            let host = &*host;
            let refused = || (MX_MODULE_FAILED, "a part of the module was not taken".to_owned());
            let (Some(add_operator), Some(add_partitioner)) = (host.add_operator, host.add_partitioner) else {
                return Err(refused());
            };
            let operator = mx_operator {
                size: size_of::<mx_operator>(),
                name: c"loops_programs".as_ptr(),
                doc: c"The number of compiled parts.".as_ptr(),
                inputs: ptr::null(),
                num_inputs: 0,
                num_outputs: 1,
                parameters: ptr::null(),
                num_parameters: 0,
                infer: Some(one_number),
                kernel: Some(programs),
                gradient: ptr::null(),
                state: ptr::null_mut(),
                // The result changes from call to call.
                flags: MX_OPERATOR_IMPURE,
                reserved: 0,
            };
            let partitioner = mx_partitioner {
                size: size_of::<mx_partitioner>(),
                name: c"loops".as_ptr(),
                min_nodes: 2,
                take: Some(take),
                compile: Some(compile),
                run: Some(run),
                free: Some(free),
                state: ptr::null_mut(),
            };
            let statuses = [
                add_operator(host.context, &raw const operator),
                add_partitioner(host.context, &raw const partitioner),
            ];
            match statuses {
                [MX_MODULE_OK, MX_MODULE_OK] => Ok(()),
                _ => Err(refused()),
            }
        })
    }
}

struct Constant(mx_module);

// SAFETY: nobody writes it, and the texts that it points to are constant.
unsafe impl Sync for Constant {}

static MODULE: Constant = Constant(mx_module {
    size: size_of::<mx_module>(),
    abi: MX_MODULE_ABI,
    reserved: 0,
    name: c"loops".as_ptr(),
    version: c"1.0".as_ptr(),
    init: Some(init),
});

/// What makes the library a module.
#[unsafe(no_mangle)]
pub extern "C" fn mx_module_entry() -> *const mx_module {
    &raw const MODULE.0
}
