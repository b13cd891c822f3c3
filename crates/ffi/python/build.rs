//! Refuses to build for a Python without the interpreter's lock, with the reason.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let python = pyo3_build_config::get();
    if python.is_free_threaded() {
        eprintln!(
            "error: Python {} is free-threaded, and the contents of array objects are guarded by the interpreter's lock alone\n\
             hint: build for a Python with that lock; PYO3_PYTHON names its interpreter",
            python.version()
        );
        std::process::exit(1);
    }
}
