//! Parameters of operators and the values given for them.

use mxnet_tensor::{DType, Device, IndexItem, Scalar, normalize_axes};
use smallvec::SmallVec;

pub use crate::value::Value;
pub(crate) use crate::value::bits_of;

/// A declared parameter: one array, a list of arrays, or an attribute.
#[derive(Clone, Copy, Debug)]
pub struct Param {
    /// Name in every language.
    pub name: &'static str,
    /// Kind of value that it takes.
    pub kind: ParamKind,
    /// Value if the argument is left out.
    pub default: Default,
    /// Whether it can only be given by name.
    pub keyword_only: bool,
    /// Whether `None` may be given although it is not the default.
    pub nullable: bool,
    /// Whether its integers may be given as separate arguments: `x.reshape(2, 3)`.
    pub variadic: bool,
    /// Whether floats may be given for its integers. Their fractions are dropped.
    pub truncates: bool,
    /// Whether its integers must be one integer, a tuple or a list, not another kind of sequence. NumPy takes only tuples for reduced axes,
    /// MXNet 2 takes lists, too.
    pub tuple_or_list: bool,
    /// Whether a Python number given for it promotes like a 0-d array of its default dtype instead of as a weak scalar.
    pub strong: bool,
    /// Whether entries of its integers may be `None`, stored as [`Param::GAP`].
    pub gaps: bool,
    /// Another parameter that must be given if this one is given by name.
    pub requires: Option<&'static str>,
    /// Whether it and the next parameter change places in calls that give an integer for it by position.
    pub swaps_if_integer: bool,
}

/// What a parameter takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ParamKind {
    /// An array or anything that becomes one.
    Array,
    /// A sequence of arrays. Several lists in one operator have the same length.
    Arrays,
    /// True or false.
    Bool,
    /// An integer; an axis is one.
    Int,
    /// A real number.
    Float,
    /// A Python number of any kind.
    Scalar,
    /// An integer or a tuple of integers: shapes and axes.
    Ints,
    /// A number of parts, which may be a float with an integer value, or a sequence of integers: the positions to split at.
    Sections,
    /// For each operand and for the result: an axis or a tuple of axes. Stored flat: for each entry its number of axes, then the axes.
    AxesOfEach,
    /// A sequence of real numbers.
    Floats,
    /// Text.
    Str,
    /// Text, or a sequence of texts, which is stored joined by commas.
    Words,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A real number, or one of these words.
    FloatOrWord(&'static [&'static str]),
    /// A data type.
    DType,
    /// A device.
    Device,
    /// Index expression: what is written between the brackets of `x[...]`.
    Index,
    /// Position of `out=` in the signature, for operators of [`crate::Form::Out`] that take it by position.
    Out,
}

/// Default of a parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Default {
    /// It cannot be left out.
    Required,
    /// `None`; `None` may also be passed.
    None,
    /// A truth value.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A real number.
    Float(f64),
    /// Text.
    Str(&'static str),
    /// A tuple of integers.
    Ints(&'static [i64]),
}

impl From<Default> for Value {
    #[inline]
    fn from(default: Default) -> Value {
        match default {
            Default::Required | Default::None => Value::None,
            Default::Bool(x) => Value::Bool(x),
            Default::Int(x) => Value::Int(x),
            Default::Float(x) => Value::Float(x),
            Default::Str(x) => Value::Word(x),
            Default::Ints(x) => Value::Ints(SmallVec::from_slice(x)),
        }
    }
}

impl Param {
    const fn new(name: &'static str, kind: ParamKind, default: Default) -> Param {
        Param {
            name,
            kind,
            default,
            keyword_only: false,
            nullable: false,
            variadic: false,
            truncates: false,
            tuple_or_list: false,
            strong: false,
            gaps: false,
            requires: None,
            swaps_if_integer: false,
        }
    }

    /// Stands for `None` among integers.
    pub const GAP: i64 = i64::MIN;

    /// Allows `None` among its integers.
    pub const fn with_gaps(self) -> Param {
        Param { gaps: true, ..self }
    }

    /// If this parameter is given by name, `name` must be given, too.
    pub const fn requires(self, name: &'static str) -> Param {
        Param {
            requires: Some(name),
            ..self
        }
    }

    /// A required array.
    pub const fn array(name: &'static str) -> Param {
        Param::new(name, ParamKind::Array, Default::Required)
    }

    /// An array that may be absent.
    pub const fn optional_array(name: &'static str) -> Param {
        Param::new(name, ParamKind::Array, Default::None)
    }

    /// A list of arrays.
    pub const fn arrays(name: &'static str) -> Param {
        Param::new(name, ParamKind::Arrays, Default::Required)
    }

    /// Axes to work over: `None` (all), one or several.
    pub const fn axes(name: &'static str) -> Param {
        Param::new(name, ParamKind::Ints, Default::None)
    }

    /// Axes to reduce: `None` (all), one, a tuple or a list.
    pub const fn reduced(name: &'static str) -> Param {
        Param {
            tuple_or_list: true,
            ..Param::axes(name)
        }
    }

    /// A required attribute.
    pub const fn required(name: &'static str, kind: ParamKind) -> Param {
        Param::new(name, kind, Default::Required)
    }

    /// An attribute that defaults to `None`.
    pub const fn optional(name: &'static str, kind: ParamKind) -> Param {
        Param::new(name, kind, Default::None)
    }

    /// A truth value.
    pub const fn bool(name: &'static str, default: bool) -> Param {
        Param::new(name, ParamKind::Bool, Default::Bool(default))
    }

    /// An integer.
    pub const fn int(name: &'static str, default: i64) -> Param {
        Param::new(name, ParamKind::Int, Default::Int(default))
    }

    /// A real number.
    pub const fn float(name: &'static str, default: f64) -> Param {
        Param::new(name, ParamKind::Float, Default::Float(default))
    }

    /// A tuple of integers.
    pub const fn ints(name: &'static str, default: &'static [i64]) -> Param {
        Param::new(name, ParamKind::Ints, Default::Ints(default))
    }

    /// `out=None` at this position of the signature.
    pub const fn out() -> Param {
        Param::new("out", ParamKind::Out, Default::None)
    }

    /// One of several words.
    pub const fn choice(
        name: &'static str,
        words: &'static [&'static str],
        default: &'static str,
    ) -> Param {
        Param::new(name, ParamKind::Choice(words), Default::Str(default))
    }

    /// The same parameter with this default.
    pub const fn or(self, default: Default) -> Param {
        Param { default, ..self }
    }

    /// The same parameter, given by name only.
    pub const fn keyword(self) -> Param {
        Param {
            keyword_only: true,
            ..self
        }
    }

    /// The same parameter, which may also be `None`.
    pub const fn or_none(self) -> Param {
        Param {
            nullable: true,
            ..self
        }
    }

    /// The same array parameter, but a Python number given for it promotes like an array, as in NumPy functions that call `asarray` first. In the
    /// promotion mode 'mx' numbers stay weak.
    pub const fn strong(self) -> Param {
        Param {
            strong: true,
            ..self
        }
    }

    /// The same parameter. Its integers may be given as separate arguments.
    pub const fn variadic(self) -> Param {
        Param {
            variadic: true,
            ..self
        }
    }

    /// The same parameter. Floats may be given for its integers; their fractions are dropped.
    pub const fn truncated(self) -> Param {
        Param {
            truncates: true,
            ..self
        }
    }

    /// The same array parameter. If an integer is given for it by position, that integer is the value of the next parameter, and the argument after it
    /// is the array: the two may be given in either order.
    pub const fn swaps_if_integer(self) -> Param {
        Param {
            swaps_if_integer: true,
            ..self
        }
    }

    /// Whether this parameter holds arrays.
    pub const fn is_array(&self) -> bool {
        matches!(self.kind, ParamKind::Array | ParamKind::Arrays)
    }

    /// Whether this parameter is an attribute: neither arrays nor `out`.
    pub const fn is_attribute(&self) -> bool {
        !self.is_array() && !matches!(self.kind, ParamKind::Out)
    }
}

/// Values of an operator's attributes, in the order of its attribute parameters.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Attrs {
    /// Most operators have at most four attributes, which are stored without an allocation.
    values: SmallVec<[Value; 4]>,
}

impl Attrs {
    /// Number of integers in the longest list.
    pub(crate) fn longest_list(&self) -> usize {
        let lens = self.values.iter().map(|value| match value {
            Value::Ints(list) => list.len(),
            _ => 0,
        });
        lens.max().unwrap_or(0)
    }

    /// No attributes.
    #[inline]
    pub fn none() -> Attrs {
        Attrs {
            values: SmallVec::new(),
        }
    }

    /// The values, in order.
    pub fn values(&self) -> &[Value] {
        &self.values
    }

    /// Appends the next attribute's value.
    #[inline]
    pub fn push(&mut self, value: Value) {
        self.values.push(value);
    }
}

impl FromIterator<Value> for Attrs {
    #[inline]
    fn from_iter<I: IntoIterator<Item = Value>>(values: I) -> Attrs {
        let mut attrs = Attrs::none();
        // A loop over `push`: collecting into a `SmallVec` costs several times as much.
        values.into_iter().for_each(|value| attrs.push(value));
        attrs
    }
}

/// An operator's parameters together with the values given: read by name.
#[derive(Clone, Copy, Debug)]
pub struct Args<'a> {
    /// The declared parameters, arrays included.
    pub params: &'static [Param],
    /// The attributes' values.
    pub attrs: &'a Attrs,
}

/// Reading an attribute that the operator did not declare, or reading it as another type, is a defect of the operator's definition. The first call
/// finds it.
const UNDECLARED: &str =
    "operator entries read only the attributes they declare, with the declared kind";

/// Whether two names are equal. Compares lengths and first letters inline, which avoids most calls of `memcmp`.
#[inline]
fn is_same(a: &str, b: &str) -> bool {
    std::ptr::eq(a, b)
        || a.len() == b.len() && a.as_bytes().first() == b.as_bytes().first() && a == b
}

impl<'a> Args<'a> {
    /// The value of attribute `name`; `None` if the operator declares no such attribute.
    pub fn find(&self, name: &str) -> Option<&'a Value> {
        let attributes = self.params.iter().filter(|param| param.is_attribute());
        let mut values = attributes.zip(&self.attrs.values);
        let (_, value) = values.find(|(param, _)| is_same(param.name, name))?;
        Some(value)
    }

    /// The value of attribute `name`.
    ///
    /// # Panics
    /// If the operator declares no such attribute.
    pub fn get(&self, name: &str) -> &'a Value {
        match self.find(name) {
            Some(value) => value,
            None => panic!("attribute `{name}`: {UNDECLARED}"),
        }
    }

    /// Whether attribute `name` is `None`.
    pub fn is_none(&self, name: &str) -> bool {
        matches!(self.get(name), Value::None)
    }

    /// A truth value; `None` reads as false.
    pub fn bool(&self, name: &str) -> bool {
        matches!(self.get(name), Value::Bool(true))
    }

    /// An integer, or `None`.
    pub fn opt_int(&self, name: &str) -> Option<i64> {
        match self.get(name) {
            Value::Int(x) => Some(*x),
            Value::None => None,
            other => panic!("attribute `{name}` is {other:?}: {UNDECLARED}"),
        }
    }

    /// An integer.
    pub fn int(&self, name: &str) -> i64 {
        self.opt_int(name).expect(UNDECLARED)
    }

    /// A real number, or `None`.
    pub fn opt_float(&self, name: &str) -> Option<f64> {
        match self.get(name) {
            Value::Float(x) => Some(*x),
            Value::Int(x) => Some(*x as f64),
            Value::None => None,
            other => panic!("attribute `{name}` is {other:?}: {UNDECLARED}"),
        }
    }

    /// A real number.
    pub fn float(&self, name: &str) -> f64 {
        self.opt_float(name).expect(UNDECLARED)
    }

    /// Integers, or `None`.
    pub fn opt_ints(&self, name: &str) -> Option<&'a [i64]> {
        match self.get(name) {
            Value::Ints(x) => Some(x),
            Value::Int(x) => Some(std::slice::from_ref(x)),
            Value::None => None,
            other => panic!("attribute `{name}` is {other:?}: {UNDECLARED}"),
        }
    }

    /// Whether the integers of attribute `name` were given as one number, not as a sequence.
    pub fn is_single(&self, name: &str) -> bool {
        matches!(self.get(name), Value::Int(_))
    }

    /// Attribute `name` as axes of an array of `ndim` axes, in the order given; `None` means all axes.
    ///
    /// # Errors
    /// An axis out of range, or named twice.
    pub fn normal_axes(&self, name: &str, ndim: usize) -> crate::Result<SmallVec<[usize; 4]>> {
        match self.opt_ints(name) {
            None => Ok((0..ndim).collect()),
            Some(_) if self.is_axis_of_scalar(name, ndim) => Ok(SmallVec::new()),
            Some(axes) => {
                let axes: SmallVec<[isize; 4]> = axes.iter().map(|&a| a as isize).collect();
                Ok(normalize_axes(&axes, ndim)?.into_iter().collect())
            }
        }
    }

    /// Whether attribute `name` is axis 0 or -1 and the array is 0-d. NumPy allows that in reductions.
    pub fn is_axis_of_scalar(&self, name: &str, ndim: usize) -> bool {
        ndim == 0 && matches!(self.get(name), Value::Int(0 | -1))
    }

    /// Integers; `None` reads as an empty list.
    pub fn ints(&self, name: &str) -> &'a [i64] {
        self.opt_ints(name).unwrap_or(&[])
    }

    /// Real numbers; `None` reads as an empty list.
    pub fn floats(&self, name: &str) -> &'a [f64] {
        match self.get(name) {
            Value::Floats(x) => x,
            Value::None => &[],
            other => panic!("attribute `{name}` is {other:?}: {UNDECLARED}"),
        }
    }

    /// Text or a word; `None` reads as empty text.
    pub fn str(&self, name: &str) -> &'a str {
        match self.get(name) {
            Value::Str(x) => x,
            Value::Word(x) => x,
            Value::None => "",
            other => panic!("attribute `{name}` is {other:?}: {UNDECLARED}"),
        }
    }

    /// A number of any kind, or `None`.
    pub fn scalar(&self, name: &str) -> Option<Scalar> {
        match self.get(name) {
            Value::Scalar(x) => Some(*x),
            Value::Bool(x) => Some(Scalar::Bool(*x)),
            Value::Int(x) => Some(Scalar::I64(*x)),
            Value::Float(x) => Some(Scalar::F64(*x)),
            Value::None => None,
            other => panic!("attribute `{name}` is {other:?}: {UNDECLARED}"),
        }
    }

    /// A data type, or `None`.
    pub fn dtype(&self, name: &str) -> Option<DType> {
        match self.get(name) {
            Value::DType(x) => Some(*x),
            // Defaults of dtype parameters are declared by name.
            Value::Word(x) => DType::from_name(x),
            Value::None => None,
            other => panic!("attribute `{name}` is {other:?}: {UNDECLARED}"),
        }
    }

    /// An index expression.
    pub fn index_items(&self, name: &str) -> &'a [IndexItem] {
        match self.get(name) {
            Value::Index(x) => x,
            other => panic!("attribute `{name}` is {other:?}: {UNDECLARED}"),
        }
    }

    /// A device, or `None`.
    pub fn device(&self, name: &str) -> Option<Device> {
        match self.get(name) {
            Value::Device(x) => Some(*x),
            Value::None => None,
            other => panic!("attribute `{name}` is {other:?}: {UNDECLARED}"),
        }
    }
}
