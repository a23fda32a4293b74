use super::*;

fn archives(folder: &tempfile::TempDir, archive_bytes: u64, total_bytes: u64) -> Archives {
    let age = Duration::from_secs(10);
    Archives::open(folder.path().join("archives"), Bounds { archive_bytes, total_bytes, age }).expect("opens")
}

fn digest(bytes: &[u8]) -> Sha256 {
    Sha256::new(&hex(&sha2::Sha256::digest(bytes))).expect("a digest")
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

const ON_ITS_WAY: fn(u64) -> Standing = |next| Standing { next, stored: false };

#[test]
fn an_upload_goes_on_after_a_restart_and_is_there_once() {
    let folder = folder();
    let sha256 = digest(b"abcdefgh");
    let first = archives(&folder, 100, 1000);
    assert_eq!(first.standing(&sha256, 8).expect("room"), ON_ITS_WAY(0));
    assert_eq!(first.append(&sha256, 8, 0, b"abcd").expect("taken"), ON_ITS_WAY(4));
    assert_eq!(first.append(&sha256, 8, 6, b"gh").expect("a gap"), ON_ITS_WAY(4));
    let again = archives(&folder, 100, 1000);
    assert_eq!(again.standing(&sha256, 8).expect("room"), ON_ITS_WAY(4));
    assert_eq!(again.append(&sha256, 8, 2, b"cdef").expect("an overlap"), ON_ITS_WAY(6));
    assert!(!again.has(&sha256).expect("read"));
    assert!(again.append(&sha256, 8, 6, b"gh").expect("taken").stored);
    assert!(again.has(&sha256).expect("read"));
    assert!(again.append(&sha256, 8, 0, b"xxxx").expect("known").stored, "what is whole never changes");
    assert_eq!(fs::read(again.whole(&sha256)).expect("whole"), b"abcdefgh");
    assert_eq!(fs::read_dir(folder.path().join("archives/partial")).expect("a folder").count(), 0);
}

#[test]
fn another_content_than_the_digest_names_is_refused_and_gone() {
    let folder = folder();
    let archives = archives(&folder, 100, 1000);
    let sha256 = digest(b"abcd");
    let refused = archives.append(&sha256, 4, 0, b"abcx").expect_err("another content");
    assert!(matches!(refused, Error::Differs { found } if found == digest(b"abcx").0));
    assert_eq!(archives.standing(&sha256, 4).expect("room"), ON_ITS_WAY(0));
    assert!(archives.append(&sha256, 4, 0, b"abcd").expect("the right one").stored);
}

#[test]
fn sizes_are_bounded_before_a_byte_is_taken() {
    let folder = folder();
    let archives = archives(&folder, 10, 12);
    assert!(matches!(archives.standing(&digest(b""), 11), Err(Error::TooLarge { limit: 10, .. })));
    let first = digest(b"12345678");
    assert!(archives.append(&first, 8, 0, b"12345678").expect("room").stored);
    assert!(matches!(archives.append(&digest(b"x"), 5, 0, b"x"), Err(Error::NoRoom { .. })));
    assert_eq!(archives.append(&digest(b"more"), 4, 0, b"mo").expect("room"), ON_ITS_WAY(2));
    assert!(Sha256::new("../../etc/passwd").is_none() && Sha256::new(&"A".repeat(64)).is_none());
}

#[test]
fn what_is_needed_or_fresh_stays_and_the_rest_ages_out() {
    let folder = folder();
    let archives = archives(&folder, 100, 1000);
    let [needed, old, fresh] = [&b"needed"[..], b"old", b"fresh"].map(|bytes| {
        let sha256 = digest(bytes);
        assert!(archives.append(&sha256, bytes.len() as u64, 0, bytes).expect("room").stored);
        sha256
    });
    let now = SystemTime::now();
    for sha256 in [&needed, &old] {
        let file = File::open(archives.whole(sha256)).expect("whole");
        file.set_modified(now - Duration::from_secs(60)).expect("an older time");
    }
    assert_eq!(archives.sweep(&[needed.clone()].into(), now).expect("swept"), [old.clone()]);
    assert!(!archives.has(&old).expect("read"));
    assert!(archives.has(&needed).expect("read") && archives.has(&fresh).expect("read"));
}
