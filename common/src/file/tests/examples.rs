//! The examples that people copy from are valid in this version.

use super::*;
use crate::adapter::{Enforce, Inspect};

macro_rules! example {
    ($name:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/", $name))
    };
}

#[test]
fn the_shop_parses_and_resolves() {
    let shop = target(example!("shop.target.toml"));
    let file = file(example!("shop.deploy.toml"));
    file.check().expect("valid without its target");
    let inputs = given(&[("archive", "/var/tmp/site-v1.tar.gz"), ("sha256", SHA), ("revision", "v1")]);
    let spec = file.resolve(&inputs, None, &shop).expect("valid");
    let names: Vec<&str> = spec.steps.iter().map(|step| step.name.as_str()).collect();
    assert_eq!(names, ["look", "switch"]);
    let proof = spec.steps[1].capability(&shop.resources[0]);
    assert_eq!((proof.inspect, proof.enforce, proof.outlives), (Inspect::Operation, Enforce::Fence, false));
}

#[test]
fn the_cache_parses_and_resolves_with_its_defaults() {
    let cache = target(example!("cache.target.toml"));
    let file = file(example!("cache.deploy.toml"));
    file.check().expect("valid without its target");
    let spec = file.resolve(&given(&[]), None, &cache).expect("valid");
    assert_eq!(spec.inputs, given(&[("mode", "warm"), ("seconds", "20")]));
    let proof = spec.steps[0].capability(&cache.resources[0]);
    assert_eq!((proof.inspect, proof.enforce, proof.outlives), (Inspect::None, Enforce::None, false));
}

#[test]
fn the_uploaded_shop_parses_resolves_and_names_its_upload() {
    let shop = target(example!("shop.target.toml"));
    let file = file(example!("shop-upload.deploy.toml"));
    file.check().expect("valid without its target");
    let inputs = given(&[("sha256", SHA), ("revision", "v1")]);
    file.resolve(&inputs, None, &shop).expect("valid");
    assert_eq!(file.uploads(&inputs), [("dist/site-v1.tar.zst".to_owned(), SHA.to_owned())].into());
    assert!(file.uploads(&given(&[])).is_empty(), "nothing is known without the inputs");
}
