//! Conversion of arguments to attribute values.

use super::Reader;
use crate::args::{Default, Param, ParamKind, Value};
use crate::error::Error;
use crate::opdef::OpDef;

/// The value that `object` gives attribute `param`.
///
/// # Errors
/// [`Error::DType`] with the parameter's name and what it takes; [`Error::Value`] for a word that is not among its choices.
pub fn attribute<R: Reader>(
    reader: &R,
    op: &'static OpDef,
    param: &Param,
    object: R::Object,
) -> Result<Value, R::Error> {
    if reader.is_none(object) {
        if param.nullable || param.default == Default::None {
            return Ok(Value::None);
        }
        // NumPy's rules for `order`.
        if param.name == "order" && matches!(param.kind, ParamKind::Choice(_)) {
            return Ok(Value::from(param.default));
        }
    }
    let wrong = |what: &str| {
        let found = reader.type_name(object);
        let problem = format!("argument `{}` must be {what}, not '{found}'", param.name);
        reader.fail(Error::dtype(op.name, problem).reported_as(op))
    };
    Ok(match param.kind {
        // NumPy takes the truth value of a number.
        ParamKind::Bool
            if param.name == "keepdims"
                && !matches!(reader.integer(object), Ok(Some(_)))
                && !reader.is_bool(object) =>
        {
            return Err(wrong("true or false"));
        }
        ParamKind::Bool => Value::Bool(reader.truth(object)?),
        ParamKind::Int if reader.is_bool(object) => return Err(wrong("an integer")),
        ParamKind::Int => Value::Int(reader.integer(object)?.ok_or_else(|| wrong("an integer"))?),
        ParamKind::Float => {
            Value::Float(reader.real(object).ok_or_else(|| wrong("a real number"))?)
        }
        ParamKind::Scalar => {
            Value::Scalar(reader.number(object)?.ok_or_else(|| wrong("a number"))?)
        }
        ParamKind::Ints if param.tuple_or_list && reader.is_other_sequence(object) => {
            return Err(wrong("an integer or a tuple of integers"));
        }
        ParamKind::Ints | ParamKind::Sections if reader.is_integer(object) => {
            Value::Int(reader.integer(object)?.ok_or_else(|| wrong("an integer"))?)
        }
        ParamKind::Ints => {
            if param.gaps
                && let Some(values) = reader.with_gaps(object)?
            {
                return Ok(Value::Ints(values));
            }
            match reader.integers(object)? {
                Some(values) => Value::Ints(values),
                None => match param
                    .truncates
                    .then(|| reader.truncated(object))
                    .transpose()?
                    .flatten()
                {
                    Some(value) => value,
                    None => return Err(wrong("an integer or a tuple of integers")),
                },
            }
        }
        ParamKind::Sections => reader
            .sections(object)?
            .ok_or_else(|| wrong("a number of parts or a sequence of integers"))?,
        ParamKind::AxesOfEach => Value::Ints(
            reader
                .axes_of_each(object)?
                .ok_or_else(|| wrong("a list of axes, or tuples of them, for each operand"))?,
        ),
        ParamKind::Floats => match reader.real(object) {
            Some(value) => Value::Floats([value].into()),
            None => {
                let values = reader.reals(object);
                Value::Floats(
                    values
                        .ok_or_else(|| wrong("a sequence of real numbers"))?
                        .into(),
                )
            }
        },
        ParamKind::Str => {
            let text = reader.with_text(object, |text| Value::Str(text.into()));
            text.ok_or_else(|| wrong("text"))?
        }
        ParamKind::Words => {
            let words = || reader.texts(object).map(|words| words.join(","));
            let text = reader.with_text(object, str::to_owned).or_else(words);
            let text = text.ok_or_else(|| wrong("text, or a sequence of texts"))?;
            Value::Str(text.into())
        }
        ParamKind::Choice(words) => {
            let found = word_of(reader, op, param, words, object);
            Value::Word(found.ok_or_else(|| wrong("text"))??)
        }
        ParamKind::FloatOrWord(words) => match reader.real(object) {
            Some(value) => Value::Float(value),
            None => {
                let found = word_of(reader, op, param, words, object);
                Value::Word(found.ok_or_else(|| wrong("a real number or text"))??)
            }
        },
        ParamKind::DType => Value::DType(reader.dtype(object)?),
        ParamKind::Device => Value::Device(reader.device(object)?),
        ParamKind::Index => Value::Index(reader.index(object)?.into()),
        ParamKind::Array | ParamKind::Arrays | ParamKind::Out => return Err(wrong("no array")),
    })
}

/// The entry of `words` that the object equals; `None` if it is not text.
fn word_of<R: Reader>(
    reader: &R,
    op: &'static OpDef,
    param: &Param,
    words: &'static [&'static str],
    object: R::Object,
) -> Option<Result<&'static str, R::Error>> {
    reader.with_text(object, |text| {
        // A single letter may have either case: NumPy takes order 'f' for 'F'.
        let same = |word: &str| word == text || text.len() == 1 && word.eq_ignore_ascii_case(text);
        let found = words.iter().find(|word| same(word));
        found.copied().ok_or_else(|| {
            let problem = format!(
                "argument `{}` must be one of {}, not '{text}'",
                param.name,
                words.join(", ")
            );
            reader.fail(Error::value(op.name, problem).reported_as(op))
        })
    })
}
