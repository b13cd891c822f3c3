//! Who defines the operators that are added at run time. Files of graphs name it, so that a missing module is named when a graph is read.

use std::collections::HashMap;
use std::sync::LazyLock;

use parking_lot::RwLock;
use serde_json::Value as Json;

/// Who defines an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The module of this name.
    Module(String),
    /// A program in Python.
    Python,
}

static ORIGINS: LazyLock<RwLock<HashMap<&'static str, Origin>>> = LazyLock::new(RwLock::default);

/// Notes who defines an operator.
pub fn set_origin(op: &'static str, origin: Origin) {
    ORIGINS.write().insert(op, origin);
}

/// Whether an operator is written in Python.
pub(crate) fn is_python(op: &str) -> bool {
    ORIGINS.read().get(op) == Some(&Origin::Python)
}

/// Writes the origin of an operator into the entry of a node.
pub(crate) fn write(op: &str, node: &mut Json) {
    match ORIGINS.read().get(op) {
        Some(Origin::Module(name)) => node["module"] = Json::from(name.as_str()),
        Some(Origin::Python) => node["python"] = Json::from(true),
        None => {}
    }
}

/// What to say of an operator that does not exist, from the entry of a node.
pub(crate) fn missing(op: &str, node: &Json) -> String {
    let is_python = node.get("python").and_then(Json::as_bool) == Some(true);
    match node.get("module").and_then(Json::as_str) {
        Some(module) => format!(
            "there is no operator `{op}`: it belongs to the module `{module}`, which is not loaded"
        ),
        None if is_python => format!(
            "there is no operator `{op}`: it is written in Python, by a program that defines it first, or a module may have it"
        ),
        None => {
            format!("there is no operator `{op}`: it may belong to a module that is not loaded")
        }
    }
}
