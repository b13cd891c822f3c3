//! Passes that are registered at run time, and global switches for passes. They hold for graphs that are compiled later.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use mxnet_core::{Error, Result};
use parking_lot::RwLock;

use super::PASSES;
use crate::ir::Graph;

/// A registered pass: changes a graph, or reports an error.
pub type OutsidePass = Arc<dyn Fn(&mut Graph) -> Result<()> + Send + Sync>;

/// When a registered pass runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runs {
    /// On every graph.
    Always,
    /// Only on graphs of functions that choose it as their backend.
    Chosen,
}

#[derive(Clone)]
struct Registered {
    name: String,
    runs: Runs,
    /// The module that it belongs to.
    module: Option<&'static str>,
    pass: OutsidePass,
}

struct State {
    passes: Vec<Registered>,
    off: Vec<String>,
}

impl State {
    /// Takes a pass out. It must be dropped when `STATE` is unlocked, because a user's function may run code then that needs it.
    fn take(&mut self, name: &str) -> Option<Registered> {
        let at = self.passes.iter().position(|known| known.name == name)?;
        Some(self.passes.remove(at))
    }
}

static STATE: RwLock<State> = RwLock::new(State {
    passes: Vec::new(),
    off: Vec::new(),
});

/// Incremented when a change of `STATE` affects the resulting graphs.
static GENERATION: AtomicU64 = AtomicU64::new(0);

/// A number that changes when registered passes or switches change. Callers compile again if it differs.
pub fn generation() -> u64 {
    GENERATION.load(Ordering::Relaxed)
}

/// Registers a pass under a name, for the function `caller`. Replaces a registered pass of the same name, except one of a module.
///
/// # Errors
/// [`Error::Value`] for the name of a pass of this crate or of a module.
pub fn register(caller: &'static str, name: &str, runs: Runs, pass: OutsidePass) -> Result<()> {
    register_from(caller, name, runs, None, pass)
}

/// As [`register`], for a pass of a module.
///
/// # Errors
/// As [`register`].
pub fn register_from(
    caller: &'static str,
    name: &str,
    runs: Runs,
    module: Option<&'static str>,
    pass: OutsidePass,
) -> Result<()> {
    if name == "fuse" || PASSES.iter().any(|(known, _)| *known == name) {
        let problem = format!("`{name}` is the name of a pass of the library");
        return Err(Error::value(caller, problem));
    }
    let mut state = STATE.write();
    let known = state.passes.iter().find(|known| known.name == name);
    if let Some(module) = known.and_then(|known| known.module) {
        let problem = format!("`{name}` is the name of a pass of the module `{module}`");
        return Err(Error::value(caller, problem));
    }
    let replaced = state.take(name);
    state.passes.push(Registered {
        name: name.to_owned(),
        runs,
        module,
        pass,
    });
    GENERATION.fetch_add(1, Ordering::Relaxed);
    drop(state);
    drop(replaced);
    Ok(())
}

/// Removes a registered pass. Returns whether there was one. A pass of a module can be removed, too; it is gone for the rest of the process.
pub fn unregister(name: &str) -> bool {
    let mut state = STATE.write();
    let removed = state.take(name);
    GENERATION.fetch_add(1, Ordering::Relaxed);
    drop(state);
    removed.is_some()
}

/// The registered passes in the order in which they run, and when they run.
pub fn registered() -> Vec<(String, Runs)> {
    let state = STATE.read();
    let named = state
        .passes
        .iter()
        .map(|known| (known.name.clone(), known.runs));
    named.collect()
}

/// Switches these passes off, and all others on, for graphs that are compiled later. Returns the names that were off.
pub fn switch_off(names: Vec<String>) -> Vec<String> {
    let mut state = STATE.write();
    if state.off != names {
        GENERATION.fetch_add(1, Ordering::Relaxed);
    }
    std::mem::replace(&mut state.off, names)
}

/// Whether a pass is switched off for all graphs.
pub(super) fn is_off(name: &str) -> bool {
    STATE.read().off.iter().any(|off| off == name)
}

/// The registered passes that run for this backend: name, module, pass.
pub(super) fn chosen(backend: Option<&str>) -> Vec<(String, Option<&'static str>, OutsidePass)> {
    let state = STATE.read();
    let runs = |known: &&Registered| match known.runs {
        Runs::Always => true,
        Runs::Chosen => Some(known.name.as_str()) == backend,
    };
    let found = state.passes.iter().filter(runs);
    found
        .map(|known| (known.name.clone(), known.module, known.pass.clone()))
        .collect()
}
