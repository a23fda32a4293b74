use super::header::BLOCK;
use super::*;
use craft::{FILE, Folder, PACKERS, Raw, dir, extended, file, gz, of_kind, tar, zst};

mod craft;

fn check_bytes(zipped: &[u8], limits: Limits) -> Result<Archive, Error> {
    let folder = Folder::new();
    let path = folder.0.join("archive.tar.gz");
    std::fs::write(&path, zipped).unwrap();
    Archive::check(&path, &hex(&Sha256::digest(zipped)), limits)
}

/// However it is packed, the same comes of it.
fn check(parts: &[Vec<u8>]) -> Result<Archive, Error> {
    let tar = tar(parts);
    let checked = check_bytes(&gz(&tar), Limits::default());
    let told = told(&checked);
    for (packer, pack) in PACKERS {
        assert_eq!(self::told(&check_bytes(&pack(&tar), Limits::default())), told, "{packer}");
    }
    checked
}

fn told(checked: &Result<Archive, Error>) -> String {
    match checked {
        Ok(archive) => format!("{:?}", archive.entries()),
        Err(error) => error.to_string(),
    }
}

/// The rule that refused the archive, and the entry's name where one was named.
fn refused(result: Result<Archive, Error>) -> (String, Why) {
    match result {
        Err(Error::Entry { name, why, .. }) => (name, why),
        Err(Error::Whole(why)) => (String::new(), why),
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn a_plain_archive_unpacks_whole_with_plain_modes() {
    let parts = [
        dir("./"),
        dir("./site/"),
        file("./site/index.html"),
        Raw { name: b"./bin/run", mode: b"0000775\0", content: b"#!/bin/sh\n", ..FILE }.bytes(),
        extended(b'x', &["path=deep/long/name", "mtime=1.5"]),
        file("short"),
        dir("empty"),
    ];
    for (packer, pack) in PACKERS {
        unpacks_whole(&pack(&tar(&parts)), packer);
    }
}

fn unpacks_whole(packed: &[u8], packer: &str) {
    let folder = Folder::new();
    // Its name says nothing.
    let path = folder.0.join("archive");
    std::fs::write(&path, packed).unwrap();
    let mut archive = Archive::check(&path, &hex(&Sha256::digest(packed)), Limits::default()).expect(packer);
    let parent = File::open(&folder.0).unwrap();
    archive.unpack(&parent, "out").unwrap();
    let read = |name: &str| std::fs::read(folder.0.join("out").join(name)).unwrap();
    assert_eq!(read("site/index.html"), b"hello");
    assert_eq!(read("deep/long/name"), b"hello");
    assert!(folder.0.join("out/empty").is_dir());
    let mode = |name: &str| {
        use std::os::unix::fs::PermissionsExt;
        std::fs::metadata(folder.0.join("out").join(name)).unwrap().permissions().mode() & 0o7777
    };
    assert_eq!((mode("site/index.html"), mode("bin/run"), mode("site")), (0o644, 0o755, 0o755));
    // The folder must be new.
    assert!(matches!(archive.unpack(&parent, "out"), Err(Error::Unpack { .. })));
}

#[test]
fn an_archive_made_by_the_system_tar_is_accepted() {
    let folder = Folder::new();
    std::fs::create_dir_all(folder.0.join("in/assets")).unwrap();
    std::fs::write(folder.0.join("in/index.html"), "x").unwrap();
    std::fs::write(folder.0.join("in/assets").join("n".repeat(150)), "y").unwrap();
    for format in ["gnu", "posix", "ustar"] {
        let path = folder.0.join(format!("{format}.tar.gz"));
        let status = std::process::Command::new("tar")
            .args(["--format", format, "-C"])
            .arg(folder.0.join("in"))
            .arg("-czf")
            .args([path.as_os_str(), ".".as_ref()])
            .status()
            .unwrap();
        // A name of 150 bytes does not fit ustar: tar says so and leaves it out.
        assert!(status.success() || format == "ustar");
        let digest = hex(&Sha256::digest(std::fs::read(&path).unwrap()));
        let archive = Archive::check(&path, &digest, Limits::default()).unwrap();
        assert!(archive.entries().iter().any(|entry| entry.path == "index.html"), "{format}");
    }
}

#[test]
fn every_hostile_name_is_refused_and_named() {
    let cases: &[(&str, Why)] = &[
        ("../evil", Why::Parent),
        ("a/../../evil", Why::Parent),
        ("/etc/passwd", Why::Absolute),
        ("a\nb", Why::ControlCharacter),
        ("a\u{1b}[31m", Why::ControlCharacter),
        ("a//b", Why::EmptyName),
        ("a/./b", Why::EmptyName),
        ("", Why::EmptyName),
    ];
    for (name, why) in cases {
        let (named, found) = refused(check(&[file("good"), file(name)]));
        assert_eq!((&named.as_str(), &found), (name, why));
    }
    assert_eq!(refused(check(&[Raw { name: b"a\xff", ..FILE }.bytes()])).1, Why::NotText);
    let in_pax = [extended(b'x', &["path=../../evil"]), file("good")];
    assert_eq!(refused(check(&in_pax)), ("../../evil".to_owned(), Why::Parent));
    let nul = [extended(b'x', &["path=good\0/../x"]), file("good")];
    assert_eq!(refused(check(&nul)).1, Why::ControlCharacter);
}

#[test]
fn links_devices_pipes_and_sparse_files_are_refused() {
    for kind in [b'1', b'2', b'3', b'4', b'6', b'7', b'S', b'K', b'V', b'Z'] {
        let (name, why) = refused(check(&[file("good"), of_kind(kind)]));
        assert_eq!(name, "odd");
        assert!(matches!(why, Why::NotPlain(_)), "{}: {why}", char::from(kind));
    }
    let sparse = [extended(b'x', &["GNU.sparse.major=1", "GNU.sparse.name=x"]), file("good")];
    assert!(matches!(refused(check(&sparse)).1, Why::Extended(_)));
    let linked = [extended(b'x', &["linkpath=/etc"]), file("good")];
    assert!(matches!(refused(check(&linked)).1, Why::Extended(_)));
}

#[test]
fn special_modes_are_refused() {
    for mode in [b"0004755\0", b"0002755\0", b"0001777\0"] {
        let (_, why) = refused(check(&[Raw { mode, ..FILE }.bytes()]));
        assert!(matches!(why, Why::SpecialMode { .. }), "{why}");
    }
}

#[test]
fn names_that_come_twice_or_are_both_are_refused() {
    assert_eq!(refused(check(&[file("a"), file("a")])).1, Why::Twice);
    assert_eq!(refused(check(&[file("a"), file("./a")])).1, Why::Twice);
    assert_eq!(refused(check(&[dir("a"), dir("a/")])).1, Why::Twice);
    assert_eq!(refused(check(&[file("a"), file("a/b")])).1, Why::FileAndDirectory);
    assert_eq!(refused(check(&[file("a/b"), file("a")])).1, Why::FileAndDirectory);
    assert_eq!(refused(check(&[dir("a"), file("a")])).1, Why::FileAndDirectory);
    assert_eq!(refused(check(&[file("a"), dir("a")])).1, Why::FileAndDirectory);
    assert_eq!(refused(check(&[file("a/")])).1, Why::FileAndDirectory);
    assert!(check(&[file("a/b"), dir("a")]).is_ok());
}

#[test]
fn headers_that_two_readers_could_read_in_two_ways_are_refused() {
    let mismatch = [extended(b'x', &["size=1"]), file("good")];
    assert_eq!(refused(check(&mismatch)).1, Why::SizeMismatch);
    let global_path = [extended(b'g', &["path=x"]), file("good")];
    assert!(matches!(refused(check(&global_path)).1, Why::Extended(_)));
    assert!(check(&[extended(b'g', &["comment=abc"]), file("good")]).is_ok());
    let long = Raw { name: b"././@LongLink", kind: b'L', content: b"long\0", gnu: true, ..FILE }.bytes();
    let both = [extended(b'x', &["path=pax"]), long.clone(), file("good")];
    assert!(matches!(refused(check(&both)).1, Why::Header(_)));
    let twice = [extended(b'x', &["path=a"]), extended(b'x', &["path=b"]), file("good")];
    assert!(matches!(refused(check(&twice)).1, Why::Header(_)));
    let orphan = [file("good"), extended(b'x', &["path=a"])];
    assert!(matches!(refused(check(&orphan)).1, Why::Framing(_)));
    let mut damaged = file("good");
    damaged[0] = b'h';
    assert!(matches!(refused(check(&[damaged])).1, Why::Header(_)));
    let mut base256 = file("good");
    base256[124] = 0x80;
    assert!(matches!(refused(check(&[base256])).1, Why::Header(_)));
    let full = Raw { name: b"d", kind: b'5', content: b"x", ..FILE }.bytes();
    assert_eq!(refused(check(&[full])).1, Why::DirectoryWithContent);
}

#[test]
fn a_cut_archive_or_one_that_goes_on_is_refused() {
    let whole = tar(&[file("a"), file("b")]);
    for (packer, pack) in PACKERS {
        for end in [BLOCK + 5, 3 * BLOCK, whole.len() - BLOCK] {
            let result = check_bytes(&pack(&whole[..end]), Limits::default());
            assert!(matches!(refused(result).1, Why::Framing(_)), "{packer} {end}");
        }
        let after = [whole.clone(), file("c")].concat();
        assert!(matches!(refused(check_bytes(&pack(&after), Limits::default())).1, Why::Framing(_)), "{packer}");
        let two = [pack(&whole), pack(&whole)].concat();
        assert!(matches!(refused(check_bytes(&two, Limits::default())).1, Why::Framing(_)), "{packer}");
        let trailing = [pack(&whole), b"x".to_vec()].concat();
        assert!(matches!(refused(check_bytes(&trailing, Limits::default())).1, Why::Framing(_)), "{packer}");
        let packed = pack(&whole);
        let cut = check_bytes(&packed[..packed.len() - 600.min(packed.len() / 2)], Limits::default());
        assert!(matches!(refused(cut).1, Why::Framing(_)), "{packer}");
    }
    let hole = [file("a"), vec![0; BLOCK], file("b")];
    assert!(matches!(refused(check(&hole)).1, Why::Framing(_)));
    let mut flipped = gz(&whole);
    let at = flipped.len() - 6;
    flipped[at] ^= 1;
    assert!(matches!(refused(check_bytes(&flipped, Limits::default())).1, Why::Packing(_)));
    let mut flipped = zst(&whole);
    flipped[8] ^= 0xff;
    assert!(matches!(refused(check_bytes(&flipped, Limits::default())).1, Why::Packing(_) | Why::Framing(_)));
}

#[test]
fn what_is_no_archive_by_its_first_bytes_is_refused_whatever_its_name() {
    let zip = [b"PK\x03\x04".to_vec(), vec![0; 600]].concat();
    let xz = [b"\xfd7zXZ\0".to_vec(), vec![0; 600]].concat();
    for bytes in [b"no archive at all".to_vec(), Vec::new(), vec![0; 2 * BLOCK], zip, xz, vec![b'u'; 300]] {
        assert_eq!(refused(check_bytes(&bytes, Limits::default())).1, Why::Format);
    }
    // Packed twice it is no tar file inside.
    let twice = gz(&gz(&tar(&[file("a")])));
    assert!(matches!(refused(check_bytes(&twice, Limits::default())).1, Why::Framing(_) | Why::Header(_)));
}

#[test]
fn a_zstd_frame_that_wants_too_much_memory_is_refused() {
    let packed = |window: u32| {
        let mut encoder = zstd::stream::Encoder::new(Vec::new(), 1).unwrap();
        encoder.long_distance_matching(true).unwrap();
        encoder.window_log(window).unwrap();
        std::io::Write::write_all(&mut encoder, &tar(&[file("a")])).unwrap();
        encoder.finish().unwrap()
    };
    assert!(check_bytes(&packed(27), Limits::default()).is_ok());
    let (_, why) = refused(check_bytes(&packed(28), Limits::default()));
    assert!(matches!(&why, Why::Packing(text) if text.contains("memory")), "{why}");
}

#[test]
fn bombs_are_refused_by_count_size_ratio_depth_and_length() {
    for pack in [gz, zst] {
        bombs_are_refused_when_packed_by(pack);
    }
}

fn bombs_are_refused_when_packed_by(pack: fn(&[u8]) -> Vec<u8>) {
    let few = Limits { entries: 3, ..Limits::default() };
    let many: Vec<Vec<u8>> = (0..4).map(|n| file(&format!("f{n}"))).collect();
    assert_eq!(refused(check_bytes(&pack(&tar(&many)), few)).1, Why::Entries { limit: 3 });
    let headers: Vec<Vec<u8>> = (0..4).map(|_| extended(b'g', &["comment=x"])).collect();
    assert_eq!(refused(check_bytes(&pack(&tar(&headers)), few)).1, Why::Entries { limit: 3 });

    let huge = Raw { size: Some(1 << 32), ..FILE }.bytes();
    assert!(matches!(refused(check_bytes(&pack(&tar(&[huge])), Limits::default())).1, Why::TotalBytes { .. }));
    let small = Limits { file_bytes: 4, ..Limits::default() };
    assert_eq!(refused(check_bytes(&pack(&tar(&[file("a")])), small)).1, Why::FileBytes { bytes: 5, limit: 4 });

    let zeros = Raw { content: &vec![0; 20 << 20], ..FILE }.bytes();
    assert!(matches!(refused(check_bytes(&pack(&tar(&[zeros])), Limits::default())).1, Why::TotalBytes { .. }));
    let mut padded = tar(&[file("a")]);
    padded.resize(20 << 20, 0);
    assert!(matches!(refused(check_bytes(&pack(&padded), Limits::default())).1, Why::TotalBytes { .. }));

    let deep = extended(b'x', &[&format!("path={}x", "d/".repeat(32))]);
    assert_eq!(refused(check(&[deep, file("a")])).1, Why::Depth { limit: 32 });
    let long = extended(b'x', &[&format!("path={}", "n".repeat(256))]);
    assert_eq!(refused(check(&[long, file("a")])).1, Why::NameLength { limit: 255 });
    let path = extended(b'x', &[&format!("path={}", "n/".repeat(600))]);
    assert_eq!(refused(check(&[path, file("a")])).1, Why::PathLength { limit: 1024 });

    let packed = Limits { packed_bytes: 10, ..Limits::default() };
    assert!(matches!(check_bytes(&pack(&tar(&[file("a")])), packed), Err(Error::Packed { .. })));
}

#[test]
fn another_digest_is_refused_before_anything_is_read() {
    let folder = Folder::new();
    let path = folder.0.join("archive.tar.gz");
    std::fs::write(&path, b"whatever").unwrap();
    let result = Archive::check(&path, &"0".repeat(64), Limits::default());
    assert!(matches!(result, Err(Error::Digest { .. })));
    assert!(matches!(Archive::check(&folder.0, &"0".repeat(64), Limits::default()), Err(Error::NotAFile { .. })));
    let missing = Archive::check(&folder.0.join("none"), &"0".repeat(64), Limits::default());
    assert!(matches!(missing, Err(error) if !error.is_refusal()));
}

#[test]
fn an_archive_that_changes_between_check_and_unpacking_is_refused() {
    let folder = Folder::new();
    let path = folder.0.join("archive.tar.gz");
    let zipped = gz(&tar(&[file("a")]));
    std::fs::write(&path, &zipped).unwrap();
    let mut archive = Archive::check(&path, &hex(&Sha256::digest(&zipped)), Limits::default()).unwrap();
    let other = Raw { name: b"a", content: b"other", ..FILE }.bytes();
    std::fs::write(&path, gz(&tar(&[other]))).unwrap();
    let parent = File::open(&folder.0).unwrap();
    assert!(matches!(archive.unpack(&parent, "out"), Err(Error::Digest { .. })));
}

proptest::proptest! {
    #[test]
    fn damage_anywhere_never_panics_and_never_names_an_outside_path(at in 0usize..3000, byte: u8) {
        let mut bytes = tar(&[dir("d"), file("d/a"), extended(b'x', &["path=p"]), file("b")]);
        let at = at % bytes.len();
        bytes[at] = byte;
        for (_, pack) in PACKERS {
            if let Ok(archive) = check_bytes(&pack(&bytes), Limits::default()) {
                for entry in archive.entries() {
                    proptest::prop_assert!(!entry.path.starts_with('/') && !entry.path.split('/').any(|part| part == ".."));
                }
            }
        }
    }
}
