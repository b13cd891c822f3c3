//! Features of this build and of the machine, and the devices that arrays can be on.

use mxnet_core::{Error, Result};
use mxnet_tensor::{Device, DeviceKind};

/// Registers the devices of this build. Libraries are loaded when a device is first used.
pub(crate) fn register_devices() -> Result<()> {
    #[cfg(feature = "cuda")]
    mxnet_cuda::register()?;
    Ok(())
}

/// Features of this build and of the processor: name, and whether it is there.
///
/// ```
/// let features = mxnet::runtime::features();
/// assert!(features.contains(&("SAFETENSORS", true)));
/// ```
pub fn features() -> Vec<(&'static str, bool)> {
    #[cfg(target_arch = "x86_64")]
    let (sse, sse4_2, avx, avx2, avx512) = (
        std::is_x86_feature_detected!("sse"),
        std::is_x86_feature_detected!("sse4.2"),
        std::is_x86_feature_detected!("avx"),
        std::is_x86_feature_detected!("avx2"),
        std::is_x86_feature_detected!("avx512f"),
    );
    #[cfg(not(target_arch = "x86_64"))]
    let (sse, sse4_2, avx, avx2, avx512) = (false, false, false, false, false);
    vec![
        ("CUDA", num_devices("gpu").is_ok_and(|count| count > 0)),
        // NVIDIA's libraries of kernels and of communication are not called.
        ("CUDNN", false),
        ("NCCL", false),
        ("CPU_SSE", sse),
        ("CPU_SSE4_2", sse4_2),
        ("CPU_AVX", avx),
        ("CPU_AVX2", avx2),
        ("CPU_AVX512", avx512),
        ("CPU_NEON", cfg!(target_arch = "aarch64")),
        ("INT64_TENSOR_SIZE", true),
        ("IMAGE_JPEG", cfg!(feature = "image")),
        ("IMAGE_PNG", cfg!(feature = "image")),
        ("SAFETENSORS", true),
        ("SIMULATED_DEVICE", cfg!(feature = "simulated")),
        ("DEBUG", cfg!(debug_assertions)),
    ]
}

/// The number of devices of a kind: `"cpu"`, `"gpu"`, or one that a module added.
///
/// ```
/// assert_eq!(mxnet::runtime::num_devices("cpu")?, 1);
/// assert!(mxnet::runtime::num_devices("moon").is_err());
/// # Ok::<(), mxnet::Error>(())
/// ```
///
/// # Errors
/// [`Error::Device`] if there is no such kind.
pub fn num_devices(kind: &str) -> Result<usize> {
    register_devices()?;
    let found = DeviceKind::find(kind);
    let found = found.ok_or_else(|| {
        let known: Vec<&str> = DeviceKind::all().map(DeviceKind::name).collect();
        let problem = format!("there is no kind of device '{kind}'");
        Error::device("num_devices", problem).with_hint(format!("one of {}", known.join(", ")))
    })?;
    Ok(mxnet_tensor::num_devices(found))
}

/// Free memory and all memory of a device, in bytes.
///
/// ```
/// use mxnet::{Device, runtime};
///
/// let (free, total) = runtime::device_memory(Device::cpu(0))?;
/// assert!(free <= total);
/// # Ok::<(), mxnet::Error>(())
/// ```
///
/// # Errors
/// [`Error::Device`] if the device does not exist.
pub fn device_memory(device: Device) -> Result<(usize, usize)> {
    register_devices()?;
    let memory = mxnet_tensor::backend_of(device)?.memory(device.id());
    Ok((memory.free, memory.total))
}
