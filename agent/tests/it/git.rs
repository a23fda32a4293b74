//! Git repositories, changed by the real adapter: over a path, and over HTTP.

pub(crate) mod remote;
pub(crate) mod server;

use std::process::{Child, Command};
use std::sync::atomic::Ordering;

use holdfast_agent::adapters::system::Operation;
use holdfast_common::outcome::OperationState;
use holdfast_common::system::{Archive, Change, Commit};

use crate::support::{self, Paused, fence, operation, resume, wait_for_pause};
use remote::{Bare, Resource, change, exit, expecting, files, git, said, succeeds};
use server::Server;

const LEDGER: &str = "refs/holdfast/shop@prod/site";
const CALLS: [&str; 5] = ["fetch", "read", "commit", "push", "pushed"];

fn stopped(mut command: Command, call: &str) -> Child {
    let child = command.env("HOLDFAST_HALT", format!("apply.{call}=stop")).spawn().unwrap();
    assert_eq!(wait_for_pause(&child), Paused::Stopped);
    child
}

fn goes_on(child: Child) -> (i32, String) {
    resume(&child);
    let output = child.wait_with_output().unwrap();
    (output.status.code().unwrap(), said(&output))
}

fn commit_of(operation: &mut Operation) -> &mut Commit {
    let Some(Change::Commit(commit)) = &mut operation.change else { panic!("no commit") };
    commit
}

#[test]
fn a_change_is_one_commit_on_each_branch_with_its_trailers_and_leaves_the_rest_alone() {
    let bare = Bare::new(&["main", "live"]);
    let shop = Resource::of(&bare, &["main", "live"], "apps/shop");
    succeeds(&mut shop.examine(change(1)));
    assert!(!bare.refs().contains("refs/holdfast"), "a look changes nothing");
    assert_eq!(succeeds(&mut shop.apply(change(1), fence(1))), "applied");
    for branch in ["main", "live"] {
        assert_eq!(bare.file(branch, "apps/shop/index.html").as_deref(), Some("v1"));
        assert_eq!(bare.file(branch, "apps/shop/old.txt").as_deref(), Some("old\n"));
        assert_eq!(bare.file(branch, "README").as_deref(), Some("by hand\n"));
        let trailers = bare.git(&["log", "-1", "--format=%(trailers:only)", branch, "--"]);
        let number = fence(1).as_u64();
        let (id, deployment) = (operation(1), operation(1).deployment);
        assert_eq!(
            trailers.trim_end(),
            format!(
                "Holdfast-Operation: {id}\nHoldfast-Fence: {number}\nHoldfast-Deployment: {deployment}\nHoldfast-Revision: v1"
            )
        );
    }
    let reading = shop.inspect(1);
    assert_eq!((reading.state, reading.revision.as_ref().unwrap().as_str()), (OperationState::Applied, "v1"));
    assert_eq!((reading.highest_fence, reading.active), (Some(fence(1)), None));
    assert_eq!(shop.inspect(2).state, OperationState::NotApplied);
    assert_eq!(
        bare.git(&["log", "-1", "--format=%T", LEDGER]),
        git(&bare.path, &["hash-object", "-t", "tree", "/dev/null"])
    );
    // The same again, under its own fence and under a later one.
    let before = bare.refs();
    for again in [fence(1), fence(2)] {
        assert_eq!(succeeds(&mut shop.apply(change(1), again)), "applied before, nothing changed");
    }
    assert_eq!(bare.refs(), before);
    // Files that are so already make a commit all the same: the operation is in the ledger.
    succeeds(&mut shop.apply(files(2, &[("index.html", "v1")]), fence(3)));
    assert_eq!(bare.underwent("main"), ["v1", "v2"]);
    assert_eq!(shop.inspect(2).state, OperationState::Applied);
}

#[test]
fn an_archive_and_files_are_put_in_place_and_without_keep_nothing_else_stays() {
    let bare = Bare::new(&["main"]);
    let shop = Resource::of(&bare, &["main"], "apps/shop");
    let (path, sha256) = support::archive(&bare.folder.0, "from the archive");
    let mut both = files(1, &[("conf/app.toml", "[app]\n")]);
    commit_of(&mut both).archive = Some(Archive { archive: "unused".to_owned(), sha256: sha256.clone() });
    succeeds(&mut shop.apply_archive(both.clone(), fence(1), Some(path.clone())));
    assert_eq!(bare.file("main", "apps/shop/index.html").as_deref(), Some("from the archive"));
    assert_eq!(bare.file("main", "apps/shop/conf/app.toml").as_deref(), Some("[app]\n"));
    assert!(bare.file("main", "apps/shop/old.txt").is_some());
    both.id = operation(2);
    commit_of(&mut both).keep = false;
    commit_of(&mut both).files = [("index.html".to_owned(), "the step's own".to_owned())].into();
    succeeds(&mut shop.apply_archive(both.clone(), fence(2), Some(path.clone())));
    assert_eq!(bare.git(&["ls-tree", "-r", "--name-only", "main", "apps/"]), "apps/shop/index.html");
    assert_eq!(bare.file("main", "apps/shop/index.html").as_deref(), Some("the step's own"));
    assert!(bare.file("main", "README").is_some());
    // Another archive than the one that was declared.
    both.id = operation(3);
    commit_of(&mut both).archive = Some(Archive { archive: "unused".to_owned(), sha256: "0".repeat(64) });
    let before = bare.refs();
    let (status, said) = exit(&mut shop.apply_archive(both, fence(3), Some(path)));
    assert_eq!((status, bare.refs()), (65, before), "{said}");
}

#[test]
fn an_empty_repository_gets_its_first_commit() {
    let bare = Bare::empty();
    let shop = Resource::of(&bare, &["main"], "");
    succeeds(&mut shop.examine(change(1)));
    succeeds(&mut shop.apply(change(1), fence(1)));
    assert_eq!(bare.file("main", "index.html").as_deref(), Some("v1"));
    assert_eq!(bare.git(&["rev-list", "--count", "main"]), "1");
    assert_eq!(shop.inspect(1).state, OperationState::Applied);
}

#[test]
fn a_repository_that_counts_by_sha256_is_one_like_any_other() {
    let bare = Bare::of_format("sha256");
    bare.commit("main", &[("README", "by hand\n")]);
    let shop = Resource::of(&bare, &["main"], "apps/shop");
    succeeds(&mut shop.examine(change(1)));
    succeeds(&mut shop.apply(change(1), fence(1)));
    assert_eq!(shop.raise(fence(2)).highest_fence, Some(fence(2)));
    let reading = shop.inspect(1);
    assert_eq!((reading.state, reading.revision.unwrap().as_str()), (OperationState::Applied, "v1"));
}

#[test]
fn a_stale_fence_is_refused_and_a_raise_is_repeatable_and_never_goes_down() {
    let bare = Bare::new(&["main"]);
    let shop = Resource::of(&bare, &["main"], "apps/shop");
    let first = shop.raise(fence(5));
    assert_eq!((first.highest_fence, first.state), (Some(fence(5)), OperationState::NotApplied));
    let before = bare.refs();
    for again in [fence(5), fence(2)] {
        let reading = shop.raise(again);
        assert_eq!((reading.highest_fence, &reading.resource_identity), (Some(fence(5)), &first.resource_identity));
    }
    for stale in [fence(4), fence(5)] {
        let (status, said) = exit(&mut shop.apply(change(1), stale));
        assert_eq!((status, said.contains("the highest seen is 1.5")), (73, true), "{said}");
    }
    assert_eq!(bare.refs(), before);
    succeeds(&mut shop.apply(change(1), fence(6)));
    assert_eq!(shop.inspect(1).resource_identity, first.resource_identity);
    assert_eq!(exit(&mut shop.apply(change(2), fence(6))).0, 73, "another deployment under the same fence");
    let mut second = change(1);
    second.id.step = holdfast_common::id::StepName::new("second").unwrap();
    succeeds(&mut shop.apply(second, fence(6)));
}

#[test]
fn whoever_stands_still_right_before_the_push_is_refused_after_a_raise() {
    for call in ["read", "commit", "push"] {
        let bare = Bare::new(&["main", "live"]);
        let shop = Resource::of(&bare, &["main", "live"], "apps/shop");
        let frozen = stopped(shop.apply(change(1), fence(1)), call);
        let reading = shop.raise(fence(2));
        assert_eq!((reading.highest_fence, reading.state), (Some(fence(2)), OperationState::NotApplied));
        let before = bare.refs();
        let (status, said) = goes_on(frozen);
        assert_eq!((status, bare.refs()), (73, before), "{call}: {said}");
        assert_eq!(bare.underwent("main"), [""; 0]);
    }
}

#[test]
fn a_crash_anywhere_leaves_nothing_or_all_of_it_and_the_next_try_goes_well() {
    for call in CALLS {
        let bare = Bare::new(&["main", "live"]);
        let shop = Resource::of(&bare, &["main", "live"], "apps/shop");
        let before = bare.refs();
        let mut crashing = shop.apply(change(1), fence(1));
        let output = crashing.env("HOLDFAST_HALT", format!("apply.{call}=abort")).output().unwrap();
        assert!(output.status.code().is_none(), "{call}");
        std::fs::create_dir_all(shop.cache.join("0.git/stage-of-a-crash")).unwrap();
        if call == "pushed" {
            assert_eq!(shop.inspect(1).state, OperationState::Applied);
        } else {
            assert_eq!(bare.refs(), before, "{call}");
        }
        succeeds(&mut shop.apply(change(1), fence(2)));
        for branch in ["main", "live"] {
            assert_eq!(bare.underwent(branch), ["v1"], "{call}");
        }
        assert!(!shop.cache.join("0.git/stage-of-a-crash").exists());
    }
}

#[test]
fn of_two_agents_at_once_that_expect_the_same_exactly_one_is_first() {
    let bare = Bare::new(&["main"]);
    let shop = Resource::of(&bare, &["main"], "apps/shop");
    succeeds(&mut shop.apply(change(1), fence(1)));
    let other = Resource { cache: bare.folder.0.join("other-cache"), ..shop.clone() };
    let one = stopped(shop.apply(expecting(change(2), "v1"), fence(2)), "push");
    let two = stopped(other.apply(expecting(change(3), "v1"), fence(3)), "push");
    resume(&one);
    resume(&two);
    let ends = [one, two].map(|child| child.wait_with_output().unwrap());
    let statuses = ends.each_ref().map(|output| output.status.code().unwrap());
    let told = ends.each_ref().map(said);
    assert_eq!(statuses.iter().filter(|status| **status == 0).count(), 1, "{told:?}");
    assert!(statuses.iter().any(|status| [73, 74].contains(status)), "{statuses:?} {told:?}");
    let winner = if statuses[0] == 0 { "v2" } else { "v3" };
    assert_eq!(bare.underwent("main"), ["v1", winner]);
}

#[test]
fn many_agents_at_once_each_take_effect_once_in_the_order_of_their_fences() {
    let bare = Bare::new(&["main", "live"]);
    let shop = Resource::of(&bare, &["main", "live"], "apps/shop");
    let children: Vec<Child> =
        (1..=4).map(|number| shop.apply(change(u128::from(number)), fence(number)).spawn().unwrap()).collect();
    let ends: Vec<_> = children.into_iter().map(|child| child.wait_with_output().unwrap()).collect();
    let statuses: Vec<i32> = ends.iter().map(|output| output.status.code().unwrap()).collect();
    assert!(statuses.iter().all(|status| [0, 73].contains(status)), "{:?}", ends.iter().map(said).collect::<Vec<_>>());
    let applied: Vec<String> =
        (1..=4).filter(|number| statuses[number - 1] == 0).map(|number| format!("v{number}")).collect();
    assert_eq!(statuses[3], 0, "nothing is above the highest");
    assert_eq!(bare.underwent("main"), applied);
    assert_eq!(bare.underwent("live"), applied);
}

#[test]
fn somebodys_commit_outside_the_folder_changes_nothing_and_is_never_lost() {
    let bare = Bare::new(&["main"]);
    let shop = Resource::of(&bare, &["main"], "apps/shop");
    succeeds(&mut shop.apply(change(1), fence(1)));
    bare.commit("main", &[("apps/other/x", "x"), ("README", "changed\n")]);
    let reading = shop.inspect(1);
    assert_eq!((reading.state, reading.revision.unwrap().as_str()), (OperationState::Applied, "v1"));
    // The same between reading and pushing: it is begun anew from there.
    let late = stopped(shop.apply(expecting(change(2), "v1"), fence(2)), "push");
    bare.commit("main", &[("apps/other/y", "y")]);
    let (status, said) = goes_on(late);
    assert_eq!(status, 0, "{said}");
    assert!(bare.file("main", "apps/other/x").is_some() && bare.file("main", "apps/other/y").is_some());
    assert_eq!(bare.underwent("main"), ["v1", "v2"]);
}

#[test]
fn an_edit_by_hand_inside_the_folder_is_another_revision_and_is_not_overwritten() {
    let bare = Bare::new(&["main"]);
    let shop = Resource::of(&bare, &["main"], "apps/shop");
    succeeds(&mut shop.apply(change(1), fence(1)));
    bare.commit("main", &[("apps/shop/index.html", "by hand")]);
    let reading = shop.inspect(1);
    let by_hand = format!("git:{}", bare.git(&["rev-parse", "main"]));
    assert_eq!((reading.state, reading.revision.unwrap().as_str()), (OperationState::Applied, by_hand.as_str()));
    for refused in [
        exit(&mut shop.apply(expecting(change(2), "v1"), fence(2))),
        exit(&mut shop.examine(expecting(change(2), "v1"))),
    ] {
        assert_eq!((refused.0, refused.1.contains(&by_hand)), (74, true), "{}", refused.1);
    }
    assert_eq!(bare.file("main", "apps/shop/index.html").as_deref(), Some("by hand"));
    // Whoever names it goes on from it. An edit while that stands still is refused too.
    let late = stopped(shop.apply(expecting(change(2), &by_hand), fence(2)), "push");
    bare.commit("main", &[("apps/shop/index.html", "by hand again")]);
    assert_eq!(goes_on(late).0, 74);
    assert_eq!(bare.underwent("main"), ["v1"]);
}

#[test]
fn a_branch_that_was_moved_back_makes_its_operation_partial() {
    let bare = Bare::new(&["main", "live"]);
    let shop = Resource::of(&bare, &["main", "live"], "apps/shop");
    let before = bare.git(&["rev-parse", "live"]);
    succeeds(&mut shop.apply(change(1), fence(1)));
    bare.git(&["update-ref", "refs/heads/live", &before]);
    let reading = shop.inspect(1);
    assert_eq!(reading.state, OperationState::Partial, "{}", reading.detail);
    assert!(reading.detail.contains("live does not have its commit"), "{}", reading.detail);
    assert_eq!(reading.revision.unwrap().as_str(), format!("git:{before}"));
    assert_eq!(exit(&mut shop.apply(expecting(change(2), "v1"), fence(2))).0, 74);
    succeeds(&mut shop.apply(change(2), fence(2)));
    assert_eq!(shop.inspect(2).state, OperationState::Applied);
    bare.git(&["update-ref", "-d", "refs/heads/live"]);
    let reading = shop.inspect(2);
    assert_eq!((reading.state, reading.revision), (OperationState::Partial, None));
}

#[test]
fn a_hook_that_rejects_one_branch_keeps_all_of_them_and_is_heard() {
    let bare = Bare::new(&["main", "live"]);
    let server = Server::of(&bare.folder.0);
    let mut shop = Resource::of(&bare, &["main", "live"], "apps/shop");
    shop.declared.url = server.url("remote.git");
    bare.hook("update", "[ \"$1\" = refs/heads/live ] || exit 0\nprintf 'live is \\033[31mfrozen\\n' >&2\nexit 1");
    let before = bare.refs();
    let (status, said) = exit(&mut shop.apply(change(1), fence(1)));
    assert_eq!((status, bare.refs()), (78, before), "{said}");
    assert!(said.contains("hook declined") && said.contains("live is \\u{1b}[31mfrozen"), "{said}");
    assert!(!said.contains('\u{1b}'), "{said}");
}

/// It would run as the agent's user, beside its credentials.
#[test]
fn no_hook_of_a_repository_in_a_folder_runs() {
    let bare = Bare::new(&["main"]);
    let shop = Resource::of(&bare, &["main"], "apps/shop");
    for hook in ["pre-receive", "update", "post-receive", "post-update", "reference-transaction"] {
        bare.hook(hook, "touch \"$GIT_DIR/ran\"\nexit 0");
    }
    bare.git(&["config", "core.hooksPath", "hooks"]);
    bare.git(&["config", "core.fsmonitor", "touch ran"]);
    succeeds(&mut shop.apply(change(1), fence(1)));
    assert_eq!(shop.inspect(1).state, OperationState::Applied);
    assert!(!bare.path.join("ran").exists());
}

#[test]
fn a_repository_in_a_folder_is_the_one_that_was_opened_whatever_its_name_comes_to_mean() {
    for call in ["fetch", "push"] {
        let bare = Bare::new(&["main"]);
        let shop = Resource::of(&bare, &["main"], "apps/shop");
        let (moved, other) = (bare.folder.0.join("moved.git"), bare.folder.0.join("other.git"));
        let copied = Command::new("cp").arg("-a").args([&bare.path, &other]).status().unwrap();
        assert!(copied.success());
        let before = git(&other, &["for-each-ref"]);
        let standing = stopped(shop.apply(change(1), fence(1)), call);
        std::fs::rename(&bare.path, &moved).unwrap();
        std::os::unix::fs::symlink(&other, &bare.path).unwrap();
        let (status, said) = goes_on(standing);
        assert_eq!((status, git(&other, &["for-each-ref"])), (0, before), "{call}: {said}");
        assert!(git(&moved, &["for-each-ref"]).contains(LEDGER), "{call}");
        // A call that begins now is told of the link.
        let (status, said) = exit(&mut shop.apply(change(2), fence(2)));
        assert!(status == 78 && said.contains("a link leads to it"), "{status} {said}");
        assert!(said.contains(bare.path.to_str().unwrap()), "{said}");
    }
}

#[test]
fn a_folder_that_leads_elsewhere_or_belongs_to_somebody_else_is_no_repository() {
    let bare = Bare::new(&["main"]);
    let shop = Resource::of(&bare, &["main"], "apps/shop");
    let before = bare.refs();
    std::fs::write(bare.path.join("commondir"), "../other.git\n").unwrap();
    let (status, said) = exit(&mut shop.apply(change(1), fence(1)));
    assert!(status == 78 && said.contains("leads elsewhere"), "{status} {said}");
    std::fs::remove_file(bare.path.join("commondir")).unwrap();
    std::os::unix::fs::chown(&bare.path, Some(65534), None).unwrap();
    let (status, said) = exit(&mut shop.apply(change(1), fence(1)));
    assert!(status == 78 && said.contains("belongs to user 65534"), "{status} {said}");
    std::os::unix::fs::chown(&bare.path, Some(0), None).unwrap();
    assert_eq!(bare.refs(), before);
}

#[test]
fn a_server_without_atomic_pushes_is_told_of_and_gets_nothing() {
    let bare = Bare::new(&["main"]);
    let shop = Resource::of(&bare, &["main"], "apps/shop");
    bare.git(&["config", "receive.advertiseAtomic", "false"]);
    let before = bare.refs();
    let (status, said) = exit(&mut shop.apply(change(1), fence(1)));
    assert_eq!((status, bare.refs()), (78, before), "{said}");
    assert!(said.contains("can't move several refs all at once"), "{said}");
}

#[test]
fn an_answer_that_was_lost_after_the_effect_is_not_known_and_the_look_tells() {
    let bare = Bare::new(&["main"]);
    let server = Server::of(&bare.folder.0);
    let mut shop = Resource::of(&bare, &["main"], "apps/shop");
    shop.declared.url = server.url("remote.git");
    server.ways.cuts_answers.store(true, Ordering::SeqCst);
    let (status, said) = exit(&mut shop.apply(change(1), fence(1)));
    assert_eq!((status, said.contains("is not known")), (71, true), "{said}");
    assert_eq!(shop.inspect(1).state, OperationState::Applied);
    server.ways.cuts_answers.store(false, Ordering::SeqCst);
    assert_eq!(succeeds(&mut shop.apply(change(1), fence(2))), "applied before, nothing changed");
    assert_eq!(bare.underwent("main"), ["v1"]);
}

#[test]
fn over_http_the_password_opens_and_is_shown_to_nobody() {
    let bare = Bare::new(&["main"]);
    let server = Server::of(&bare.folder.0);
    server.ways.locked.store(true, Ordering::SeqCst);
    let mut shop = Resource::of(&bare, &["main"], "apps/shop");
    shop.declared.url = server.url("remote.git");
    let (status, said) = exit(&mut shop.apply(change(1), fence(1)));
    assert_eq!((status, said.contains("does not let us in")), (78, true), "{said}");
    shop.environment = [("GIT_USERNAME", "deploy"), ("GIT_PASSWORD", "falsches-wort")]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into();
    let (status, said) = exit(&mut shop.apply(change(1), fence(1)));
    assert_eq!((status, said.contains("falsches-wort")), (78, false), "{said}");
    shop.environment.insert("GIT_PASSWORD".to_owned(), "geheimnis".to_owned());
    succeeds(&mut shop.examine(change(1)));
    // While it stands still right before its end nothing of it shows the password among the arguments of processes.
    bare.hook("pre-receive", "for f in /proc/[0-9]*/cmdline; do cat $f 2>/dev/null; done >\"$GIT_DIR/seen\"\nexit 0");
    succeeds(&mut shop.apply(change(1), fence(1)));
    let seen = std::fs::read(bare.path.join("seen")).unwrap();
    let seen = String::from_utf8_lossy(&seen);
    assert!(seen.contains("--force-with-lease") && !seen.contains("geheimnis"), "{seen}");
    assert_eq!(shop.inspect(1).state, OperationState::Applied);
    assert_eq!(shop.raise(fence(9)).highest_fence, Some(fence(9)));
}

#[test]
fn what_is_down_is_worth_another_try_and_what_is_not_there_is_refused() {
    let bare = Bare::new(&["main"]);
    let server = Server::of(&bare.folder.0);
    let mut shop = Resource::of(&bare, &["main"], "apps/shop");
    shop.declared.url = server.url("none.git");
    assert_eq!(exit(&mut shop.apply(change(1), fence(1))).0, 78);
    shop.declared.url = server.url("remote.git");
    drop(server);
    for mut command in [shop.apply(change(1), fence(1)), shop.examine(change(1))] {
        let (status, said) = exit(&mut command);
        assert_eq!(status, 75, "{said}");
    }
    assert_eq!(bare.underwent("main"), [""; 0]);
}

#[test]
fn what_a_shallow_repository_does_not_have_is_unknown_and_never_guessed() {
    let bare = Bare::new(&["main"]);
    let shop = Resource::of(&bare, &["main"], "apps/shop");
    succeeds(&mut shop.apply(change(1), fence(1)));
    succeeds(&mut shop.apply(change(2), fence(2)));
    bare.history("main", 60);
    assert_eq!(shop.inspect(1).state, OperationState::Applied, "far back, and there");
    let copy = |name: &str, ledger: &[&str]| {
        let path = bare.folder.0.join(name);
        let from = format!("file://{}", bare.path.display());
        git(&bare.folder.0, &["clone", "--quiet", "--bare", "--depth=1", &from, path.to_str().unwrap()]);
        git(&path, &[&["fetch", "--quiet"], ledger, &[&from, &format!("{LEDGER}:{LEDGER}")]].concat());
        let mut other = shop.clone();
        other.declared.url = path.to_str().unwrap().to_owned();
        // What was brought from the whole one is known for good.
        other.cache = bare.folder.0.join(format!("cache of {name}"));
        other
    };
    let shallow = copy("shallow.git", &[]);
    let reading = shallow.inspect(1);
    assert_eq!(reading.state, OperationState::Unknown, "{}", reading.detail);
    assert_eq!(reading.revision.unwrap().as_str(), "v2", "the folder is as it was left");
    assert_eq!(shallow.inspect(3).state, OperationState::NotApplied);
    succeeds(&mut shallow.apply(expecting(change(3), "v2"), fence(3)));
    assert_eq!(shallow.inspect(3).state, OperationState::Applied);
    let cut = copy("cut.git", &["--depth=1"]);
    for number in [1, 3] {
        assert_eq!(cut.inspect(number).state, OperationState::Unknown);
    }
    let (status, said) = exit(&mut cut.apply(change(3), fence(3)));
    assert_eq!((status, said.contains("shallow")), (78, true), "{said}");
}

#[test]
fn a_cache_that_is_damaged_gone_or_held_by_a_call_that_stands_still_is_in_nobodys_way() {
    let bare = Bare::new(&["main"]);
    let shop = Resource::of(&bare, &["main"], "apps/shop");
    succeeds(&mut shop.apply(change(1), fence(1)));
    let objects = shop.cache.join("0.git/objects");
    std::fs::remove_dir_all(&objects).unwrap();
    std::fs::create_dir_all(objects.join("pack")).unwrap();
    assert_eq!(shop.inspect(1).state, OperationState::Applied);
    std::fs::remove_dir_all(&objects).unwrap();
    std::fs::create_dir_all(objects.join("pack")).unwrap();
    succeeds(&mut shop.apply(change(2), fence(2)));
    std::fs::write(shop.cache.join("0.git/HEAD"), "nonsense").unwrap();
    succeeds(&mut shop.apply(change(3), fence(3)));
    let frozen = stopped(shop.apply(change(4), fence(4)), "push");
    assert_eq!(shop.inspect(3).state, OperationState::Applied);
    std::fs::remove_dir_all(&shop.cache).unwrap();
    succeeds(&mut shop.apply(change(5), fence(5)));
    let (status, said) = goes_on(frozen);
    assert_ne!(status, 0, "{said}");
    assert_eq!(bare.underwent("main"), ["v1", "v2", "v3", "v5"]);
}

#[test]
fn files_belong_to_one_resource_wherever_it_is_declared() {
    let bare = Bare::new(&["main"]);
    let shop = Resource::of(&bare, &["main"], "apps/shop");
    succeeds(&mut shop.apply(change(1), fence(1)));
    let before = bare.refs();
    for path in ["apps/shop", "apps", "", "apps/shop/conf"] {
        let other = Resource { target: "other@prod", ..Resource::of(&bare, &["main"], path) };
        let calls = [
            other.apply(change(2), fence(9)),
            other.examine(change(2)),
            other.command(change(2), holdfast_agent::adapters::system::Call::Raise { fence: fence(9) }),
        ];
        for mut call in calls {
            let (status, said) = exit(&mut call);
            assert_eq!((status, said.contains("belongs to shop@prod/site")), (78, true), "{path}: {said}");
        }
    }
    assert_eq!(bare.refs(), before);
    let beside = Resource { target: "other@prod", ..Resource::of(&bare, &["main"], "apps/other") };
    succeeds(&mut beside.apply(change(2), fence(1)));
    succeeds(&mut shop.apply(expecting(change(3), "v1"), fence(3)));
}

#[test]
fn nothing_in_a_declaration_or_a_change_becomes_an_option_a_command_or_a_way_out() {
    let bare = Bare::new(&["main"]);
    let proof = bare.folder.0.join("proof");
    let touch = format!("touch {}", proof.display());
    let before = bare.refs();
    for url in [
        format!("ext::sh -c {}", touch.replace(' ', "% ")),
        format!("--upload-pack={touch}"),
        format!("--receive-pack={touch}"),
        format!("/nowhere;{touch}"),
        format!("ssh://-oProxyCommand={}/x", touch.replace(' ', "%20")),
    ] {
        let mut shop = Resource::of(&bare, &["main"], "apps/shop");
        shop.declared.url = url.clone();
        for mut command in [shop.apply(change(1), fence(1)), shop.examine(change(1))] {
            let (status, said) = exit(&mut command);
            assert_eq!(status, 78, "{url}: {said}");
        }
    }
    for branch in ["main:refs/heads/other", "a..b", "main\nx", "*", "ma[i]n", "HEAD^{}", ""] {
        let mut shop = Resource::of(&bare, &["main"], "apps/shop");
        shop.declared.branches = vec![branch.to_owned()];
        let (status, said) = exit(&mut shop.apply(change(1), fence(1)));
        assert_eq!(status, 78, "{branch}: {said}");
    }
    for path in
        ["../x", "/etc/x", "a/../x", ".git/config", "a/.GIT/config", "a//b", "a\nb", ".git\u{200c}/config", "git~1/x"]
    {
        let shop = Resource::of(&bare, &["main"], "apps/shop");
        for mut command in [shop.apply(files(1, &[(path, "x")]), fence(1)), shop.examine(files(1, &[(path, "x")]))] {
            let (status, said) = exit(&mut command);
            assert_eq!(status, 65, "{path:?}: {said}");
        }
    }
    assert!(!proof.exists());
    assert_eq!(bare.refs(), before);
}

#[test]
fn a_link_on_the_way_to_the_folder_is_not_followed_and_not_replaced() {
    let bare = Bare::new(&["main"]);
    let clone = bare.folder.0.join("clone");
    git(&bare.folder.0, &["clone", "--quiet", bare.path.to_str().unwrap(), clone.to_str().unwrap()]);
    std::os::unix::fs::symlink("/etc", clone.join("link")).unwrap();
    git(&clone, &["add", "link"]);
    git(&clone, &["commit", "--quiet", "--message", "a link"]);
    git(&clone, &["push", "--quiet"]);
    let before = bare.refs();
    for path in ["link", "link/shop", "README/shop"] {
        let shop = Resource::of(&bare, &["main"], path);
        let (status, said) = exit(&mut shop.apply(change(1), fence(1)));
        assert_eq!((status, bare.refs()), (78, before.clone()), "{path}: {said}");
    }
}

#[test]
fn a_branch_with_a_commit_that_the_ledger_lacks_is_partial() {
    let bare = Bare::new(&["main"]);
    let shop = Resource::of(&bare, &["main"], "apps/shop");
    succeeds(&mut shop.apply(change(1), fence(1)));
    let ledger = bare.git(&["rev-parse", LEDGER]);
    succeeds(&mut shop.apply(change(2), fence(2)));
    // As if the server had died between the two refs of its own push.
    bare.git(&["update-ref", LEDGER, &ledger]);
    let reading = shop.inspect(2);
    assert_eq!(reading.state, OperationState::Partial, "{}", reading.detail);
    assert!(reading.revision.unwrap().as_str().starts_with("git:"));
    succeeds(&mut shop.apply(change(2), fence(3)));
    assert_eq!(shop.inspect(2).state, OperationState::Applied);
}
