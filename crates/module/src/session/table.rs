//! The functions of `mx_graph` that a module calls: each looks up its session, converts the arguments, and reports errors as a status.

use std::ffi::{CString, c_char, c_void};
use std::ptr;

use mxnet_core::Result;
use mxnet_graph::{Node, View};

use super::{Session, answer, index, nth, status, text_at, written, wrong};
use crate::abi::*;

fn node_of(session: &Session, node: mx_node) -> Result<&Node> {
    session.editor.node(index(node, "node")?)
}

unsafe extern "C" fn num_nodes(context: *mut c_void) -> usize {
    answer(context, 0, |session| Ok(session.editor.order().len()))
}

unsafe extern "C" fn node_at(context: *mut c_void, position: usize) -> mx_node {
    answer(context, -1, |session| {
        nth(session.editor.order(), position).map(|node| node as mx_node)
    })
}

unsafe extern "C" fn op(context: *mut c_void, node: mx_node) -> *const c_char {
    answer(context, ptr::null(), |session| {
        let name = node_of(session, node)?.op.name;
        let text = session.names.entry(name);
        let text = text.or_insert_with(|| CString::new(name).unwrap_or_default());
        Ok(text.as_ptr())
    })
}

unsafe extern "C" fn flags(context: *mut c_void, node: mx_node) -> u32 {
    answer(context, 0, |session| session.flags(node))
}

unsafe extern "C" fn num_inputs(context: *mut c_void, node: mx_node) -> usize {
    answer(context, 0, |session| {
        Ok(node_of(session, node)?.inputs.len())
    })
}

unsafe extern "C" fn input(
    context: *mut c_void,
    node: mx_node,
    index: usize,
    operand: *mut mx_operand,
) -> i32 {
    status(context, |session| {
        let node = node_of(session, node)?;
        let Some(found) = node.inputs.get(index).cloned() else {
            return Err(wrong(format!("`{}` has no operand {index}", node.op.name)));
        };
        let found = session.operand_of(&found);
        written(operand, found)
    })
}

unsafe extern "C" fn num_outputs(context: *mut c_void, node: mx_node) -> usize {
    answer(context, 0, |session| {
        Ok(node_of(session, node)?.outputs.len())
    })
}

unsafe extern "C" fn output(context: *mut c_void, node: mx_node, index: usize) -> mx_value {
    answer(context, -1, |session| {
        let node = node_of(session, node)?;
        let Some(view) = node.outputs.get(index).cloned() else {
            return Err(wrong(format!("`{}` has no output {index}", node.op.name)));
        };
        Ok(session.number(&view))
    })
}

unsafe extern "C" fn attribute(
    context: *mut c_void,
    node: mx_node,
    name: *const c_char,
    attribute: *mut mx_attribute,
) -> i32 {
    status(context, |session| {
        // SAFETY: the module's promise: null, or a text.
        let name = unsafe { text_at(name, "name")? };
        let found = session.attribute(node, name)?;
        written(attribute, found)
    })
}

unsafe extern "C" fn num_arguments(context: *mut c_void) -> usize {
    answer(context, 0, |session| Ok(session.editor.inputs().len()))
}

unsafe extern "C" fn argument(context: *mut c_void, index: usize) -> mx_value {
    answer(context, -1, |session| {
        nth(&session.editor.inputs(), index).map(|value| value as mx_value)
    })
}

unsafe extern "C" fn num_results(context: *mut c_void) -> usize {
    answer(context, 0, |session| Ok(session.editor.results().len()))
}

unsafe extern "C" fn result(context: *mut c_void, index: usize) -> mx_value {
    answer(context, -1, |session| {
        nth(&session.editor.results(), index).map(|value| value as mx_value)
    })
}

fn view_of(session: &Session, value: mx_value) -> Result<&View> {
    let view = session.editor.value(index(value, "value")?)?;
    match view.layout.shape().len() <= MX_MODULE_MAX_NDIM {
        true => Ok(view),
        false => Err(wrong(format!("value {value} has more than 16 axes"))),
    }
}

unsafe extern "C" fn spec(context: *mut c_void, value: mx_value, spec: *mut mx_spec) -> i32 {
    status(context, |session| {
        let view = view_of(session, value)?;
        let mut shape = [0; MX_MODULE_MAX_NDIM];
        for (to, &n) in shape.iter_mut().zip(view.layout.shape()) {
            *to = n as i64;
        }
        let found = mx_spec {
            ndim: view.layout.shape().len() as i32,
            dtype: i32::from(view.dtype as u8),
            shape,
        };
        written(spec, found)
    })
}

unsafe extern "C" fn strides(
    context: *mut c_void,
    value: mx_value,
    strides: *mut i64,
    offset: *mut i64,
) -> i32 {
    status(context, |session| {
        let layout = view_of(session, value)?.layout.clone();
        written(offset, layout.offset() as i64)?;
        if strides.is_null() || !strides.is_aligned() {
            return Err(wrong("the pointer for the result is null"));
        }
        for (i, &stride) in layout.strides().iter().enumerate() {
            // SAFETY: the module promises room for 16 strides, and there are no more.
            unsafe { strides.add(i).write(stride as i64) };
        }
        Ok(())
    })
}

unsafe extern "C" fn buffer(context: *mut c_void, value: mx_value) -> i64 {
    answer(context, -1, |session| {
        let view = session.editor.value(index(value, "value")?)?;
        Ok(i64::from(view.buffer.0))
    })
}

unsafe extern "C" fn producer(context: *mut c_void, value: mx_value) -> mx_node {
    answer(context, -1, |session| {
        let found = session.editor.producer(index(value, "value")?)?;
        Ok(found.map_or(-1, |node| node as mx_node))
    })
}

unsafe extern "C" fn num_readers(context: *mut c_void, value: mx_value) -> usize {
    answer(context, 0, |session| {
        Ok(session.editor.readers(index(value, "value")?)?.len())
    })
}

unsafe extern "C" fn reader(context: *mut c_void, value: mx_value, index_of: usize) -> mx_node {
    answer(context, -1, |session| {
        let readers = session.editor.readers(index(value, "value")?)?;
        nth(&readers, index_of).map(|node| node as mx_node)
    })
}

unsafe extern "C" fn is_result(context: *mut c_void, value: mx_value) -> i32 {
    answer(context, 0, |session| {
        Ok(i32::from(session.editor.is_result(index(value, "value")?)?))
    })
}

unsafe extern "C" fn insert(
    context: *mut c_void,
    before: mx_node,
    call: *const mx_call,
) -> mx_node {
    answer(context, -1, |session| {
        session.check_unlocked()?;
        let before = match before {
            -1 => None,
            node => Some(index(node, "node")?),
        };
        // SAFETY: the module's promise.
        let call = unsafe { session.call(call)? };
        session
            .editor
            .insert(before, call)
            .map(|node| node as mx_node)
    })
}

unsafe extern "C" fn replace(context: *mut c_void, node: mx_node, call: *const mx_call) -> i32 {
    status(context, |session| {
        session.check_unlocked()?;
        // SAFETY: the module's promise.
        let call = unsafe { session.call(call)? };
        session.editor.replace(index(node, "node")?, call)
    })
}

unsafe extern "C" fn set_input(
    context: *mut c_void,
    node: mx_node,
    index_of: usize,
    operand: *const mx_operand,
) -> i32 {
    status(context, |session| {
        session.check_unlocked()?;
        if operand.is_null() || !operand.is_aligned() {
            return Err(wrong("the operand is null"));
        }
        // SAFETY: not null, and the module's promise.
        let operand = session.given(unsafe { &*operand })?;
        session
            .editor
            .set_input(index(node, "node")?, index_of, operand)
    })
}

unsafe extern "C" fn replace_value(context: *mut c_void, old: mx_value, to: mx_value) -> i32 {
    status(context, |session| {
        session.check_unlocked()?;
        let (old, to) = (index(old, "value")?, index(to, "value")?);
        session.editor.replace_value(old, to)
    })
}

unsafe extern "C" fn remove(context: *mut c_void, node: mx_node) -> i32 {
    status(context, |session| {
        session.check_unlocked()?;
        session.editor.remove(index(node, "node")?)
    })
}

unsafe extern "C" fn error(context: *mut c_void) -> *const c_char {
    answer(
        context,
        c"the graph is not valid any more".as_ptr(),
        |session| {
            let text = session
                .error
                .as_ref()
                .map_or(String::new(), ToString::to_string);
            session.error_text = CString::new(text).unwrap_or_default();
            Ok(session.error_text.as_ptr())
        },
    )
}

pub(super) fn table(context: *mut c_void) -> mx_graph {
    mx_graph {
        size: size_of::<mx_graph>(),
        context,
        num_nodes: Some(num_nodes),
        node_at: Some(node_at),
        op: Some(op),
        flags: Some(flags),
        num_inputs: Some(num_inputs),
        input: Some(input),
        num_outputs: Some(num_outputs),
        output: Some(output),
        attribute: Some(attribute),
        num_arguments: Some(num_arguments),
        argument: Some(argument),
        num_results: Some(num_results),
        result: Some(result),
        spec: Some(spec),
        strides: Some(strides),
        buffer: Some(buffer),
        producer: Some(producer),
        num_readers: Some(num_readers),
        reader: Some(reader),
        is_result: Some(is_result),
        insert: Some(insert),
        replace: Some(replace),
        set_input: Some(set_input),
        replace_value: Some(replace_value),
        remove: Some(remove),
        error: Some(error),
    }
}
