//! Docstrings of operators: numpydoc sections built from the `OpDef`. The description of common parameter names is in `glossary`.

use std::fmt::Write;

use mxnet::core::{Cpu, Default, Form, Grad, Lift, OpDef, Out, Param, ParamKind, Surface, Types};
use mxnet::ops::ufunc;
use mxnet::tensor::DType;

/// The docstring of an operator; that of a method omits the parameter for the array itself.
pub fn docstring(op: &OpDef, skip_self: bool) -> String {
    let documented = op.full_signature.unwrap_or(op);
    let mut text = op.doc.to_owned();
    if let Some(full_signature) = op.full_signature {
        let _ = write!(text, "\n\n{}", full_signature.doc);
    }
    parameters(&mut text, op, documented, skip_self);
    returns(&mut text, op);
    raises(&mut text, op, documented);
    notes(&mut text, op);
    if !op.example.is_empty() {
        section(&mut text, "Examples");
        text.push('\n');
        text.push_str(&dedented(op.example));
    }
    text
}

fn section(text: &mut String, title: &str) {
    let _ = write!(text, "\n\n{title}\n{}", "-".repeat(title.len()));
}

/// Appends `name : type` and its description, if there is one.
fn entry(text: &mut String, head: &str, body: &str) {
    let _ = write!(text, "\n{head}");
    if !body.is_empty() {
        let _ = write!(text, "\n    {body}");
    }
}

fn parameters(text: &mut String, op: &OpDef, documented: &OpDef, skip_self: bool) {
    let params = documented
        .params
        .get(usize::from(skip_self)..)
        .unwrap_or(&[]);
    let extra = mxnet::core::bind::extra_keywords(documented);
    if params.is_empty() && extra.is_empty() {
        return;
    }
    section(text, "Parameters");
    for param in params {
        let said = op
            .about
            .iter()
            .chain(documented.about)
            .find(|(name, _)| *name == param.name);
        let body = said.map_or_else(|| glossary(param), |(_, body)| body);
        entry(text, &format!("{} : {}", param.name, kind(param)), body);
    }
    match documented.form {
        Form::ParamsOnly => {}
        Form::Out if extra.is_empty() => {}
        Form::Out => entry(text, "out : ndarray, optional", OUT),
        Form::Ufunc => {
            entry(text, "out : ndarray or tuple of ndarray, optional", OUT);
            let where_ =
                "Where this is false, elements are not computed, and those of `out` are unchanged.";
            entry(text, "where : array_like of bool, default True", where_);
            let rest = "See `ufunc`.";
            entry(text, "casting, order, dtype, subok, signature", rest);
        }
    }
}

/// The type of a parameter, and its default.
fn kind(param: &Param) -> String {
    let words = match param.kind {
        ParamKind::Array => "array_like".to_owned(),
        ParamKind::Arrays => "sequence of array_like".to_owned(),
        ParamKind::Bool => "bool".to_owned(),
        ParamKind::Int => "int".to_owned(),
        ParamKind::Float => "float".to_owned(),
        ParamKind::Scalar => "number".to_owned(),
        ParamKind::Ints | ParamKind::Sections => "int or sequence of int".to_owned(),
        ParamKind::AxesOfEach => "list of int or of tuple of int".to_owned(),
        ParamKind::Floats => "sequence of float".to_owned(),
        ParamKind::Str => "str".to_owned(),
        ParamKind::Words => "str or sequence of str".to_owned(),
        ParamKind::Choice(words) => {
            let words: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
            format!("{{{}}}", words.join(", "))
        }
        ParamKind::FloatOrWord(words) => {
            let words: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
            format!("float or {{{}}}", words.join(", "))
        }
        ParamKind::DType => "dtype".to_owned(),
        ParamKind::Device => "Device".to_owned(),
        ParamKind::Index => "index".to_owned(),
        ParamKind::Out => "ndarray".to_owned(),
    };
    match default(param) {
        None => words,
        Some(_) if param.default == Default::None => format!("{words}, optional"),
        Some(default) => format!("{words}, default {default}"),
    }
}

/// The default of a parameter as Python source.
pub fn default(param: &Param) -> Option<String> {
    match param.default {
        Default::Required => None,
        Default::None => Some("None".to_owned()),
        Default::Bool(x) => Some(if x { "True" } else { "False" }.to_owned()),
        Default::Int(x) => Some(x.to_string()),
        Default::Float(x) => Some(format!("{x:?}")),
        Default::Str(x) => Some(format!("'{x}'")),
        Default::Ints(x) => Some(mxnet::core::Tuple(x).to_string()),
    }
}

const OUT: &str = "Array for the result; must have its shape.";

/// Description of a parameter by its name and kind; empty if the `OpDef` has to describe it.
fn glossary(param: &Param) -> &'static str {
    let several = param.kind == ParamKind::Ints;
    match (param.name, param.kind) {
        ("out", _) => OUT,
        ("axis" | "axes", ParamKind::Ints) if param.default == Default::None => {
            "Axes of the operation; negative ones count from the end, None means all."
        }
        ("axis" | "axes", _) if several => "Axes; negative ones count from the end.",
        ("axis", _) if param.default == Default::None => {
            "Axis of the operation; negative ones count from the end, None flattens the array."
        }
        ("axis" | "axis1" | "axis2", _) => "Axis; negative ones count from the end.",
        ("keepdims", _) => "Whether the reduced axes are kept with length 1.",
        ("dtype", _) => "Dtype of the result.",
        ("device", _) => "Device of the result; the current device for None.",
        ("order", ParamKind::Choice(_)) => {
            "Memory order of the result: C order, Fortran order, or that of the array ('K', 'A')."
        }
        ("subok", _) => {
            "Whether the result has the argument's class, if that is derived from ndarray."
        }
        ("like", _) => "The result is created on the device of this array.",
        ("casting", _) => "Casting rule, as in `can_cast`.",
        ("size", _) => "Shape of the result; the broadcast shape of the parameters for None.",
        ("x1", ParamKind::Array) => "First operand.",
        ("x2", ParamKind::Array) => "Second operand; the operands broadcast.",
        ("where", _) => "Mask of the elements to use; broadcasts to the array.",
        ("x" | "a" | "data" | "arr" | "m", ParamKind::Array) => "The array.",
        _ => "",
    }
}

fn returns(text: &mut String, op: &OpDef) {
    let derived;
    let entries: &[(&str, &str)] = if !op.returns.is_empty() {
        op.returns
    } else if op.form == Form::Ufunc || matches!(op.cpu, Cpu::Map(_)) {
        derived = elementwise(op);
        &derived
    } else {
        return;
    };
    section(text, "Returns");
    for (kind, body) in entries {
        entry(text, kind, body);
    }
}

/// Description of the result of an elementwise function.
fn elementwise(op: &OpDef) -> Vec<(&'static str, &'static str)> {
    let out = match op.types {
        Types::Promote { out, .. } => out,
        _ => Out::Same,
    };
    let one = op.params.len() == 1;
    let body = match (out, one) {
        (Out::Bool, true) => "bool, of the shape of `x`.",
        (Out::Bool, false) => "bool, of the broadcast shape of the operands.",
        (Out::Real, true) => "Of the shape of `x`; real if that is complex.",
        (Out::Fixed(DType::U8), _) => "uint8, of the shape of `x`.",
        (_, true) => "Of the shape of `x`, in the dtype of the computation.",
        (_, false) => "Of the broadcast shape of the operands, in the dtype that they promote to.",
    };
    if ufunc::num_outputs(op) == 1 {
        return vec![("ndarray", body)];
    }
    vec![("tuple of ndarray", body)]
}

fn raises(text: &mut String, op: &OpDef, documented: &OpDef) {
    let mut entries: Vec<(&str, String)> = op
        .raises
        .iter()
        .map(|(class, when)| (*class, (*when).to_owned()))
        .collect();
    let arrays = op
        .params
        .iter()
        .filter(|p| p.kind == ParamKind::Array)
        .count();
    if op.form == Form::Ufunc && arrays > 1 {
        entries.push(("ValueError", "If the shapes do not broadcast.".to_owned()));
    }
    for param in documented.params {
        if let ParamKind::Choice(_) = param.kind {
            entries.push((
                "ValueError",
                format!("If `{}` is not one of these strings.", param.name),
            ));
        }
    }
    if documented
        .params
        .iter()
        .any(|p| matches!(p.name, "axis" | "axes" | "axis1"))
    {
        entries.push(("AxisError", "If the array has no such axis.".to_owned()));
    }
    if let Types::Promote { accepts, .. } = op.types
        && DType::ALL.into_iter().any(|dtype| !accepts.has(dtype))
        && !op.raises.iter().any(|(class, _)| *class == "TypeError")
    {
        let when = "If the function has no loop for the operands' dtypes.";
        if !accepts.iter().any(DType::is_complex) {
            entries.push(("TypeError", when.to_owned()));
        }
    }
    if entries.is_empty() {
        return;
    }
    section(text, "Raises");
    for (class, when) in entries {
        entry(text, class, &when);
    }
}

fn notes(text: &mut String, op: &OpDef) {
    section(text, "Notes");
    if let Types::Promote { accepts, .. } = op.types {
        let names: Vec<&str> = accepts.iter().map(DType::name).collect();
        let _ = write!(text, "\nComputes in: {}.", names.join(", "));
    }
    match op.grad {
        Grad::Rule(..) | Grad::Fused(..) | Grad::Derived => text.push_str("\nDifferentiable."),
        Grad::Stop(why) => {
            let _ = write!(text, "\nNot differentiable: {why}.");
        }
    }
    // Differences from NumPy for groups of operators; the `OpDef`s describe all others.
    if let Types::Promote {
        lift: Lift::ToFloat | Lift::ToDefaultFloat,
        ..
    } = op.types
    {
        text.push_str("\n\n*Differs from NumPy*: integers give float32, unless `npx.set_np(dtype=True)` asks for NumPy's types.");
    }
    if op.surface.iter().any(|s| matches!(s, Surface::NpRandom(_))) {
        text.push_str("\n\n*Differs from NumPy*: other numbers for the same seed; floats are float32 unless `npx.set_np(dtype=True)` or `dtype` says otherwise.");
    }
}

/// The lines without their common indentation in the source.
fn dedented(text: &str) -> String {
    let lines: Vec<&str> = text.trim_start_matches('\n').trim_end().lines().collect();
    let margins = lines.iter().filter(|line| !line.trim().is_empty());
    let margin = margins
        .map(|line| line.len() - line.trim_start().len())
        .min()
        .unwrap_or(0);
    let cut: Vec<&str> = lines
        .iter()
        .map(|line| line.get(margin..).unwrap_or(""))
        .collect();
    cut.join("\n")
}
