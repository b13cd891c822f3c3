//! Elementwise launches: kernels generated from expressions, for any dtypes and layouts of the operands.
//!
//! Operands are loaded and converted to the function's types, and results are converted to the dtype of the output, as on the CPU. If all operands
//! are contiguous, each thread loads and stores 16 bytes at once. The expressions of elementwise operators are in `functions.rs`.

use std::fmt::Write;

use mxnet_core::{KernelContext, Result};
use mxnet_tensor::{DType, Scalar};
use smallvec::SmallVec;

use super::axes::{Axes, MAX_AXES, Visit};
use super::operand::{Operand, for_each, pattern};
use crate::launch::{Arg, launch};
use crate::text::{INCOMPLETE, MATH, type_name};

/// Dtypes of operands.
pub(super) type DTypes = SmallVec<[DType; 6]>;

/// A function of one element of each input.
#[derive(Clone, Debug)]
pub(super) struct Function<'a> {
    /// Name of the function in kernel keys.
    pub name: &'a str,
    /// One expression per output, of the inputs `a`, `b`, ... in their `natives` types, the numbers `p0`, `p1`, ... (f64), the compute type `T`, and
    /// `i`, the index of the element.
    pub results: &'a [&'a str],
    /// Compute type.
    pub compute: DType,
    /// Types of the inputs in the expressions.
    pub natives: DTypes,
    /// Types of the results.
    pub out_natives: DTypes,
    /// Whether an expression uses `i`: elements are then visited in C order.
    pub counts: bool,
}

/// An input of a launch.
pub(super) enum Input<'a> {
    /// Elements on the device; strides are 0 along broadcast axes.
    Array(Operand<'a>),
    /// A scalar, passed as an argument of the launch.
    Number(Scalar),
}

impl<'a> Input<'a> {
    /// Input `i` of a call, broadcast to `shape`.
    pub fn of(context: &KernelContext<'a>, i: usize, shape: &[usize]) -> Result<Input<'a>> {
        Ok(match context.number(i) {
            Some(number) => Input::Number(number),
            None => Input::Array(broadcast(context, i, shape)?),
        })
    }
}

/// Input `i` of a call, which is not a scalar, broadcast to `shape`.
fn broadcast<'a>(context: &KernelContext<'a>, i: usize, shape: &[usize]) -> Result<Operand<'a>> {
    let x = context.input(i);
    Ok(Operand::with_layout(x, x.layout().broadcast_to(shape)?))
}

/// How a kernel reads an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// Contiguous elements.
    Dense,
    /// A single element for all.
    Single,
    /// Strided elements.
    Strided,
    /// A scalar argument of the launch.
    Number,
}

/// Parameters of the generated source.
struct Shape {
    outs: DTypes,
    ins: SmallVec<[(DType, Form); 6]>,
    /// Elements per thread and step; 0 for strided operands.
    vector: usize,
    /// Whether element indices need 64 bits.
    is_long: bool,
}

impl Shape {
    fn is_strided(&self) -> bool {
        self.vector == 0
    }

    fn key(&self, function: &Function, num_params: usize) -> String {
        let mut key = format!("map:{}:{}", function.name, function.compute.name());
        for dtype in &self.outs {
            let _ = write!(key, ":{}", dtype.name());
        }
        for (dtype, form) in &self.ins {
            let _ = write!(key, ":{}{form:?}", dtype.name());
        }
        let _ = write!(key, ":{}:{}:{num_params}", self.vector, self.is_long);
        key
    }
}

/// Computes `outs` (of `shape`, any strides) from `ins`.
pub(super) fn run(
    context: &KernelContext,
    function: &Function,
    shape: &[usize],
    outs: &[Operand],
    ins: &[Input],
    params: &[f64],
) -> Result<()> {
    if shape.contains(&0) {
        return Ok(());
    }
    let arrays: SmallVec<[&Operand; 6]> = (outs.iter())
        .chain(ins.iter().filter_map(|x| match x {
            Input::Array(x) => Some(x),
            Input::Number(_) => None,
        }))
        .collect();
    let visit = match function.counts {
        true => Visit::COrder,
        false => Visit::MemoryOrder,
    };
    let axes = Axes::new(shape, arrays.iter().map(|x| &x.strides[..]), visit);
    let starts: SmallVec<[u64; 6]> = arrays.iter().map(|x| x.ptr).collect();
    let sizes: SmallVec<[usize; 6]> = arrays.iter().map(|x| x.dtype.size()).collect();
    let call = Launch {
        context,
        function,
        outs,
        ins,
        params,
        sizes: &sizes,
    };
    call.over(axes, starts)
}

/// A launch without its axes.
struct Launch<'a> {
    context: &'a KernelContext<'a>,
    function: &'a Function<'a>,
    outs: &'a [Operand<'a>],
    ins: &'a [Input<'a>],
    params: &'a [f64],
    /// Element size of each array.
    sizes: &'a [usize],
}

impl Launch<'_> {
    /// Launches over these axes; `starts` are the addresses of the arrays. Outer axes beyond the kernel's limit are looped over here.
    fn over(&self, mut axes: Axes, starts: SmallVec<[u64; 6]>) -> Result<()> {
        if axes.0.len() <= MAX_AXES {
            return self.launch(&axes, &starts);
        }
        let leading = axes.0.remove(0);
        for i in 0..leading.len as isize {
            let steps = leading.strides.iter().zip(self.sizes);
            let starts = (starts.iter().zip(steps))
                .map(|(&start, (&stride, &size))| {
                    start.wrapping_add_signed((i * stride * size as isize) as i64)
                })
                .collect();
            self.over(axes.clone(), starts)?;
        }
        Ok(())
    }

    fn launch(&self, axes: &Axes, starts: &[u64]) -> Result<()> {
        let (n, num_outs) = (axes.len(), self.outs.len());
        let shape = self.shape(axes, starts);
        let strided = axes.bytes(0..starts.len());
        let numbers: SmallVec<[[u8; 16]; 3]> = (self.ins.iter().zip(&self.function.natives))
            .filter_map(|(x, &native)| match x {
                Input::Number(number) => Some(pattern(*number, native)),
                Input::Array(_) => None,
            })
            .collect();
        let (mut arrays, mut numbers) = (starts.iter().copied(), numbers.iter());
        let mut args: SmallVec<[Arg; 12]> = SmallVec::new();
        args.extend(arrays.by_ref().take(num_outs).map(Arg::Pointer));
        for x in self.ins {
            let arg = match x {
                Input::Array(_) => arrays.next().map(Arg::Pointer),
                Input::Number(_) => numbers.next().map(|bits| Arg::Bytes(bits)),
            };
            args.extend(arg);
        }
        args.extend(self.params.iter().map(|&p| Arg::F64(p)));
        if shape.is_strided() {
            args.push(Arg::Bytes(&strided));
        }
        args.push(Arg::U64(n as u64));
        let num_params = self.params.len();
        launch(
            self.context,
            &shape.key(self.function, num_params),
            || text(self.function, &shape, num_params),
            for_each(n.div_ceil(shape.vector.max(1))),
            &args,
        )
    }

    /// How the operands are read. Arrays are numbered with the outputs first.
    fn shape(&self, axes: &Axes, starts: &[u64]) -> Shape {
        let outs: DTypes = self.outs.iter().map(|y| y.dtype).collect();
        let is_dense = (0..starts.len()).all(|k| match axes.only_stride(k) {
            Some(1) => true,
            Some(0) => k >= outs.len() || axes.0.is_empty(),
            _ => false,
        });
        let mut k = outs.len();
        let mut ins: SmallVec<[(DType, Form); 6]> = SmallVec::new();
        for (x, &native) in self.ins.iter().zip(&self.function.natives) {
            let Input::Array(x) = x else {
                ins.push((native, Form::Number));
                continue;
            };
            let form = match axes.only_stride(k) {
                Some(1) if is_dense => Form::Dense,
                _ if is_dense => Form::Single,
                _ => Form::Strided,
            };
            ins.push((x.dtype, form));
            k += 1;
        }
        let vector = match is_dense {
            true => self.vector(axes, starts),
            false => 0,
        };
        Shape {
            outs,
            ins,
            vector,
            is_long: u32::try_from(axes.len()).is_err(),
        }
    }

    /// Elements per step: 16 bytes of the largest element type, if all arrays are sufficiently aligned.
    fn vector(&self, axes: &Axes, starts: &[u64]) -> usize {
        let widest = self.sizes.iter().copied().max().unwrap_or(1);
        let vector = (16 / widest).max(1);
        let is_aligned = (starts.iter().zip(self.sizes).enumerate()).all(|(k, (start, size))| {
            axes.only_stride(k) != Some(1) || start % (vector * size).min(16) as u64 == 0
        });
        if is_aligned && axes.len() >= vector {
            vector
        } else {
            1
        }
    }
}

/// The names of the inputs in expressions.
const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

/// Generates a kernel source.
fn text(function: &Function, shape: &Shape, num_params: usize) -> String {
    let mut text = String::from(MATH);
    // Writing to a string never fails.
    let _ = write_function(&mut text, function, num_params);
    let _ = write_kernel(&mut text, function, shape, num_params);
    text
}

/// Writes the function `apply`, which computes one element.
pub(super) fn write_function(
    text: &mut String,
    function: &Function,
    num_params: usize,
) -> std::fmt::Result {
    if function.results.iter().any(|r| r.contains("incomplete::")) {
        text.push_str(INCOMPLETE);
    }
    writeln!(text, "\nnamespace mx {{")?;
    writeln!(text, "typedef {} T;", type_name(function.compute))?;
    write!(text, "MX_FN void apply(u64 i")?;
    for (k, native) in function.out_natives.iter().enumerate() {
        write!(text, ", {} &r{k}", type_name(*native))?;
    }
    for (name, native) in NAMES.iter().zip(&function.natives) {
        write!(text, ", {} {name}", type_name(*native))?;
    }
    for p in 0..num_params {
        write!(text, ", f64 p{p}")?;
    }
    writeln!(text, ") {{")?;
    for (k, result) in function.results.iter().enumerate() {
        writeln!(text, "    r{k} = {result};")?;
    }
    writeln!(text, "}}\n}}")
}

fn write_kernel(
    text: &mut String,
    function: &Function,
    shape: &Shape,
    num_params: usize,
) -> std::fmt::Result {
    let is_number = |form: Form| form == Form::Number;
    let num_arrays = shape.outs.len() + shape.ins.iter().filter(|x| !is_number(x.1)).count();
    write!(text, "extern \"C\" __global__ void kernel(")?;
    for (k, out) in shape.outs.iter().enumerate() {
        write!(text, "mx::{} *y{k}, ", type_name(*out))?;
    }
    for (k, (dtype, form)) in shape.ins.iter().enumerate() {
        match form {
            Form::Number => write!(text, "mx::Number x{k}, ")?,
            _ => write!(text, "const mx::{} *x{k}, ", type_name(*dtype))?,
        }
    }
    for p in 0..num_params {
        write!(text, "double p{p}, ")?;
    }
    if shape.is_strided() {
        write!(text, "mx::Strided<{num_arrays}> over, ")?;
    }
    writeln!(text, "mx::u64 n) {{\n    using namespace mx;")?;
    for (k, (_, form)) in shape.ins.iter().enumerate() {
        let native = type_name(function.natives[k]);
        match form {
            Form::Number => writeln!(text, "    const {native} s{k} = x{k}.as<{native}>();")?,
            Form::Single => writeln!(
                text,
                "    const {native} s{k} = convert<{native}>(x{k}[0]);"
            )?,
            Form::Dense | Form::Strided => {}
        }
    }
    if shape.is_strided() {
        let index = if shape.is_long { "u64" } else { "u32" };
        writeln!(
            text,
            "    for (u64 i = thread_index(); i < n; i += num_threads()) {{"
        )?;
        writeln!(text, "        i64 at[{num_arrays}];")?;
        writeln!(text, "        offsets_of<{index}>(over, i, at);")?;
        let mut operand_index = shape.outs.len();
        let element_texts: SmallVec<[String; 6]> = (shape.ins.iter())
            .map(|(_, form)| {
                operand_index += usize::from(!is_number(*form));
                format!("at[{}]", operand_index - 1)
            })
            .collect();
        let elements = elements(function, shape, |k| format!("x{k}[{}]", element_texts[k]));
        let targets = |k: usize| format!("y{k}[at[{k}]]");
        write_element(
            text, "        ", function, shape, num_params, "i", &elements, targets,
        )?;
        return writeln!(text, "    }}\n}}");
    }
    let vector = shape.vector;
    writeln!(text, "    constexpr int V = {vector};")?;
    writeln!(
        text,
        "    for (u64 first = thread_index() * V; first < n; first += num_threads() * V) {{"
    )?;
    if vector > 1 {
        writeln!(text, "        if (first + V <= n) {{")?;
        for (k, (dtype, form)) in shape.ins.iter().enumerate() {
            if *form == Form::Dense {
                let name = type_name(*dtype);
                writeln!(
                    text,
                    "            const Vector<{name}, V> v{k} = *(const Vector<{name}, V> *)(x{k} + first);"
                )?;
            }
        }
        for (k, dtype) in shape.outs.iter().enumerate() {
            writeln!(text, "            Vector<{}, V> w{k};", type_name(*dtype))?;
        }
        writeln!(text, "            for (int v = 0; v < V; v++) {{")?;
        let loaded = elements(function, shape, |k| format!("v{k}.at[v]"));
        let targets = |k: usize| format!("w{k}.at[v]");
        write_element(
            text,
            "                ",
            function,
            shape,
            num_params,
            "first + v",
            &loaded,
            targets,
        )?;
        writeln!(text, "            }}")?;
        for (k, dtype) in shape.outs.iter().enumerate() {
            writeln!(
                text,
                "            *(Vector<{}, V> *)(y{k} + first) = w{k};",
                type_name(*dtype)
            )?;
        }
        writeln!(text, "            continue;\n        }}")?;
    }
    writeln!(
        text,
        "        for (u64 i = first; i < n && i < first + V; i++) {{"
    )?;
    let loaded = elements(function, shape, |k| format!("x{k}[i]"));
    write_element(
        text,
        "            ",
        function,
        shape,
        num_params,
        "i",
        &loaded,
        |k| format!("y{k}[i]"),
    )?;
    writeln!(text, "        }}\n    }}\n}}")
}

/// The inputs of one element as expressions, in their native types.
fn elements(
    function: &Function,
    shape: &Shape,
    loaded: impl Fn(usize) -> String,
) -> SmallVec<[String; 6]> {
    (shape.ins.iter().enumerate())
        .map(|(k, (_, form))| match form {
            Form::Number | Form::Single => format!("s{k}"),
            Form::Dense | Form::Strided => {
                format!("convert<{}>({})", type_name(function.natives[k]), loaded(k))
            }
        })
        .collect()
}

/// One call of `apply`, followed by the conversion and the stores of its results.
#[expect(
    clippy::too_many_arguments,
    reason = "the parts of a few lines of text"
)]
fn write_element(
    text: &mut String,
    margin: &str,
    function: &Function,
    shape: &Shape,
    num_params: usize,
    number: &str,
    elements: &[String],
    target: impl Fn(usize) -> String,
) -> std::fmt::Result {
    for (k, native) in function.out_natives.iter().enumerate() {
        writeln!(text, "{margin}{} r{k};", type_name(*native))?;
    }
    write!(text, "{margin}apply({number}")?;
    for k in 0..function.out_natives.len() {
        write!(text, ", r{k}")?;
    }
    for element in elements {
        write!(text, ", {element}")?;
    }
    for p in 0..num_params {
        write!(text, ", p{p}")?;
    }
    writeln!(text, ");")?;
    for (k, out) in shape.outs.iter().enumerate() {
        writeln!(
            text,
            "{margin}{} = convert<{}>(r{k});",
            target(k),
            type_name(*out)
        )?;
    }
    Ok(())
}

/// Sources of a function for tests: operands in the compute types, contiguous and, if `with_strided`, strided.
pub(super) fn texts(
    function: &Function,
    num_params: usize,
    with_strided: bool,
    all: &mut Vec<(String, String)>,
) {
    let widest = (function.natives.iter().chain(&function.out_natives))
        .map(|dtype| dtype.size())
        .max();
    let shape = |form: Form, vector: usize| Shape {
        outs: function.out_natives.clone(),
        ins: function
            .natives
            .iter()
            .map(|&dtype| (dtype, form))
            .collect(),
        vector,
        is_long: false,
    };
    let mut shapes = vec![shape(Form::Dense, (16 / widest.unwrap_or(1)).max(1))];
    if with_strided {
        shapes.push(shape(Form::Strided, 0));
        shapes.push(shape(Form::Number, 1));
    }
    for shape in shapes {
        all.push((
            shape.key(function, num_params),
            text(function, &shape, num_params),
        ));
    }
}

/// Sources for tests of a unary function whose input is converted from another dtype.
pub(super) fn conversion_texts(function: &Function, from: DType, all: &mut Vec<(String, String)>) {
    let widest = from.size().max(function.out_natives[0].size());
    let shape = Shape {
        outs: function.out_natives.clone(),
        ins: SmallVec::from_iter([(from, Form::Dense)]),
        vector: (16 / widest).max(1),
        is_long: false,
    };
    all.push((shape.key(function, 0), text(function, &shape, 0)));
}
