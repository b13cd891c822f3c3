//! The providers of operators that are added at run time. Files of graphs name them, so that a missing module is named when a graph is read.

use std::collections::HashMap;
use std::sync::LazyLock;

use parking_lot::RwLock;
use serde_json::Value as Json;

/// Who defines an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Provider {
    /// The module of this name.
    Module(String),
    /// A program in Python.
    Python,
}

static PROVIDERS: LazyLock<RwLock<HashMap<&'static str, Provider>>> =
    LazyLock::new(RwLock::default);

/// Registers the provider of an operator.
pub fn set_provider(op: &'static str, provider: Provider) {
    PROVIDERS.write().insert(op, provider);
}

/// Whether an operator is written in Python. Takes a lock: for passes and compilation, not for runs.
pub(crate) fn is_python(op: &str) -> bool {
    PROVIDERS.read().get(op) == Some(&Provider::Python)
}

/// Writes the provider of an operator into the entry of a node.
pub(crate) fn write(op: &str, node: &mut Json) {
    match PROVIDERS.read().get(op) {
        Some(Provider::Module(name)) => node["module"] = Json::from(name.as_str()),
        Some(Provider::Python) => node["python"] = Json::from(true),
        None => {}
    }
}

/// The message for an operator that does not exist, from the entry of a node.
pub(crate) fn missing(op: &str, node: &Json) -> String {
    let is_python = node.get("python").and_then(Json::as_bool) == Some(true);
    match node.get("module").and_then(Json::as_str) {
        Some(module) => format!(
            "there is no operator `{op}`: it belongs to the module `{module}`, which is not loaded"
        ),
        None if is_python => format!(
            "there is no operator `{op}`: it was written in Python; define it with `mx.operator` (or load a module that has it) before reading the graph"
        ),
        None => {
            format!("there is no operator `{op}`: it may belong to a module that is not loaded")
        }
    }
}
