//! Generates the wire types and services without a system protoc.

use std::path::PathBuf;

use prost::Message as _;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let files =
        ["holdfast/v1/work.proto", "holdfast/v1/agent.proto", "holdfast/v1/operator.proto", "holdfast/v1/enroll.proto"];
    println!("cargo:rerun-if-changed=holdfast");
    let descriptors = protox::compile(files, ["."])?;
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?);
    std::fs::write(out.join("holdfast.bin"), descriptors.encode_to_vec())?;
    tonic_prost_build::configure().compile_fds(descriptors)?;
    Ok(())
}
