//! Partitioners of modules: each is a pass that finds parts, and an operator that runs them. The operator has the part as text, so files of graphs
//! contain it, and a process that reads one compiles it again.

use std::collections::HashMap;
use std::ffi::{c_char, c_void};
use std::ptr;
use std::sync::{Arc, Weak};

use mxnet_core::{
    Cpu, Error, Grad, InferContext, Inferred, KernelContext, OpDef, OutSpec, Param, ParamKind,
    Result, Types, Value, registry,
};
use mxnet_graph::passes::{self, Runs};
use mxnet_graph::{Graph, PartCall, Provider, Source, partition, set_provider};
use mxnet_tensor::Dims;
use parking_lot::Mutex;

use crate::abi::{
    MX_MODULE_DECLINED, MX_MODULE_OK, mx_compile_call, mx_kernel, mx_partitioner, mx_take_call,
};
use crate::call::{State, run_kernel};
use crate::pass::{new_name, refused, sized};
use crate::session::Session;
use crate::text::MESSAGE_BYTES;

/// A checked copy of a module's description of a partitioner.
#[derive(Clone, Copy)]
pub struct Description {
    /// Its name.
    pub name: &'static str,
    min_nodes: usize,
    take: unsafe extern "C" fn(*const mx_take_call) -> i32,
    compile: unsafe extern "C" fn(*const mx_compile_call) -> i32,
    run: mx_kernel,
    free: Option<unsafe extern "C" fn(*mut c_void, *mut c_void)>,
    state: State,
}

/// Checks and copies the description of a partitioner.
///
/// # Safety
/// `given` is null or points to a structure whose pointers are null or valid.
pub unsafe fn describe(given: *const mx_partitioner) -> Result<Description> {
    // SAFETY: the caller's promise.
    let (given, name) = unsafe {
        let given = sized(given, "partitioner")?;
        (given, new_name(given.name, "partitioner")?)
    };
    let wrong = |problem: &str| Error::value("load", format!("partitioner `{name}`: {problem}"));
    if registry::find(&operator_name(name)).is_some() {
        return Err(wrong("there is an operator of this name"));
    }
    if given.run.is_none() {
        return Err(wrong("it has no `run`"));
    }
    Ok(Description {
        name,
        min_nodes: given.min_nodes,
        take: given.take.ok_or_else(|| wrong("it has no `take`"))?,
        compile: given.compile.ok_or_else(|| wrong("it has no `compile`"))?,
        run: given.run,
        free: given.free,
        state: State(given.state),
    })
}

/// The operator that stands for the parts of a partitioner.
fn operator_name(name: &str) -> String {
    format!("{name}_part")
}

/// A part that was compiled. Freed when no call uses it and no graph has its text.
struct Compiled {
    handle: State,
    code: &'static Code,
}

impl Drop for Compiled {
    fn drop(&mut self) {
        if let Some(free) = self.code.described.free {
            // SAFETY: the handle is one that the module's `compile` gave, and it is freed once.
            unsafe { free(self.code.described.state.0, self.handle.0) };
        }
    }
}

/// The compiled parts by the address of their text, which graphs keep alive. An entry whose text was freed is removed at the next change.
type Parts = HashMap<usize, (Weak<str>, Arc<Compiled>)>;

/// Data for the functions of the operator.
struct Code {
    described: Description,
    label: &'static str,
    parts: Mutex<Parts>,
}

fn code(op: &'static OpDef) -> Result<&'static Code> {
    let state = op.state.and_then(|state| state.downcast_ref::<Code>());
    state.ok_or_else(|| Error::internal(op.name, "the entry is of no partitioner"))
}

/// Compiles a part; `None` if the module declines it.
fn compile(code: &'static Code, graph: Graph) -> Result<Option<Compiled>> {
    let mut session = Session::new(graph, true);
    let mut written = [0 as c_char; MESSAGE_BYTES];
    let mut handle = ptr::null_mut();
    let status = session.with_table(|graph| {
        let call = mx_compile_call {
            size: size_of::<mx_compile_call>(),
            graph,
            handle: &raw mut handle,
            state: code.described.state.0,
            message: written.as_mut_ptr(),
            message_capacity: MESSAGE_BYTES,
        };
        // SAFETY: the module promises a function of this type; everything in `call` lives until it returns.
        unsafe { (code.described.compile)(&raw const call) }
    });
    match status {
        MX_MODULE_OK => Ok(Some(Compiled {
            handle: State(handle),
            code,
        })),
        MX_MODULE_DECLINED => Ok(None),
        status => Err(refused(code.label, status, &written, &mut session)),
    }
}

impl Code {
    /// The compiled part of a text, or of another text with the same content; `None` if it is not compiled.
    fn known(&self, text: &Arc<str>) -> Option<Arc<Compiled>> {
        let mut parts = self.parts.lock();
        let is_alive = |known: &Weak<str>| known.strong_count() > 0;
        let found = parts
            .get(&address(text))
            .filter(|(known, _)| is_alive(known));
        if let Some((_, part)) = found {
            return Some(part.clone());
        }
        let same = parts.values().find(|(known, _)| {
            let known = known.upgrade();
            known.is_some_and(|known| *known == **text)
        });
        let part = same.map(|(_, part)| part.clone())?;
        parts.insert(address(text), (Arc::downgrade(text), part.clone()));
        Some(part)
    }

    /// Stores a compiled part, and frees those whose graphs are gone.
    fn keep(&self, text: &Arc<str>, part: Compiled) -> Arc<Compiled> {
        let part = Arc::new(part);
        let mut parts = self.parts.lock();
        let gone: Vec<_> = parts
            .extract_if(|_, (known, _)| known.strong_count() == 0)
            .collect();
        parts.insert(address(text), (Arc::downgrade(text), part.clone()));
        drop(parts);
        // The module's `free` runs when the table is unlocked.
        drop(gone);
        part
    }
}

fn address(text: &Arc<str>) -> usize {
    text.as_ptr() as usize
}

fn text_of(op: &'static OpDef, value: Option<&Value>) -> Result<Arc<str>> {
    match value {
        Some(Value::Str(text)) => Ok(text.clone()),
        _ => Err(Error::value(op.name, "the attribute `graph` is not text")),
    }
}

/// The graph of a part, checked: all of its inputs are arguments.
fn graph_of(op: &'static OpDef, text: &str) -> Result<Graph> {
    let graph = Graph::from_json(text, &mut |_| None)?;
    let is_argument = |(i, input): (usize, &mxnet_graph::Input)| {
        matches!(input.source, Source::Argument(k) if k == i) && input.written.is_none()
    };
    match graph.inputs.iter().enumerate().all(is_argument) {
        true => Ok(graph),
        false => Err(Error::value(
            op.name,
            "an input of the part is not an argument",
        )),
    }
}

fn infer(context: &InferContext) -> Result<Inferred> {
    let text = text_of(context.op, context.args.attrs.values().first())?;
    let graph = graph_of(context.op, &text)?;
    let inputs: Vec<_> = context.inputs.iter().flatten().collect();
    if inputs.len() != graph.inputs.len() {
        let (found, needed) = (inputs.len(), graph.inputs.len());
        return Err(Error::value(
            context.op.name,
            format!("the part takes {needed} arrays, found {found}"),
        ));
    }
    for (i, (x, input)) in inputs.iter().zip(&graph.inputs).enumerate() {
        if x.shape() != input.view.layout.shape() || x.dtype() != input.view.dtype {
            return Err(context.shape_error(format!(
                "array {i} must have shape {} and dtype {}",
                mxnet_core::Tuple(input.view.layout.shape()),
                input.view.dtype.name()
            )));
        }
    }
    let outputs = graph.outputs.iter();
    Ok(outputs
        .map(|view| OutSpec {
            shape: Dims::from_slice(view.layout.shape()),
            dtype: Some(view.dtype),
        })
        .collect())
}

fn kernel(context: &KernelContext) -> Result<()> {
    let code = code(context.op)?;
    let text = text_of(context.op, context.args.attrs.values().first())?;
    let part = match code.known(&text) {
        Some(part) => part,
        None => {
            // The text may come from a file, so the module may not have seen its nodes before.
            let graph = graph_of(context.op, &text)?;
            if let Some(node) = taken(code, &graph)?.iter().position(|taken| !taken) {
                let op = graph.nodes[node].op.name;
                let problem = format!("it does not take node {node} (`{op}`) of a part");
                return Err(Error::value(code.label, problem));
            }
            let compiled = compile(code, graph)?;
            let compiled = compiled.ok_or_else(|| {
                Error::unsupported(code.label, "it declines a part that it compiled before")
            })?;
            code.keep(&text, compiled)
        }
    };
    let ran = run_kernel(context, code.described.run, part.handle, &[]);
    match ran.map_err(|error| error.for_op(code.label, Vec::new))? {
        true => Ok(()),
        false => Err(Error::unsupported(code.label, "it declines to run a part")),
    }
}

/// Which nodes of a graph the module takes.
fn taken(code: &'static Code, graph: &Graph) -> Result<Vec<bool>> {
    let mut session = Session::new(graph.clone(), true);
    let mut taken = Vec::with_capacity(graph.nodes.len());
    for node in 0..graph.nodes.len() {
        if !mxnet_graph::can_be_taken(graph, &graph.nodes[node]) {
            taken.push(false);
            continue;
        }
        let mut written = [0 as c_char; MESSAGE_BYTES];
        let status = session.with_table(|graph| {
            let call = mx_take_call {
                size: size_of::<mx_take_call>(),
                graph,
                node: node as i64,
                state: code.described.state.0,
                message: written.as_mut_ptr(),
                message_capacity: MESSAGE_BYTES,
            };
            // SAFETY: the module promises a function of this type; everything in `call` lives until it returns.
            unsafe { (code.described.take)(&raw const call) }
        });
        match status {
            MX_MODULE_OK => taken.push(true),
            MX_MODULE_DECLINED => taken.push(false),
            status => return Err(refused(code.label, status, &written, &mut session)),
        }
    }
    Ok(taken)
}

/// Registers a partitioner and its operator.
///
/// # Errors
/// [`Error::Value`] if a name is taken.
pub fn add(module: &'static str, described: Description) -> Result<()> {
    const PARAMS: &[Param] = &[
        Param::arrays("data"),
        Param::required("graph", ParamKind::Str),
    ];
    let name = described.name;
    let code: &'static Code = Box::leak(Box::new(Code {
        described,
        label: format!("partitioner `{name}` of the module `{module}`").leak(),
        parts: Mutex::default(),
    }));
    let op = registry::add(OpDef {
        name: operator_name(name).leak(),
        doc: "A part of a graph that a module's partitioner runs.",
        params: PARAMS,
        types: Types::Infer,
        infer,
        cpu: Cpu::Kernel(kernel),
        grad: Grad::Stop("a part of a graph that a module runs has none"),
        state: Some(code),
        ..OpDef::DEFAULT
    })?;
    set_provider(op.name, Provider::Module(module.to_owned()));
    let pass = move |graph: &mut Graph| {
        let taken = taken(code, graph)?;
        let mut call_of = |part: Graph| {
            let text: Arc<str> = part.to_json(&mut |_, _| String::new()).into();
            if code.known(&text).is_none() {
                match compile(code, part)? {
                    Some(compiled) => drop(code.keep(&text, compiled)),
                    None => return Ok(None),
                }
            }
            Ok(Some(PartCall {
                op,
                attrs: [Value::Str(text)].into_iter().collect(),
            }))
        };
        partition(graph, &taken, code.described.min_nodes, &mut call_of).map(drop)
    };
    passes::register_from("load", name, Runs::Chosen, Some(module), Arc::new(pass))
}
