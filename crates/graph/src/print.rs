//! Prints graphs as text similar to code.

use std::fmt;

use mxnet_core::Tuple;
use mxnet_core::serialised::to_json;

use crate::ir::{Graph, Node, Operand, Source, View};

/// Writes `b3: float32 (2, 3)`, with strides if the view is not in C order.
fn write_view(f: &mut fmt::Formatter<'_>, view: &View) -> fmt::Result {
    write!(
        f,
        "b{}: {} {}",
        view.buffer.0,
        view.dtype.name(),
        Tuple(view.layout.shape())
    )?;
    if !view.layout.is_contiguous() || view.layout.offset() != 0 {
        write!(
            f,
            " strides {:?} offset {}",
            view.layout.strides(),
            view.layout.offset()
        )?;
    }
    Ok(())
}

fn write_operand(f: &mut fmt::Formatter<'_>, operand: &Operand) -> fmt::Result {
    match operand {
        Operand::Absent => f.write_str("None"),
        Operand::View(view) => {
            write!(f, "b{}", view.buffer.0)?;
            if !view.layout.is_contiguous() || view.layout.offset() != 0 {
                write!(
                    f,
                    "[{} strides {:?} offset {}]",
                    Tuple(view.layout.shape()),
                    view.layout.strides(),
                    view.layout.offset()
                )?;
            }
            Ok(())
        }
        Operand::Number(value) => write!(f, "{}", value.as_f64()),
        Operand::Constant(value, dtype) => write!(f, "{}({})", dtype.name(), value.as_f64()),
    }
}

fn write_node(f: &mut fmt::Formatter<'_>, node: &Node) -> fmt::Result {
    for (i, view) in node.outputs.iter().enumerate() {
        f.write_str(if i == 0 { "  " } else { ", " })?;
        write_view(f, view)?;
    }
    let name = if node.is_assignment {
        "assign"
    } else {
        node.op.name
    };
    write!(f, " = {name}(")?;
    for (i, operand) in node.inputs.iter().enumerate() {
        if i > 0 {
            f.write_str(", ")?;
        }
        write_operand(f, operand)?;
    }
    f.write_str(")")?;
    if !node.attrs.values().is_empty() {
        write!(f, " {}", to_json(node.op, &node.attrs))?;
    }
    for version in &node.versions {
        write!(f, "  # b{} becomes b{}", version.old.0, version.new.0)?;
    }
    if let Some(line) = &node.line {
        write!(f, "  # {line}")?;
    }
    writeln!(f)
}

impl fmt::Display for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "graph {}:", self.name)?;
        for input in &self.inputs {
            f.write_str("  ")?;
            write_view(f, &input.view)?;
            match &input.source {
                Source::Argument(i) => write!(f, " = argument {i}")?,
                Source::Captured(_) => write!(f, " = captured")?,
                Source::Constant(_) => write!(f, " = constant")?,
            }
            if let Some(written) = input.written {
                write!(f, ", becomes b{}", written.0)?;
            }
            writeln!(f)?;
        }
        for node in &self.nodes {
            write_node(f, node)?;
        }
        f.write_str("  return ")?;
        for (i, view) in self.outputs.iter().enumerate() {
            if i > 0 {
                f.write_str(", ")?;
            }
            write_operand(f, &Operand::View(view.clone()))?;
        }
        writeln!(f)
    }
}
