//! Names and numbers of devices. Their functions are in `backend.rs`.

use std::fmt;
use std::str::FromStr;
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::error::{DeviceError, TensorError};

/// Kind of a device: a built-in kind, or one that was added at run time.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeviceKind(u8);

/// A kind of device that was added at run time.
struct Added {
    name: &'static str,
    is_host: bool,
}

/// Added kinds in order. They are read without a lock.
static ADDED: [OnceLock<Added>; DeviceKind::MAX - DeviceKind::KNOWN.len()] =
    [const { OnceLock::new() }; DeviceKind::MAX - DeviceKind::KNOWN.len()];

#[expect(
    non_upper_case_globals,
    reason = "they are written like the variants of an enum, and matched like these"
)]
impl DeviceKind {
    /// Main memory.
    pub const Cpu: DeviceKind = DeviceKind(0);
    /// Main memory that a GPU copies from and to without staging.
    pub const CpuPinned: DeviceKind = DeviceKind(1);
    /// Main memory that several processes share.
    pub const CpuShared: DeviceKind = DeviceKind(2);
    /// A GPU's memory.
    pub const Gpu: DeviceKind = DeviceKind(3);
}

impl DeviceKind {
    /// Largest number of kinds. Tables indexed by [`DeviceKind::index`] have this length.
    pub const MAX: usize = 16;

    /// MXNet's names of the built-in kinds, by index.
    const KNOWN: [&'static str; 4] = ["cpu", "cpu_pinned", "cpu_shared", "gpu"];

    /// Adds a kind of device for the rest of the process. `is_host` says whether the CPU can access its memory directly.
    ///
    /// # Errors
    ///
    /// `Device` if the name exists, or has characters other than letters, digits and underscores, or if there are [`DeviceKind::MAX`] kinds already.
    pub fn add(name: &str, is_host: bool) -> Result<DeviceKind, TensorError> {
        static ADDING: Mutex<()> = Mutex::new(());
        let _adding = ADDING.lock().unwrap_or_else(PoisonError::into_inner);
        let refused = |reason| DeviceError::Kind {
            name: name.into(),
            reason,
        };
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if name.is_empty() || !name.chars().all(is_word) {
            return Err(refused("a name may have letters, digits and underscores only").into());
        }
        if DeviceKind::find(name).is_some() {
            return Err(refused("a kind of this name exists already").into());
        }
        let Some(slot) = ADDED.iter().position(|added| added.get().is_none()) else {
            return Err(refused("the maximum number of kinds is reached").into());
        };
        ADDED[slot].get_or_init(|| Added {
            name: String::from(name).leak(),
            is_host,
        });
        Ok(DeviceKind((DeviceKind::KNOWN.len() + slot) as u8))
    }

    /// All kinds, built-in and added.
    pub fn all() -> impl Iterator<Item = DeviceKind> {
        let added = ADDED.iter().take_while(|added| added.get().is_some());
        (0..DeviceKind::KNOWN.len() + added.count()).map(|index| DeviceKind(index as u8))
    }

    /// The kind called `name`.
    pub fn find(name: &str) -> Option<DeviceKind> {
        DeviceKind::all().find(|kind| kind.name() == name)
    }

    /// Its number, below [`DeviceKind::MAX`].
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    fn added(self) -> Option<&'static Added> {
        let slot = self.index().checked_sub(DeviceKind::KNOWN.len())?;
        ADDED.get(slot).and_then(OnceLock::get)
    }

    /// MXNet's name, such as `"cpu_pinned"`, or the name under which it was added.
    pub fn name(self) -> &'static str {
        match DeviceKind::KNOWN.get(self.index()) {
            Some(name) => name,
            None => self.added().map_or("", |added| added.name),
        }
    }

    /// Whether the CPU can access this memory directly.
    #[inline]
    pub fn is_host(self) -> bool {
        match self {
            DeviceKind::Cpu | DeviceKind::CpuPinned | DeviceKind::CpuShared => true,
            DeviceKind::Gpu => false,
            other => other.added().is_some_and(|added| added.is_host),
        }
    }
}

impl fmt::Debug for DeviceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for DeviceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A device of the process. Creating a `Device` does not access the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Device {
    kind: DeviceKind,
    id: u32,
}

impl Device {
    /// The main memory of this process.
    pub const CPU: Device = Device::new(DeviceKind::Cpu, 0);

    /// The device of this kind with number `id`.
    #[inline]
    pub const fn new(kind: DeviceKind, id: u32) -> Device {
        Device { kind, id }
    }

    /// `cpu(id)`. All numbers are the same memory; they only matter for display and comparison.
    #[inline]
    pub const fn cpu(id: u32) -> Device {
        Device::new(DeviceKind::Cpu, id)
    }

    /// `gpu(id)`.
    #[inline]
    pub const fn gpu(id: u32) -> Device {
        Device::new(DeviceKind::Gpu, id)
    }

    /// Its kind.
    #[inline]
    pub const fn kind(self) -> DeviceKind {
        self.kind
    }

    /// Its number among those of its kind.
    #[inline]
    pub const fn id(self) -> u32 {
        self.id
    }

    /// Whether the CPU can access this memory directly.
    #[inline]
    pub fn is_host(self) -> bool {
        self.kind.is_host()
    }
}

impl Default for Device {
    fn default() -> Device {
        Device::CPU
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", self.kind, self.id)
    }
}

impl FromStr for Device {
    type Err = TensorError;

    /// Parses `"cpu"`, `"gpu(1)"` and `"gpu:1"`; without a number it is 0.
    ///
    /// # Errors
    ///
    /// `Device` for other text.
    fn from_str(text: &str) -> Result<Device, TensorError> {
        let parsed = || {
            let (name, id) = if let Some((name, rest)) = text.split_once('(') {
                (name, rest.strip_suffix(')')?)
            } else if let Some((name, id)) = text.split_once(':') {
                (name, id)
            } else {
                (text, "0")
            };
            let kind = DeviceKind::find(name)?;
            // `parse` would accept a sign.
            let id = if id.bytes().all(|b| b.is_ascii_digit()) {
                id.parse().ok()?
            } else {
                return None;
            };
            Some(Device::new(kind, id))
        };
        parsed().ok_or_else(|| DeviceError::Name { name: text.into() }.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_round_trips() {
        for device in [
            Device::CPU,
            Device::gpu(3),
            Device::new(DeviceKind::CpuPinned, 1),
            Device::cpu(7),
        ] {
            assert_eq!(device.to_string().parse(), Ok(device));
        }
        assert_eq!("gpu:2".parse(), Ok(Device::gpu(2)));
        assert_eq!("gpu".parse(), Ok(Device::gpu(0)));
        for text in [
            "", "tpu", "gpu(", "gpu()", "gpu(1", "gpu(-1)", "gpu(+1)", "gpu 1", "gpu(1) ",
        ] {
            let error = text.parse::<Device>().expect_err(text);
            assert!(
                matches!(error, TensorError::Device(DeviceError::Name { .. })),
                "{text}"
            );
        }
    }

    #[test]
    fn kinds_can_be_added_and_are_found_by_name() -> Result<(), TensorError> {
        let tpu = DeviceKind::add("tpu_of_a_test", false)?;
        assert!(!tpu.is_host());
        assert_eq!(tpu.name(), "tpu_of_a_test");
        assert_eq!("tpu_of_a_test(2)".parse(), Ok(Device::new(tpu, 2)));
        assert_eq!(Device::new(tpu, 2).to_string(), "tpu_of_a_test(2)");
        assert!(DeviceKind::all().any(|kind| kind == tpu));
        for name in ["cpu", "tpu_of_a_test", "", "a(b)"] {
            assert!(DeviceKind::add(name, true).is_err(), "{name}");
        }
        Ok(())
    }
}
