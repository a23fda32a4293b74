//! Each row of the table, and what paths and users come to.

use std::path::{Path, PathBuf};

use holdfast_common::adapter::Adapter;
use holdfast_common::id::{ResourceName, TargetName};
use holdfast_common::spec::{Reach, ResourceAdapter, ResourceSpec, StepEffect};

use super::{Ask, Program, Rule, Rules, User, judge, place, program};
use crate::config::{Policy, Resource};

fn site(root: &str) -> ResourceSpec {
    ResourceSpec {
        name: ResourceName::new("site").unwrap(),
        reach: Reach::Host,
        adapter: ResourceAdapter::Release { root: root.to_owned(), retain: 2 },
    }
}

fn rule(target: &str, adapter: &str, root: Option<&str>) -> Resource {
    Resource {
        target: target.to_owned(),
        name: "site".to_owned(),
        adapter: adapter.to_owned(),
        root: root.map(PathBuf::from),
        at: None,
        user: None,
        inspect_user: None,
        credentials: crate::config::CredentialSets::default(),
    }
}

/// The rule that refuses, or `None`.
fn refused(
    policy: &Policy,
    resources: &[Resource],
    commands: &[&str],
    change: impl FnOnce(&mut Ask<'_>),
) -> Option<Rule> {
    let (target, spec) = (TargetName::new("shop@prod").unwrap(), site("/no/such/shop"));
    let commands: Vec<String> = commands.iter().map(|pattern| (*pattern).to_owned()).collect();
    let mut ask = Ask {
        target: &target,
        adapter: Adapter::Release,
        effect: StepEffect::Mutates,
        resource: Some(&spec),
        root: Some(PathBuf::from("/no/such/shop")),
        places: super::at::places(&spec),
        programs: Vec::new(),
    };
    change(&mut ask);
    judge(Rules { policy, resources, commands: &commands }, &ask).err().map(|refusal| refusal.rule)
}

#[test]
fn each_rule_refuses_what_it_does_not_list() {
    let open = Policy::default();
    let none = |_: &mut Ask<'_>| {};
    assert_eq!(refused(&open, &[], &[], none), None);
    let targets =
        |list: &[&str]| Policy { targets: list.iter().map(|name| (*name).to_owned()).collect(), ..open.clone() };
    assert_eq!(refused(&targets(&["shop@*"]), &[], &[], none), None);
    assert_eq!(refused(&targets(&["shop@test"]), &[], &[], none), Some(Rule::Targets));
    let commands_only = Policy { adapters: ["command".to_owned()].into(), ..open.clone() };
    assert_eq!(refused(&commands_only, &[], &[], none), Some(Rule::Adapters));
    assert_eq!(refused(&Policy { adapters: [].into(), ..open.clone() }, &[], &[], none), Some(Rule::Adapters));
    let below = [rule("shop@*", "release", Some("/no/such"))];
    assert_eq!(refused(&open, &below, &[], none), None);
    assert_eq!(refused(&open, &[rule("other", "release", None)], &[], none), Some(Rule::Resource));
    assert_eq!(refused(&open, &[rule("shop@prod", "command", None)], &[], none), Some(Rule::Resource));
    for outside in ["/no", "/no/suchlike", "/no/such/../other"] {
        let ask = |ask: &mut Ask<'_>| ask.root = Some(PathBuf::from(outside));
        assert_eq!(refused(&open, &below, &[], ask), Some(Rule::Root), "{outside}");
    }
    let runs = |path: &'static str| move |ask: &mut Ask<'_>| ask.programs = vec![Program::At(PathBuf::from(path))];
    assert_eq!(refused(&open, &[], &["/usr/bin/*"], runs("/usr/bin/rsync")), None);
    assert_eq!(refused(&open, &[], &["/usr/bin/*"], runs("/usr/sbin/mkfs")), Some(Rule::Commands));
    assert_eq!(refused(&open, &[], &["/usr/bin/rsync"], runs("/usr/bin/rsync2")), Some(Rule::Commands));
}

#[test]
fn the_first_rule_that_is_said_of_a_resource_counts() {
    let rules = [rule("shop@prod", "release", Some("/no/such/shop")), rule("shop@*", "release", None)];
    let outside = |ask: &mut Ask<'_>| ask.root = Some(PathBuf::from("/elsewhere"));
    assert_eq!(refused(&Policy::default(), &rules, &[], outside), Some(Rule::Root));
}

#[test]
fn where_resources_are_declared_nothing_changes_without_one() {
    let rules = [rule("shop@prod", "release", None)];
    let change = |ask: &mut Ask<'_>| ask.resource = None;
    assert_eq!(refused(&Policy::default(), &rules, &[], change), Some(Rule::Resource));
    let look = |ask: &mut Ask<'_>| (ask.resource, ask.effect) = (None, StepEffect::None);
    assert_eq!(refused(&Policy::default(), &rules, &[], look), None);
}

#[test]
fn a_link_does_not_lead_past_a_rule() {
    let folder = std::env::temp_dir().join(format!("holdfast-policy-{}", uuid::Uuid::new_v4()));
    std::fs::create_dir_all(folder.join("allowed")).unwrap();
    let folder = folder.canonicalize().unwrap();
    std::os::unix::fs::symlink("/bin/sh", folder.join("allowed/tool")).unwrap();
    std::os::unix::fs::symlink(&folder, folder.join("allowed/up")).unwrap();
    let shell = Path::new("/bin/sh").canonicalize().unwrap();
    let tool = folder.join("allowed/tool");
    assert_eq!(program::find(tool.to_str().unwrap(), "", Path::new("/")), Program::At(shell.clone()));
    assert_eq!(program::find("tool", folder.join("allowed").to_str().unwrap(), Path::new("/")), Program::At(shell));
    assert_eq!(
        program::find("../bin/no-such", "/bin", Path::new("/usr")),
        Program::Missing("../bin/no-such".to_owned())
    );
    assert_eq!(place::real(&folder.join("allowed/up/new/site")), folder.join("new/site"));
    assert_eq!(place::real_pattern("/bin/sh"), Path::new("/bin/sh").canonicalize().unwrap().to_str().unwrap());
    let pattern = format!("{}/allowed/up/b*", folder.display());
    assert_eq!(place::real_pattern(&pattern), format!("{}/b*", folder.display()));
    assert_eq!(place::real_pattern("/*"), "/*");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn users_are_found_by_name_or_by_numbers() {
    let passwd = "root:x:0:0:root:/root:/bin/sh\nshop:x:1000:1000:The shop,,,:/home/shop:/bin/bash\nbroken\n";
    let group = "root:x:0:\nweb:x:33:mail,shop\nshop:x:1000:shop\n";
    let shop = User::listed("shop", passwd, group).unwrap();
    assert_eq!((shop.uid, shop.gid, shop.groups.as_slice(), shop.home.as_str()), (1000, 1000, &[33][..], "/home/shop"));
    let numbers = User::listed("4242:4343", passwd, group).unwrap();
    assert_eq!((numbers.uid, numbers.gid, numbers.groups.len(), numbers.name.as_str()), (4242, 4343, 0, "4242"));
    for unknown in ["nobody-here", "4242", "-1:0", "a:b", ""] {
        assert!(User::listed(unknown, passwd, group).is_err(), "{unknown}");
    }
}
