//! Graphs that passes and partitioners of modules read and change. A graph is valid only while the module's function runs; the functions that it
//! may call are in `session/table.rs`.

mod table;

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

use mxnet_core::{Error, Result, Rng};
use mxnet_graph::edit::{Editor, NewAttribute, NewCall};
use mxnet_graph::{Graph, Operand, View, can_be_taken};
use mxnet_tensor::{DType, Scalar};

use crate::abi::*;
use crate::call::attribute;
use table::table;

/// A graph that a module reads or changes.
pub struct Session {
    editor: Editor,
    /// The graph as it was given, for queries that do not depend on changes.
    original: Option<Graph>,
    is_locked: bool,
    /// The last error.
    error: Option<Error>,
    error_text: CString,
    /// Names of operators, and texts of attributes, that the module has pointers to.
    names: HashMap<&'static str, CString>,
    texts: Vec<CString>,
    /// Numbers that have no form in C.
    others: Vec<Operand>,
}

thread_local! {
    /// The sessions of functions that are running on this thread.
    static RUNNING: RefCell<Vec<*mut Session>> = const { RefCell::new(Vec::new()) };
}

#[cold]
fn wrong(problem: impl Into<String>) -> Error {
    Error::value("graph", problem)
}

impl Session {
    /// A graph that can be changed, if it is not `is_locked`.
    pub fn new(graph: Graph, is_locked: bool) -> Session {
        Session {
            original: is_locked.then(|| graph.clone()),
            editor: Editor::new(graph),
            is_locked,
            error: None,
            error_text: CString::default(),
            names: HashMap::new(),
            texts: Vec::new(),
            others: Vec::new(),
        }
    }

    /// Calls a function of a module with the table of this graph.
    pub fn with_table<R>(&mut self, body: impl FnOnce(*const mx_graph) -> R) -> R {
        /// Forgets the session when the function has returned.
        struct Forget;
        impl Drop for Forget {
            fn drop(&mut self) {
                RUNNING.with_borrow_mut(|running| running.pop());
            }
        }
        let context: *mut Session = self;
        RUNNING.with_borrow_mut(|running| running.push(context));
        let _forget = Forget;
        let table = table(context.cast());
        body(&raw const table)
    }

    /// The last error of a function of the table.
    pub fn take_error(&mut self) -> Option<Error> {
        self.error.take()
    }

    /// The changed graph.
    pub fn finish(self) -> Graph {
        self.editor.finish()
    }

    fn check_unlocked(&self) -> Result<()> {
        match self.is_locked {
            true => Err(wrong("this graph can only be read")),
            false => Ok(()),
        }
    }

    fn number(&mut self, view: &View) -> mx_value {
        self.editor.number_of(view) as mx_value
    }

    fn operand_of(&mut self, operand: &Operand) -> mx_operand {
        let mut found = mx_operand {
            kind: MX_OPERAND_NONE,
            dtype: -1,
            value: -1,
            integer: 0,
            real: 0.0,
        };
        let value = match operand {
            Operand::Absent => return found,
            Operand::View(view) => {
                (found.kind, found.value) = (MX_OPERAND_VALUE, self.number(view));
                return found;
            }
            Operand::Number(value) => value,
            Operand::Constant(value, dtype) => {
                found.dtype = i32::from(*dtype as u8);
                value
            }
        };
        match *value {
            Scalar::Bool(x) => (found.kind, found.integer) = (MX_OPERAND_BOOL, i64::from(x)),
            Scalar::I64(x) => (found.kind, found.integer) = (MX_OPERAND_INT, x),
            Scalar::F64(x) => (found.kind, found.real) = (MX_OPERAND_REAL, x),
            _ => {
                self.others.push(operand.clone());
                let number = self.others.len() as mx_value - 1;
                (found.kind, found.value) = (MX_OPERAND_OTHER, number);
            }
        }
        found
    }

    fn given(&self, operand: &mx_operand) -> Result<Operand> {
        let number = match operand.kind {
            MX_OPERAND_NONE => return Ok(Operand::Absent),
            MX_OPERAND_VALUE => {
                let view = self.editor.value(index(operand.value, "value")?)?;
                return Ok(Operand::View(view.clone()));
            }
            MX_OPERAND_BOOL => Scalar::Bool(operand.integer != 0),
            MX_OPERAND_INT => Scalar::I64(operand.integer),
            MX_OPERAND_REAL => Scalar::F64(operand.real),
            MX_OPERAND_OTHER => {
                let other = self.others.get(index(operand.value, "number")?);
                return other
                    .cloned()
                    .ok_or_else(|| wrong(format!("there is no number {}", operand.value)));
            }
            kind => return Err(wrong(format!("no operand has the kind {kind}"))),
        };
        if operand.dtype == -1 {
            return Ok(Operand::Number(number));
        }
        let dtype = u8::try_from(operand.dtype).ok();
        let dtype = dtype.and_then(DType::from_number);
        let dtype = dtype.ok_or_else(|| wrong(format!("there is no dtype {}", operand.dtype)))?;
        Ok(Operand::Constant(number, dtype))
    }

    /// # Safety
    /// `call` is null or points to a structure whose pointers are null or valid.
    unsafe fn call<'a>(&self, call: *const mx_call) -> Result<NewCall<'a>> {
        if call.is_null() || !call.is_aligned() {
            return Err(wrong("the call is null"));
        }
        // SAFETY: not null, and the caller's promise. The first word is the size.
        let size = unsafe { (&raw const (*call).size).read() };
        if size < size_of::<mx_call>() {
            return Err(wrong(format!(
                "the call's structure has {size} bytes, at least {} are needed",
                size_of::<mx_call>()
            )));
        }
        // SAFETY: the structure has at least the size that is read.
        let call = unsafe { &*call };
        if (call.inputs.is_null() && call.num_inputs > 0)
            || ((call.names.is_null() || call.attributes.is_null()) && call.num_attributes > 0)
        {
            return Err(wrong("operands or attributes of the call are null"));
        }
        if call.num_inputs > MAX_COUNT || call.num_attributes > MAX_COUNT {
            return Err(wrong("the call has more than 4096 operands or attributes"));
        }
        // SAFETY: as the caller promises.
        let op = unsafe { text_at(call.op, "op")? };
        let mut inputs = Vec::new();
        for i in 0..call.num_inputs {
            // SAFETY: there are `num_inputs` operands.
            inputs.push(self.given(unsafe { &*call.inputs.add(i) })?);
        }
        let mut attributes = Vec::new();
        for i in 0..call.num_attributes {
            // SAFETY: there are `num_attributes` names and values.
            let (name, value) = unsafe {
                (
                    text_at(*call.names.add(i), "name")?,
                    &*call.attributes.add(i),
                )
            };
            // SAFETY: the text is null or valid.
            let text = || unsafe { text_at(value.text, "text") }.map(str::to_owned);
            let value = match value.kind {
                MX_PARAMETER_NONE => NewAttribute::None,
                MX_PARAMETER_BOOL => NewAttribute::Bool(value.integer != 0),
                MX_PARAMETER_INT => NewAttribute::Int(value.integer),
                MX_PARAMETER_REAL => NewAttribute::Real(value.real),
                MX_PARAMETER_TEXT => NewAttribute::Text(text()?),
                MX_PARAMETER_JSON => NewAttribute::Json(text()?),
                kind => return Err(wrong(format!("no attribute has the kind {kind}"))),
            };
            attributes.push((name.to_owned(), value));
        }
        Ok(NewCall {
            op,
            inputs,
            attributes,
        })
    }

    fn attribute(&mut self, node: mx_node, name: &str) -> Result<mx_attribute> {
        let node = index(node, "node")?;
        let Some(value) = self.editor.attribute(node, name)?.cloned() else {
            let op = self.editor.node(node)?.op.name;
            return Err(wrong(format!("`{op}` has no attribute `{name}`")));
        };
        Ok(attribute(&value, &mut self.texts))
    }

    fn flags(&self, node: mx_node) -> Result<u32> {
        let number = index(node, "node")?;
        let node = self.editor.node(number)?;
        let mut flags = 0;
        if self.editor.writes_in_place(number)? {
            flags |= MX_NODE_WRITES;
        }
        if !matches!(node.op.rng, Rng::No) {
            flags |= MX_NODE_DRAWS;
        }
        if node.op.is_impure {
            flags |= MX_NODE_IMPURE;
        }
        let original = self.original.as_ref();
        if original.is_some_and(|graph| can_be_taken(graph, node)) {
            flags |= MX_NODE_CAN_BE_TAKEN;
        }
        Ok(flags)
    }
}

/// Limit for operands and attributes of a call.
const MAX_COUNT: usize = 4096;

fn index(number: i64, what: &str) -> Result<usize> {
    usize::try_from(number).map_err(|_| wrong(format!("there is no {what} {number}")))
}

/// # Safety
/// `text` is null or ends with a zero byte.
unsafe fn text_at<'a>(text: *const c_char, what: &str) -> Result<&'a str> {
    if text.is_null() {
        return Err(wrong(format!("`{what}` is null")));
    }
    // SAFETY: not null, and the caller's promise.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str()
        .map_err(|_| wrong(format!("`{what}` is not UTF-8")))
}

/// Runs a function of the table. An error, a panic, and a graph that is not valid any more give `failed`.
fn with<R>(
    context: *mut c_void,
    failed: R,
    body: impl FnOnce(&mut Session) -> Result<R>,
) -> std::result::Result<R, (R, i32)> {
    let context = context.cast::<Session>();
    if !RUNNING.with_borrow(|running| running.contains(&context)) {
        return Err((failed, MX_MODULE_FAILED));
    }
    // SAFETY: the session is one whose function is running on this thread; nobody else uses it until this function returns.
    let session = unsafe { &mut *context };
    let result = catch_unwind(AssertUnwindSafe(|| body(session)));
    match result.unwrap_or_else(|panic| Err(Error::from_panic("graph", panic))) {
        Ok(found) => Ok(found),
        Err(error) => {
            let status = match &error {
                Error::Shape(_) => MX_MODULE_SHAPE,
                Error::DType(_) => MX_MODULE_DTYPE,
                Error::Value(_) => MX_MODULE_VALUE,
                _ => MX_MODULE_FAILED,
            };
            session.error = Some(error);
            Err((failed, status))
        }
    }
}

fn answer<R>(context: *mut c_void, failed: R, body: impl FnOnce(&mut Session) -> Result<R>) -> R {
    with(context, failed, body).unwrap_or_else(|(failed, _)| failed)
}

fn status(context: *mut c_void, body: impl FnOnce(&mut Session) -> Result<()>) -> i32 {
    match with(context, (), body) {
        Ok(()) => MX_MODULE_OK,
        Err(((), status)) => status,
    }
}

fn written<T>(to: *mut T, value: T) -> Result<()> {
    if to.is_null() || !to.is_aligned() {
        return Err(wrong("the pointer for the result is null"));
    }
    // SAFETY: not null; the module promises room for the answer.
    unsafe { to.write(value) };
    Ok(())
}

fn nth<T: Copy>(list: &[T], index: usize) -> Result<T> {
    let found = list.get(index).copied();
    found.ok_or_else(|| {
        wrong(format!(
            "there are {} entries, none is number {index}",
            list.len()
        ))
    })
}
