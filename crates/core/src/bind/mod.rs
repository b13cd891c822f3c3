//! Arguments of a call, associated with the parameters of its operator: one binder for every language.
//!
//! A language implements [`Reader`], which looks at its objects: is this an array, a number, text? Everything else is here: which argument belongs to
//! which parameter, what is missing, given twice or unknown, defaults, and what an attribute may be.

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

/// How a language's objects are read. Methods that answer `None` say that the object is nothing of the kind; the binder makes the error.
pub trait Reader {
    /// An argument, borrowed for the call.
    type Object: Copy;
    /// An array argument as the language holds it.
    type Array;
    /// An array given for `out`.
    type Out;
    /// What the language raises.
    type Error;

    /// An error of the core.
    fn fail(&self, error: Error) -> Self::Error;
    /// An argument that does not belong to the call of the function `name`.
    fn misfit(&self, name: &str, misfit: Misfit) -> Self::Error;
    /// The object's type, for messages.
    fn type_name(&self, object: Self::Object) -> String;
    /// Whether the object says that nothing is given.
    fn is_none(&self, object: Self::Object) -> bool;
    /// An argument for an array parameter; `None` if it is absent.
    ///
    /// # Errors
    /// An object that no array can be made of.
    fn array(
        &self,
        op: &'static OpDef,
        param: &Param,
        object: Self::Object,
    ) -> Result<Option<Self::Array>, Self::Error>;
    /// An argument for a list of arrays, appended to `inputs`.
    ///
    /// # Errors
    /// No list, or an entry that no array can be made of.
    fn arrays(
        &self,
        op: &'static OpDef,
        param: &Param,
        object: Self::Object,
        inputs: &mut SmallVec<[Option<Self::Array>; 4]>,
    ) -> Result<(), Self::Error>;
    /// The arrays given for `out`, one for each output.
    ///
    /// # Errors
    /// Anything that is no array.
    fn outs(
        &self,
        op: &'static OpDef,
        object: Self::Object,
    ) -> Result<Outs<Self::Out>, Self::Error>;
    /// Whether it is true or false and no number.
    fn is_bool(&self, object: Self::Object) -> bool;
    /// Whether it is one plain integer.
    fn is_integer(&self, object: Self::Object) -> bool;
    /// Whether it is a sequence that is neither a tuple nor a list: an array, a range.
    fn is_other_sequence(&self, object: Self::Object) -> bool;
    /// Whether it counts as true.
    ///
    /// # Errors
    /// What the object raises.
    fn truth(&self, object: Self::Object) -> Result<bool, Self::Error>;
    /// An integer.
    ///
    /// # Errors
    /// One beyond 64 bits.
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
    /// One beyond 64 bits.
    fn integers(&self, object: Self::Object) -> Result<Option<SmallVec<[i64; 4]>>, Self::Error>;
    /// Integers with gaps, which are [`Param::GAP`]; `None` if it is no sequence.
    ///
    /// # Errors
    /// An entry that is neither.
    fn with_gaps(&self, object: Self::Object) -> Result<Option<SmallVec<[i64; 4]>>, Self::Error>;
    /// What is left of real numbers without their fractions.
    ///
    /// # Errors
    /// What the object raises.
    fn cut_off(&self, object: Self::Object) -> Result<Option<Value>, Self::Error>;
    /// A number of parts or where to cut, of [`ParamKind::Sections`].
    ///
    /// # Errors
    /// What the object raises.
    fn sections(&self, object: Self::Object) -> Result<Option<Value>, Self::Error>;
    /// The entries of [`ParamKind::AxesOfEach`], each entry's length before its axes.
    ///
    /// # Errors
    /// What the object raises.
    fn axes_of_each(&self, object: Self::Object)
    -> Result<Option<SmallVec<[i64; 4]>>, Self::Error>;
    /// Real numbers.
    fn reals(&self, object: Self::Object) -> Option<Vec<f64>>;
    /// Calls `look` with the text that it is; `None` if it is none.
    fn with_text<T>(&self, object: Self::Object, look: impl FnOnce(&str) -> T) -> Option<T>;
    /// A sequence of texts.
    fn texts(&self, object: Self::Object) -> Option<Vec<String>>;
    /// A data type.
    ///
    /// # Errors
    /// What names none.
    fn dtype(&self, object: Self::Object) -> Result<DType, Self::Error>;
    /// A device.
    ///
    /// # Errors
    /// What names none.
    fn device(&self, object: Self::Object) -> Result<Device, Self::Error>;
    /// An index expression.
    ///
    /// # Errors
    /// What is none.
    fn index(&self, object: Self::Object) -> Result<Vec<IndexItem>, Self::Error>;
}

/// Why the arguments of a call do not fit the function. It is shown behind the function's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Misfit {
    /// More arguments by position than there are parameters for.
    TooMany {
        /// The most that are taken.
        most: usize,
        /// So many were given.
        given: usize,
    },
    /// No parameter has this name.
    Unexpected(String),
    /// An argument was given twice.
    Repeated(&'static str),
    /// A required argument is missing.
    Missing(&'static str),
    /// An argument that another one asks for is missing.
    Needed(&'static str),
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Misfit::TooMany { most, given } => write!(
                f,
                "takes at most {most} positional arguments ({given} given)"
            ),
            Misfit::Unexpected(name) => write!(f, "got an unexpected keyword argument '{name}'"),
            Misfit::Repeated(name) => write!(f, "got multiple values for argument '{name}'"),
            Misfit::Missing(name) => write!(f, "missing required argument: '{name}'"),
            Misfit::Needed(name) => write!(f, "requires {name} to be specified."),
        }
    }
}

/// Arguments bound to parameters.
pub struct Arguments<A, O> {
    /// Arrays, lists of them flattened; an optional one that is missing is `None`.
    pub inputs: SmallVec<[Option<A>; 4]>,
    /// The other parameters, in their order; `None` if all are at their defaults, which the signature has.
    given: Option<Attrs>,
    /// What they are then.
    defaults: &'static Attrs,
    /// `out`, one entry for each output; empty if it is not given.
    pub outs: SmallVec<[Option<O>; 1]>,
    /// The dtype to compute in, of elementwise functions.
    pub dtype: Option<DType>,
}

impl<A, O> Arguments<A, O> {
    /// Nothing given yet.
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

    /// The parameters that are no arrays, in their order.
    #[inline]
    pub fn attrs(&self) -> &Attrs {
        self.given.as_ref().unwrap_or(self.defaults)
    }
}

/// Most operators have no more parameters: no allocation, and little to clear.
const INLINE_SLOTS: usize = 12;

/// Associates each argument with its parameter. `named` gives, for each argument by name, the position of its parameter, or the name itself if there
/// is none. Returns the operator to call: the extended one if the call gives what only that has.
///
/// # Errors
/// Arguments that do not belong to the call, are missing, or are not what their parameter takes.
pub fn bind<R: Reader>(
    reader: &R,
    signature: &'static Signature,
    positional: &[R::Object],
    named: impl ExactSizeIterator<Item = (Result<usize, String>, R::Object)>,
    bound: &mut Arguments<R::Array, R::Out>,
) -> Result<&'static OpDef, R::Error> {
    if named.len() == 0 && signature.operands == Some(positional.len()) {
        // Arrays and nothing else: what most calls are.
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
        // By position the argument stands by itself; by name it asks for the other one.
        if signature.has_beside
            && let Some(other) = public.params.get(at).and_then(|param| param.beside)
        {
            let other = public.params.iter().position(|param| param.name == other);
            needed = needed.or(other);
        }
    }
    if let Some(at) = needed.filter(|&at| slots[at].is_none()) {
        return Err(misfit(Misfit::Needed(public.params[at].name)));
    }
    // Most calls give nothing that only the extended form has.
    let is_absent = |slot: &Option<R::Object>| slot.is_none_or(|object| reader.is_none(object));
    let op = match slots.get(signature.op.params.len()..) {
        Some(rest) if rest.iter().all(is_absent) && !asks_for_more(reader, signature, slots) => {
            signature.op
        }
        _ => public,
    };
    fill(reader, signature, op, slots, bound)?;
    Ok(op)
}

/// Reads the arguments of the slots.
#[inline]
fn fill<R: Reader>(
    reader: &R,
    signature: &'static Signature,
    op: &'static OpDef,
    slots: &[Option<R::Object>],
    bound: &mut Arguments<R::Array, R::Out>,
) -> Result<(), R::Error> {
    let attrs = bound.given.insert(Attrs::none());
    // Length of the lists of arrays, and the parameter of the first.
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
            // Python reads these before it comes here: they are keywords of its ufunc objects.
            other => {
                let problem = format!("`{other}` is an argument of the Python function only");
                return Err(reader.fail(Error::unsupported(op.name, problem)));
            }
        }
    }
    Ok(())
}

/// Whether an argument is a word that the extended form knows and the plain one does not.
fn asks_for_more<R: Reader>(
    reader: &R,
    signature: &Signature,
    slots: &[Option<R::Object>],
) -> bool {
    if !signature.has_more_words {
        return false;
    }
    let params = signature.op.params.iter().zip(signature.public.params);
    params.zip(slots).any(|((plain, extended), &slot)| {
        let (ParamKind::Choice(plain), ParamKind::Choice(extended), Some(word)) =
            (plain.kind, extended.kind, slot)
        else {
            return false;
        };
        plain.len() != extended.len()
            && reader
                .with_text(word, |word| {
                    !plain.contains(&word) && extended.contains(&word)
                })
                .unwrap_or(false)
    })
}
