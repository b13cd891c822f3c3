//! Visits all numbers of a node in a fixed order, to read or to replace them.

use mxnet_core::{Attrs, Error, Result, Value};
use mxnet_tensor::{Dims, IndexItem, Layout, Scalar};
use smallvec::SmallVec;

use crate::ir::{BufferId, Node, Operand, View};

/// A number that may depend on sizes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum SizeNumber {
    Whole(i64),
    Real(f64),
}

/// Returns the replacement of a number.
pub(super) type Change<'a> = dyn FnMut(SizeNumber) -> Result<SizeNumber> + 'a;

/// How a view depends on sizes, in addition to its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewRule {
    /// It is the same for all sizes.
    Fixed,
    /// It is the view with which its buffer is defined.
    Definition,
    /// It is in C order; its numbers are its shape and its offset.
    Contiguous,
    /// Its numbers are its shape, its offset and its strides.
    Strided,
}

/// The error for sizes that a graph is not valid for.
#[cold]
pub(super) fn wrong_size(problem: &str) -> Error {
    Error::shape(
        "graph",
        format!("the graph does not support these sizes: {problem}"),
    )
}

fn whole(x: i64, f: &mut Change) -> Result<i64> {
    match f(SizeNumber::Whole(x))? {
        SizeNumber::Whole(x) => Ok(x),
        SizeNumber::Real(_) => Err(wrong_size("an integer became a real number")),
    }
}

fn real(x: f64, f: &mut Change) -> Result<f64> {
    match f(SizeNumber::Real(x))? {
        SizeNumber::Real(x) => Ok(x),
        SizeNumber::Whole(_) => Err(wrong_size("a real number became an integer")),
    }
}

fn unsigned(x: usize, f: &mut Change) -> Result<usize> {
    let found = whole(x as i64, f)?;
    usize::try_from(found).map_err(|_| wrong_size("a size became negative"))
}

fn signed(x: isize, f: &mut Change) -> Result<isize> {
    Ok(whole(x as i64, f)? as isize)
}

fn dims(shape: &Dims, f: &mut Change) -> Result<Dims> {
    shape.iter().map(|&n| unsigned(n, f)).collect()
}

fn scalar(x: Scalar, f: &mut Change) -> Result<Scalar> {
    Ok(match x {
        Scalar::I64(x) => Scalar::I64(whole(x, f)?),
        Scalar::F64(x) => Scalar::F64(real(x, f)?),
        other => other,
    })
}

fn index_item(item: &IndexItem, f: &mut Change) -> Result<IndexItem> {
    let mut part = |x: &Option<isize>| x.map(|x| signed(x, f)).transpose();
    Ok(match item {
        IndexItem::Slice { start, stop, step } => IndexItem::Slice {
            start: part(start)?,
            stop: part(stop)?,
            step: part(step)?,
        },
        IndexItem::Int(x) => IndexItem::Int(signed(*x, f)?),
        IndexItem::Array { shape } => IndexItem::Array {
            shape: dims(shape, f)?,
        },
        IndexItem::Mask { shape } => IndexItem::Mask {
            shape: dims(shape, f)?,
        },
        other => other.clone(),
    })
}

fn value(x: &Value, f: &mut Change) -> Result<Value> {
    Ok(match x {
        Value::Int(x) => Value::Int(whole(*x, f)?),
        Value::Float(x) => Value::Float(real(*x, f)?),
        Value::Scalar(x) => Value::Scalar(scalar(*x, f)?),
        Value::Ints(all) => {
            let all = all.iter().map(|&x| whole(x, f));
            Value::Ints(all.collect::<Result<SmallVec<[i64; 4]>>>()?)
        }
        Value::Floats(all) => {
            let all = all.iter().map(|&x| real(x, f));
            Value::Floats(all.collect::<Result<Vec<f64>>>()?.into())
        }
        Value::Index(items) => {
            let items = items.iter().map(|item| index_item(item, f));
            Value::Index(items.collect::<Result<Vec<IndexItem>>>()?.into())
        }
        other => other.clone(),
    })
}

/// A view with replaced numbers. `definition` returns the view with which a buffer is defined.
pub(super) fn view(
    x: &View,
    rule: ViewRule,
    definition: &dyn Fn(BufferId) -> Option<View>,
    f: &mut Change,
) -> Result<View> {
    if rule == ViewRule::Fixed {
        return Ok(x.clone());
    }
    if rule == ViewRule::Definition {
        let found = definition(x.buffer).filter(|found| found.dtype == x.dtype);
        let found = found.ok_or_else(|| wrong_size("a buffer has no definition"))?;
        return Ok(View {
            is_read_only: x.is_read_only,
            ..found
        });
    }
    let shape = (x.layout.shape().iter()).map(|&n| unsigned(n, f));
    let shape = shape.collect::<Result<Dims>>()?;
    let offset = unsigned(x.layout.offset(), f)?;
    let layout = match rule {
        ViewRule::Strided => {
            let strides = x.layout.strides().iter().map(|&n| signed(n, f));
            let strides = strides.collect::<Result<SmallVec<[isize; 8]>>>()?;
            Layout::strided(&shape, &strides, offset)?
        }
        _ => {
            mxnet_tensor::checked_len(&shape)?;
            Layout::contiguous(&shape).with_offset(offset)
        }
    };
    Ok(View {
        layout,
        ..x.clone()
    })
}

/// A node with replaced numbers: those of its attributes, its scalar operands, the views that it reads, and the views of its outputs that are left in
/// `rules` after these.
pub(super) fn node(
    x: &Node,
    rules: &[ViewRule],
    definition: &dyn Fn(BufferId) -> Option<View>,
    f: &mut Change,
) -> Result<Node> {
    let attrs = x.attrs.values().iter().map(|x| value(x, f));
    let attrs = attrs.collect::<Result<Attrs>>()?;
    let mut inputs = x.inputs.clone();
    for operand in &mut inputs {
        match operand {
            Operand::Number(x) | Operand::Constant(x, _) => *x = scalar(*x, f)?,
            Operand::View(_) | Operand::Absent => {}
        }
    }
    let mut outputs = x.outputs.clone();
    let read = inputs.iter_mut().filter_map(|operand| match operand {
        Operand::View(view) => Some(view),
        _ => None,
    });
    for (target, rule) in read.chain(&mut outputs).zip(rules) {
        *target = view(target, *rule, definition, f)?;
    }
    Ok(Node {
        attrs,
        inputs,
        outputs,
        ..x.clone()
    })
}
