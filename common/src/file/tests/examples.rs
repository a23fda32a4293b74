//! The examples that people copy from are valid in this version.

use super::*;
use crate::adapter::{Enforce, Inspect};
use crate::rollback::{DataEffect, DataRecovery, Way};

macro_rules! example {
    ($name:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/", $name))
    };
}

#[test]
fn the_shop_parses_and_resolves() {
    let shop = target(example!("shop.target.toml"));
    let file = file(example!("shop.deploy.toml"));
    file.check(&given(&[])).expect("valid without its target");
    let inputs = given(&[("archive", "/var/tmp/site-v1.tar.gz"), ("sha256", SHA), ("revision", "v1")]);
    let spec = file.resolve(&inputs, None, &shop).expect("valid");
    let names: Vec<&str> = spec.steps.iter().map(|step| step.name.as_str()).collect();
    assert_eq!(names, ["look", "switch", "serves"]);
    let proof = spec.steps[1].capability(&shop.resources[0]);
    assert_eq!((proof.inspect, proof.enforce, proof.outlives), (Inspect::Operation, Enforce::Fence, false));
    assert_eq!(spec.rollback.map(|rollback| rollback.way), Some(Way::PreviousRevision));
}

#[test]
fn the_cache_parses_and_resolves_with_its_defaults() {
    let cache = target(example!("cache.target.toml"));
    let file = file(example!("cache.deploy.toml"));
    file.check(&given(&[])).expect("valid without its target");
    let spec = file.resolve(&given(&[]), None, &cache).expect("valid");
    assert_eq!(spec.inputs, given(&[("mode", "warm"), ("seconds", "20")]));
    let proof = spec.steps[0].capability(&cache.resources[0]);
    assert_eq!((proof.inspect, proof.enforce, proof.outlives), (Inspect::None, Enforce::None, false));
}

#[test]
fn the_uploaded_shop_parses_resolves_and_names_its_upload() {
    let shop = target(example!("shop.target.toml"));
    let file = file(example!("shop-upload.deploy.toml"));
    file.check(&given(&[])).expect("valid without its target");
    let inputs = given(&[("sha256", SHA), ("revision", "v1")]);
    file.resolve(&inputs, None, &shop).expect("valid");
    assert_eq!(file.uploads(&inputs), [("dist/site-v1.tar.zst".to_owned(), SHA.to_owned())].into());
    assert!(file.uploads(&given(&[])).is_empty(), "nothing is known without the inputs");
}

#[test]
fn the_orders_parse_and_resolve_with_their_ways_back() {
    let orders = target(example!("orders.target.toml"));
    let tested = "snapshot before-0043 restored on staging in 11 minutes, drill of 2026-11-20".to_owned();
    for (text, data, recovery, steps) in [
        (example!("orders-expand.deploy.toml"), DataEffect::Expand, DataRecovery::ExpandContract, 1),
        (example!("orders-contract.deploy.toml"), DataEffect::Contract, DataRecovery::ExpandContract, 1),
        (example!("orders-restore.deploy.toml"), DataEffect::Destructive, DataRecovery::Restore { tested }, 3),
    ] {
        let file = file(text);
        file.check(&given(&[])).expect("valid without its target");
        let spec = file.resolve(&given(&[("image", "2"), ("previous", "1")]), None, &orders).expect("valid");
        assert_eq!(spec.steps.iter().filter(|step| step.data == data).count(), 1);
        let rollback = spec.rollback.expect("declared");
        assert_eq!(rollback.recovery, recovery);
        assert!(matches!(rollback.way, Way::Steps { steps: own } if own.len() == steps));
    }
}

#[test]
fn a_destructive_migration_that_merely_starts_the_previous_image_is_refused() {
    let text = example!("refused/destructive-migration.toml");
    let errors = refusal(text);
    let error = only(&errors);
    assert_eq!((error.code, error.key.as_deref()), (Code::DataDestroyed, Some("step[1].data")), "{error}");
    assert!(error.message.contains("the step \"migrate\" destroys data of \"db\""), "{error}");
    assert!(error.message.contains("starting the previous image does not bring the data back"), "{error}");
    // However it says that nothing needs to be recovered, and with no way back at all.
    let (forward, _) = text.split_once("[[rollback.step]]").expect("it has one");
    for recovery in ["none-needed", "expand-contract"] {
        let claimed =
            text.replace("[[rollback.step]]", &format!("[rollback]\ndata_recovery = {recovery:?}\n[[rollback.step]]"));
        assert_eq!(only(&refusal(&claimed)).code, Code::DataDestroyed, "{recovery}");
    }
    assert_eq!(only(&refusal(forward)).code, Code::DataDestroyed);
}
