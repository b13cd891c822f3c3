//! Arrays as nested lists of JSON numbers.

use mxnet::{Array, DType};
use serde_json::Value;

/// Appends the numbers of `value` to `numbers`. `depth` lists are open around it; `shape` has the lengths of the axes that are known.
fn flatten(
    value: &Value,
    depth: usize,
    shape: &mut Vec<usize>,
    numbers: &mut Vec<f64>,
) -> Result<(), String> {
    match value {
        Value::Array(items) => {
            if depth == shape.len() && numbers.is_empty() {
                shape.push(items.len());
            } else if shape.get(depth) != Some(&items.len()) {
                return Err(format!(
                    "lists of axis {depth} have different lengths or depths"
                ));
            }
            (items.iter()).try_for_each(|item| flatten(item, depth + 1, shape, numbers))
        }
        Value::Number(number) if depth == shape.len() => {
            numbers.extend(number.as_f64());
            Ok(())
        }
        Value::Bool(value) if depth == shape.len() => {
            numbers.push(f64::from(u8::from(*value)));
            Ok(())
        }
        Value::Number(_) | Value::Bool(_) => {
            Err(format!("a number stands among the lists of axis {depth}"))
        }
        _ => Err("only numbers, true, false and lists are allowed".into()),
    }
}

/// The array of nested lists, with the dtype `dtype`. Numbers pass through float64.
pub fn to_array(value: &Value, dtype: DType) -> Result<Array, String> {
    let (mut shape, mut numbers) = (Vec::new(), Vec::new());
    flatten(value, 0, &mut shape, &mut numbers)?;
    let array = Array::from_slice(&numbers, &shape).map_err(|error| error.to_string())?;
    array.astype(dtype).map_err(|error| error.to_string())
}

fn nested(numbers: &[f64], shape: &[usize]) -> Value {
    match shape {
        [] => Value::from(numbers[0]),
        [length, inner @ ..] => {
            let size: usize = inner.iter().product();
            let item = |i: usize| nested(&numbers[i * size..][..size], inner);
            Value::Array((0..*length).map(item).collect())
        }
    }
}

/// Nested lists of an array's numbers. NaN and infinities are null: JSON has none.
pub fn to_json(array: &Array) -> mxnet::Result<Value> {
    Ok(nested(
        &array.astype(DType::F64)?.to_vec::<f64>()?,
        array.shape(),
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nested_lists_come_back() {
        for value in [
            json!(1.5),
            json!([]),
            json!([[1.0, 2.0], [3.0, 4.0]]),
            json!([[[0.1]]]),
            json!([[], []]),
        ] {
            let array = to_array(&value, DType::F64).expect("rectangular");
            assert_eq!(to_json(&array).expect("on the CPU"), value);
        }
    }

    #[test]
    fn other_values_are_refused() {
        for value in [
            json!([[1.0], [2.0, 3.0]]),
            json!([1.0, [2.0]]),
            json!([[1.0], 2.0]),
            json!([[], [1.0]]),
            json!([[[]], []]),
            json!("1"),
            json!(null),
            json!({"a": 1}),
            json!([1, "2"]),
        ] {
            assert!(to_array(&value, DType::F32).is_err(), "{value}");
        }
    }
}
