use super::*;
use crate::recovery::Policy;
use crate::spec::{QueueKind, Reach, ResourceAdapter};

fn refused(text: &str) -> Errors {
    match TargetFile::parse(text) {
        Ok(_) => panic!("was taken:\n{text}"),
        Err(errors) => errors,
    }
}

/// `TARGET` with one line replaced. Its lines count from 2.
fn changed(from: &str, to: &str) -> String {
    assert!(TARGET.contains(from), "{from}");
    TARGET.replace(from, to)
}

#[test]
fn a_target_is_read_with_its_defaults() {
    let shop = target(TARGET);
    assert_eq!((shop.name.as_str(), shop.policy), ("shop@prod", Policy::WhenProven));
    assert_eq!(shop.agents, given(&[("role", "shop")]));
    assert_eq!(shop.resources[0].adapter, ResourceAdapter::Release { root: "/srv/shop".to_owned(), retain: 5 });
    let cache = &target(TWO_RESOURCES).resources[1];
    let inspect = Some(vec!["cat".to_owned(), "/srv/revision".to_owned()]);
    assert_eq!((cache.reach, &cache.adapter), (Reach::Shared, &ResourceAdapter::Command { inspect, outlives: false }));
    let bare = changed("adapter = \"release\"", "adapter = \"command\"").replace("with = { root = \"/srv/shop\" }", "");
    assert_eq!(target(&bare).resources[0].adapter, ResourceAdapter::Command { inspect: None, outlives: true });
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    for (from, to, code, place, key) in [
        ("name = \"shop@prod\"", "name = \"shop prod\"", Code::InvalidValue, "3:8", "name"),
        ("name = \"shop@prod\"", "", Code::MissingKey, "1:1", ""),
        ("{ role = \"shop\" }", "{ }", Code::InvalidValue, "4:1", "agents"),
        ("{ role = \"shop\" }", "{ role = \"\" }", Code::InvalidValue, "4:19", "agents.role"),
        ("{ role = \"shop\" }", "{ \"\" = \"shop\" }", Code::InvalidValue, "4:12", "agents"),
        ("{ role = \"shop\" }", "{ role = 1 }", Code::InvalidValue, "4:19", "agents.role"),
        ("reach = \"host\"", "reach = \"hosts\"", Code::InvalidValue, "8:9", "resource[0].reach"),
        ("reach = \"host\"", "", Code::MissingKey, "5:1", "resource[0]"),
        ("adapter = \"release\"", "adapter = \"relese\"", Code::InvalidValue, "7:11", "resource[0].adapter"),
        ("{ root = \"/srv/shop\" }", "{ retain = 5 }", Code::MissingKey, "9:1", "resource[0].with"),
        (
            "{ root = \"/srv/shop\" }",
            "{ root = \"/a\", retain = -1 }",
            Code::InvalidValue,
            "9:32",
            "resource[0].with.retain",
        ),
        (
            "{ root = \"/srv/shop\" }",
            "{ root = \"/a\", retian = 1 }",
            Code::UnknownKey,
            "9:23",
            "resource[0].with.retian",
        ),
        ("[[resource]]", "queue = \"lifo\"\n[[resource]]", Code::InvalidValue, "5:9", "queue"),
        ("[[resource]]", "approval.people = 2\n[[resource]]", Code::NotSupported, "5:10", "approval.people"),
        (
            "[[resource]]",
            "reconcile = { policy = \"manual\", patience = \"5m\" }\n[[resource]]",
            Code::InvalidValue,
            "5:34",
            "reconcile.patience",
        ),
    ] {
        is(only(&refused(&changed(from, to))), code, place, key, "");
    }
    let harmless = changed(
        "[[resource]]",
        "queue = \"fifo\"\napproval.people = 0\nreconcile.policy = \"when-proven\"\n[[resource]]",
    );
    assert_eq!(target(&harmless), target(TARGET));
    let latest = target(&changed("[[resource]]", "queue = \"latest\"\n[[resource]]"));
    assert_eq!((latest.queue, target(TARGET).queue), (QueueKind::Latest, QueueKind::Fifo));
}

#[test]
fn roots_are_absolute_and_plain() {
    for root in [
        "",
        "/",
        "srv/shop",
        "/srv/../etc",
        "/srv//shop",
        "/srv/shop/",
        "/srv/./shop",
        "~/shop",
        "/srv/a\\nb",
        "/srv/${inputs.x}",
    ] {
        let errors = refused(&changed("/srv/shop", root));
        is(only(&errors), Code::InvalidValue, "9:17", "resource[0].with.root", "");
    }
}

#[test]
fn resources_share_neither_name_nor_folder() {
    let second = |name: &str, root: &str| {
        format!(
            "{TARGET}[[resource]]\nname = \"{name}\"\nadapter = \"release\"\nreach = \"host\"\nwith.root = \"{root}\"\n"
        )
    };
    target(&second("docs", "/srv/shop-docs"));
    is(only(&refused(&second("site", "/srv/docs"))), Code::InvalidValue, "10:1", "resource[1]", "taken");
    for root in ["/srv/shop", "/srv/shop/docs", "/srv"] {
        is(only(&refused(&second("docs", root))), Code::InvalidValue, "10:1", "resource[1]", "in the hands of");
    }
}

#[test]
fn a_deployment_file_is_recognised() {
    let text = refused(&step("")).to_string();
    assert!(text.contains("the key \"step\" belongs into a deployment file"), "{text}");
    assert!(!text.contains("is required"), "{text}");
}
