//! Binds the arguments of a call to the parameters of its operator: one binder for all languages.
//!
//! A language implements [`Reader`], which inspects its objects: is this an array, a number, text? The binder decides which argument belongs to which
//! parameter, reports missing, repeated and unknown arguments, fills in defaults, and checks what an attribute may be.

mod attribute;
mod by_name;
mod neutral;
mod signature;

use std::fmt;

use mxnet_tensor::{DType, Device, IndexItem, Scalar};
use smallvec::SmallVec;

pub use attribute::attribute;
pub use by_name::{call, signature_of};
pub use neutral::{Given, NeutralReader, index_of, strong};
pub use signature::{Signature, extra_keywords};

use crate::args::{Attrs, Default, Param, ParamKind, Value};
use crate::error::Error;
use crate::opdef::OpDef;

/// Arrays given for `out`, one for each output.
pub type Outs<Out> = SmallVec<[Option<Out>; 1]>;

/// Reads a language's objects. Methods that return an option return `None` if the object is of another kind; the binder makes the error.
pub trait Reader {
    /// An argument, borrowed for the call.
    type Object: Copy;
    /// An array argument as the language holds it.
    type Array;
    /// An array given for `out`.
    type Out;
    /// The language's error type.
    type Error;

    /// Converts an error of the core.
    fn fail(&self, error: Error) -> Self::Error;
    /// The error for arguments that do not fit the parameters of function `name`.
    fn misfit(&self, name: &str, misfit: Misfit) -> Self::Error;
    /// Name of the object's type, for messages.
    fn type_name(&self, object: Self::Object) -> String;
    /// Whether the object means "not given".
    fn is_none(&self, object: Self::Object) -> bool;
    /// Reads an argument for an array parameter; `None` if it is absent.
    ///
    /// # Errors
    /// The object cannot become an array.
    fn array(
        &self,
        op: &'static OpDef,
        param: &Param,
        object: Self::Object,
    ) -> Result<Option<Self::Array>, Self::Error>;
    /// Reads an argument for a list of arrays and appends it to `inputs`.
    ///
    /// # Errors
    /// The object is not a sequence, or an entry cannot become an array.
    fn arrays(
        &self,
        op: &'static OpDef,
        param: &Param,
        object: Self::Object,
        inputs: &mut SmallVec<[Option<Self::Array>; 4]>,
    ) -> Result<(), Self::Error>;
    /// Reads the arrays given for `out`, one for each output.
    ///
    /// # Errors
    /// An object that is not an array.
    fn outs(
        &self,
        op: &'static OpDef,
        object: Self::Object,
    ) -> Result<Outs<Self::Out>, Self::Error>;
    /// Whether it is a boolean, not a number.
    fn is_bool(&self, object: Self::Object) -> bool;
    /// Whether it is a single integer.
    fn is_integer(&self, object: Self::Object) -> bool;
    /// Whether it is a sequence other than a tuple or a list: an array, a range.
    fn is_other_sequence(&self, object: Self::Object) -> bool;
    /// Truth value of the object.
    ///
    /// # Errors
    /// What the object raises.
    fn truth(&self, object: Self::Object) -> Result<bool, Self::Error>;
    /// An integer.
    ///
    /// # Errors
    /// An integer beyond 64 bits.
    fn integer(&self, object: Self::Object) -> Result<Option<i64>, Self::Error>;
    /// A real number.
    fn real(&self, object: Self::Object) -> Option<f64>;
    /// A number of any kind.
    ///
    /// # Errors
    /// What the object raises.
    fn number(&self, object: Self::Object) -> Result<Option<Scalar>, Self::Error>;
    /// An integer, or several.
    ///
    /// # Errors
    /// An integer beyond 64 bits.
    fn integers(&self, object: Self::Object) -> Result<Option<SmallVec<[i64; 4]>>, Self::Error>;
    /// A sequence of integers and `None`, which becomes [`Param::GAP`]; `None` if it is not a sequence.
    ///
    /// # Errors
    /// An entry that is neither an integer nor `None`.
    fn with_gaps(&self, object: Self::Object) -> Result<Option<SmallVec<[i64; 4]>>, Self::Error>;
    /// Real numbers, truncated to integers.
    ///
    /// # Errors
    /// What the object raises.
    fn truncated(&self, object: Self::Object) -> Result<Option<Value>, Self::Error>;
    /// A value of [`ParamKind::Sections`]: a number of parts, or the positions to split at.
    ///
    /// # Errors
    /// What the object raises.
    fn sections(&self, object: Self::Object) -> Result<Option<Value>, Self::Error>;
    /// A value of [`ParamKind::AxesOfEach`]: for each entry its number of axes, then the axes.
    ///
    /// # Errors
    /// What the object raises.
    fn axes_of_each(&self, object: Self::Object)
    -> Result<Option<SmallVec<[i64; 4]>>, Self::Error>;
    /// Real numbers.
    fn reals(&self, object: Self::Object) -> Option<Vec<f64>>;
    /// Calls `read` with the object's text; `None` if it is not text.
    fn with_text<T>(&self, object: Self::Object, read: impl FnOnce(&str) -> T) -> Option<T>;
    /// A sequence of texts.
    fn texts(&self, object: Self::Object) -> Option<Vec<String>>;
    /// A data type.
    ///
    /// # Errors
    /// The object does not name a dtype.
    fn dtype(&self, object: Self::Object) -> Result<DType, Self::Error>;
    /// A device.
    ///
    /// # Errors
    /// The object does not name a device.
    fn device(&self, object: Self::Object) -> Result<Device, Self::Error>;
    /// An index expression.
    ///
    /// # Errors
    /// The object is not an index expression.
    fn index(&self, object: Self::Object) -> Result<Vec<IndexItem>, Self::Error>;
}

/// Why the arguments of a call do not fit the function's parameters. Displayed after the function's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Misfit {
    /// More positional arguments than the function takes.
    TooMany {
        /// Largest number of positional arguments.
        most: usize,
        /// Number of positional arguments given.
        given: usize,
    },
    /// No parameter has this name.
    Unexpected(String),
    /// An argument was given twice.
    Repeated(&'static str),
    /// A required argument is missing.
    Missing(&'static str),
    /// An argument is missing that another given argument requires.
    Needed(&'static str),
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Misfit::TooMany { most, given } => write!(
                f,
                "takes at most {most} positional arguments ({given} given)"
            ),
            Misfit::Unexpected(name) => {
                write!(f, "got an unexpected keyword argument '{name}'")?;
                // Calls in MXNet 1.x gave their nodes of the graph names.
                match &**name {
                    "name" => write!(f, ": operations have no names, leave it out"),
                    _ => Ok(()),
                }
            }
            Misfit::Repeated(name) => write!(f, "got multiple values for argument '{name}'"),
            Misfit::Missing(name) => write!(f, "missing required argument: '{name}'"),
            Misfit::Needed(name) => write!(f, "requires {name} to be specified."),
        }
    }
}

/// Arguments bound to parameters.
pub struct Arguments<A, O> {
    /// Arrays, with lists of arrays flattened; an absent optional array is `None`.
    pub inputs: SmallVec<[Option<A>; 4]>,
    /// The attributes in order; `None` if all have their defaults.
    given: Option<Attrs>,
    /// Values of the attributes if `given` is `None`.
    defaults: &'static Attrs,
    /// `out`, one entry for each output; empty if it is not given.
    pub outs: SmallVec<[Option<O>; 1]>,
    /// The dtype to compute in, of elementwise functions.
    pub dtype: Option<DType>,
}

impl<A, O> Arguments<A, O> {
    /// No arguments bound yet.
    #[inline]
    pub fn new(signature: &'static Signature) -> Self {
        Arguments {
            inputs: SmallVec::new(),
            given: None,
            defaults: &signature.defaults,
            outs: SmallVec::new(),
            dtype: None,
        }
    }

    /// The attributes, in the order of their parameters.
    #[inline]
    pub fn attrs(&self) -> &Attrs {
        self.given.as_ref().unwrap_or(self.defaults)
    }
}

/// Most operators have at most this many parameters, so the slots need no allocation and are cheap to clear.
const INLINE_SLOTS: usize = 12;

/// Binds each argument to its parameter. `named` yields, for each keyword argument, the position of its parameter, or the name if no parameter has
/// it. Returns the operator to call: the full signature's if the call gives a parameter that only that has.
///
/// # Errors
/// Arguments that do not belong to the call, are missing, or have the wrong type.
pub fn bind<R: Reader>(
    reader: &R,
    signature: &'static Signature,
    positional: &[R::Object],
    named: impl ExactSizeIterator<Item = (Result<usize, String>, R::Object)>,
    bound: &mut Arguments<R::Array, R::Out>,
) -> Result<&'static OpDef, R::Error> {
    if named.len() == 0 && signature.operands == Some(positional.len()) {
        // Only arrays are given, as in most calls.
        let op = signature.op;
        for (&object, param) in positional.iter().zip(op.params) {
            bound.inputs.push(reader.array(op, param, object)?);
        }
        for _ in 0..signature.absent {
            bound.inputs.push(None);
        }
        return Ok(op);
    }
    let misfit = |misfit| reader.misfit(signature.name, misfit);
    if positional.len() > signature.positional {
        let (most, given) = (signature.positional, positional.len());
        return Err(misfit(Misfit::TooMany { most, given }));
    }
    let (mut inline, mut many) = ([None; INLINE_SLOTS], Vec::new());
    let slots = match inline.get_mut(..signature.keywords.len()) {
        Some(slots) => slots,
        None => {
            many.resize(signature.keywords.len(), None);
            &mut many[..]
        }
    };
    for (slot, &object) in slots.iter_mut().zip(positional) {
        *slot = Some(object);
    }
    if let Some(at) = signature.swaps
        && positional.get(at).is_some_and(|&o| reader.is_integer(o))
    {
        slots.swap(at, at + 1);
    }
    let public = signature.public;
    let mut needed = None;
    for (found, value) in named {
        let at = match found {
            Ok(at) => at,
            Err(name) => return Err(misfit(Misfit::Unexpected(name))),
        };
        if slots[at].is_some() {
            return Err(misfit(Misfit::Repeated(signature.keywords[at])));
        }
        slots[at] = Some(value);
        // Given by position, the argument needs no other one; given by name, it requires the parameter in `requires`.
        if signature.has_requirements
            && let Some(other) = public.params.get(at).and_then(|param| param.requires)
        {
            let other = public.params.iter().position(|param| param.name == other);
            needed = needed.or(other);
        }
    }
    if let Some(at) = needed.filter(|&at| slots[at].is_none()) {
        return Err(misfit(Misfit::Needed(public.params[at].name)));
    }
    // Most calls give no parameter that only the full signature has.
    let is_absent = |slot: &Option<R::Object>| slot.is_none_or(|object| reader.is_none(object));
    let op = match slots.get(signature.op.params.len()..) {
        Some(rest)
            if rest.iter().all(is_absent) && !needs_full_signature(reader, signature, slots) =>
        {
            signature.op
        }
        _ => public,
    };
    fill(reader, signature, op, slots, bound)?;
    Ok(op)
}

/// Converts the bound arguments to arrays and attributes.
#[inline]
fn fill<R: Reader>(
    reader: &R,
    signature: &'static Signature,
    op: &'static OpDef,
    slots: &[Option<R::Object>],
    bound: &mut Arguments<R::Array, R::Out>,
) -> Result<(), R::Error> {
    let attrs = bound.given.insert(Attrs::none());
    // Length of the lists of arrays, and the name of the first list parameter.
    let mut list: Option<(usize, &str)> = None;
    for (param, &slot) in op.params.iter().zip(slots) {
        let Some(object) = slot else {
            match (param.kind, param.default) {
                (_, Default::Required) => {
                    return Err(reader.misfit(signature.name, Misfit::Missing(param.name)));
                }
                (ParamKind::Array, _) => bound.inputs.push(None),
                (ParamKind::Arrays | ParamKind::Out, _) => {}
                (_, default) => attrs.push(Value::from(default)),
            }
            continue;
        };
        match param.kind {
            ParamKind::Array => bound.inputs.push(reader.array(op, param, object)?),
            ParamKind::Arrays => {
                let start = bound.inputs.len();
                reader.arrays(op, param, object, &mut bound.inputs)?;
                let len = bound.inputs.len() - start;
                match list {
                    _ if reader.is_none(object) => {}
                    Some((first, name)) if first != len => {
                        let problem = format!(
                            "lists of equal length are needed, found {first} arrays in `{name}` and {len} in `{}`",
                            param.name
                        );
                        return Err(reader.fail(Error::value(op.name, problem)));
                    }
                    _ => list = Some((len, param.name)),
                }
            }
            ParamKind::Out => {
                if !reader.is_none(object) {
                    bound.outs = reader.outs(op, object)?;
                }
            }
            _ => attrs.push(attribute(reader, op, param, object)?),
        }
    }
    let behind = slots.iter().zip(&signature.keywords);
    for (&slot, &keyword) in behind.skip(op.params.len()) {
        let Some(object) = slot.filter(|&object| !reader.is_none(object)) else {
            continue;
        };
        match keyword {
            "out" => bound.outs = reader.outs(op, object)?,
            "dtype" => bound.dtype = Some(reader.dtype(object)?),
            // Python's ufunc objects read these keywords before they call the binder.
            other => {
                let problem = format!("`{other}` is an argument of the Python function only");
                return Err(reader.fail(Error::unsupported(op.name, problem)));
            }
        }
    }
    Ok(())
}

/// Whether an argument is a choice that only the full signature has.
fn needs_full_signature<R: Reader>(
    reader: &R,
    signature: &Signature,
    slots: &[Option<R::Object>],
) -> bool {
    if !signature.has_more_choices {
        return false;
    }
    let params = signature.op.params.iter().zip(signature.public.params);
    params.zip(slots).any(|((basic, full_signature), &slot)| {
        let (ParamKind::Choice(basic), ParamKind::Choice(full_signature), Some(word)) =
            (basic.kind, full_signature.kind, slot)
        else {
            return false;
        };
        basic.len() != full_signature.len()
            && reader
                .with_text(word, |word| {
                    !basic.contains(&word) && full_signature.contains(&word)
                })
                .unwrap_or(false)
    })
}
