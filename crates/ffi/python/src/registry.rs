//! The registry as Python dictionaries, for documentation tables, stubs and the standard tests.

use mxnet::core::{Amp, Cpu, Form, Grad, OpDef, ParamKind, Surface, Types, registry as ops};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::call;

/// Every operator: name, family, surface, signature, doc, dtypes, gradient and probe.
#[pyfunction]
pub fn registry(py: Python<'_>) -> PyResult<Py<PyList>> {
    let list = PyList::empty(py);
    for family in ops::families() {
        for op in family.ops {
            list.append(describe(py, family.name, op)?)?;
        }
    }
    Ok(list.unbind())
}

fn describe<'py>(
    py: Python<'py>,
    family: &str,
    op: &'static OpDef,
) -> PyResult<Bound<'py, PyDict>> {
    let entry = PyDict::new(py);
    entry.set_item("name", op.name)?;
    entry.set_item("family", family)?;
    let surface: Vec<String> = op
        .surface
        .iter()
        .map(|s| match s {
            Surface::Np(name) => format!("np.{name}"),
            Surface::NpLinalg(name) => format!("np.linalg.{name}"),
            Surface::NpFft(name) => format!("np.fft.{name}"),
            Surface::NpRandom(name) => format!("np.random.{name}"),
            Surface::Npx(name) => format!("npx.{name}"),
            Surface::Method(name) => format!("ndarray.{name}"),
        })
        .collect();
    entry.set_item("surface", surface)?;
    let documented = op.full_signature.unwrap_or(op);
    entry.set_item("signature", call::signature(documented, false))?;
    entry.set_item("doc", op.doc)?;
    entry.set_item("returns", op.returns)?;
    entry.set_item("example", op.example)?;
    entry.set_item(
        "params",
        documented
            .params
            .iter()
            .map(|p| {
                let kind = if p.variadic {
                    "separate ints"
                } else {
                    kind(p.kind)
                };
                let nullable = p.nullable || p.default == mxnet::core::Default::None;
                (p.name, kind, nullable)
            })
            .collect::<Vec<_>>(),
    )?;
    let dtypes: Vec<&str> = match op.types {
        Types::Promote { accepts, .. } | Types::Counted { accepts, .. } => {
            accepts.iter().map(|d| d.name()).collect()
        }
        Types::First | Types::Choose => {
            mxnet::tensor::DType::ALL.iter().map(|d| d.name()).collect()
        }
        Types::Infer => Vec::new(),
    };
    entry.set_item("dtypes", dtypes)?;
    entry.set_item("elementwise", matches!(op.cpu, Cpu::Map(_)))?;
    entry.set_item("view", matches!(op.cpu, Cpu::View(_)))?;
    entry.set_item("composite", matches!(op.cpu, Cpu::Composite(_)))?;
    entry.set_item(
        "form",
        match op.form {
            Form::ParamsOnly => "params_only",
            Form::Out => "out",
            Form::Ufunc => "ufunc",
        },
    )?;
    entry.set_item("differentiable", op.is_differentiable())?;
    let keeps_zero = op.sparse == mxnet::core::Sparse::KeepsZero;
    entry.set_item("keeps_zero", keeps_zero)?;
    let amp = match op.amp {
        Amp::Narrow => "narrow",
        Amp::WidenToF32 => "widen",
        Amp::Follow => "follow",
    };
    entry.set_item("amp", amp)?;
    entry.set_item(
        "no_gradient_because",
        match op.grad {
            Grad::Stop(why) => Some(why),
            _ => None,
        },
    )?;
    let mutated = op.mutates.iter().filter_map(|&p| op.array_params().nth(p));
    entry.set_item("mutates", mutated.map(|p| p.name).collect::<Vec<_>>())?;
    let positions = op
        .positions
        .iter()
        .filter_map(|&p| op.array_params().nth(p));
    entry.set_item("positions", positions.map(|p| p.name).collect::<Vec<_>>())?;
    entry.set_item("version", op.version)?;
    entry.set_item("samples", !matches!(op.rng, mxnet::core::Rng::No))?;
    entry.set_item("onnx", op.onnx)?;
    entry.set_item("range", (op.probe.range.start, op.probe.range.end))?;
    entry.set_item("oracle", op.probe.oracle)?;
    entry.set_item("ulp32", op.probe.ulp32)?;
    entry.set_item("calls", op.probe.calls)?;
    Ok(entry)
}

fn kind(kind: ParamKind) -> &'static str {
    match kind {
        ParamKind::Array => "array",
        ParamKind::Arrays => "arrays",
        ParamKind::Bool => "bool",
        ParamKind::Int => "int",
        ParamKind::Float => "float",
        ParamKind::Scalar => "scalar",
        ParamKind::Ints | ParamKind::Sections => "ints",
        ParamKind::AxesOfEach => "axes of each",
        ParamKind::Floats => "floats",
        ParamKind::Str => "str",
        ParamKind::Words => "words",
        ParamKind::Choice(_) => "choice",
        ParamKind::FloatOrWord(_) => "float or choice",
        ParamKind::DType => "dtype",
        ParamKind::Device => "device",
        ParamKind::Index => "index",
        ParamKind::Out => "out",
    }
}
