use uuid::Uuid;

use super::*;

struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        Self(std::env::temp_dir().join(format!("holdfast-logs-{}", Uuid::new_v4())))
    }

    fn open(&self, stream_bytes: u64) -> Logs {
        Logs::open(self.0.clone(), Bounds { stream_bytes, total_bytes: 1 << 30 }).expect("opens")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const DEPLOYMENT: DeploymentId = DeploymentId(Uuid::from_u128(7));

fn stream() -> Stream {
    let step = StepName::new("switch").expect("a name");
    Stream { attempt: AttemptId(Uuid::from_u128(1)), step, channel: Channel::Stdout }
}

fn chunk(offset: u64, data: &str) -> Chunk {
    Chunk { offset, data: data.into(), kept: offset.saturating_add(data.len() as u64), end: None }
}

fn take(logs: &Logs, chunk: &Chunk) -> Taken {
    logs.take(DEPLOYMENT, &stream(), chunk, Wall(5)).expect("taken")
}

fn next(logs: &Logs, chunk: &Chunk) -> u64 {
    take(logs, chunk).next
}

fn read(logs: &Logs, offset: u64) -> Found {
    logs.read(&stream(), offset).expect("read")
}

#[test]
fn chunks_sent_twice_or_overlapping_are_kept_once() {
    let folder = Folder::new();
    let logs = folder.open(1000);
    assert_eq!(next(&logs, &chunk(0, "abc")), 3);
    assert_eq!(next(&logs, &chunk(0, "abc")), 3);
    assert_eq!(next(&logs, &chunk(1, "bcde")), 5);
    assert_eq!(next(&logs, &chunk(0, "a")), 5);
    assert_eq!(read(&logs, 0), Found::Data(b"abcde".to_vec()));
    assert_eq!(read(&logs, 3), Found::Data(b"de".to_vec()));
}

#[test]
fn a_gap_is_not_taken_and_says_where_to_go_on() {
    let folder = Folder::new();
    let logs = folder.open(1000);
    assert_eq!(next(&logs, &chunk(7, "x")), 0);
    assert_eq!(read(&logs, 0), Found::NotYet(Some(8)), "what the host has is known");
    assert_eq!(next(&logs, &chunk(0, "abc")), 3);
    assert_eq!(next(&logs, &chunk(u64::MAX, "x")), 3);
    assert_eq!(read(&logs, 0), Found::Data(b"abc".to_vec()));
}

#[test]
fn a_question_without_data_makes_nothing_and_says_where_the_stream_stands() {
    let folder = Folder::new();
    let logs = folder.open(1000);
    assert_eq!(next(&logs, &chunk(0, "")), 0);
    assert!(!folder.0.join(stream().attempt.0.hyphenated().to_string()).exists());
    assert_eq!(next(&logs, &chunk(0, "abc")), 3);
    assert_eq!(next(&logs, &chunk(0, "")), 3);
}

#[test]
fn everything_is_there_after_a_restart() {
    let folder = Folder::new();
    assert_eq!(next(&folder.open(1000), &chunk(0, "abc")), 3);
    let logs = folder.open(1000);
    assert_eq!(next(&logs, &chunk(0, "")), 3);
    assert_eq!(next(&logs, &chunk(0, "abcd")), 4);
    let end = Chunk { end: Some(HostEnd::default()), ..chunk(4, "") };
    assert!(take(&logs, &end).stored);
    let logs = folder.open(1000);
    assert!(take(&logs, &end).stored, "the same end again");
    assert_eq!(next(&logs, &chunk(4, "more")), 4, "nothing comes after an end");
    assert_eq!(read(&logs, 0), Found::Data(b"abcd".to_vec()));
    assert_eq!(read(&logs, 4), Found::End(Vec::new()));
}

#[test]
fn segments_hold_a_stream_that_is_longer_than_one_of_them() {
    let folder = Folder::new();
    let logs = folder.open(1 << 30);
    let piece = vec![b'x'; 1_500_000];
    for number in 0..6 {
        let offset = number * 1_500_000;
        assert_eq!(next(&logs, &Chunk { offset, data: piece.clone(), kept: 0, end: None }), offset + 1_500_000);
    }
    let segments = fs::read_dir(logs.0.places.stream(&stream())).expect("a folder").count();
    assert_eq!(segments, 3);
    let mut offset = 0;
    while let Found::Data(data) = read(&logs, offset) {
        assert!(!data.is_empty() && data.len() <= READ_BYTES);
        offset += data.len() as u64;
    }
    assert_eq!(offset, 9_000_000);
}

#[test]
fn what_is_kept_of_an_output_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    fn all(folder: &std::path::Path, found: &mut Vec<std::path::PathBuf>) {
        for entry in std::fs::read_dir(folder).expect("there").flatten() {
            found.push(entry.path());
            if entry.path().is_dir() {
                all(&entry.path(), found);
            }
        }
    }
    let folder = Folder::new();
    let logs = folder.open(1000);
    assert!(take(&logs, &Chunk { end: Some(HostEnd::default()), ..chunk(0, "abc") }).stored);
    let mut found = Vec::new();
    all(&folder.0, &mut found);
    assert!(["about.json", "end.json"].iter().all(|name| found.iter().any(|path| path.ends_with(name))), "{found:?}");
    for path in found {
        let mode = std::fs::metadata(&path).expect("there").permissions().mode();
        assert_eq!(mode & 0o077, 0, "{}", path.display());
    }
}

#[test]
fn what_a_host_had_no_room_for_is_told_apart_from_what_is_behind_its_bound() {
    for (cut_for_room, reason) in [(true, GapReason::NoRoomOnHost), (false, GapReason::CutOnHost)] {
        let end = End { stored: 4, kept: 4, cut: 9, cut_for_room, ..End::default() };
        assert_eq!(end.gaps(4), [Gap { from: 4, length: Some(9), reason }]);
    }
}

#[test]
fn every_kind_of_gap_has_its_place_and_its_size() {
    let folder = Folder::new();
    let logs = folder.open(4);
    let taken = take(&logs, &chunk(0, "abcdefg"));
    assert_eq!((taken.next, taken.limit_reached), (4, true));
    let end = Some(HostEnd { cut: 10, cut_for_room: false, lost: 2, unknown: true });
    let last = Chunk { offset: 4, data: Vec::new(), kept: 9, end };
    assert!(take(&logs, &last).stored);
    let gap = |from, length, reason| Gap { from, length, reason };
    let all = vec![
        gap(4, Some(3), GapReason::CutByCoordinator),
        gap(7, Some(2), GapReason::LostOnHost),
        gap(9, Some(10), GapReason::CutOnHost),
        gap(19, None, GapReason::LostOnHost),
    ];
    assert_eq!(read(&logs, 4), Found::End(all.clone()));
    assert_eq!(read(&logs, 9), Found::End(all[2..].to_vec()), "a reader goes on behind what it was told");
    assert_eq!(read(&logs, 19), Found::End(all[3..].to_vec()));
    fs::write(logs.0.places.stream(&stream()).join(format!("{:020}", 0)), "ab").expect("damaged");
    let Found::End(gaps) = read(&logs, 2) else { panic!("not told as ended") };
    assert_eq!(gaps[0], gap(2, Some(2), GapReason::LostByCoordinator));
}

#[test]
fn an_empty_stream_that_ended_is_there() {
    let folder = Folder::new();
    let logs = folder.open(4);
    let taken = take(&logs, &Chunk { end: Some(HostEnd::default()), ..chunk(0, "") });
    assert_eq!((taken.next, taken.stored), (0, true));
    assert_eq!(read(&logs, 0), Found::End(Vec::new()));
}

#[test]
fn what_retention_removed_is_told_with_its_size_and_date_and_takes_nothing_more() {
    let folder = Folder::new();
    let logs = folder.open(1000);
    let end = Some(HostEnd { cut: 3, ..HostEnd::default() });
    assert!(take(&logs, &Chunk { end, ..chunk(0, "abcde") }).stored);
    let kept = removal::survey(&logs.0.places).expect("listed");
    assert_eq!(kept.len(), 1);
    assert_eq!((kept[0].deployment, kept[0].bytes), (DEPLOYMENT, 5 + OVERHEAD));
    removal::remove(&logs.0.places, &kept[0], Wall(99)).expect("removed");
    let told = vec![
        Gap { from: 2, length: Some(3), reason: GapReason::Removed { at: Wall(99) } },
        Gap { from: 5, length: Some(3), reason: GapReason::CutOnHost },
    ];
    assert_eq!(read(&logs, 2), Found::End(told.clone()));
    assert!(take(&logs, &chunk(5, "late")).stored, "an agent is not kept waiting");
    assert!(!logs.0.places.attempt(stream().attempt).exists());
    assert_eq!(read(&folder.open(1000), 2), Found::End(told), "after a restart too");
}

#[test]
fn a_removal_cut_by_a_crash_is_ended_at_the_next_start() {
    let folder = Folder::new();
    let logs = folder.open(1000);
    assert_eq!(next(&logs, &chunk(0, "abc")), 3);
    let attempt = logs.0.places.attempt(stream().attempt);
    let aside = folder.0.join("aside");
    // The record is there, the folder still stands.
    copy(&attempt, &aside);
    let kept = removal::survey(&logs.0.places).expect("listed");
    removal::remove(&logs.0.places, &kept[0], Wall(9)).expect("removed");
    fs::rename(&aside, &attempt).expect("as before the rename");
    fs::create_dir_all(folder.0.join("trash/half/gone")).expect("half removed");
    let logs = folder.open(1000);
    assert!(!attempt.exists());
    assert_eq!(fs::read_dir(folder.0.join("trash")).expect("a folder").count(), 0);
    let reason = GapReason::Removed { at: Wall(9) };
    assert_eq!(read(&logs, 0), Found::End(vec![Gap { from: 0, length: Some(3), reason }]));
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("made");
    for entry in fs::read_dir(from).expect("a folder") {
        let path = entry.expect("an entry").path();
        let target = to.join(path.file_name().expect("a name"));
        if path.is_dir() { copy(&path, &target) } else { fs::copy(&path, &target).map(drop).expect("copied") }
    }
}

#[test]
fn without_room_nothing_is_taken_and_the_agent_is_told_to_wait() {
    let folder = Folder::new();
    let bounds = Bounds { stream_bytes: 1 << 20, total_bytes: OVERHEAD + 4 };
    let logs = Logs::open(folder.0.clone(), bounds).expect("opens");
    let taken = take(&logs, &chunk(0, "abcde"));
    assert_eq!((taken.next, taken.full), (0, true));
    assert!(!take(&logs, &chunk(0, "abc")).full);
}

#[test]
fn an_arrival_rings_the_bell_of_its_deployment() {
    let folder = Folder::new();
    let logs = folder.open(1000);
    let mut bell = logs.arrivals(DEPLOYMENT);
    assert!(!bell.has_changed().expect("open"));
    let _ = take(&logs, &chunk(0, "abc"));
    assert!(bell.has_changed().expect("open"));
    bell.borrow_and_update();
}

#[test]
fn names_are_made_here() {
    let places = Places::below(PathBuf::from("/l"));
    assert_eq!(places.stream(&stream()), Path::new("/l/00000000-0000-0000-0000-000000000001/switch.stdout"));
    assert_eq!(parse_stream(stream().attempt, "switch.stdout"), Some(stream()));
    assert_eq!(parse_stream(stream().attempt, "about.json"), None);
}
