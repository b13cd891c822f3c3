//! Devices: names and numbers. What a device can do is in `backend.rs`.

use std::fmt;
use std::str::FromStr;

use crate::error::{DeviceError, TensorError};

/// Kind of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum DeviceKind {
    /// Main memory.
    Cpu,
    /// Main memory that a GPU copies from and to without staging.
    CpuPinned,
    /// Main memory that several processes see.
    CpuShared,
    /// A GPU's memory.
    Gpu,
}

impl DeviceKind {
    /// Number of kinds; tables indexed by `DeviceKind as usize` have this length.
    pub const COUNT: usize = 4;

    /// Every kind.
    pub const ALL: [DeviceKind; DeviceKind::COUNT] = [
        DeviceKind::Cpu,
        DeviceKind::CpuPinned,
        DeviceKind::CpuShared,
        DeviceKind::Gpu,
    ];

    /// MXNet's name, such as `"cpu_pinned"`.
    pub const fn name(self) -> &'static str {
        match self {
            DeviceKind::Cpu => "cpu",
            DeviceKind::CpuPinned => "cpu_pinned",
            DeviceKind::CpuShared => "cpu_shared",
            DeviceKind::Gpu => "gpu",
        }
    }

    /// Whether the CPU reads and writes this memory directly.
    #[inline]
    pub const fn is_host(self) -> bool {
        !matches!(self, DeviceKind::Gpu)
    }
}

impl fmt::Display for DeviceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// One device of the process. Naming a device does not touch it.
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

    /// `cpu(id)`. All numbers name the same memory; they are kept for display and comparison.
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

    /// Whether the CPU reads and writes this memory directly.
    #[inline]
    pub const fn is_host(self) -> bool {
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

    /// Reads `"cpu"`, `"gpu(1)"` and `"gpu:1"`; without a number it is 0.
    ///
    /// # Errors
    ///
    /// `Device` when the text has another form.
    fn from_str(text: &str) -> Result<Device, TensorError> {
        let parsed = || {
            let (name, id) = if let Some((name, rest)) = text.split_once('(') {
                (name, rest.strip_suffix(')')?)
            } else if let Some((name, id)) = text.split_once(':') {
                (name, id)
            } else {
                (text, "0")
            };
            let kind = DeviceKind::ALL
                .into_iter()
                .find(|kind| kind.name() == name)?;
            // `parse` alone would take a sign.
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
}
