//! Names of events as numbers, so that an event has a fixed size.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use parking_lot::Mutex;

/// A name as a number. 0 is the empty name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Label(pub(super) u32);

impl Label {
    /// The number.
    pub fn number(self) -> u32 {
        self.0
    }

    /// The label of a number that [`Label::number`] has returned.
    pub fn of_number(number: u32) -> Label {
        Label(number)
    }

    /// The name.
    pub fn name(self) -> Arc<str> {
        name(self.0)
    }
}

struct Names {
    labels: HashMap<Arc<str>, u32>,
    names: Vec<Arc<str>>,
}

static NAMES: LazyLock<Mutex<Names>> = LazyLock::new(|| {
    let empty: Arc<str> = Arc::from("");
    Mutex::new(Names {
        labels: HashMap::from([(empty.clone(), 0)]),
        names: vec![empty],
    })
});

/// The label of a name. Names are never forgotten.
pub fn label(name: &str) -> Label {
    let _gate = mxnet_engine::hold_off_fork();
    let mut names = NAMES.lock();
    if let Some(&label) = names.labels.get(name) {
        return Label(label);
    }
    let name: Arc<str> = Arc::from(name);
    let label = names.names.len() as u32;
    names.names.push(name.clone());
    names.labels.insert(name, label);
    Label(label)
}

/// All names, by their labels.
pub(super) fn all() -> Vec<Arc<str>> {
    let _gate = mxnet_engine::hold_off_fork();
    NAMES.lock().names.clone()
}

fn name(label: u32) -> Arc<str> {
    let _gate = mxnet_engine::hold_off_fork();
    let names = NAMES.lock();
    names
        .names
        .get(label as usize)
        .unwrap_or(&names.names[0])
        .clone()
}
