//! The objects of callers. A handle is the index of a slot and the generation of the slot, which is incremented at each use. So a handle that was
//! freed is invalid, even if its slot is in use again.

use std::sync::Arc;
use std::thread::ThreadId;

use mxnet::Graph;
use mxnet::core::{Array, Error, Result};
use parking_lot::RwLock;

/// An object of the library: an array, a scope or a graph. 0 is no object.
pub type mx_handle = u64;

/// The object of a handle.
pub enum Object {
    /// An array.
    Array(Array),
    /// A recording scope, of the thread that opened it.
    Scope(ThreadId),
    /// A graph loaded from files.
    Graph(Arc<Graph>),
}

impl Object {
    fn kind(&self) -> &'static str {
        match self {
            Object::Array(_) => "an array",
            Object::Scope(_) => "a scope",
            Object::Graph(_) => "a graph",
        }
    }
}

struct Slot {
    generation: u32,
    object: Option<Object>,
}

struct Table {
    slots: Vec<Slot>,
    free: Vec<u32>,
}

static TABLE: RwLock<Table> = RwLock::new(Table {
    slots: Vec::new(),
    free: Vec::new(),
});

fn parts(handle: mx_handle) -> (usize, u32) {
    // The low half is the index of the slot plus one, so that no handle is 0.
    (
        (handle as u32).wrapping_sub(1) as usize,
        (handle >> 32) as u32,
    )
}

#[cold]
fn gone(handle: mx_handle) -> Error {
    let problem = match handle {
        0 => "the handle is 0, which is not an object".to_owned(),
        other => format!("the handle {other:#x} is not valid: it was freed, or never created"),
    };
    Error::value("", problem)
}

impl Table {
    fn get(&self, handle: mx_handle) -> Result<&Object> {
        let (at, generation) = parts(handle);
        let slot = self
            .slots
            .get(at)
            .filter(|slot| slot.generation == generation);
        slot.and_then(|slot| slot.object.as_ref())
            .ok_or_else(|| gone(handle))
    }

    fn get_mut(&mut self, handle: mx_handle) -> Result<&mut Option<Object>> {
        let (at, generation) = parts(handle);
        let slot = self
            .slots
            .get_mut(at)
            .filter(|slot| slot.generation == generation);
        slot.map(|slot| &mut slot.object)
            .filter(|object| object.is_some())
            .ok_or_else(|| gone(handle))
    }
}

#[cold]
fn of_other_kind(handle: mx_handle, wanted: &str, found: &str) -> Error {
    Error::dtype(
        "",
        format!("the handle {handle:#x} is {found}, {wanted} is needed"),
    )
}

/// A handle for a new object.
pub fn add(object: Object) -> Result<mx_handle> {
    let mut table = TABLE.write();
    let at = match table.free.pop() {
        Some(at) => at,
        None => {
            let at = u32::try_from(table.slots.len())
                .ok()
                .filter(|&at| at < u32::MAX)
                .ok_or_else(|| Error::memory("", "there are 4294967295 handles already"))?;
            table.slots.push(Slot {
                generation: 1,
                object: None,
            });
            at
        }
    };
    let slot = &mut table.slots[at as usize];
    slot.object = Some(object);
    Ok(u64::from(slot.generation) << 32 | u64::from(at + 1))
}

/// The array of a handle; a cheap copy that shares its elements.
pub fn array(handle: mx_handle) -> Result<Array> {
    match TABLE.read().get(handle)? {
        Object::Array(array) => Ok(array.clone()),
        other => Err(of_other_kind(handle, "an array", other.kind())),
    }
}

/// The thread of a scope.
pub fn scope(handle: mx_handle) -> Result<ThreadId> {
    match TABLE.read().get(handle)? {
        Object::Scope(thread) => Ok(*thread),
        other => Err(of_other_kind(handle, "a scope", other.kind())),
    }
}

/// The graph of a handle.
pub fn graph(handle: mx_handle) -> Result<Arc<Graph>> {
    match TABLE.read().get(handle)? {
        Object::Graph(graph) => Ok(graph.clone()),
        other => Err(of_other_kind(handle, "a graph", other.kind())),
    }
}

/// Assigns another array to the handle: the same elements as the result of another recorded operation.
pub fn replace_array(handle: mx_handle, array: Array) -> Result<()> {
    let old = {
        let mut table = TABLE.write();
        let object = table.get_mut(handle)?;
        match object {
            Some(Object::Array(_)) => object.replace(Object::Array(array)),
            Some(other) => return Err(of_other_kind(handle, "an array", other.kind())),
            None => return Err(gone(handle)),
        }
    };
    // Dropping the old object may call foreign code, so the table must be unlocked.
    drop(old);
    Ok(())
}

/// Removes an object; its handle becomes invalid.
pub fn remove(handle: mx_handle) -> Result<Object> {
    let (at, _) = parts(handle);
    let mut table = TABLE.write();
    let object = table.get_mut(handle)?.take().ok_or_else(|| gone(handle))?;
    let slot = &mut table.slots[at];
    // A slot whose generations are used up is not used again.
    if let Some(next) = slot.generation.checked_add(1) {
        slot.generation = next;
        table.free.push(at as u32);
    }
    Ok(object)
}

/// Number of objects.
pub fn count() -> usize {
    let table = TABLE.read();
    table
        .slots
        .iter()
        .filter(|slot| slot.object.is_some())
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope_object() -> Object {
        Object::Scope(std::thread::current().id())
    }

    #[test]
    fn a_freed_handle_names_nothing_even_when_its_slot_is_used_again() {
        let first = add(scope_object()).expect("there is room");
        assert!(scope(first).is_ok());
        assert!(remove(first).is_ok());
        let second = add(scope_object()).expect("there is room");
        assert_ne!(first, second);
        assert!(scope(first).is_err());
        assert!(remove(first).is_err());
        assert!(remove(second).is_ok());
    }

    #[test]
    fn invented_handles_name_nothing() {
        for handle in [0, 1, u64::MAX, 7 << 32 | 3, 1 << 32] {
            assert!(array(handle).is_err());
            assert!(remove(handle).is_err());
        }
    }

    #[test]
    fn an_object_of_another_kind_is_refused() {
        let handle = add(scope_object()).expect("there is room");
        let error = array(handle).expect_err("it is a scope");
        assert!(error.to_string().contains("is a scope, an array is needed"));
        assert!(remove(handle).is_ok());
    }
}
